"""Naming things by dotted path: nothing is imported before it is used."""

from __future__ import annotations

from importlib import import_module
from typing import Any


def load(path: str) -> Any:
    """The object at `module:name`."""
    module, _, name = path.partition(":")
    return getattr(import_module(module), name)
