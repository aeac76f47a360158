"""Protected paths as they are on this machine, for runtimes that decide on calls themselves."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import Any

from nightherd.model.permission import Permissions, permissions_of, protected_change
from nightherd.model.protected import NAMES_ONLY, on_this_machine
from nightherd.ports import RuntimeRequest


def permissions_for(request: RuntimeRequest) -> Permissions:
    """What the agent of `request` may do in this run."""
    protection = NAMES_ONLY
    if request.protected is not None:
        protection = on_this_machine(
            request.protected,
            real_path=os.path.realpath,
            is_file=os.path.isfile,
            shares_file=shares_file,
            is_directory=os.path.isdir,
        )
    return permissions_of(
        request.agent,
        injected=tuple(request.injected_servers),
        real_path=os.path.realpath,
        protection=protection,
    )


def refuse_protected(request: RuntimeRequest) -> Callable[[str, Mapping[str, Any]], str | None]:
    """Return what says why a call of the run is refused that would change a protected file."""
    permissions = permissions_for(request)
    return partial(protected_change, permissions)


def shares_file(path: str, others: Iterable[str]) -> bool:
    """Whether the file at `path` is one of `others` by another name."""
    try:
        found = os.stat(path)  # noqa: PTH116 (text in, per call)
    except (OSError, ValueError):
        return False
    if found.st_nlink < 2:
        return False
    return any(_is_same(found, other) for other in others)


def _is_same(found: os.stat_result, other: str) -> bool:
    try:
        return os.path.samestat(found, os.stat(other))  # noqa: PTH116
    except (OSError, ValueError):
        return False
