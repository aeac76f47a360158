"""`nightherd jobs export`: a job's journal as a file, or as a page that opens in any browser."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

import click

from nightherd.cli.invocation import Invocation, job_argument, json_option
from nightherd.cli.sessions.files import lines_of, write_export
from nightherd.errors import NotFoundError
from nightherd.views.export.journal import journal_lines
from nightherd.views.export.page import job_page
from nightherd.views.jobs.jobs import find_job_id
from nightherd.wiring.stores import open_journals, open_reader, system_clock


@click.command("export", epilog="Example: nightherd jobs export @last --html -o it.html")
@job_argument
@click.option("--html", "is_page", is_flag=True, help="Write one page that opens in any browser.")
@click.option(
    "-o",
    "--output",
    type=click.Path(path_type=Path),
    help="Output file; by default standard output.",
)
@json_option
@click.pass_obj
def export(invocation: Invocation, job: str, is_page: bool, output: Path | None) -> None:
    """Export a job to a file.

    Its journal with large bodies included, or a page. Drop the journal on the dashboard to view it.
    """
    screen, now = invocation.screen, system_clock().now()
    journals = open_journals(invocation.state_directory())
    with closing(open_reader(invocation.state_directory())) as reader:
        row = reader.find_job(find_job_id(reader, job))
    if row is None:
        raise NotFoundError(f"there is no job {job}")
    pieces = job_page(row, journals) if is_page else journal_lines(row.id, journals)
    kind = "html" if is_page else "jsonl"
    if output is not None:
        target = write_export(invocation.cwd / output, pieces)
        if screen.is_json:
            written = {"job_id": row.id, "format": kind, "file": str(target)}
            screen.document("job_file", written, now)
        else:
            screen.say(f"wrote {output}")
    elif screen.is_json:
        text = {"job_id": row.id, "format": kind, "text": "".join(pieces)}
        screen.document("job_file", text, now)
    else:
        # All of it before the first line is shown: a body that cannot be read leaves nothing behind.
        for line in list(lines_of(pieces)):
            screen.show(line)
