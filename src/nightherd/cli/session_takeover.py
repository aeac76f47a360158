"""`nightherd session takeover`: go on with a session by hand, in `claude` itself."""

from __future__ import annotations

import shlex
import shutil
import subprocess
from pathlib import Path

import anyio
import click

from nightherd.cli.errand import find_agent
from nightherd.cli.fleet import load_fleet_told
from nightherd.cli.invocation import Invocation
from nightherd.cli.options import json_option
from nightherd.cli.session_options import reading, session_argument
from nightherd.engine.hand_turns import known_uuids, record_hand_turns
from nightherd.errors import AgentNotFoundError, NotFoundError, RefusedError
from nightherd.imports.claude_turns import turns_since
from nightherd.model.job import Job
from nightherd.model.session import Session, SessionStatus
from nightherd.views.sessions import find_session, get_session, up_to_now
from nightherd.wiring import kept_transcript, open_journals, open_workshop, system_clock

PROGRAM = "claude"
CLAUDE = ("cli", "sdk")


@click.command("takeover", epilog="Example: nightherd session takeover @last --exec")
@session_argument
@click.option("--exec", "is_exec", is_flag=True, help="Start it here and now.")
@json_option
@click.pass_obj
def takeover(invocation: Invocation, session: str, is_exec: bool) -> None:
    """Say how to go on with a Claude session by hand; --exec does it. What is said there becomes a job here."""
    screen, now = invocation.screen, system_clock().now()
    state = invocation.state_directory()
    with reading(invocation) as reader:
        found = find_session(reader, session)
        found = up_to_now(reader, open_journals(state), found, now)
    uuid = check_takeover(found)
    taken = take_in(invocation, found)
    line = [PROGRAM, "--resume", uuid]
    shell = f"cd {shlex.quote(found.working_directory)} && {shlex.join(line)}"
    if not is_exec:
        if screen.is_json:
            data = {
                "session_id": found.id,
                "directory": found.working_directory,
                "command": line,
                "shell": shell,
                "recorded_job_id": taken.id if taken is not None else None,
            }
            screen.document("session_takeover", data, now)
            return
        _tell_taken(invocation, taken)
        screen.show(shell)
        return
    _tell_taken(invocation, taken)
    program = shutil.which(PROGRAM, path=invocation.environ.get("PATH"))
    if program is None:
        raise NotFoundError(f"there is no program {PROGRAM!r}", hint="install Claude Code")
    screen.say(shell)
    subprocess.call([program, *line[1:]], cwd=found.working_directory, env=dict(invocation.environ))
    taken = take_in(invocation, found)
    if screen.is_json:
        data = {"session_id": found.id, "recorded_job_id": taken.id if taken else None}
        screen.document("session_takeover", data, system_clock().now())
    else:
        _tell_taken(invocation, taken)


def check_takeover(session: Session) -> str:
    """Claude's own id of the session; `RefusedError` when it cannot be taken over."""
    if session.runtime_type not in CLAUDE:
        raise RefusedError(
            f"session {session.id} is run by {session.runtime_type}, and {PROGRAM} knows nothing of it",
            hint=f"nightherd session export {session.id} --format claude",
        )
    if session.runtime_session_id is None:
        raise RefusedError(f"session {session.id} has not begun at {PROGRAM}'s")
    if session.status is SessionStatus.ACTIVE:
        raise RefusedError(
            f"a job is at work in session {session.id}", hint="nightherd jobs cancel JOB"
        )
    if not Path(session.working_directory).is_dir():
        raise RefusedError(f"its directory {session.working_directory} is gone")
    return session.runtime_session_id


def take_in(invocation: Invocation, session: Session) -> Job | None:
    """Put the transcript in its place, and record what was said in it by hand; None when nothing was."""
    try:
        return anyio.run(_take_in, invocation, session)
    except (AgentNotFoundError, RefusedError) as error:
        invocation.screen.say(f"what was said by hand is not recorded: {error.message}")
        return None


async def _take_in(invocation: Invocation, session: Session) -> Job | None:
    fleet = load_fleet_told(invocation, agent=session.agent, is_quiet=True)
    agent = find_agent(fleet, session.agent)
    state = invocation.state_directory()
    environment = {**fleet.environment, **invocation.environ}
    kept = kept_transcript(state, session, environment)
    kept.restore()
    async with open_workshop(state, fleet, invocation.environ) as workshop:
        events = turns_since(kept.lines(), known_uuids(session, workshop))
        return await record_hand_turns(session, events, agent, workshop)


def taken_session(invocation: Invocation, session: Session, job: Job | None) -> Session:
    """Where what was said by hand is on record: the session, or a branch of it."""
    if job is None or job.session_id is None or job.session_id == session.id:
        return session
    with reading(invocation) as reader:
        return get_session(reader, job.session_id)


def _tell_taken(invocation: Invocation, job: Job | None) -> None:
    if job is not None:
        said = f"{job.messages} message{'' if job.messages == 1 else 's'}"
        invocation.screen.say(f"{said} said by hand are recorded as {job.id}")
