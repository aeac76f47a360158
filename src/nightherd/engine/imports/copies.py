"""Raw copies of another tool's event logs, and what could not be imported, kept exactly as it was."""

from __future__ import annotations

from collections.abc import Sequence

from nightherd.engine.imports.context import ImportContext, Report
from nightherd.engine.imports.foreign_runs import ForeignWorkflows
from nightherd.engine.imports.transcripts import ForeignFile

ASIDE = "aside"
"""Where what was not imported is kept, below the tool's copies."""


def copy_files(
    found: ForeignWorkflows, context: ImportContext, report: Report
) -> list[ForeignFile]:
    """Copy every event log that is new or has grown, and return those; a copy never loses what it has."""
    copied: list[ForeignFile] = []
    for file in found.files:
        name = f"{found.tool}/{file.name}"
        if context.shelf.is_current(name, size=file.size, modified_ns=file.modified_ns):
            continue
        with context.shelf.draft(name) as draft:
            problem = file.copy(draft.write)
            if problem is not None:
                report.unreadable.append(problem)
                continue
            if not draft.extends_old:
                report.skip(file.source, "the copy has something that it has not; the copy is kept")
                continue
            draft.keep()
        report.count("event_logs")
        copied.append(file)
    if context.writers is not None:
        context.shelf.sync()
    return copied


def mark_copies(
    found: ForeignWorkflows, copied: Sequence[ForeignFile], context: ImportContext
) -> None:
    """Mark copies as complete: what they say is on record. Unmarked ones are looked at again by the next import."""
    if context.writers is not None:
        for file in copied:
            context.shelf.mark(f"{found.tool}/{file.name}", modified_ns=file.modified_ns)


def keep_aside(found: ForeignWorkflows, context: ImportContext) -> None:
    """Keep what the reader could not give so far, under names that follow from the content."""
    asides, is_new = found.asides, False
    while asides:
        aside = asides.pop()
        name = f"{found.tool}/{ASIDE}/{aside.name}"
        if context.writers is not None and not context.shelf.has(name):
            with context.shelf.draft(name) as draft:
                draft.write(aside.content)
                draft.keep()
            is_new = True
    if is_new:
        context.shelf.sync()
