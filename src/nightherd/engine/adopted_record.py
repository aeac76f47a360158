"""The record of an adopted job: what another tool wrote, as a whole journal of ours.

The header, the execution and the prompt stand before what was said, how it ended stands after it, so that
the journal alone explains itself like any other.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import datetime

import msgspec

from nightherd.engine.adopt import Desk, Report, Unreadable
from nightherd.model.event import VERSION, ErrorEvent, Event, SystemEvent, describe, is_message
from nightherd.model.ids import JobId, generate_execution_id
from nightherd.model.job import STATUS_OF_EXIT, ExitReason
from nightherd.model.recollection import Recollection
from nightherd.model.session import Session
from nightherd.model.shared_session import session_header
from nightherd.model.system import Complete, End, ExecutionStarted, Header, Init, SystemSubtype
from nightherd.model.usage import Usage

EPOCH = 1
"""All of it was one execution."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ForeignJob:
    """A job as another tool recorded it."""

    source: str
    header: Header
    """Who it is; our own version and session are filled in."""
    prompt: str
    exit_reason: ExitReason | None
    """How it ended; None when nobody ever said: it was interrupted."""
    events: Callable[[Callable[[Unreadable], None]], Iterator[Event]]
    """What was said, read when asked for; what could not be read is told."""
    finished_at: datetime | None = None
    runtime_session_id: str | None = None
    summary: str | None = None
    usage: Usage | None = None

    @property
    def id(self) -> JobId:
        """Its id, there and here."""
        return JobId(self.header.id)


class AdoptedRecord:
    """The journal of an adopted job, and what it comes to once all its events were taken."""

    def __init__(
        self, job: ForeignJob, tool: str, session: Session | None, desk: Desk, report: Report
    ) -> None:
        self._job = job
        self._tool = tool
        self._session = session
        self._desk = desk
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
            nightherd_version=self._desk.version,
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
            told = job.summary if job.summary and job.summary != answer else None
            yield describe(Complete(summary=told, usage=job.usage))
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
            self._desk.secrets.mask_event(event),
            v=VERSION,
            seq=self.known.last_seq + 1,
            epoch=EPOCH,
            timestamp=self._at,
            execution=generate_execution_id(self._job.id, EPOCH),
        )
        self.known = self.known.add(placed)
        return placed
