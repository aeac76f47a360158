"""Sessions that a person continues in the agent's own program: handed over, and taken back with what was said there."""

from __future__ import annotations

import shlex
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec
from msgspec.structs import replace

from nightherd.errors import RefusedError
from nightherd.model.ids import SessionId
from nightherd.model.jobs.job import Job
from nightherd.model.sessions.order import ANY_NUMBER, ahead_text, needs_person
from nightherd.model.sessions.session import Session, SessionStatus
from nightherd.next_step import Action, NextStep, SpellStep
from nightherd.views.sessions.sessions import get_session, up_to_now
from nightherd.views.sessions.takeover import TakeoverDocument, takeover_document
from nightherd.wiring.files import kept_transcript
from nightherd.wiring.machine import is_at_work
from nightherd.wiring.repair import open_turn_import
from nightherd.wiring.runtimes import find_capabilities
from nightherd.wiring.stores import open_journals, open_reader, system_clock

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from nightherd.model.agents.agent import Fleet

MOST_LOOKED_AT = 100
"""Open jobs of the session that are looked at for one that starts by itself."""


class Takeover(msgspec.Struct, frozen=True, kw_only=True):
    """A session that a person may continue now."""

    session_id: SessionId
    directory: str
    """Where its program has to run."""
    command: list[str]
    was_in_container: bool
    taken: Job | None
    """The job that records what was said outside nightherd by now; None when nothing was."""

    @property
    def shell(self) -> str:
        """The command as a line for a shell."""
        return f"cd {shlex.quote(self.directory)} && {shlex.join(self.command)}"

    @property
    def document(self) -> TakeoverDocument:
        """What `--json` and the API show of it."""
        return takeover_document(
            self.session_id,
            self.directory,
            self.command,
            self.shell,
            self.taken,
            was_in_container=self.was_in_container,
        )


def hand_over(
    session_id: SessionId,
    state_dir: Path,
    fleet: Fleet | None,
    environ: Mapping[str, str],
    *,
    spell: SpellStep | None = None,
) -> Takeover:
    """Prepare a session to be continued by a person, and take in what was said there before.

    Returns when it is done: call it in a thread. `RefusedError` says why the session cannot be taken over.
    """
    now = system_clock().now()
    with closing(open_reader(state_dir)) as reader:
        found = get_session(reader, session_id)
        shown = up_to_now(reader, open_journals(state_dir), found, is_at_work, now)
        open_jobs = [
            job
            for last in reader.jobs_of_session(found.id)[-1:]
            for job in reader.jobs_ahead(replace(last, number=ANY_NUMBER), MOST_LOOKED_AT)
        ]
    program = takeover_program(shown)
    uuid = check_takeover(shown, open_jobs, spell)
    directory = directory_of(found, fleet)
    return Takeover(
        session_id=found.id,
        directory=directory,
        command=[program, "--resume", uuid],
        was_in_container=shown.docker_enabled,
        taken=take_in(found, directory, state_dir, fleet, environ),
    )


def takeover_program(session: Session) -> str:
    """Return the program in which a person can continue the session; `RefusedError` when there is none."""
    runtime = find_capabilities(session.runtime_type)
    if runtime is None or runtime.takeover_program is None:
        raise RefusedError(
            f"session {session.id} is run by {session.runtime_type}, which has no program to continue it in",
            next_step=NextStep(Action.EXPORT_SESSION, session=session.id),
        )
    return runtime.takeover_program


def check_takeover(
    session: Session, open_jobs: Sequence[Job], spell: SpellStep | None = None
) -> str:
    """Return the runtime's id of the session with `open_jobs`; `RefusedError` when it cannot be taken over.

    A job that starts by itself would write to the transcript while a person does; a job that waits for a person
    does not.
    """
    if session.runtime_session_id is None:
        raise RefusedError(f"no job of session {session.id} has started yet")
    if session.status is SessionStatus.ACTIVE:
        raise RefusedError(
            f"a job is running in session {session.id}", next_step=NextStep(Action.CANCEL_JOB)
        )
    coming = next((job for job in open_jobs if not needs_person(job)), None)
    if coming is not None:
        raise RefusedError(
            f"{ahead_text(coming, spell=spell)}; a fork of the session can be taken over",
            next_step=NextStep(Action.CANCEL_JOB, job=coming.id),
        )
    return session.runtime_session_id


def directory_of(session: Session, fleet: Fleet | None) -> str:
    """Return the directory to continue the session in: its own, or where its agent works now if that is gone."""
    own = session.working_directory
    if Path(own).is_dir():
        return own
    agent = fleet.agents.get(session.agent) if fleet is not None else None
    if agent is not None and Path(agent.working_directory).is_dir():
        return agent.working_directory
    if agent is None or agent.working_directory == own:
        raise RefusedError(
            f"its directory {own} is gone",
            hint=f"put it back, or set working_directory of agent {session.agent!r} to the new one",
        )
    raise RefusedError(f"its directory {own} is gone, and so is {agent.working_directory}")


def take_in(
    session: Session,
    directory: str,
    state_dir: Path,
    fleet: Fleet | None,
    environ: Mapping[str, str],
) -> Job | None:
    """Put the transcript where Claude finds it from `directory`, and import turns that were added outside nightherd."""
    import anyio

    from nightherd.engine.sessions.import_turns import import_turns

    environment = {**(fleet.environment if fleet is not None else {}), **environ}
    if session.runtime_session_id is not None:
        uuid = session.runtime_session_id
        kept_transcript(state_dir, uuid, directory, environment).restore()

    async def import_missing() -> Job | None:
        async with open_turn_import(state_dir, fleet, environ) as turn_import:
            return (await import_turns(session, turn_import)).job

    return anyio.run(import_missing)
