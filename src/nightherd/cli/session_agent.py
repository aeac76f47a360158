"""Whose a session is: the agent that goes on in it."""

from __future__ import annotations

import os
from collections.abc import Iterable

from nightherd.cli.errand import find_agent
from nightherd.cli.invocation import Invocation
from nightherd.cli.session_options import reading
from nightherd.engine.hand_turns import CLAUDE
from nightherd.errors import AgentNotFoundError, RefusedError
from nightherd.model.agent import Agent, Fleet
from nightherd.model.job import Job
from nightherd.model.session import Session
from nightherd.views.sessions import get_session


def agent_for(session: Session, fleet: Fleet, named: str | None = None) -> Agent:
    """The session's own agent. For a session of no agent of the fleet, the one that was `named`, else the only one
    that is run by Claude in its directory.

    `AgentNotFoundError` when there is none, or more than one; `RefusedError` when the named one does not fit.
    """
    own = fleet.agents.get(session.agent)
    if own is not None and named in (None, own.name):
        return own
    if named is not None:
        chosen = find_agent(fleet, named)
        _check(session, chosen, own)
        return chosen
    if session.runtime_type not in CLAUDE:
        return find_agent(fleet, session.agent)
    fitting = [agent for agent in fleet.agents.values() if _fits(session, agent)]
    if len(fitting) == 1:
        return fitting[0]
    whose = f"session {session.id} is of no agent of the fleet"
    if fitting:
        raise AgentNotFoundError(
            f"{whose}; {_names(fitting)} could go on in it",
            hint=f"nightherd session resume {session.id} --agent {fitting[0].name}",
        )
    raise AgentNotFoundError(
        f"{whose}, and none that is run by Claude works in {session.working_directory}",
        hint="declare one with that working_directory and `runtime: sdk` or `cli`",
    )


def agent_of_job(job: Job, invocation: Invocation, fleet: Fleet) -> Agent:
    """The job's own agent; for a job that came from elsewhere, the one that goes on in its session."""
    if job.session_id is None or job.agent in fleet.agents:
        return find_agent(fleet, job.agent)
    with reading(invocation) as reader:
        return agent_for(get_session(reader, job.session_id), fleet)


def _check(session: Session, agent: Agent, own: Agent | None) -> None:
    if own is not None:
        raise RefusedError(
            f"session {session.id} belongs to agent {own.name!r}, not to {agent.name!r}"
        )
    if session.runtime_type in CLAUDE and session.runtime_session_id and not _fits(session, agent):
        raise RefusedError(
            f"session {session.id} is Claude's, in {session.working_directory}; agent {agent.name!r} is run by "
            f"{agent.runtime.value} in {agent.working_directory}",
            hint="name an agent that is run by Claude in that directory",
        )


def _fits(session: Session, agent: Agent) -> bool:
    """Whether Claude, run for the agent, finds the session: it looks only where it works."""
    here, there = (os.path.realpath(one.working_directory) for one in (agent, session))
    return agent.runtime.value in CLAUDE and here == there


def _names(agents: Iterable[Agent]) -> str:
    return ", ".join(repr(agent.name) for agent in agents)
