"""Naming things by dotted path: nothing is imported before it is used."""

from __future__ import annotations

import sys
from importlib import import_module
from typing import Any


def load(path: str) -> Any:
    """The object at `module:name`."""
    module, _, name = path.partition(":")
    # What is there already is asked for with every job. A module that another thread is just importing may
    # lack the name still: importing it waits for that.
    found = getattr(sys.modules.get(module), name, None)
    return getattr(import_module(module), name) if found is None else found
