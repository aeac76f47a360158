"""Settling: tell the tracker what came of a claim, and let the issue go.

The steps in their order: comment, labels, closing, lock, row. Each can be repeated after a crash: the comment is looked
for by its marker before it is written, and everything else changes nothing the second time.
"""

from __future__ import annotations

from datetime import datetime, timedelta

from nightherd.engine.work.claim import is_about_one_issue
from nightherd.engine.work.comments import comment_text, marker_of, will_be_retried
from nightherd.engine.work.context import (
    REFUSED_PAUSE_S,
    WorkContext,
    blocked_state,
    blocked_text,
    note,
    note_failure,
    note_success,
    take_in_hand,
)
from nightherd.errors import WorkSourceError
from nightherd.model.change import Applied
from nightherd.model.jobs.job import Job, JobStatus
from nightherd.model.log import LogLevel
from nightherd.model.work.changes import EndWork, SettleWork
from nightherd.model.work.issue import has_label
from nightherd.model.work.item import WorkItem, WorkOutcome, WorkStatus
from nightherd.model.work.source import OnSuccess, SourceStatus, WorkSource, source_of
from nightherd.ports.work import WorkTracker

OUTCOMES = {
    JobStatus.COMPLETED: WorkOutcome.SUCCESS,
    JobStatus.FAILED: WorkOutcome.FAILURE,
    JobStatus.CANCELLED: WorkOutcome.CANCELLED,
}
CLOCK_LEEWAY = timedelta(days=7)
"""How far the tracker's clock may be from ours when a comment is looked for."""
QUIET = timedelta(minutes=1)
"""How long an issue is not taken again: what the tracker lists may be old."""
FIRST_PAUSE, LONGEST_PAUSE = timedelta(minutes=1), timedelta(hours=1)
"""How long a failed issue waits for its next attempt: doubled from attempt to attempt."""


async def end_finished(item: WorkItem, context: WorkContext) -> bool:
    """End the claim of an issue whose job has ended; False while it has not."""
    job = None if item.job_id is None else context.fleet.reader.find_job(item.job_id)
    if job is None or not job.is_terminal:
        return False
    end = EndWork(id=item.id, claim=item.claim, at=context.now(), outcome=OUTCOMES[job.status])
    (answer,) = await context.fleet.state.apply([end])
    context.probe("work.ended")
    return isinstance(answer, Applied)


async def settle(item: WorkItem, context: WorkContext) -> bool:
    """Tell the tracker and let the issue go; False when that is to be tried again, or another process does it."""
    if not await take_in_hand(item, context):
        return False
    source = source_of(item.terms)
    blocked = blocked_state(source.id, context)
    if blocked is not None:
        await note(item, context, error=blocked_text(blocked), due_at=blocked.blocked_until)
        return False
    try:
        tracker = context.tracker(source)
        is_over = (
            await _comment(item, source, tracker, context)
            and await _relabel(item, source, tracker, context)
            and await _unlock(item, source, tracker, context)
        )
    except WorkSourceError as error:
        due_at = await _next_try(error, source, context)
        await note(item, context, error=error.message, due_at=due_at)
        context.log("work.trouble", item, f"{item.id}: {error.message}", LogLevel.WARNING)
        return False
    if is_over:
        await note_success(source.id, context)
    return is_over


async def _next_try(
    error: WorkSourceError, source: WorkSource, context: WorkContext
) -> datetime | None:
    """When the item is tried again. What is refused about one issue is no reason to leave the source alone."""
    due_at: datetime | None
    if is_about_one_issue(error):
        due_at = context.now() + timedelta(seconds=REFUSED_PAUSE_S)
    else:
        due_at = (await note_failure(source.id, error, context)).blocked_until
    # What a person's command lacks, the next process may have.
    return None if context.is_for_one and error.kind != SourceStatus.LIMITED else due_at


