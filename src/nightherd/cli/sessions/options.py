"""What the session commands share: how a session is named, and where it is found."""

from __future__ import annotations

from contextlib import closing

import anyio
import click

from nightherd.cli.imports import fleet_if_any
from nightherd.cli.invocation import Command, Invocation, complete_agents, complete_sessions
from nightherd.cli.jobs.command import find_agent
from nightherd.cli.operations import agents_of_fleet
from nightherd.engine.operations.fork import AtCheckpoint, AtEvent, AtMessage, ForkAt
from nightherd.engine.sessions.import_turns import ImportedTurns, import_transcript_turns
from nightherd.errors import UsageError
from nightherd.model.agents.agent import Agent, Fleet
from nightherd.model.ids import JobId
from nightherd.model.jobs.job import Job
from nightherd.model.sessions.session import Session
from nightherd.ports import StateReader
from nightherd.views.sessions.sessions import find_session
from nightherd.wiring.repair import open_turn_import
from nightherd.wiring.stores import open_reader


def session_argument(command: Command) -> Command:
    """A session: our id or its runtime's, a unique prefix of one, or `@last`."""
    return click.argument("session", metavar="SESSION", shell_complete=complete_sessions)(command)


def agent_option(command: Command) -> Command:
    """The agent that continues an imported session."""
    return click.option(
        "--agent",
        metavar="AGENT",
        shell_complete=complete_agents,
        help="Agent to continue an imported session.",
    )(command)


def place_given(
    at_message: int | None,
    at_seq: int | None,
    at_checkpoint: int | None,
    *,
    job_id: JobId | None = None,
) -> ForkAt | None:
    """Return where to fork: the one place that was named, in that job if one is; None when none was."""
    if sum(given is not None for given in (at_message, at_seq, at_checkpoint)) > 1:
        raise UsageError("--at-message, --at-seq and --at-checkpoint cannot be used together")
    if at_message is not None:
        return AtMessage(number=at_message)
    if at_seq is not None:
        return AtEvent(seq=at_seq, job_id=job_id)
    return AtCheckpoint(number=at_checkpoint, job_id=job_id) if at_checkpoint is not None else None


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
    """Return the agent that continues the session: its own, else the one that was named, else the only one that can."""
    if named is not None and named not in fleet.agents:
        find_agent(fleet, named)  # with the nearest names
    return agents_of_fleet(fleet).of_session(session, named)


def agent_of_job(job: Job, invocation: Invocation, fleet: Fleet) -> Agent:
    """Return the job's own agent; for an imported job, the one that continues its session."""
    with reading(invocation) as reader:
        return agents_of_fleet(fleet).of_job(job.id, reader)


def ensure_transcript_imported(invocation: Invocation, session: Session) -> Session:
    """The session with everything on record that its transcript was imported with."""
    state, fleet = invocation.state_directory(), fleet_if_any(invocation)

    async def import_missing() -> ImportedTurns:
        async with open_turn_import(state, fleet, invocation.environ) as turn_import:
            return await import_transcript_turns(session, turn_import)

    return anyio.run(import_missing).session
