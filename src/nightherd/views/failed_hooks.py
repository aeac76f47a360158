"""Failed hooks of the fleet: those of each agent's last job."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from nightherd.errors import JournalError
from nightherd.model.agent import Agent
from nightherd.model.ids import JobId
from nightherd.model.system import HookRan
from nightherd.ports import FleetReader, Journals
from nightherd.views.results import troubles_in

TAIL = 64
"""Events at the end of a journal among which the hooks of the job are."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FailedHook:
    """A hook that failed, and the job whose hook it is."""

    agent: str
    job_id: JobId
    hook: HookRan


def failed_hooks(
    reader: FleetReader, journals: Journals, declared: Mapping[str, Agent]
) -> Sequence[FailedHook]:
    """Return the hooks that failed of the last job of each declared agent with hooks.

    Reads only the end of those journals: the cost depends on the number of agents, not on their history.
    """
    return [
        FailedHook(agent=state.name, job_id=state.last_job, hook=hook)
        for state in reader.list_agents()
        if state.last_job is not None and state.name in declared and declared[state.name].hooks
        for hook in _failed_in(journals, state.last_job)
    ]


def _failed_in(journals: Journals, job_id: JobId) -> Sequence[HookRan]:
    """The failed hooks of one job. A journal that cannot be read hides its own only: `doctor` reports it."""
    try:
        return troubles_in(journals.last(job_id, TAIL)).failed_hooks
    except JournalError:
        return ()


def failed_hook_row(failed: FailedHook) -> dict[str, Any]:
    """Return a failed hook as plain data."""
    return {
        "agent": failed.agent,
        "job_id": failed.job_id,
        "name": failed.hook.name,
        "event": failed.hook.event,
        "error": failed.hook.error,
    }
