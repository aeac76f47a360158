"""`nightherd jobs outline`: what a job did and when nothing worked on it, on a screen or in one document."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from datetime import datetime

import click

from nightherd.cli.invocation import Invocation, job_argument, json_option
from nightherd.cli.screen.render import Screen, length, neutralise, one_line, table
from nightherd.model.text import counted
from nightherd.views.jobs.jobs import find_job_id
from nightherd.views.jobs.outlines import GapRow, JobOutline, OutlineExecutionRow, outline_of_job
from nightherd.wiring.index import open_outlines
from nightherd.wiring.stores import open_reader, system_clock

MOST_ERRORS, MOST_TOOLS = 10, 8
"""How many are shown; `--json` has more."""
TEXT_LIMIT = 100
WORDS = {
    "queued": "waited for a worker",
    "crash": "its worker was gone",
    "restart": "was handed over",
    "retry": "waited before the next try",
    "child": "waited for a child job",
    "approval": "waited for a person",
    "rate_limit": "waited for a rate limit",
    "limit": "waited at its limit",
    "budget": "waited for budget",
    "error": "waited after an error",
}
"""What a gap was, by its reason."""


@click.command("outline", epilog="Example: nightherd jobs outline @last")
@job_argument
@json_option
@click.pass_obj
def outline(invocation: Invocation, job: str) -> None:
    """Show the outline of a job. Prints its executions, gaps and errors; --json adds its segments."""
    screen, state = invocation.screen, invocation.state_directory()
    with closing(open_reader(state)) as reader:
        found = outline_of_job(reader, open_outlines(state), find_job_id(reader, job))
    now = system_clock().now()
    if screen.is_json:
        screen.document("job_outline", found, now)
        return
    for label, text in _summary(found):
        screen.show(f"{label:<13}{text}")
    rows = _times(found, screen, now)
    screen.show(table(("FROM", "TOOK", "WHAT"), rows, width=screen.width, style=screen.out))
    for error in found["errors"][:MOST_ERRORS]:
        text = one_line(error["text"], TEXT_LIMIT)
        screen.show(f"{error['kind']} at {error['seq']}: {neutralise(text)}")
    left = found["counts"]["errors"] - MOST_ERRORS
    if left > 0:
        screen.show(f"{left} more: --json has the first {len(found['errors'])} errors")


def _summary(found: JobOutline) -> Iterator[tuple[str, str]]:
    counts = found["counts"]
    yield "job", f"{found['job_id']} ({found['status']})"
    yield "events", f"{counts['events']}, {counted(counts['turns'], 'turn')}"
    tools = sorted(counts["tools"].items(), key=lambda item: -item[1])
    names = ", ".join(f"{one_line(name)} {count}" for name, count in tools[:MOST_TOOLS])
    yield "tool calls", neutralise(f"{counts['tool_calls']}" + (f": {names}" if names else ""))
    yield "errors", str(counts["errors"])
    yield "checkpoints", str(counts["checkpoints"])
    if counts["children"]:
        yield "children", str(counts["children"])


def _times(found: JobOutline, screen: Screen, now: datetime) -> list[tuple[str, str, str]]:
    """Executions and gaps in the order of their beginning."""
    rows: list[tuple[str, str | None, str]] = [
        (one["start"], one["end"], _execution_text(one)) for one in found["executions"]
    ]
    rows += [(gap["start"], gap["end"], _gap_text(gap)) for gap in found["gaps"]]
    return [
        (
            screen.time(_instant(start)),
            length((_instant(end) if end else now) - _instant(start)),
            text,
        )
        for start, end, text in sorted(rows, key=lambda row: row[0])
    ]


def _execution_text(one: OutlineExecutionRow) -> str:
    events = one["last_seq"] - one["first_seq"] + 1
    return f"execution {one['epoch']}: {one['outcome'] or 'running'}, {counted(events, 'event')}"


def _gap_text(gap: GapRow) -> str:
    text = WORDS.get(gap["reason"], f"waited ({gap['reason']})")
    if gap["no_worker_until"] is not None:
        text += "; no worker was running"
    if gap["text"] and gap["reason"] not in ("crash", "queued"):
        text += f": {one_line(gap['text'], TEXT_LIMIT)}"
    return neutralise(text)


def _instant(text: str) -> datetime:
    return datetime.fromisoformat(text)
