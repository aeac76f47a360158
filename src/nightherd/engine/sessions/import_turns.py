"""Retelling: what was said in a session outside the fleet becomes a job of it that is over.

So history, counts, forks and exports know it. Its journal is written whole, then its rows and the session's in one
change: killed on the way, nothing of it is there but a journal that no row names, and the next import writes it again.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime

import msgspec
from msgspec.structs import replace

from nightherd.engine.contexts import Stores
from nightherd.engine.imports.context import hashed_text, in_utc
from nightherd.engine.operations.fork import find_point, forked
from nightherd.engine.sessions.external_turns import RETOLD, external_events, on_record
from nightherd.errors import NightherdError
from nightherd.model.change import Applied, Refused, Why
from nightherd.model.ids import JobId, generate_execution_id, generate_job_id, generate_session_id
from nightherd.model.jobs.job import Execution, ExitReason, Job, JobStatus, JobTexts, TriggerType
from nightherd.model.journal.event import VERSION, ErrorEvent, Event, describe, is_message
from nightherd.model.journal.recollection import RebuiltRows, Recollection, rebuilt_rows
from nightherd.model.journal.system import (
    Complete,
    End,
    ExecutionStarted,
    Header,
    Init,
    WorkspaceUsed,
)
from nightherd.model.secrets import Secrets
from nightherd.model.sessions.changes import AdoptTurns
from nightherd.model.sessions.session import Session, SessionStatus, is_over, status_between_jobs
from nightherd.model.sessions.shared import session_header
from nightherd.model.usage import BYTES_PER_TOKEN
from nightherd.model.workspaces.workspace import Workspace
from nightherd.ports import FinishedJournals, Journals, StateReader, StateWriter, Transcripts
from nightherd.views.sessions.conversation import Segment, count_messages, segments_of

BY_HAND, IMPORTED = "takeover", "import"
"""Triggers of such jobs: turns added outside nightherd, or an imported session."""

EPOCH = 1


class TurnImport(msgspec.Struct, frozen=True, kw_only=True):
    """Everything retelling needs from the world."""

    state: StateWriter
    reader: StateReader
    journals: Journals
    finished: FinishedJournals
    transcripts: Transcripts
    secrets: Secrets
    version: str


class ImportedTurns(msgspec.Struct, frozen=True, kw_only=True):
    """The session as it is now, and the job that was made of what was said; None when nothing was."""

    session: Session
    job: Job | None = None


def is_only_retold(session: Session, parts: Sequence[Segment]) -> bool:
    """Whether the session came from elsewhere, and no job of ours was in it."""
    own = [part for part in parts if part.job.session_id == session.id]
    return session.imported_from is not None and all(part.job.worker == RETOLD for part in own)


async def ensure_turns_imported(session: Session, context: Stores) -> Session:
    """Return the session, with all turns of its imported transcript recorded."""
    if context.finished is None or session.imported_from is None:
        return session
    turn_import = TurnImport(
        state=context.state,
        reader=context.reader,
        journals=context.journals,
        finished=context.finished,
        transcripts=context.transcripts,
        secrets=context.secrets,
        version=context.version,
    )
    return (await import_transcript_turns(session, turn_import)).session


async def import_transcript_turns(session: Session, turn_import: TurnImport) -> ImportedTurns:
    """Record what an imported transcript says and the record lacks. Nothing for any other session."""
    parts = segments_of(turn_import.reader, turn_import.journals, session)
    if session.parent_session_id is not None or not is_only_retold(session, parts):
        return ImportedTurns(session=session)
    return await import_turns(session, turn_import, is_kept=True)


async def import_turns(
    session: Session, turn_import: TurnImport, *, is_kept: bool = False
) -> ImportedTurns:
    """Record turns that were added outside nightherd; in a branch of its end when the session is over, as by any job.

    With `is_kept` as far as our copy of the transcript has it.
    """
    runtime_id = session.runtime_session_id
    if runtime_id is None or not turn_import.transcripts.covers(session.runtime_type):
        return ImportedTurns(session=session)
    reader, journals = turn_import.reader, turn_import.journals
    parts = segments_of(reader, journals, session)
    known = on_record(reader, journals, [*reader.sessions_of_runtime(runtime_id), session])
    found = turn_import.transcripts.said_since(
        runtime_id, session.working_directory, known.uuids, is_kept=is_kept
    )
    spoken = [part for part in parts if part.messages]
    if spoken and not known.uuids:
        return ImportedTurns(
            session=session
        )  # nothing on record has a name there: what is new is unknown
    is_ours = bool(spoken) and spoken[-1].job.worker != RETOLD
    events = list(external_events(found, known, turn_import.secrets, is_ours=is_ours))
    if not any(is_message(event) for event in events):
        return ImportedTurns(session=session)
    cause = IMPORTED if is_kept else BY_HAND
    workspace = _workspace(session, reader)
    is_branched = is_over(session)
    into = _branch(session, events, workspace, turn_import) if is_branched else session
    turn_journal = _TurnJournal(
        into,
        events,
        cause,
        turn_import.version,
        workspace=workspace,
        not_before=_last_start(parts),
    )
    turn_import.finished.write(turn_journal.job_id, turn_journal.events())
    turn_import.finished.sync()
    rows = rebuilt_rows(turn_journal.known)
    if rows is None:
        raise NightherdError(f"the record of {turn_journal.job_id} has no header")
    after = _after(into, rows, parts, turn_journal.known)
    return await _record(None if is_branched else session, after, rows, turn_import)


def _workspace(session: Session, reader: StateReader) -> Workspace | None:
    """Return the workspace in which the turns were added; None where they were added in the agent's directory."""
    known = reader.find_workspace(session.workspace_id) if session.workspace_id else None
    return known if known is not None and known.is_there else None


