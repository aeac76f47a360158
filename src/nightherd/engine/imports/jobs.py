"""Adopting another tool's fleet: its sessions, its jobs with everything that was said, its schedules.

A job's journal is written first and its rows after, and the rows are what the journal comes to. A run that was
killed leaves journals without rows at most; the next run writes them again and continues.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime
from itertools import islice

import msgspec
from msgspec.structs import replace

from nightherd.engine.imports.context import (
    AdoptedRecord,
    ForeignJob,
    ImportContext,
    ImportWriters,
    OnProgress,
    Report,
    session_id_for,
)
from nightherd.errors import JournalError
from nightherd.model.agents.state import AgentState, after_job_moved
from nightherd.model.change import AdoptRows, Applied, Row
from nightherd.model.ids import JobId
from nightherd.model.jobs.job import ExitReason, Job
from nightherd.model.journal.event import SystemEvent, payload_of
from nightherd.model.journal.recollection import RebuiltRows, rebuilt_rows
from nightherd.model.journal.system import ExecutionStarted, SystemSubtype
from nightherd.model.schedules.schedule import ScheduleOverride, ScheduleState, ScheduleStatus
from nightherd.model.sessions.changes import RefreshAdopted
from nightherd.model.sessions.session import SESSION_LIFECYCLE, Session, SessionMode, SessionQuery
from nightherd.model.text import whole_text
from nightherd.views.sessions.sessions import every_session

BATCH = 50
"""Jobs that share one commit of their rows."""

PAGE = 500


class ForeignFleet(msgspec.Struct, frozen=True, kw_only=True):
    """Everything another tool left about its fleet."""

    tool: str
    jobs: Iterable[ForeignJob] = ()
    sessions: Sequence[Session] = ()
    """Without an id of ours."""
    schedules: Sequence[ScheduleState] = ()
    schedules_at: datetime | None = None
    """When what is said of the schedules was written."""


class Batch(msgspec.Struct, kw_only=True):
    """Jobs whose journals are written and whose rows are not."""

    jobs: int = 0
    rows: list[Row] = msgspec.field(default_factory=list)
    grown: list[RefreshAdopted] = msgspec.field(default_factory=list)
    """Sessions that were known before, and have more jobs now."""


async def import_fleet(
    fleet: ForeignFleet, context: ImportContext, report: Report, on_progress: OnProgress
) -> None:
    """Take over what is not here yet. What is here under the same name with other content is left alone."""
    await _adopt_sessions(fleet, context, report)
    await _adopt_schedules(fleet, context, report)
    adoption = JobAdoption(fleet.tool, context, report)
    for job in fleet.jobs:
        adoption.take(job)
        if adoption.batch.jobs >= BATCH:
            await adoption.record()
        on_progress(job.id)
    await adoption.record()
    await adoption.record_agents()


async def _adopt_sessions(fleet: ForeignFleet, context: ImportContext, report: Report) -> None:
    current = _current_sessions(context)
    new: list[Session] = []
    for session in fleet.sessions:
        runtime_id = session.runtime_session_id or ""
        mine = [
            known
            for known in context.reader.sessions_of_runtime(runtime_id)
            if known.key == session.key
        ]
        here = current.get(session.agent)
        if any(known.last_active_at >= session.last_active_at for known in mine):
            report.unchanged += 1
        elif mine:
            source = session.imported_from or runtime_id
            report.skip(source, f"it is session {mine[0].id} here, as it was when it was imported")
        elif here is not None and (
            here.imported_from is None or here.last_active_at >= session.last_active_at
        ):
            source = session.imported_from or runtime_id
            report.skip(source, f"agent {session.agent} has continued session {here.id} here")
        else:
            new.append(_with_id(session, fleet.tool, context))
    await _adopt(new, "sessions", fleet.tool, context, report)


def _with_id(session: Session, tool: str, context: ImportContext) -> Session:
    name = f"{session.agent}\n{session.runtime_session_id}"

    def is_same(known: Session) -> bool:
        return (known.key, known.runtime_session_id) == (session.key, session.runtime_session_id)

    return replace(session, id=session_id_for(tool, name, is_same, context))


def _current_sessions(context: ImportContext) -> dict[str, Session]:
    """The session that each agent's next job would continue in."""
    current: dict[str, Session] = {}
    for session in every_session(context.reader, SessionQuery(limit=PAGE)):
        is_over = session.status in SESSION_LIFECYCLE.terminal
        if session.mode is SessionMode.PERSISTENT and not is_over:
            current.setdefault(session.agent, session)
    return current


async def _adopt_schedules(fleet: ForeignFleet, context: ImportContext, report: Report) -> None:
    new: list[ScheduleState] = []
    for schedule in fleet.schedules:
        known = {one.id: one for one in context.reader.list_schedules(schedule.agent)}.get(
            schedule.id
        )
        masked = replace(schedule, last_error=mask(schedule.last_error, context))
        if known is None:
            new.append(masked)
        elif known == masked:
            report.unchanged += 1
        else:
            report.skip(f"schedule {schedule.id}", "it already exists here with different content")
    # First what keeps them off: a fleet that runs here must not see one without it.
    at = fleet.schedules_at
    off = [
        ScheduleOverride(id=one.id, updated_at=at, enabled=False, updated_by=fleet.tool)
        for one in new
        if one.status is ScheduleStatus.DISABLED and at is not None
    ]
    if off and context.writers is not None:
        await adopt_rows(off, fleet.tool, context.writers)
    await _adopt(new, "schedules", fleet.tool, context, report)


