"""Deciding about work: an issue is taken once, has one job at a time, and is settled once (INV-ONCE)."""

from __future__ import annotations

from datetime import datetime

from msgspec.structs import replace

from nightherd.model.change import Answer, Applied, Refused, Why
from nightherd.model.decisions.rows import Rows
from nightherd.model.jobs.changes import SubmitJob
from nightherd.model.jobs.job import Job
from nightherd.model.text import shorten
from nightherd.model.work.changes import (
    EndWork,
    HoldWork,
    LoseWork,
    NoteWork,
    ReleaseWork,
    ReserveWork,
    SetSourceState,
    SettleWork,
    StartWork,
    StepWork,
)
from nightherd.model.work.item import (
    ERROR_LIMIT,
    HAND,
    TITLE_LIMIT,
    WITHOUT_JOB,
    WORK_LIFECYCLE,
    WorkId,
    WorkItem,
    WorkOutcome,
    WorkStatus,
    lies_ahead,
)
from nightherd.model.work.source import SourceState

SETTLED = frozenset({WorkStatus.DONE, WorkStatus.FAILED})


def reserve(change: ReserveWork, rows: Rows) -> Answer:
    """The issue, if nobody of this fleet has it."""
    item = change.item
    known = rows.get(WorkItem, item.id)
    if known is None:
        return Applied(rows=(_bounded(item),))
    if known.is_open:
        who = f"{known.schedule_id} has {known.id} ({known.status})"
        return Refused(why=Why.DUPLICATE, message=who)
    if not change.is_asked and lies_ahead(known.not_before, item.reserved_at):
        return Refused(why=Why.TOO_EARLY, message=f"{known.id} may not be taken again yet")
    WORK_LIFECYCLE.check(known.status, item.status)
    # Made ready again after it was done or given up: it begins anew.
    attempts = 0 if known.status in SETTLED else known.attempts
    return Applied(rows=(_bounded(replace(item, attempts=attempts)),))


def _bounded(item: WorkItem) -> WorkItem:
    return replace(item, title=shorten(item.title, TITLE_LIMIT))


def step(change: StepWork, rows: Rows) -> Answer:
    """The item in the hands of that process for a while."""
    item = _claimed(change.id, change.claim, rows)
    if isinstance(item, Refused):
        return item
    if not item.is_open:
        return Refused(why=Why.STATUS, message=f"{item.id} is {item.status}")
    if _is_in_other_hands(item, change.by, change.at):
        return Refused(why=Why.SESSION_BUSY, message=f"{item.step_by} writes about {item.id}")
    return Applied(rows=(replace(item, step_by=change.by, step_until=change.until),))


def _is_in_other_hands(item: WorkItem, by: str, at: datetime) -> bool:
    return item.step_by not in (None, by) and lies_ahead(item.step_until, at, HAND)


def hold(change: HoldWork, rows: Rows) -> Answer:
    """The issue is ours."""
    item = _claimed(change.id, change.claim, rows)
    if isinstance(item, Refused):
        return item
    if not WORK_LIFECYCLE.allows(item.status, WorkStatus.HELD):
        return _no_step(item, WorkStatus.HELD)
    held = _moved(item, WorkStatus.HELD, change.at)
    return Applied(rows=(_bounded(replace(held, title=change.title)),))


def lose(change: LoseWork, rows: Rows) -> Answer:
    """The issue is another fleet's."""
    item = _claimed(change.id, change.claim, rows)
    if isinstance(item, Refused):
        return item
    if not WORK_LIFECYCLE.allows(item.status, WorkStatus.LOST):
        return _no_step(item, WorkStatus.LOST)
    lost = _moved(item, WorkStatus.LOST, change.at)
    reason = shorten(change.reason, ERROR_LIMIT)
    return Applied(rows=(replace(lost, not_before=change.not_before, last_error=reason),))


def started(start: StartWork, job: Job, at: datetime, rows: Rows) -> WorkItem | Refused:
    """Return the item as the one of that job, which is recorded with it; why not, when it is not held any more."""
    item = _claimed(start.id, start.claim, rows)
    if isinstance(item, Refused):
        return item
    is_continued = item.status is WorkStatus.WORKING and item.job_id == start.after
    if is_continued and _open_job(item, rows) is None:
        working = replace(item, changed_at=at, tries=0, last_error=None, due_at=None)
    elif item.status is WorkStatus.HELD:
        working = _moved(item, WorkStatus.WORKING, at)
    else:
        return Refused(why=Why.STALE, message=f"{item.id} is {item.status}")
    return replace(
        working,
        agent=job.agent,
        schedule=job.schedule or item.schedule,
        attempts=item.attempts + 1,
        job_id=job.id,
    )


def with_work(answer: Answer, change: SubmitJob, rows: Rows) -> Answer:
    """The answer to a new job, with the issue that it works on; refused where the issue is not for it any more."""
    if change.work is None or not isinstance(answer, Applied) or answer.job is None:
        return answer
    item = started(change.work, answer.job, change.job.created_at, rows)
    if isinstance(item, Refused):
        return replace(item, why=Why.NO_WORK)
    return replace(answer, rows=(*answer.rows, item))


