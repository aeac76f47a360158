"""Adoption: what taking over another tool's records needs, and the account of what became of them.

The readers in `imports/` give foreign records in the forms of `adopt_jobs.py` and `adopt_transcripts.py`;
those modules record them through the ports of a `ImportContext`. What is written for a record comes before the row
that names it, so that a run that was killed is simply run again (INV-DURABLE, INV-ONCE).
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Collection, Iterator
from datetime import UTC, datetime

import msgspec

from nightherd.model.ids import (
    ALPHABET,
    JobId,
    RandomText,
    SessionId,
    generate_execution_id,
    generate_session_id,
)
from nightherd.model.jobs.job import STATUS_OF_EXIT, ExitReason
from nightherd.model.journal.event import (
    VERSION,
    ErrorEvent,
    Event,
    SystemEvent,
    describe,
    is_message,
)
from nightherd.model.journal.recollection import RebuiltRows, Recollection
from nightherd.model.journal.system import (
    Complete,
    End,
    ExecutionStarted,
    Header,
    Init,
    SystemSubtype,
)
from nightherd.model.secrets import Secrets
from nightherd.model.sessions.session import Session
from nightherd.model.sessions.shared import session_header
from nightherd.model.usage import Usage
from nightherd.ports import FinishedJournals, Journals, StateReader, StateWriter, TranscriptShelf

OnProgress = Callable[[str], None]
"""Called with the name of every foreign record that is finished."""


class Skipped(msgspec.Struct, frozen=True, kw_only=True):
    """A record that was read and not taken over, and why."""

    source: str
    reason: str


class Unreadable(msgspec.Struct, frozen=True, kw_only=True):
    """A record that could not be read: where, and why."""

    file: str
    reason: str
    line: int | None = None
    record: str | None = None
    """`TABLE/KEY` of a row, where the file is a database."""


class Report(msgspec.Struct, kw_only=True):
    """What became of every foreign record, filled in while they are gone through."""

    imported: dict[str, int] = msgspec.field(default_factory=dict)
    """How many were recorded, by kind."""
    unchanged: int = 0
    """Records that were here already, as they are there."""
    skipped: list[Skipped] = msgspec.field(default_factory=list)
    unreadable: list[Unreadable] = msgspec.field(default_factory=list)

    def count(self, kind: str, number: int = 1) -> None:
        """`number` more of `kind` are recorded, or would be."""
        self.imported[kind] = self.imported.get(kind, 0) + number

    def skip(self, source: str, reason: str) -> None:
        """`source` is left where it is."""
        self.skipped.append(Skipped(source=source, reason=reason))

    @property
    def is_useless(self) -> bool:
        """Whether there was something, and none of it could be read."""
        some = any(self.imported.values()) or self.unchanged or self.skipped
        return bool(self.unreadable) and not some


class ImportWriters(msgspec.Struct, frozen=True, kw_only=True):
    """What recording needs."""

    state: StateWriter
    journals: FinishedJournals


class ImportContext(msgspec.Struct, frozen=True, kw_only=True):
    """Everything adoption needs from the world. Without `pens` it is a dry run: nothing is written."""

    reader: StateReader
    journals: Journals
    shelf: TranscriptShelf
    secrets: Secrets
    version: str
    has_transcripts: Callable[[str], bool]
    """Whether sessions of the runtime by that name resume from transcripts like those on the shelf."""
    writers: ImportWriters | None = None
    schedules: Collection[str] = ()
    """The schedules that the fleet declares, as `AGENT/NAME`; those of workflows as `workflow:WORKFLOW/NAME`."""
    workflows: Collection[str] = ()
    """The workflows that the fleet declares."""


def session_id_for(
    kind: str, name: str, is_same: Callable[[Session], bool], context: ImportContext
) -> SessionId:
    """The id of the session made from a foreign record: the same for the same record, in every import.

    So two imports at the same time cannot make two sessions of one record. An id that another session has
    is passed over.
    """
    salt = 0
    while True:
        found = generate_session_id(hashed_text(f"{kind}\n{name}\n{salt}"))
        known = context.reader.find_session(found)
        if known is None or is_same(known):
            return found
        salt += 1


def hashed_text(seed: str) -> RandomText:
    """Text of the id alphabet that follows from `seed`."""

    def text(length: int) -> str:
        number = int.from_bytes(hashlib.sha256(seed.encode(errors="replace")).digest())
        letters = []
        for _ in range(length):
            number, letter = divmod(number, len(ALPHABET))
            letters.append(ALPHABET[letter])
        return "".join(letters)

    return text


def in_utc(at: datetime | None) -> datetime | None:
    """The same instant in UTC; None for one that UTC cannot say, as the first day there is somewhere else."""
    try:
        return at.astimezone(UTC) if at is not None else None
    except OverflowError:
        return None


EPOCH = 1
"""All of it was one execution."""


class ForeignJob(msgspec.Struct, frozen=True, kw_only=True):
    """A job as another tool recorded it."""

    source: str
    header: Header
    """Who it is; our own version and session are filled in."""
    prompt: str
    exit_reason: ExitReason | None
    """How it ended; None when that is unknown: it was interrupted."""
    events: Callable[[Callable[[Unreadable], None]], Iterator[Event]]
    """What was said, read when asked for; what could not be read is told."""
    finished_at: datetime | None = None
    runtime_session_id: str | None = None
    summary: str | None = None
    usage: Usage | None = None
    amend: Callable[[RebuiltRows], RebuiltRows] | None = None
    """Adds to the rows what the other tool knew and no journal says."""

    @property
    def id(self) -> JobId:
        """Its id, there and here."""
        return JobId(self.header.id)


class AdoptedRecord:
    """The journal of an adopted job, and what it comes to once all its events were taken."""

    def __init__(
        self,
        job: ForeignJob,
        tool: str,
        session: Session | None,
        context: ImportContext,
        report: Report,
    ) -> None:
        self._job = job
        self._tool = tool
        self._session = session
        self._context = context
        self._report = report
        self._at = job.header.created_at
        self._error: ErrorEvent | None = None
        self.known = Recollection()

    def events(self) -> Iterator[Event]:
        """Every event, numbered and stamped, in order."""
        for event in self._opening():
            yield self._place(event)
        for event in self._job.events(self._report.unreadable.append):
            if isinstance(event, ErrorEvent):
                self._error = event
            yield self._place(event)
        for event in self._ending():
            yield self._place(event)

    def _opening(self) -> Iterator[Event]:
        job, session = self._job, self._session
        header = msgspec.structs.replace(
            job.header,
            session_id=session.id if session is not None else None,
            session=session_header(session) if session is not None else None,
            nightherd_version=self._context.version,
        )
        yield describe(header)
        yield describe(ExecutionStarted(worker=self._tool))
        if job.runtime_session_id is not None:
            yield describe(Init(runtime=self._tool, runtime_session_id=job.runtime_session_id))
        if job.prompt:
            yield SystemEvent(subtype=SystemSubtype.USER_INPUT, content=job.prompt, end=True)

    def _ending(self) -> Iterator[Event]:
        """How it ended. The record of an interrupted job just stops: that is what happened."""
        job = self._job
        if job.exit_reason is None:
            return
        self._at = job.finished_at or self._at
        is_success = job.exit_reason is ExitReason.SUCCESS
        if is_success or job.usage is not None:
            answer = self.known.tally.answer
            summary = job.summary if job.summary and job.summary != answer else None
            yield describe(Complete(summary=summary, usage=job.usage))
            if not is_success and self._error is not None:
                yield self._error  # once more: the last word is how it ended
        status = STATUS_OF_EXIT[job.exit_reason]
        yield describe(End(status=status.value, exit_reason=job.exit_reason.value))

    def _place(self, event: Event) -> Event:
        """`event` as it stands in the journal."""
        self._at = event.timestamp or self._at
        tally = self.known.tally
        if not isinstance(event, ErrorEvent) and is_message(event):
            event = msgspec.structs.replace(event, message=tally.messages + 1)
        placed: Event = msgspec.structs.replace(
            self._context.secrets.mask_event(event),
            v=VERSION,
            seq=self.known.last_seq + 1,
            epoch=EPOCH,
            timestamp=self._at,
            execution=generate_execution_id(self._job.id, EPOCH),
        )
        self.known = self.known.add(placed)
        return placed
