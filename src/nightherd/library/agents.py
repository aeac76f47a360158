"""The state of an agent, for programs."""

from __future__ import annotations

from pathlib import Path

from anyio import to_thread

from nightherd.errors import AgentNotFoundError, RefusedError
from nightherd.host.liveness import is_at_work
from nightherd.library.changes import open_changes
from nightherd.library.reading import reading
from nightherd.mirror.fleet_state import ScheduleState
from nightherd.model.agent_state import AgentState, AgentStatus
from nightherd.model.change import Refused, ResetAgent
from nightherd.views.fleet import show_fleet
from nightherd.wiring.memories import system_clock
from nightherd.wiring.mirrors import refresh_mirror


def get_agent_state(state_dir: str | Path, agent: str) -> AgentState:
    """Return what an agent is doing now; `idle` for an agent that never had a job."""
    with reading(state_dir) as reader:
        view = show_fleet(reader, {}, is_at_work, system_clock().now())
    states = (one.state for one in view.agents if one.state.name == agent)
    return next(states, AgentState(name=agent))


async def update_agent_state(
    state_dir: str | Path, agent: str, *, status: str = AgentStatus.IDLE
) -> AgentState:
    """Clear the error of an agent (status `idle`) and return its state.

    Everything else about an agent follows from its jobs: `RefusedError` for another status.
    """
    root = Path(state_dir)
    if status != AgentStatus.IDLE:
        raise RefusedError(
            f"cannot set agent {agent!r} to {status}: its status follows from its jobs",
            hint="a program can set idle, which clears the error",
        )
    async with open_changes(root) as record:
        (answer,) = await record.state.apply([ResetAgent(agent=agent)])
    if isinstance(answer, Refused):
        raise AgentNotFoundError(answer.message, hint="nightherd agent list")
    await to_thread.run_sync(lambda: refresh_mirror(root, is_new=False))
    return get_agent_state(root, agent)


def create_default_schedule_state() -> ScheduleState:
    """Return the state of a schedule that never ran: `idle`, everything else None."""
    return ScheduleState()
