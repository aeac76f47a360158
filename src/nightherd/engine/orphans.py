"""Orphans: journals whose rows were lost. Their rows are made again from what the journals say."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime

from nightherd.engine.record import Record, apply_changes, list_jobs
from nightherd.errors import JournalError, NightherdError
from nightherd.model.agent_state import AgentState, after_job_moved
from nightherd.model.change import AdoptRows, Row
from nightherd.model.event import SystemEvent, payload_of
from nightherd.model.finding import Finding, Level
from nightherd.model.ids import JobId, SessionId
from nightherd.model.recollection import RebuiltRows, rebuilt_rows, recollect
from nightherd.model.session import Session
from nightherd.model.shared_session import with_job, without_parent
from nightherd.model.system import Header

BATCH = 100
"""Jobs whose rows share one change."""

NOTHING = "nothing in it can be read"

OnJob = Callable[[int], None]


def orphans(record: Record) -> Iterator[Finding]:
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
        None: "its row is made again from its journal",
        NOTHING: "it is kept aside; a backup of the file is better",
    }
    return Finding(
        check="orphans",
        level=Level.PROBLEM,
        message=f"job {job_id} has a journal and no row" + (f"; {why_not}" if why_not else ""),
        job_id=job_id,
        remedy=remedies.get(why_not, "put the file back as it was, or move it away"),
        is_fixable=why_not in remedies,
    )


async def adopt_orphans(
    record: Record, findings: Sequence[Finding], *, on_job: OnJob = lambda count: None
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


def _with_parent(record: Record, sessions: dict[SessionId, Session], session: Session) -> Session:
    """The session; one whose parent is lost begins where its own jobs do."""
    parent = session.parent_session_id
    if parent is None or parent in sessions or record.reader.find_session(parent) is not None:
        return session
    return without_parent(session)


async def _adopt(
    record: Record, job_ids: Sequence[JobId], sessions: dict[SessionId, Session]
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


async def _write(record: Record, rows: tuple[Row, ...]) -> None:
    if rows:
        await apply_changes(record, [AdoptRows(rows=rows, source="journal")])


def _rebuilt(record: Record, job_id: JobId, *, load_blobs: bool = True) -> RebuiltRows | None:
    try:
        return rebuilt_rows(recollect(record.journals.read(job_id, load_blobs=load_blobs)))
    except JournalError:
        # A body that is missing from beside the journal takes nothing else with it.
        return _rebuilt(record, job_id, load_blobs=False) if load_blobs else None
    except ValueError:
        return None  # a word of a newer nightherd: found again by whoever looks again


def _beginning(record: Record, job_id: JobId) -> tuple[datetime, str | None]:
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
    return never, NOTHING if is_empty else "the journal does not say whose job it was"
