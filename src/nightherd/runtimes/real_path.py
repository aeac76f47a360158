"""Real paths where an agent's commands run: links are followed as they are followed there."""

from __future__ import annotations

import os
import posixpath
from collections.abc import Callable

from nightherd.runtimes.keeper.place import FilesThere

MOST_LINKS = 40
"""As many as the kernel follows."""


def real_path_at(place: FilesThere) -> Callable[[str], str]:
    """What tells the real path of an absolute path at `place`: this machine's where the file is shared with it.

    So a file that is mounted under a second name is known by one, and a rule for it cannot be evaded.
    """
    if not place.is_container:
        return os.path.realpath

    def real_path(path: str) -> str:
        there = _follow(path, place)
        return place.host_path(there) or there

    return real_path


def shared_file(path: str, place: FilesThere) -> str | None:
    """The path on this machine of what a container has at `path`, links followed; None when it is not shared.

    To be opened without following links: it may be exchanged at any time.
    """
    return place.host_path(_follow(path, place))


def _follow(path: str, place: FilesThere) -> str:
    """The path there without links, as far as they can be seen from here; `OSError` or `ValueError` if it can be none."""
    current, rest, links = "/", path.split("/")[::-1], 0
    while rest:
        part = rest.pop()
        if part in {"", "."}:
            continue
        if part == "..":
            current = posixpath.dirname(current)
            continue
        candidate = posixpath.join(current, part)
        target = _link_at(place.host_path(candidate))
        if target is None:
            current = candidate
            continue
        links += 1
        if links > MOST_LINKS:
            return posixpath.normpath(posixpath.join(candidate, *rest[::-1]))
        current = "/" if target.startswith("/") else current
        rest += target.split("/")[::-1]
    return current


def _link_at(path: str | None) -> str | None:
    """Where the link at `path` leads; None for what is no link."""
    if path is None:
        return None
    try:
        return os.readlink(path)  # noqa: PTH115 (text in, per part of a path)
    except OSError:
        return None
