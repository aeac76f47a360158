"""Values and paths in a form that can be recorded and compared: fingerprints, and paths from the fleet's directory."""

from __future__ import annotations

import hashlib
import posixpath
from collections.abc import Mapping
from typing import Any

import msgspec


def relative(path: str, home: str) -> str:
    """A path below `home` as seen from there, so that a directory that was moved grants the same."""
    return posixpath.relpath(path, home) if is_within(path, home) else posixpath.normpath(path)


def absolute(path: str, home: str) -> str:
    """What `relative` made the path of."""
    return posixpath.normpath(posixpath.join(home, path))


def is_within(path: str, directory: str) -> bool:
    """Whether `path` is `directory` or lies in it."""
    path, directory = posixpath.normpath(path), posixpath.normpath(directory)
    return path == directory or path.startswith(f"{directory.rstrip('/')}/")


def fingerprint(value: Any) -> str:
    """A text that is the same for the same value, and does not show it."""
    plain = msgspec.json.encode(_named(value), order="sorted")
    return hashlib.sha256(plain).hexdigest()[:32]


def _named(value: Any) -> Any:
    """`value` with the name of its type, where that is one of ours."""
    if isinstance(value, msgspec.Struct):
        return [type(value).__name__, value]
    if isinstance(value, Mapping):
        return {str(name): _named(item) for name, item in value.items()}
    if isinstance(value, list | tuple):
        return [_named(item) for item in value]
    return value
