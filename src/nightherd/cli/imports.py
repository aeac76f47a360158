"""`nightherd import`: what other tools recorded, taken over. Their files are only ever read."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import anyio
import click

from nightherd.cli.fleet.load import load_all
from nightherd.cli.invocation import Invocation, invocation_of, json_option
from nightherd.cli.lazy import Entry, LazyGroup
from nightherd.cli.screen.render import Screen, one_line
from nightherd.engine.imports.context import OnProgress, Report
from nightherd.engine.operations.transfer import Import, import_records
from nightherd.errors import ConfigNotFoundError
from nightherd.model.agents.agent import Fleet
from nightherd.wiring.imports import open_fleet_import, open_lastlight
from nightherd.wiring.repair import (
    claude_directory,
    find_transcripts,
    read_herdctl,
)
from nightherd.wiring.stores import system_clock

dry_run_option = click.option(
    "--dry-run", "is_dry", is_flag=True, help="Show what would be imported and change nothing."
)


@click.group(
    "import",
    cls=LazyGroup,
    entries={
        "herdctl": Entry(
            "nightherd.cli.imports:import_herdctl",
            "Import jobs, sessions and schedules of herdctl.",
        ),
        "claude": Entry(
            "nightherd.cli.imports:import_claude", "Import Claude Code's own sessions."
        ),
        "lastlight": Entry(
            "nightherd.cli.imports:import_lastlight",
            "Import workflow runs, jobs and approvals of Last Light.",
        ),
    },
    no_args_is_help=True,
    epilog="Example: nightherd import claude --dry-run",
)
def import_group() -> None:
    """Import jobs, sessions and schedules from other tools. Their files are only read; a second import adds only what is new."""


@click.command("herdctl", epilog="Example: nightherd import herdctl ../old-fleet")
@click.argument("directory", metavar="DIR", type=click.Path(path_type=Path))
@dry_run_option
@json_option
@click.pass_context
def import_herdctl(ctx: click.Context, directory: Path, is_dry: bool) -> None:
    """Import jobs, sessions and schedules of herdctl. DIR is a .herdctl directory or its parent."""
    invocation = invocation_of(ctx)
    report = Report()
    found = read_herdctl(invocation.cwd / directory, report)
    request = Import(records=found, report=report)
    _perform(ctx, request, total=found.job_total, is_dry=is_dry)


@click.command("claude", epilog="Example: nightherd import claude")
@click.argument("directory", metavar="[DIR]", required=False, type=click.Path(path_type=Path))
@dry_run_option
@json_option
@click.pass_context
def import_claude(ctx: click.Context, directory: Path | None, is_dry: bool) -> None:
    """Import Claude Code's own sessions. Reads DIR, else CLAUDE_CONFIG_DIR, else ~/.claude."""
    invocation = invocation_of(ctx)
    report = Report()
    chosen = directory if directory is not None else claude_directory(invocation.environ)
    found = find_transcripts(invocation.cwd / chosen, report)
    request = Import(records=found, report=report)
    _perform(ctx, request, total=len(found), is_dry=is_dry)


@click.command(
    "lastlight", epilog="Example: nightherd import lastlight ../lastlight/data --dry-run"
)
@click.argument("path", metavar="PATH", type=click.Path(path_type=Path))
@dry_run_option
@json_option
@click.pass_context
def import_lastlight(ctx: click.Context, path: Path, is_dry: bool) -> None:
    """Import workflow runs, jobs and approvals of Last Light. PATH is its lastlight.db or state directory."""
    report = Report()
    with open_lastlight(invocation_of(ctx).cwd / path, report) as found:
        request = Import(records=found, report=report)
        _perform(ctx, request, total=found.total, is_dry=is_dry)


def _perform(ctx: click.Context, request: Import, *, total: int, is_dry: bool) -> None:
    """Import, report what became of each record, and end with 1 when nothing could be read."""
    invocation = invocation_of(ctx)
    screen, fleet = invocation.screen, fleet_if_any(invocation)
    state = invocation.new_state_directory()

    async def work() -> Report:
        with progress(screen, total) as on_progress:
            async with open_fleet_import(
                state, fleet, invocation.environ, is_dry=is_dry
            ) as context:
                return await import_records(request, context, on_progress)

    report = anyio.run(work)
    if screen.is_json:
        screen.document("import", report_document(report, is_dry=is_dry), system_clock().now())
    else:
        show_report(report, screen, is_dry=is_dry)
    ctx.exit(1 if report.is_useless else 0)


def fleet_if_any(invocation: Invocation) -> Fleet | None:
    """The fleet, whose secrets have to stay out of what is recorded; with `--state-dir` there need be none."""
    try:
        return load_all(invocation).fleet
    except ConfigNotFoundError:
        return None


@contextmanager
def progress(screen: Screen, total: int) -> Iterator[OnProgress]:
    """Show a bar that advances with each record, on a terminal that can show one."""
    if screen.is_json or not screen.can_animate or total < 2:
        yield lambda name: None
        return
    from nightherd.cli.screen.progress import Bar

    with Bar(screen.talk, total, is_colored=screen.err.is_colored) as bar:
        yield bar.update


SHOWN = 20
WORDS = {
    "sessions": ("session", "sessions"),
    "refreshed": ("grown session", "grown sessions"),
    "transcripts": ("transcript of a known session", "transcripts of known sessions"),
    "companions": ("file of sub-agents and tools", "files of sub-agents and tools"),
    "jobs": ("job", "jobs"),
    "events": ("event", "events"),
    "schedules": ("schedule", "schedules"),
    "runs": ("workflow run", "workflow runs"),
    "approvals": ("approval", "approvals"),
    "overrides": ("override", "overrides"),
    "event_logs": ("event log", "event logs"),
}
"""Singular and plural of each kind, in the order they are shown."""


def report_document(report: Report, *, is_dry: bool) -> dict[str, Any]:
    """The report as plain data."""
    return {
        "is_dry_run": is_dry,
        "imported": {kind: report.imported.get(kind, 0) for kind in WORDS},
        "unchanged": report.unchanged,
        "skipped": [{"source": one.source, "reason": one.reason} for one in report.skipped],
        "unreadable": [
            {"file": one.file, "line": one.line, "record": one.record, "reason": one.reason}
            for one in report.unreadable
        ],
    }


def show_report(report: Report, screen: Screen, *, is_dry: bool) -> None:
    """What was imported as data, what was not as talk."""
    counts = [(kind, report.imported.get(kind, 0)) for kind in WORDS]
    parts = [f"{count:,} {WORDS[kind][count != 1]}" for kind, count in counts if count]
    verb = "would import" if is_dry else "imported"
    screen.show(f"{verb} {', '.join(parts) if parts else 'nothing'}")
    if report.unchanged:
        screen.show(f"here already: {report.unchanged:,}")
    screen.flush()
    _list(screen, "skipped", [f"{one.source}: {one.reason}" for one in report.skipped])
    places = [
        f"{one.file}{f':{one.line}' if one.line is not None else ''}"
        f"{f': {one.record}' if one.record is not None else ''}: {one.reason}"
        for one in report.unreadable
    ]
    _list(screen, "unreadable", places)


def _list(screen: Screen, heading: str, lines: list[str]) -> None:
    if not lines:
        return
    screen.say(f"{heading}: {len(lines):,}")
    for line in lines[:SHOWN]:
        screen.say(f"  {one_line(line)}")
    if len(lines) > SHOWN:
        screen.say(f"  and {len(lines) - SHOWN:,} more; --json lists them all")