async def _comment(
    item: WorkItem, source: WorkSource, tracker: WorkTracker, context: WorkContext
) -> bool:
    """Write the comment if it is not there; False when the issue is in other hands by now."""
    if item.is_told:
        return True
    reader = context.fleet.reader
    job: Job | None = None if item.job_id is None else reader.find_job(item.job_id)
    texts = None if job is None else reader.find_texts(job.id)
    text = comment_text(item, source, job, texts, context.masked)
    comment_id: str | None = None
    if text is not None:
        since = min(item.reserved_at, context.now()) - CLOCK_LEEWAY
        comment_id = await tracker.find_comment(item.issue, marker_of(item), since)
        if comment_id is None:
            if not await take_in_hand(item, context):
                return False
            context.probe("work.commenting")
            try:
                comment_id = await tracker.comment(item.issue, text)
            except WorkSourceError as error:
                if not (is_about_one_issue(error) and await _is_locked(item, tracker)):
                    raise
                message = f"{item.id} is settled without a comment: {error.message}"
                context.log("work.trouble", item, message, LogLevel.WARNING)
            context.probe("work.commented")
    return await note(item, context, is_told=True, comment_id=comment_id or None)


async def _is_locked(item: WorkItem, tracker: WorkTracker) -> bool:
    """Whether the issue takes no comments, whatever the token may do."""
    issue = await tracker.find_issue(item.issue)
    return issue is not None and issue.is_locked


async def _relabel(
    item: WorkItem, source: WorkSource, tracker: WorkTracker, context: WorkContext
) -> bool:
    """Let the labels and the status of the issue say what came of it."""
    if item.is_relabelled:
        return True
    if item.is_labelled:
        if not await _put_labels(item, source, tracker, context):
            return False
        context.probe("work.relabelled")
        if item.outcome is WorkOutcome.SUCCESS and source.on_success is OnSuccess.CLOSE:
            if not await take_in_hand(item, context):
                return False
            await tracker.close(item.issue)
            context.probe("work.closed")
    return await note(item, context, is_relabelled=True)


async def _put_labels(
    item: WorkItem, source: WorkSource, tracker: WorkTracker, context: WorkContext
) -> bool:
    """The next label first, so that the issue is never without one that says where it stands.

    False when the issue is in other hands by now.
    """
    label = await _next_label(item, source, tracker)
    if label is not None:
        if not await take_in_hand(item, context):
            return False
        await tracker.add_label(item.issue, label)
    if item.outcome is WorkOutcome.FAILURE and not source.cleanup_on_failure:
        return True
    if not await take_in_hand(item, context):
        return False
    await tracker.remove_label(item.issue, source.in_progress)
    return True


async def _next_label(item: WorkItem, source: WorkSource, tracker: WorkTracker) -> str | None:
    """The label that says what comes next; None where there is none."""
    if not will_be_retried(item, source):
        ended = {WorkOutcome.SUCCESS: source.done, WorkOutcome.FAILURE: source.failed}
        return None if item.outcome is None else ended.get(item.outcome)
    issue = await tracker.find_issue(item.issue)
    if issue is None or not issue.is_open:
        return None
    is_marked = has_label(issue, source.in_progress) or has_label(issue, source.ready)
    # Without either, a person has taken it off; only one who gives it back wants it ready all the same.
    is_unwanted = item.outcome is WorkOutcome.UNUSED and not is_marked
    return None if is_unwanted else source.ready


async def _unlock(
    item: WorkItem, source: WorkSource, tracker: WorkTracker, context: WorkContext
) -> bool:
    """Free the issue for other fleets, and for this one."""
    if not await take_in_hand(item, context):
        return False
    if source.lock:
        await tracker.drop_lock(item.issue, item.claim)
        context.probe("work.unlocked")
    now = context.now()
    status = _settled_status(item, source)
    change = SettleWork(
        id=item.id,
        claim=item.claim,
        at=now,
        status=status,
        not_before=_not_before(item, source, now),
    )
    (answer,) = await context.fleet.state.apply([change])
    context.probe("work.settled")
    context.log("work.settled", item, f"{item.id} is {status} ({item.outcome})")
    return isinstance(answer, Applied)


def _settled_status(item: WorkItem, source: WorkSource) -> WorkStatus:
    if will_be_retried(item, source):
        return WorkStatus.RELEASED
    return WorkStatus.DONE if item.outcome is WorkOutcome.SUCCESS else WorkStatus.FAILED


def _not_before(item: WorkItem, source: WorkSource, now: datetime) -> datetime:
    """When the issue may be taken again."""
    if item.outcome is WorkOutcome.RELEASED:
        return now
    if item.outcome is not WorkOutcome.FAILURE or not will_be_retried(item, source):
        return now + QUIET
    pause: timedelta = FIRST_PAUSE * 2 ** min(max(item.attempts - 1, 0), 10)
    return now + min(pause, LONGEST_PAUSE)
