"""Timers of runs: waits and timeouts that are over."""

from __future__ import annotations

from nightherd.engine.contexts import Stores
from nightherd.model.change import Applied, Change
from nightherd.model.workflows.conductor.changes import AdvanceRun

AT_ONCE = 50


async def advance_due_runs(context: Stores) -> int:
    """Advance every run with a wait or timeout that is over, and return how many did. However many look, each ends once."""
    at = context.clock.now()
    due = context.reader.runs_to_advance(at, AT_ONCE)
    if not due:
        return 0
    changes: list[Change] = [AdvanceRun(run_id=run_id, at=at) for run_id in due]
    answers = await context.state.apply(changes)
    return sum(isinstance(answer, Applied) and bool(answer.rows) for answer in answers)
