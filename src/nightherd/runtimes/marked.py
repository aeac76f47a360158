"""Marked processes: everything an execution started carries its id in the environment."""

from __future__ import annotations

from nightherd.model.ids import ExecutionId
from nightherd.runtimes.tools.processes import stop_processes

EXECUTION_MARK = "NIGHTHERD_EXECUTION"


async def kill_marked(execution: ExecutionId) -> None:
    """Kill every process that carries the execution's mark; returns once none is left."""
    await stop_processes({EXECUTION_MARK: execution}, grace_s=0.0)
