"""`nightherd session export`, `import` and `takeover`: sessions that leave the fleet as a file or in `claude`, and come back."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Iterable, Iterator
from pathlib import Path

import anyio
import click

from nightherd import __version__
from nightherd.cli.imports import fleet_if_any
from nightherd.cli.invocation import Invocation, json_option
from nightherd.cli.next_steps import command_for
from nightherd.cli.sessions.options import imported_session, reading, session_argument
from nightherd.engine.imports.session import AdoptedSession
from nightherd.engine.operations import transfer as operations
from nightherd.engine.operations.transfer import ExportSession, ImportSession, export_session
from nightherd.errors import NotFoundError
from nightherd.files.atomic import atomic_write_file
from nightherd.model.jobs.job import Job
from nightherd.model.text import counted
from nightherd.views.export.document import ExportFormat
from nightherd.views.sessions.sessions import find_session, get_session, session_row
from nightherd.wiring.machine import is_at_work
from nightherd.wiring.repair import open_import, read_session_file
from nightherd.wiring.stores import open_journals, system_clock
from nightherd.wiring.takeover import hand_over, take_in


@click.command("export", epilog="Example: nightherd session export @last --html -o it.html")
@session_argument
@click.option(
    "--format",
    "kind",
    type=click.Choice([kind.value for kind in ExportFormat]),
    default=ExportFormat.JSON.value,
    help="Output format; json (the default) is the full record, claude is for `claude --resume`.",
)
@click.option(
    "--html",
    "kind",
    flag_value=ExportFormat.HTML.value,
    help="Write one page that opens in any browser, as --format html does.",
)
@click.option(
    "-o",
    "--output",
    type=click.Path(path_type=Path),
    help="Output file; by default standard output.",
)
@json_option
@click.pass_obj
def export(invocation: Invocation, session: str, kind: str, output: Path | None) -> None:
    """Export a session to a file. The formats are the full record, a transcript for `claude`, or a page to read."""
    screen, now = invocation.screen, system_clock().now()
    journals = open_journals(invocation.state_directory())
    chosen = ExportFormat(kind)
    named = imported_session(invocation, session)
    with reading(invocation) as reader:
        request = ExportSession(session_id=named.id, format=chosen)
        exported = export_session(
            request, reader, journals, at=now, version=__version__, is_at_work=is_at_work
        )
    pieces = exported.pieces
    if output is not None:
        target = write_export(invocation.cwd / output, pieces)
        if screen.is_json:
            written = {"session_id": named.id, "format": kind, "file": str(target)}
            screen.document("session_file", written, now)
        else:
            screen.say(f"wrote {output}")
            if (uuid := exported.claude_id) is not None:
                screen.say(
                    f"  put it where `claude` looks, as {uuid}.jsonl: claude --resume {uuid}"
                )
    elif screen.is_json and chosen is ExportFormat.JSON:
        # Line ends stand only between its parts: without them it is the same document on one line.
        screen.show("".join(piece.replace("\n", "") for piece in pieces))
    elif screen.is_json:
        text = {"session_id": named.id, "format": kind, "text": "".join(pieces)}
        screen.document("session_file", text, now)
    else:
        # All of it before the first line is shown: a body that cannot be read leaves nothing behind.
        for line in list(lines_of(pieces)):
            screen.show(line)


def write_export(target: Path, pieces: Iterable[str]) -> Path:
    """Write an export to a file of the user's; `NotFoundError` when its directory is missing."""
    if not target.parent.is_dir():
        raise NotFoundError(
            f"there is no directory {target.parent}", hint=f"mkdir -p {target.parent}"
        )
    atomic_write_file(target, "".join(pieces))
    return target


def lines_of(pieces: Iterable[str]) -> Iterator[str]:
    """The text in lines, as soon as each is there."""
    rest = ""
    for piece in pieces:
        *lines, rest = (rest + piece).split("\n")
        yield from lines
    if rest:
        yield rest


@click.command("import", epilog="Example: nightherd session import session.json")
@click.argument("file", metavar="FILE", type=click.Path(path_type=Path))
@click.option(
    "--dry-run", "is_dry", is_flag=True, help="Show what would be imported and change nothing."
)
@json_option
@click.pass_obj
def import_session(invocation: Invocation, file: Path, is_dry: bool) -> None:
    """Import a session from a file. Takes what `session export` wrote; importing it again changes nothing."""
    request = ImportSession(file=read_session_file(invocation.cwd / file))
    adopted = anyio.run(_import, invocation, request, is_dry)
    screen, now = invocation.screen, system_clock().now()
    session = adopted.session
    if screen.is_json:
        data = {**session_row(session), "jobs_imported": adopted.jobs, "is_new": adopted.is_new}
        screen.document("session", data, now)
        return
    screen.show(session.id)
    screen.flush()
    if not adopted.is_new:
        screen.say("it has already been imported")
        return
    verb = "would be imported" if is_dry else "imported"
    screen.say(f"{verb} with {counted(adopted.jobs, 'job')}")
    screen.say(f"  continue it: nightherd session resume {session.id} -p TEXT")


async def _import(invocation: Invocation, request: ImportSession, is_dry: bool) -> AdoptedSession:
    state, fleet = invocation.new_state_directory(), fleet_if_any(invocation)
    async with open_import(state, fleet, invocation.environ, is_dry=is_dry) as context:
        return await operations.import_session(request, context)


@click.command("takeover", epilog="Example: nightherd session takeover @last --exec")
@session_argument
@click.option("--exec", "is_exec", is_flag=True, help="Run `claude` here.")
@json_option
@click.pass_obj
def takeover(invocation: Invocation, session: str, is_exec: bool) -> None:
    """Continue a session in `claude`. Prints the command; --exec runs it. The new turns become a job here."""
    screen, now = invocation.screen, system_clock().now()
    imported_session(invocation, session)
    with reading(invocation) as reader:
        found = find_session(reader, session)
    fleet = fleet_if_any(invocation)
    handed = hand_over(
        found.id, invocation.state_directory(), fleet, invocation.environ, spell=command_for
    )
    line, taken = handed.command, handed.taken
    if handed.was_in_container:
        screen.say(f"its agent worked in a container; {line[0]} runs on this machine itself")
    if not is_exec:
        if screen.is_json:
            screen.document("session_takeover", handed.document, now)
            return
        _show_taken(invocation, taken)
        screen.show(handed.shell)
        return
    _show_taken(invocation, taken)
    program = shutil.which(line[0], path=invocation.environ.get("PATH"))
    if program is None:
        raise NotFoundError(f"there is no program {line[0]!r}", hint=f"install {line[0]}")
    screen.say(handed.shell)
    subprocess.call([program, *line[1:]], cwd=handed.directory, env=dict(invocation.environ))
    with reading(invocation) as reader:
        ended = get_session(reader, found.id)
    state = invocation.state_directory()
    taken = take_in(ended, handed.directory, state, fleet, invocation.environ)
    if screen.is_json:
        data = {"session_id": found.id, "recorded_job_id": taken.id if taken else None}
        screen.document("session_takeover", data, system_clock().now())
    else:
        _show_taken(invocation, taken)


def _show_taken(invocation: Invocation, job: Job | None) -> None:
    if job is not None:
        said = counted(job.messages, "message")
        invocation.screen.say(f"{said} added outside nightherd are recorded as {job.id}")
