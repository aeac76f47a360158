"""Rows that the journal knows better, and adopted rows."""

from __future__ import annotations

from collections.abc import Callable

from msgspec.structs import replace

from nightherd.model.change import (
    AdoptRows,
    Answer,
    Applied,
    Change,
    RecordDelivery,
    Refused,
    Row,
    Why,
)
from nightherd.model.decisions.around import missing
from nightherd.model.decisions.rows import Rows
from nightherd.model.inbox.item import InboxItem
from nightherd.model.jobs.changes import CorrectJob
from nightherd.model.jobs.job import Job
from nightherd.model.schedules.decisions import submit
from nightherd.model.sessions.changes import AdoptTurns, ForkSession, RefreshAdopted
from nightherd.model.sessions.decisions import fork
from nightherd.model.sessions.session import Session, SessionStatus
from nightherd.model.webhooks import Delivery, DeliveryOutcome
from nightherd.model.workflows.conductor import decisions as runs
from nightherd.model.workflows.conductor.changes import StartRun
from nightherd.model.workflows.rows import WorkflowRun


def correct(change: CorrectJob, rows: Rows) -> Answer:
    """The job's row as its journal has it; epochs only grow, and what has ended stays ended."""
    found = rows.get(Job, change.expected.id)
    if found is None:
        return missing(change.expected.id)
    if found != change.expected:
        return Refused(why=Why.STATUS, message=f"job {found.id} changed in the meantime", job=found)
    if change.job.epoch < found.epoch or (found.is_terminal and change.job.status != found.status):
        refusal = f"job {found.id} is {found.status} at epoch {found.epoch}"
        return Refused(why=Why.STATUS, message=refusal, job=found)
    return Applied(rows=(change.job,), job=change.job)


def adopt(change: AdoptRows, rows: Rows) -> Answer:
    """The rows that were not known yet; jobs, sessions, runs and inbox items numbered in the order given."""
    written: list[Row] = []
    first: dict[type[Row], Callable[[], int]] = {
        Job: rows.next_job_number,
        Session: rows.next_session_number,
        WorkflowRun: rows.next_run_number,
        InboxItem: rows.next_item_number,
    }
    numbers: dict[type[Row], int] = {}
    for row in change.rows:
        kind = type(row)
        if rows.get(kind, key_of(row)) is not None:
            continue
        if isinstance(row, Job | Session | WorkflowRun | InboxItem):
            number = numbers[kind] if kind in numbers else first[kind]()
            numbers[kind] = number + 1
            written.append(replace(row, number=number))
        else:
            written.append(row)
    return Applied(rows=tuple(written))


def refresh(change: RefreshAdopted, rows: Rows) -> Answer:
    """The session as its source has it now; refused once a job of ours has gone on from it."""
    found = rows.get(Session, change.session.id)
    if found is None:
        return Refused(why=Why.MISSING, message=f"there is no session {change.session.id}")
    is_untouched = found.job_count == change.known_jobs and found.status is SessionStatus.PAUSED
    if found.imported_from is None or not is_untouched:
        return Refused(why=Why.STATUS, message=f"session {found.id} has jobs of its own")
    return Applied(rows=(replace(change.session, number=found.number, rank=found.rank),))


def adopt_turns(change: AdoptTurns, rows: Rows) -> Answer:
    """A job that is over, and its session with what was said in it; refused when the session has moved on."""
    session: Row = change.session
    if change.expected is None:
        branch = fork(ForkSession(session=change.session), rows)
        if isinstance(branch, Refused):
            return branch
        (session,) = branch.rows
    else:
        found = rows.get(Session, change.session.id)
        if found is None:
            return Refused(why=Why.MISSING, message=f"there is no session {change.session.id}")
        if found.status is SessionStatus.ACTIVE:
            return Refused(why=Why.SESSION_BUSY, message=f"a job is running in session {found.id}")
        if found != change.expected:
            return Refused(why=Why.STALE, message=f"session {found.id} changed in the meantime")
    adopted = adopt(AdoptRows(rows=change.rows, source=""), rows)
    written = adopted.rows if isinstance(adopted, Applied) else ()
    job = next((row for row in written if isinstance(row, Job)), None)
    if job is None:
        return Refused(why=Why.ID_TAKEN, message="there is a job of that id already")
    return Applied(rows=(*written, session), job=job)


def key_of(row: Row) -> str:
    """The row's key: its first field."""
    return str(getattr(row, row.__struct_fields__[0]))


def record(change: RecordDelivery, rows: Rows) -> Answer:
    """The delivery and its outcome in one: sent any number of times, it makes one job (INV-ONCE)."""
    delivery = change.delivery
    known = rows.get(Delivery, delivery.id)
    if known is not None:
        made = rows.get(Job, known.job_id) if known.job_id is not None else None
        found = f"delivery {delivery.id} was already accepted"
        return Refused(why=Why.DUPLICATE, message=found, job=made)
    job: Job | None = None
    written: list[Row] = []
    then: list[Change] = []
    reasons: list[str] = []
    if change.job is not None:
        submitted = submit(change.job, rows)
        if isinstance(submitted, Refused) or submitted.job is None:
            return submitted
        job = submitted.job
        written += submitted.rows
    for start in change.runs:
        if rows.get(WorkflowRun, start.run.id) is not None:
            return Refused(why=Why.ID_TAKEN, message=f"there is a run {start.run.id} already")
        refused = runs.refused(start, rows)
        if refused is None:
            then.append(start)
        else:
            reasons.append(refused.message)
    started = " ".join(one.run.id for one in then if isinstance(one, StartRun))
    outcome = DeliveryOutcome.RUN if started else DeliveryOutcome.IGNORED
    taken = replace(
        delivery,
        outcome=DeliveryOutcome.JOB if job is not None else outcome,
        job_id=None if job is None else job.id,
        run_ids=started,
        reason="; ".join(reasons) or (None if job is not None or started else delivery.reason),
    )
    return Applied(rows=(*written, taken), job=job, then=tuple(then))
