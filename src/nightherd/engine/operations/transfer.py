"""Transfer: import records of other tools, import an exported session, and export a session."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from datetime import datetime

import msgspec

from nightherd.engine.imports.context import ImportContext, OnProgress, Report
from nightherd.engine.imports.foreign_runs import ForeignWorkflows
from nightherd.engine.imports.jobs import ForeignFleet, import_fleet
from nightherd.engine.imports.runs import import_workflows
from nightherd.engine.imports.session import AdoptedSession, SessionFile, import_session_file
from nightherd.engine.imports.transcripts import ForeignTranscript, import_transcripts
from nightherd.model.ids import SessionId
from nightherd.model.worker import Worker
from nightherd.ports import Journals, StateReader
from nightherd.views.export.claude import as_transcript, claude_session_id
from nightherd.views.export.document import (
    Export,
    ExportFormat,
    as_document,
    as_markdown,
    to_export,
)
from nightherd.views.export.page import session_page
from nightherd.views.sessions.sessions import get_session

FORMATS: dict[ExportFormat, Export] = {
    ExportFormat.JSON: as_document,
    ExportFormat.CLAUDE: as_transcript,
    ExportFormat.MARKDOWN: as_markdown,
    ExportFormat.HTML: session_page,
}


class Import(msgspec.Struct, frozen=True, kw_only=True):
    """The records of another tool. A second import adds only what is new."""

    records: ForeignFleet | ForeignWorkflows | Sequence[ForeignTranscript]
    report: Report
    """What was found when they were read."""


class ImportSession(msgspec.Struct, frozen=True, kw_only=True):
    """A session that was exported. A second import changes nothing."""

    file: SessionFile


class ExportSession(msgspec.Struct, frozen=True, kw_only=True):
    """A session as a file of that format."""

    session_id: SessionId
    format: ExportFormat


class ExportedSession(msgspec.Struct, frozen=True, kw_only=True):
    """The text of an export, in pieces that are made as they are read."""

    pieces: Iterator[str]
    claude_id: str | None
    """The id by which `claude` resumes it; None for other formats."""


async def import_records(
    request: Import, context: ImportContext, on_progress: OnProgress
) -> Report:
    """Import the records and return what became of each; `on_progress` is called after each."""
    records, report = request.records, request.report
    if isinstance(records, ForeignFleet):
        await import_fleet(records, context, report, on_progress)
    elif isinstance(records, ForeignWorkflows):
        await import_workflows(records, context, report, on_progress)
    else:
        await import_transcripts(records, context, report, on_progress)
    return report


async def import_session(request: ImportSession, context: ImportContext) -> AdoptedSession:
    """Import the session with what it was forked from. `RefusedError` when its ids mean something else here."""
    return await import_session_file(request.file, context)


def export_session(
    request: ExportSession,
    reader: StateReader,
    journals: Journals,
    *,
    at: datetime,
    version: str,
    is_at_work: Callable[[Worker], bool],
) -> ExportedSession:
    """Return the session as a file for others; `SessionNotFoundError` when there is none."""
    session = get_session(reader, request.session_id)
    exported = to_export(reader, journals, session, at=at, version=version, is_at_work=is_at_work)
    is_claude = request.format is ExportFormat.CLAUDE
    return ExportedSession(
        pieces=iter(FORMATS[request.format](exported)),
        claude_id=claude_session_id(exported) if is_claude else None,
    )
