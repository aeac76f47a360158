"""Protected paths as they are on this machine, for runtimes that decide on calls themselves."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterable, Mapping

from anyio import to_thread
from msgspec.structs import replace

from nightherd.errors import RefusedError
from nightherd.model.ids import ExecutionId
from nightherd.model.permissions.permission import Permissions, permissions_of
from nightherd.model.permissions.protected import NAMES_ONLY, on_this_machine
from nightherd.ports import RuntimeRequest
from nightherd.runtimes.keeper.attendant import EXECUTION_MARK, execution_mark
from nightherd.runtimes.keeper.attendant import kill_marked as kill_mark
from nightherd.runtimes.keeper.census import environment, processes
from nightherd.runtimes.keeper.place import HOST, FilesThere
from nightherd.runtimes.real_path import real_path_at


def permissions_for(request: RuntimeRequest, place: FilesThere = HOST) -> Permissions:
    """What the agent of `request`, whose commands run at `place`, may do in this run."""
    real_path = real_path_at(place)
    protection = NAMES_ONLY
    if request.protected is not None:
        protection = on_this_machine(
            request.protected,
            real_path=os.path.realpath,
            is_file=os.path.isfile,
            shares_file=shares_file,
            is_directory=os.path.isdir,
        )
        protection = replace(protection, real_path=real_path)
    return permissions_of(
        request.agent,
        injected=tuple(request.injected_servers),
        real_path=real_path,
        protection=protection,
    )


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


_PREFIX = os.fsencode(f"{EXECUTION_MARK}=")


async def kill_all_marked(
    executions: Collection[ExecutionId], *, directory: str
) -> Mapping[ExecutionId, str]:
    """Kill every process of these executions and see them gone; what could not be killed, and why.

    However many executions: the system's processes are looked through once, and again only for those
    that left something behind.
    """
    left: dict[ExecutionId, str] = {}
    running = await to_thread.run_sync(_running_marks)
    for execution in executions:
        for mark in _marks(execution, directory) & running:
            try:
                await kill_mark(mark)
            except RefusedError as error:
                left[execution] = error.message
    return left


async def kill_marked(execution: ExecutionId, *, directory: str) -> int:
    """Kill every process of this execution and see it gone; how many there were. `RefusedError` when one stays."""
    return sum([await kill_mark(mark) for mark in _marks(execution, directory)])


def _marks(execution: ExecutionId, directory: str) -> set[str]:
    return {execution_mark(execution, directory), execution}


def _running_marks() -> set[str]:
    """Return the marks of all processes that run."""
    return {
        os.fsdecode(entry.removeprefix(_PREFIX))
        for process in processes()
        for entry in environment(process.pid)
        if entry.startswith(_PREFIX)
    }
