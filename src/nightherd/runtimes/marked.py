"""Marked processes: everything an execution started carries a mark in its environment.

The mark names the execution and the state directory. Processes of an older nightherd have a mark that names
only the execution; they are found too.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Mapping

from anyio import to_thread

from nightherd.errors import RefusedError
from nightherd.model.ids import ExecutionId
from nightherd.runtimes.keeper.census import environment, processes
from nightherd.runtimes.keeper.ending import EXECUTION_MARK, execution_mark
from nightherd.runtimes.keeper.ending import kill_marked as kill_mark

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
