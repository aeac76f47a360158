"""`nightherd session export`: a session as a file for others."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path

import click

from nightherd import __version__
from nightherd.cli.invocation import Invocation
from nightherd.cli.options import json_option
from nightherd.cli.session_options import reading, session_argument, told_session
from nightherd.errors import NotFoundError
from nightherd.files.atomic import atomic_write_file
from nightherd.host.liveness import is_at_work
from nightherd.views.export.claude import as_transcript, claude_session_id
from nightherd.views.export.document import as_document
from nightherd.views.export.exported import Export, Exported, ExportFormat, to_export
from nightherd.views.export.markdown import as_markdown
from nightherd.views.export.page import as_page
from nightherd.views.sessions import get_session
from nightherd.wiring.memories import open_journals, system_clock

FORMATS: dict[ExportFormat, Export] = {
    ExportFormat.JSON: as_document,
    ExportFormat.CLAUDE: as_transcript,
    ExportFormat.MARKDOWN: as_markdown,
    ExportFormat.HTML: as_page,
}


@click.command("export", epilog="Example: nightherd session export @last --format html -o it.html")
@session_argument
@click.option(
    "--format",
    "kind",
    type=click.Choice([kind.value for kind in ExportFormat]),
    default=ExportFormat.JSON.value,
    help="json is everything on record (the default); claude is for `claude --resume`.",
)
@click.option(
    "-o", "--output", type=click.Path(path_type=Path), help="A file; else standard output."
)
@json_option
@click.pass_obj
def export(invocation: Invocation, session: str, kind: str, output: Path | None) -> None:
    """A session as a file: everything on record, a transcript for `claude`, or a page to read."""
    screen, now = invocation.screen, system_clock().now()
    journals = open_journals(invocation.state_directory())
    chosen = ExportFormat(kind)
    named = told_session(invocation, session)
    with reading(invocation) as reader:
        found = get_session(reader, named.id)
        exported = to_export(
            reader, journals, found, at=now, version=__version__, is_at_work=is_at_work
        )
    pieces = FORMATS[chosen](exported)
    if output is not None:
        target = invocation.cwd / output
        if not target.parent.is_dir():
            raise NotFoundError(
                f"there is no directory {target.parent}", hint=f"mkdir -p {target.parent}"
            )
        atomic_write_file(target, "".join(pieces))
        if screen.is_json:
            written = {"session_id": found.id, "format": kind, "file": str(target)}
            screen.document("session_file", written, now)
        else:
            screen.say(f"wrote {output}")
            _tell_use(invocation, exported, chosen)
    elif screen.is_json and chosen is ExportFormat.JSON:
        # Line ends stand only between its parts: without them it is the same document on one line.
        screen.show("".join(piece.replace("\n", "") for piece in pieces))
    elif screen.is_json:
        text = {"session_id": found.id, "format": kind, "text": "".join(pieces)}
        screen.document("session_file", text, now)
    else:
        # All of it before the first line is shown: a body that cannot be read leaves nothing behind.
        for line in list(lines_of(pieces)):
            screen.show(line)


def _tell_use(invocation: Invocation, exported: Exported, kind: ExportFormat) -> None:
    if kind is ExportFormat.CLAUDE:
        uuid = claude_session_id(exported)
        screen = invocation.screen
        screen.say(f"  put it where `claude` looks, as {uuid}.jsonl: claude --resume {uuid}")


def lines_of(pieces: Iterable[str]) -> Iterator[str]:
    """The text in lines, as soon as each is there."""
    rest = ""
    for piece in pieces:
        *lines, rest = (rest + piece).split("\n")
        yield from lines
    if rest:
        yield rest
