"""What an import did, for people and for programs."""

from __future__ import annotations

from typing import Any

from nightherd.cli.render import Screen
from nightherd.cli.text import one_line
from nightherd.engine.adopt import Report

SHOWN = 20
WORDS = {
    "sessions": ("session", "sessions"),
    "refreshed": ("grown session", "grown sessions"),
    "transcripts": ("transcript of a known session", "transcripts of known sessions"),
    "companions": ("file of sub-agents and tools", "files of sub-agents and tools"),
    "jobs": ("job", "jobs"),
    "events": ("event", "events"),
    "schedules": ("schedule", "schedules"),
}
"""One and many of each kind, in the order they are told."""


def report_document(report: Report, *, is_dry: bool) -> dict[str, Any]:
    """The report as plain data."""
    return {
        "is_dry_run": is_dry,
        "imported": {kind: report.imported.get(kind, 0) for kind in WORDS},
        "unchanged": report.unchanged,
        "skipped": [{"source": one.source, "reason": one.reason} for one in report.skipped],
        "unreadable": [
            {"file": one.file, "line": one.line, "reason": one.reason} for one in report.unreadable
        ],
    }


def tell_report(report: Report, screen: Screen, *, is_dry: bool) -> None:
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
        f"{one.file}{f':{one.line}' if one.line is not None else ''}: {one.reason}"
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