async def _adopt(
    rows: Sequence[Row], kind: str, tool: str, context: ImportContext, report: Report
) -> None:
    if rows:
        written = (
            await adopt_rows(rows, tool, context.writers)
            if context.writers is not None
            else len(rows)
        )
        report.count(kind, written)
        report.unchanged += len(rows) - written


async def adopt_rows(rows: Sequence[Row], tool: str, writers: ImportWriters) -> int:
    """Record the rows that are not here yet in one change, and return how many those were."""
    (answer,) = await writers.state.apply([AdoptRows(rows=tuple(rows), source=tool)])
    return len(answer.rows) if isinstance(answer, Applied) else 0


class JobAdoption:
    """Takes over jobs one after the other: journals at once, rows a batch at a time."""

    def __init__(self, tool: str, context: ImportContext, report: Report) -> None:
        self._tool = tool
        self._context = context
        self._report = report
        self._last: dict[str, Job] = {}
        self.batch = Batch()

    def take(self, job: ForeignJob, session: Session | None = None) -> RebuiltRows | None:
        """Write the job's journal and plan its rows; or leave it alone, say why, and return None.

        `session` is the one it was in; without it, the session here that has its runtime's session id.
        """
        known = self._context.reader.find_job(job.id)
        if known is not None and not self._is_same(known, job):
            self._report.skip(job.source, f"{job.id} already exists here with different content")
        elif known is not None:
            self._report.unchanged += 1
            self._last[known.agent] = known
        elif self._is_taken(job.id):
            self._report.skip(
                job.source, f"{job.id} has a journal here already, which is not of it"
            )
        else:
            return self._take(job, session or self._session_of(job))
        return None

    async def record(self) -> None:
        """Record the rows of the jobs taken since the last time."""
        batch, self.batch = self.batch, Batch()
        writers = self._context.writers
        if not batch.jobs:
            return
        if writers is not None:
            writers.journals.sync()
            adopted = AdoptRows(rows=tuple(batch.rows), source=self._tool)
            await writers.state.apply([adopted, *batch.grown])
        self._report.count("jobs", batch.jobs)

    async def record_agents(self) -> None:
        """Agents that nothing was known of are as their last job left them."""
        known = {state.name for state in self._context.reader.list_agents()}
        rows = [
            after_job_moved(AgentState(name=agent), job, None)
            for agent, job in sorted(self._last.items())
            if agent not in known
        ]
        if rows and self._context.writers is not None:
            await adopt_rows(rows, self._tool, self._context.writers)

    def _take(self, job: ForeignJob, session: Session | None) -> RebuiltRows:
        record = AdoptedRecord(job, self._tool, session, self._context, self._report)
        if self._context.writers is not None:
            self._context.writers.journals.write(job.id, record.events())
        else:
            for _ in record.events():
                pass
        rows = rebuilt_rows(record.known)
        if rows is None:
            raise JournalError(f"the journal of {job.id} has no header")
        if job.amend is not None:
            rows = job.amend(rows)
        self.batch.jobs += 1
        self.batch.rows += [rows.job, rows.texts, *rows.executions]
        self._report.count("events", record.known.last_seq)
        self._last[rows.job.agent] = rows.job
        return rows

    def _is_same(self, known: Job, job: ForeignJob) -> bool:
        """Whether `known` was made from `job`. What later work may have changed is not compared."""
        header = job.header
        return (
            known.worker == self._tool
            and known.agent == header.agent
            and known.trigger_type.value == header.trigger_type
            and known.created_at == header.created_at
            and known.schedule == header.schedule
            and known.forked_from == header.forked_from
            and known.exit_reason is (job.exit_reason or ExitReason.ERROR)
            and (job.exit_reason is not None or known.error_code == "interrupted")
            and known.runtime_session_id == job.runtime_session_id
        )

    def _is_taken(self, job_id: JobId) -> bool:
        """Whether there is a journal that no import wrote: it is some job's record, rows or not."""
        try:
            events = list(islice(self._context.journals.read(job_id, load_blobs=False), 2))
            if not events:
                return bool(self._context.journals.examine(job_id).bad_lines)
        except JournalError:
            return True
        second = events[-1]
        return not (
            isinstance(second, SystemEvent)
            and second.subtype is SystemSubtype.EXECUTION_STARTED
            and payload_of(second) == ExecutionStarted(worker=self._tool)
        )

    def _session_of(self, job: ForeignJob) -> Session | None:
        """The session here that the job was in, if there is one of its agent's."""
        if job.runtime_session_id is None:
            return None
        known = self._context.reader.sessions_of_runtime(job.runtime_session_id)
        return next((one for one in known if one.agent == job.header.agent), None)


def mask(text: str | None, context: ImportContext) -> str | None:
    """`text` as it may be written."""
    return None if text is None else whole_text(str(context.secrets.mask(text)))