def end(change: EndWork, rows: Rows) -> Answer:
    """The claim is over, with its outcome."""
    item = _claimed(change.id, change.claim, rows)
    if isinstance(item, Refused):
        return item
    if not WORK_LIFECYCLE.allows(item.status, WorkStatus.SETTLING):
        return _no_step(item, WorkStatus.SETTLING)
    if change.outcome is WorkOutcome.UNUSED and item.status not in WITHOUT_JOB:
        # Another process has made a job of it while this one was frozen.
        return Refused(why=Why.STATUS, message=f"{item.id} has a job: {item.job_id}")
    busy = _open_job(item, rows)
    if busy is not None:
        return Refused(why=Why.SESSION_BUSY, message=f"{busy.id} has not ended", job=busy)
    settling = _moved(item, WorkStatus.SETTLING, change.at)
    return Applied(rows=(replace(settling, outcome=change.outcome),))


def note(change: NoteWork, rows: Rows) -> Answer:
    """The step, if the process that took it still has the item in hand."""
    item = _claimed(change.id, change.claim, rows)
    if isinstance(item, Refused):
        return item
    if not item.is_open or _is_in_other_hands(item, change.by, change.at):
        return Refused(why=Why.STALE, message=f"{item.id} is in other hands")
    failed = change.error is not None
    noted = replace(
        item,
        is_labelled=item.is_labelled if change.is_labelled is None else change.is_labelled,
        is_told=item.is_told if change.is_told is None else change.is_told,
        is_relabelled=(
            item.is_relabelled if change.is_relabelled is None else change.is_relabelled
        ),
        comment_id=change.comment_id or item.comment_id,
        tries=item.tries + 1 if failed else 0,
        last_error=shorten(change.error, ERROR_LIMIT) if change.error is not None else None,
        due_at=change.due_at,
    )
    return Applied(rows=() if noted == item else (noted,))


def settle(change: SettleWork, rows: Rows) -> Answer:
    """The issue as it is from now on."""
    item = _claimed(change.id, change.claim, rows)
    if isinstance(item, Refused):
        return item
    if not WORK_LIFECYCLE.allows(item.status, change.status):
        return _no_step(item, change.status)
    settled = replace(_moved(item, change.status, change.at), not_before=change.not_before)
    return Applied(rows=(settled,))


def release(change: ReleaseWork, rows: Rows) -> Answer:
    """The issue, given back by a person."""
    item = rows.get(WorkItem, change.id)
    if item is None:
        return Refused(why=Why.MISSING, message=f"there is no work item {change.id}")
    busy = _open_job(item, rows)
    if busy is not None:
        message = f"{item.id} has a job that has not ended: {busy.id}"
        return Refused(why=Why.SESSION_BUSY, message=message, job=busy)
    if item.status is WorkStatus.SETTLING and not change.is_forced:
        return Refused(why=Why.STATUS, message=f"{item.id} is being settled already")
    if item.status is WorkStatus.SETTLING:
        dropped = _moved(item, WorkStatus.RELEASED, change.at)
        return Applied(rows=(replace(dropped, attempts=0, not_before=None),))
    if item.status in WITHOUT_JOB or item.status is WorkStatus.WORKING:
        settling = _moved(item, WorkStatus.SETTLING, change.at)
        outcome = WorkOutcome.RELEASED
        return Applied(rows=(replace(settling, outcome=outcome, attempts=0),))
    freed = replace(item, attempts=0, not_before=None, last_error=None, changed_at=change.at)
    return Applied(rows=(freed,))


def set_source_state(change: SetSourceState, rows: Rows) -> Answer:
    """The source as it is now."""
    state = change.state
    if state.error is not None:
        state = replace(state, error=shorten(state.error, ERROR_LIMIT))
    return Applied(rows=() if rows.get(SourceState, state.id) == state else (state,))


def _claimed(id: WorkId, claim: str, rows: Rows) -> WorkItem | Refused:
    """The item, if it is still the claim of that claim."""
    item = rows.get(WorkItem, id)
    if item is None:
        return Refused(why=Why.MISSING, message=f"there is no work item {id}")
    if item.claim != claim:
        return Refused(why=Why.STALE, message=f"{id} was taken again since")
    return item


def _open_job(item: WorkItem, rows: Rows) -> Job | None:
    """The item's job, while it has not ended."""
    if item.status is not WorkStatus.WORKING or item.job_id is None:
        return None
    job = rows.get(Job, item.job_id)
    return job if job is not None and not job.is_terminal else None


def _moved(item: WorkItem, status: WorkStatus, at: datetime) -> WorkItem:
    """The item in its next status, with nothing left of the steps of the last one."""
    return replace(
        item,
        status=WORK_LIFECYCLE.check(item.status, status),
        changed_at=at,
        due_at=None,
        tries=0,
        last_error=None,
        step_by=None,
        step_until=None,
    )


def _no_step(item: WorkItem, target: WorkStatus) -> Refused:
    return Refused(
        why=Why.STATUS, message=f"{item.id} is {item.status}, which is not before {target}"
    )
