"""Marked processes: everything an execution started carries its id in the environment."""

from __future__ import annotations

import os
from collections.abc import Collection, Mapping

from anyio import to_thread

from nightherd.errors import RefusedError
from nightherd.model.ids import ExecutionId
from nightherd.runtimes.keeper.census import environment, processes
from nightherd.runtimes.keeper.ending import EXECUTION_MARK, kill_marked

_PREFIX = os.fsencode(f"{EXECUTION_MARK}=")


async def kill_all_marked(executions: Collection[ExecutionId]) -> Mapping[ExecutionId, str]:
    """Kill every process of these executions and see them gone; what could not be killed, and why.

    However many executions: the system's processes are looked through once, and again only for those
    that left something behind.
    """
    left: dict[ExecutionId, str] = {}
    there = await to_thread.run_sync(_marked_executions)
    for execution in executions:
        if execution in there:
            try:
                await kill_marked(execution)
            except RefusedError as error:
                left[execution] = error.message
    return left


def _marked_executions() -> set[str]:
    """The executions of which processes run."""
    return {
        os.fsdecode(entry.removeprefix(_PREFIX))
        for process in processes()
        for entry in environment(process.pid)
        if entry.startswith(_PREFIX)
    }
