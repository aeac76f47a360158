"""Orphans: journals whose rows were lost. Their rows are rebuilt from the journals."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from datetime import UTC, datetime

import msgspec
from msgspec.structs import replace

from nightherd.engine.doctor.record import RepairContext, apply_changes, list_jobs
from nightherd.engine.jobs.begin import header_of
from nightherd.errors import JournalError, NightherdError
from nightherd.model.agents.state import AgentState, after_job_moved
from nightherd.model.change import AdoptRows, Row
from nightherd.model.doctor import Finding, Level
from nightherd.model.ids import JobId, SessionId, generate_execution_id
from nightherd.model.jobs.changes import CorrectJob
from nightherd.model.jobs.job import Job, JobStatus, JobTexts
from nightherd.model.jobs.outcome import JOURNAL_LOST, usage_of
from nightherd.model.journal.event import ErrorEvent, Event, SystemEvent, describe, payload_of
from nightherd.model.journal.recollection import RebuiltRows, rebuilt_rows, recollect
from nightherd.model.journal.system import Complete, End, ExecutionStarted, Header, Warned
from nightherd.model.sessions.session import Session
from nightherd.model.sessions.shared import with_job, without_parent

BATCH = 100
"""Jobs whose rows share one change."""

NOTHING = "nothing in it can be read"

OnJob = Callable[[int], None]


def orphans(record: RepairContext) -> Iterator[Finding]:
    """Journals that no row knows of, oldest first: rows made in this order are listed in it."""
    known = {job.id for job in list_jobs(record.reader, None)}
    found: list[tuple[datetime, JobId, Finding]] = []
    for job_id in record.journals.job_ids():
        # The row comes before the journal: a job that began since has one by now.
        if job_id not in known and record.reader.find_job(job_id) is None:
            made_at, why_not = _beginning(record, job_id)
            found.append((made_at, job_id, _orphan(job_id, why_not)))
    for _, _, finding in sorted(found, key=lambda one: one[:2]):
        yield finding


def _orphan(job_id: JobId, why_not: str | None) -> Finding:
    remedies = {
        None: "its row is rebuilt from its journal",
        NOTHING: "the file is kept aside; restore it from a backup if you can",
    }
    return Finding(
        check="orphans",
        level=Level.PROBLEM,
        message=f"job {job_id} has a journal and no row" + (f"; {why_not}" if why_not else ""),
        job_id=job_id,
        remedy=remedies.get(why_not, "restore the file from a backup, or move it away"),
        is_fixable=why_not in remedies,
    )


async def adopt_orphans(
    record: RepairContext, findings: Sequence[Finding], *, on_job: OnJob = lambda count: None
) -> None:
    """Make the rows of every orphan, in the order given. What one journal alone cannot tell, all do:
    a session that several jobs were in is shared, and an agent stands as its last job left it. A journal in
    which nothing can be read is kept aside.
    """
    found = [JobId(finding.job_id) for finding in findings if finding.job_id is not None]
    job_ids = [job_id for job_id in found if record.journals.last(job_id, 1)]
    for job_id in set(found).difference(job_ids):
        record.journals.put_aside(job_id)
    sessions: dict[SessionId, Session] = {}
    agents: dict[str, AgentState] = {}
    for count, job_id in enumerate(job_ids, 1):
        on_job(count)
        rows = _rebuilt(record, job_id, load_blobs=False)
        if rows is None:
            continue
        if rows.session is not None:
            sessions[rows.session.id] = with_job(sessions.get(rows.session.id), rows.session)
        agent = agents.get(rows.job.agent) or AgentState(name=rows.job.agent)
        agents[agent.name] = after_job_moved(agent, rows.job, None)
    sessions = {known: _with_parent(record, sessions, one) for known, one in sessions.items()}
    for start in range(0, len(job_ids), BATCH):
        await _adopt(record, job_ids[start : start + BATCH], sessions)
    await _write(record, tuple(agents.values()))


def _with_parent(
    record: RepairContext, sessions: dict[SessionId, Session], session: Session
) -> Session:
    """The session; one whose parent is lost begins where its own jobs do."""
    parent = session.parent_session_id
    if parent is None or parent in sessions or record.reader.find_session(parent) is not None:
        return session
    return without_parent(session)


async def _adopt(
    record: RepairContext, job_ids: Sequence[JobId], sessions: dict[SessionId, Session]
) -> None:
    needed: dict[SessionId, Session] = {}
    written: list[Row] = []
    for job_id in job_ids:
        rows = _rebuilt(record, job_id)
        if rows is None:
            continue
        if rows.session is not None:
            needed[rows.session.id] = sessions[rows.session.id]
        written += (rows.job, rows.texts, *rows.executions)
    await _write(record, (*needed.values(), *written))


async def _write(record: RepairContext, rows: tuple[Row, ...]) -> None:
    if rows:
        await apply_changes(record, [AdoptRows(rows=rows, source="journal")])


def _rebuilt(
    record: RepairContext, job_id: JobId, *, load_blobs: bool = True
) -> RebuiltRows | None:
    try:
        return rebuilt_rows(recollect(record.journals.read(job_id, load_blobs=load_blobs)))
    except JournalError:
        # A body that is missing from beside the journal takes nothing else with it.
        return _rebuilt(record, job_id, load_blobs=False) if load_blobs else None
    except ValueError:
        return None  # written by a newer nightherd; the next check finds it again


def _beginning(record: RepairContext, job_id: JobId) -> tuple[datetime, str | None]:
    """When the job was made, and why its rows cannot be; None when they can."""
    never = datetime.max.replace(tzinfo=UTC)
    is_empty = True
    try:
        for event in record.journals.read(job_id, load_blobs=False):
            is_empty = False
            header = payload_of(event) if isinstance(event, SystemEvent) else None
            if isinstance(header, Header):
                return header.created_at, None
    except NightherdError as error:
        return never, error.message
    return never, NOTHING if is_empty else "the journal does not name its agent"


UNKNOWN = "unknown"


async def recreate_lost_journal(record: RepairContext, job: Job) -> None:
    """Write the journal of an ended job again, as far as its rows know it, and let the row name its end."""
    execution = generate_execution_id(job.id, job.epoch)
    with closing(record.journals.open(job.id, epoch=job.epoch, execution=execution)) as journal:
        session = record.reader.find_session(job.session_id) if job.session_id is not None else None
        for event in _events(job, record.reader.find_texts(job.id), session):
            journal.append(event)
        journal.sync()
        after = replace(job, last_seq=journal.last_seq)
    change = CorrectJob(expected=job, job=after, reason="its journal was lost")
    await apply_changes(record, [change])


def _events(job: Job, texts: JobTexts | None, session: Session | None) -> Iterator[Event]:
    known = texts if texts is not None else JobTexts(job_id=job.id, prompt="")
    yield describe(header_of(job, known, session, UNKNOWN))
    yield describe(ExecutionStarted(worker=job.worker or UNKNOWN))
    text = f"the journal of this job was lost with its {job.last_seq} events; this is rebuilt from its row"
    yield describe(Warned(code=JOURNAL_LOST), text)
    usage = usage_of(job)
    if job.status is JobStatus.COMPLETED:
        yield describe(Complete(usage=usage, summary=known.summary or job.summary))
    elif job.error is not None:
        extra = {"usage": msgspec.to_builtins(usage)}
        yield ErrorEvent(message=job.error, code=job.error_code, extra=extra)
    reason = job.exit_reason.value if job.exit_reason is not None else UNKNOWN
    yield describe(End(status=job.status.value, exit_reason=reason))
