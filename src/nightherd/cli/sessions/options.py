"""What the session commands share: how a session is named, and where it is found."""

from __future__ import annotations

import os
from collections.abc import Iterable
from contextlib import closing

import anyio
import click

from nightherd.cli.imports import fleet_if_any
from nightherd.cli.invocation import Invocation
from nightherd.cli.jobs.command import find_agent
from nightherd.cli.options import Command, complete_agents, complete_sessions
from nightherd.engine.sessions.import_turns import ImportedTurns, import_transcript_turns
from nightherd.errors import AgentNotFoundError, RefusedError
from nightherd.model.agents.agent import Agent, Fleet
from nightherd.model.jobs.job import Job
from nightherd.model.sessions.session import Session
from nightherd.ports import StateReader
from nightherd.views.sessions import find_session, get_session
from nightherd.wiring.repair import open_turn_import
from nightherd.wiring.runtimes import keeps_claude_transcripts
from nightherd.wiring.stores import open_reader


def session_argument(command: Command) -> Command:
    """A session: our id or its runtime's, a unique prefix of one, or `@last`."""
    return click.argument("session", metavar="SESSION", shell_complete=complete_sessions)(command)


def agent_option(command: Command) -> Command:
    """Who goes on in a session that came from elsewhere."""
    return click.option(
        "--agent",
        metavar="AGENT",
        shell_complete=complete_agents,
        help="Agent to continue an imported session.",
    )(command)


def reading(invocation: Invocation) -> closing[StateReader]:
    """Questions about state, for as long as the block lasts."""
    return closing(open_reader(invocation.state_directory()))


def imported_session(invocation: Invocation, reference: str) -> Session:
    """The same, for those who want to know what was said in it: one that was imported is read now."""

    session = named_session(invocation, reference)
    if session.imported_from is None or session.runtime_session_id is None:
        return session
    return ensure_transcript_imported(invocation, session)


def named_session(invocation: Invocation, reference: str) -> Session:
    """The session's row now; `SessionNotFoundError` when there is none by that name."""
    with reading(invocation) as reader:
        return find_session(reader, reference)


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
    if not keeps_claude_transcripts(session.runtime_type):
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
    is_claudes = keeps_claude_transcripts(session.runtime_type)
    if is_claudes and session.runtime_session_id and not _fits(session, agent):
        raise RefusedError(
            f"session {session.id} is Claude's, in {session.working_directory}; agent {agent.name!r} is run by "
            f"{agent.runtime.name} in {agent.working_directory}",
            hint="name an agent that is run by Claude in that directory",
        )


def _fits(session: Session, agent: Agent) -> bool:
    """Whether Claude, run for the agent, finds the session: it looks only where it works."""
    here, there = (os.path.realpath(one.working_directory) for one in (agent, session))
    return agent.runtime.can_resume(session.runtime_type) and here == there


def _names(agents: Iterable[Agent]) -> str:
    return ", ".join(repr(agent.name) for agent in agents)


def ensure_transcript_imported(invocation: Invocation, session: Session) -> Session:
    """The session with everything on record that its transcript was imported with."""
    state, fleet = invocation.state_directory(), fleet_if_any(invocation)

    async def tell() -> ImportedTurns:
        async with open_turn_import(state, fleet, invocation.environ) as turn_import:
            return await import_transcript_turns(session, turn_import)

    return anyio.run(tell).session