def _branch(
    session: Session, events: Sequence[Event], workspace: Workspace | None, turn_import: TurnImport
) -> Session:
    """A session that continues from the end of one that is over; what is said in it is the runtime's same session."""
    point = find_point(turn_import.reader, turn_import.journals, session)
    session_id = generate_session_id(hashed_text(_seed(session, events)))
    made = forked(session, point, session_id=session_id, at=session.last_active_at)
    made = replace(made, runtime_session_id=session.runtime_session_id)
    if workspace is None:
        return made
    return replace(
        made,
        root=session.root,
        working_directory=session.working_directory,
        workspace_id=session.workspace_id,
    )


def _seed(session: Session, events: Sequence[Event]) -> str:
    """Return an id that is the same for the same turns, in every process."""
    names = [event.uuid or "" for event in (events[0], events[-1])]
    return "\n".join([session.id, *names, str(len(events)), str(session.job_count)])


def _last_start(parts: Sequence[Segment]) -> datetime | None:
    """Jobs stand in a conversation in the order in which they began."""
    return max((part.job.started_at for part in parts if part.job.started_at), default=None)


async def _record(
    before: Session | None, after: Session, rows: RebuiltRows, turn_import: TurnImport
) -> ImportedTurns:
    job = replace(rows.job, status=JobStatus.COMPLETED, exit_reason=ExitReason.SUCCESS)
    told_rows: tuple[Job | JobTexts | Execution, ...] = (job, rows.texts, *rows.executions)
    change = AdoptTurns(expected=before, session=after, rows=told_rows)
    (answer,) = await turn_import.state.apply([change])
    match answer:
        case Applied(job=Job() as made):
            return ImportedTurns(session=after, job=made)
        case Refused(why=Why.STALE | Why.ID_TAKEN | Why.SESSION_BUSY):
            # Another process has imported it, or is about to: leave it to that one.
            session = turn_import.reader.find_session(after.id)
            return ImportedTurns(session=session or after)
        case _:
            raise NightherdError(f"the new turns of session {after.id} could not be imported")


def _after(
    session: Session, rows: RebuiltRows, parts: Sequence[Segment], known: Recollection
) -> Session:
    """The session once the job is in it."""
    job, tally = rows.job, known.tally
    is_first = not parts
    status = session.status
    if status is SessionStatus.CREATED:
        status = status_between_jobs(session.mode)
    tokens = tally.context_tokens or (0 if is_first else session.token_estimate)
    return replace(
        session,
        status=status,
        job_count=session.job_count + 1,
        message_count=count_messages(parts) + job.messages,
        turn_count=job.turns if is_first else session.turn_count + job.turns,
        token_estimate=tokens + tally.unreported_bytes // BYTES_PER_TOKEN,
        last_active_at=max(session.last_active_at, known.last_at or session.last_active_at),
    )


class _TurnJournal:
    """The journal of such a job, and what is known of the job after its last event."""

    def __init__(
        self,
        session: Session,
        events: Sequence[Event],
        cause: str,
        version: str,
        *,
        workspace: Workspace | None,
        not_before: datetime | None,
    ) -> None:
        self._session = session
        self._said = events
        self._cause = cause
        self._version = version
        self._workspace = workspace
        first = next((event.timestamp for event in events if event.timestamp), None)
        begun = in_utc(first) or session.last_active_at
        self._at = begun if not_before is None else max(begun, not_before)
        self.job_id: JobId = generate_job_id(self._at, hashed_text(_seed(session, events)))
        self.known = Recollection()

    def events(self) -> Iterator[Event]:
        """Every event, numbered and stamped, in order."""
        session = self._session
        header = Header(
            id=self.job_id,
            agent=session.agent,
            trigger_type=TriggerType.MANUAL.value,
            trigger_id=self._cause,
            created_at=self._at,
            session_id=session.id,
            session=session_header(session),
            nightherd_version=self._version,
        )
        introduced = Init(
            runtime=session.runtime_type,
            runtime_session_id=session.runtime_session_id,
            working_directory=session.working_directory,
        )
        end = End(status=JobStatus.COMPLETED.value, exit_reason=ExitReason.SUCCESS.value)
        yield self._place(describe(header))
        yield self._place(describe(ExecutionStarted(worker=RETOLD)))
        if self._workspace is not None:
            yield self._place(describe(self._used(self._workspace)))
        yield self._place(describe(introduced))
        for event in self._said:
            yield self._place(event)
        yield self._place(describe(Complete(stop_reason=self._cause)))
        yield self._place(describe(end))

    def _used(self, workspace: Workspace) -> WorkspaceUsed:
        """Return the line that says where the turns were added."""
        return WorkspaceUsed(
            id=workspace.id,
            mode=workspace.mode.value,
            directory=self._session.working_directory,
            origin="kept",
            branch=workspace.branch,
            base=workspace.base,
            base_commit=workspace.base_commit,
        )

    def _place(self, event: Event) -> Event:
        """`event` as it stands in the journal."""
        self._at = max(self._at, in_utc(event.timestamp) or self._at)
        if not isinstance(event, ErrorEvent) and is_message(event):
            event = msgspec.structs.replace(event, message=self.known.tally.messages + 1)
        placed: Event = msgspec.structs.replace(
            event,
            v=VERSION,
            seq=self.known.last_seq + 1,
            epoch=EPOCH,
            timestamp=self._at,
            execution=generate_execution_id(self.job_id, EPOCH),
        )
        self.known = self.known.add(placed)
        return placed
