"""`nightherd session takeover`: continue a session in `claude` itself."""

from __future__ import annotations

import shlex
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path

import anyio
import click
from msgspec.structs import replace

from nightherd.cli.imports import fleet_if_any
from nightherd.cli.invocation import Invocation, json_option
from nightherd.cli.next_steps import command_for
from nightherd.cli.sessions.options import imported_session, reading, session_argument
from nightherd.engine.sessions.import_turns import import_turns
from nightherd.errors import NotFoundError, RefusedError
from nightherd.model.agents.agent import Fleet
from nightherd.model.jobs.job import Job
from nightherd.model.sessions.order import ANY_NUMBER, ahead_text, needs_person
from nightherd.model.sessions.session import Session, SessionStatus
from nightherd.model.text import counted
from nightherd.views.sessions import find_session, get_session, up_to_now
from nightherd.wiring.files import kept_transcript
from nightherd.wiring.machine import is_at_work
from nightherd.wiring.repair import open_turn_import
from nightherd.wiring.runtimes import find_capabilities
from nightherd.wiring.stores import open_journals, system_clock

MOST_LOOKED_AT = 100
"""Open jobs of the session that are looked at for one that starts by itself."""


@click.command("takeover", epilog="Example: nightherd session takeover @last --exec")
@session_argument
@click.option("--exec", "is_exec", is_flag=True, help="Run `claude` here.")
@json_option
@click.pass_obj
def takeover(invocation: Invocation, session: str, is_exec: bool) -> None:
    """Continue a session in `claude`. Prints the command; --exec runs it. The new turns become a job here."""
    screen, now = invocation.screen, system_clock().now()
    state = invocation.state_directory()
    imported_session(invocation, session)
    with reading(invocation) as reader:
        found = find_session(reader, session)
        shown = up_to_now(reader, open_journals(state), found, is_at_work, now)
        open_jobs = [
            job
            for last in reader.jobs_of_session(found.id)[-1:]
            for job in reader.jobs_ahead(replace(last, number=ANY_NUMBER), MOST_LOOKED_AT)
        ]
    program_name = takeover_program(shown)
    uuid = check_takeover(shown, open_jobs)
    directory = directory_of(found, fleet_if_any(invocation))
    taken = take_in(invocation, found, directory)
    line = [program_name, "--resume", uuid]
    shell = f"cd {shlex.quote(directory)} && {shlex.join(line)}"
    if not is_exec:
        if screen.is_json:
            data = {
                "session_id": found.id,
                "directory": directory,
                "command": line,
                "shell": shell,
                "recorded_job_id": taken.id if taken is not None else None,
            }
            screen.document("session_takeover", data, now)
            return
        _show_taken(invocation, taken)
        screen.show(shell)
        return
    _show_taken(invocation, taken)
    program = shutil.which(program_name, path=invocation.environ.get("PATH"))
    if program is None:
        raise NotFoundError(f"there is no program {program_name!r}", hint=f"install {program_name}")
    screen.say(shell)
    subprocess.call([program, *line[1:]], cwd=directory, env=dict(invocation.environ))
    with reading(invocation) as reader:
        ended = get_session(reader, found.id)
    taken = take_in(invocation, ended, directory)
    if screen.is_json:
        data = {"session_id": found.id, "recorded_job_id": taken.id if taken else None}
        screen.document("session_takeover", data, system_clock().now())
    else:
        _show_taken(invocation, taken)


def takeover_program(session: Session) -> str:
    """Return the program in which a person can continue the session; `RefusedError` when there is none."""
    runtime = find_capabilities(session.runtime_type)
    if runtime is None or runtime.takeover_program is None:
        raise RefusedError(
            f"session {session.id} is run by {session.runtime_type}, which has no program to continue it in",
            hint=f"nightherd session export {session.id} --format claude",
        )
    return runtime.takeover_program


def check_takeover(session: Session, open_jobs: Sequence[Job]) -> str:
    """Return the runtime's id of the session with `open_jobs`; `RefusedError` when it cannot be taken over.

    A job that starts by itself would write to the transcript while a person does; a job that waits for a person
    does not.
    """
    if session.runtime_session_id is None:
        raise RefusedError(f"no job of session {session.id} has started yet")
    if session.status is SessionStatus.ACTIVE:
        raise RefusedError(
            f"a job is running in session {session.id}", hint="nightherd jobs cancel JOB"
        )
    coming = next((job for job in open_jobs if not needs_person(job)), None)
    if coming is not None:
        raise RefusedError(
            ahead_text(coming, spell=command_for),
            hint=f"nightherd jobs cancel {coming.id}; or take over a fork of it: nightherd session fork {session.id}",
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


def take_in(invocation: Invocation, session: Session, directory: str) -> Job | None:
    """Put the transcript where Claude finds it from `directory`, and import turns that were added outside nightherd."""
    fleet = fleet_if_any(invocation)
    environment = {**(fleet.environment if fleet is not None else {}), **invocation.environ}
    if session.runtime_session_id is not None:
        uuid = session.runtime_session_id
        kept_transcript(invocation.state_directory(), uuid, directory, environment).restore()

    async def import_missing() -> Job | None:
        state = invocation.state_directory()
        async with open_turn_import(state, fleet, invocation.environ) as turn_import:
            return (await import_turns(session, turn_import)).job

    return anyio.run(import_missing)


def _show_taken(invocation: Invocation, job: Job | None) -> None:
    if job is not None:
        said = counted(job.messages, "message")
        invocation.screen.say(f"{said} added outside nightherd are recorded as {job.id}")
