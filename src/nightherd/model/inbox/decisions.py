"""Deciding about the inbox: who answers what, once, and which items come and go with jobs."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime

from msgspec.structs import replace

from nightherd.model.change import Answer, Applied, Change, Refused, Row, Why
from nightherd.model.decisions.around import missing, owned
from nightherd.model.decisions.rows import Rows
from nightherd.model.ids import JobId
from nightherd.model.inbox.changes import (
    AnswerItem,
    AskAboutJob,
    AskPerson,
    ExpireItem,
    WithdrawItem,
)
from nightherd.model.inbox.item import (
    ABOUT_CALLS,
    ITEM_LIFECYCLE,
    STATUS_OF_VERDICT,
    TITLE_LIMIT,
    VERDICTS,
    Asked,
    InboxAnswer,
    InboxItem,
    InboxTexts,
    ItemId,
    ItemKind,
    ItemStatus,
    OnExpiry,
    Verdict,
    decided_text,
    item_id,
)
from nightherd.model.inbox.review import ASKING
from nightherd.model.inbox.token import AnswerLink
from nightherd.model.jobs.changes import FailSuspended, ResumeJob, SubmitJob
from nightherd.model.jobs.decisions import submit
from nightherd.model.jobs.job import CHILD_WAITS, Job, JobStatus, SuspendReason
from nightherd.model.jobs.suspend_decisions import fail, resume
from nightherd.model.text import shorten
from nightherd.model.work.decisions import with_work

LIMITED = frozenset({SuspendReason.LIMIT, SuspendReason.BUDGET})
NIGHTHERD = "nightherd"
"""Who decides what no person does."""


def ask(change: AskPerson, rows: Rows) -> Answer:
    """Add the items that are not there yet."""
    job: Job | None = None
    if change.job_id is not None:
        found = owned(change.job_id, change.epoch, rows)
        if isinstance(found, Refused):
            return found
        job = found
    number = rows.next_item_number()
    written: list[Row] = []
    for asked in change.asked:
        if rows.get(InboxItem, asked.item.id) is None:
            written += (replace(asked.item, number=number), asked.texts)
            number += 1
    return Applied(rows=tuple(written), job=job)


def ask_about_job(change: AskAboutJob, rows: Rows) -> Answer:
    """Add what is missing about the job; nothing where nothing is."""
    job = rows.get(Job, change.job_id)
    if job is None:
        return missing(change.job_id)
    is_asking = job.status is JobStatus.SUSPENDED and job.error_code in ASKING
    if is_asking and not any(one.kind in ABOUT_CALLS for one in rows.pending_items(job.id)):
        return resume(ResumeJob(job_id=job.id, at=change.at), rows)
    found = list(_opened(job, job.finished_at or change.at, rows))
    return Applied(rows=tuple(_numbered(found, rows)), job=job)


def answer(change: AnswerItem, rows: Rows) -> Answer:
    """Record the answer; carry out what it decides, if it does."""
    item, texts = rows.get(InboxItem, change.item_id), rows.get(InboxTexts, change.item_id)
    if item is None or texts is None:
        return Refused(why=Why.MISSING, message=f"there is no inbox item {change.item_id}")
    refused = _refused(change, item, texts)
    link = None if change.link is None else rows.get(AnswerLink, change.link)
    if refused is None and change.link is not None:
        refused = _refused_link(link, item, change)
    if refused is not None:
        return refused
    used = () if link is None else (replace(link, used_at=change.at),)
    answers = rows.answers_of(item.id)
    number = len(answers) + 1
    said = InboxAnswer(
        id=f"{item.id}.{number}",
        item_id=item.id,
        at=change.at,
        by=change.by,
        via=change.via,
        verdict=change.verdict,
        text=change.text,
        number=number,
    )
    if change.verdict is Verdict.COMMENT:
        return Applied(rows=(said, *used))
    if change.verdict is Verdict.APPROVE:
        approvers = {one.by for one in answers if one.verdict is Verdict.APPROVE}
        if change.by in approvers:
            message = f"{change.by} has already approved {item.id}; {item.quorum} people have to"
            return Refused(why=Why.DUPLICATE, message=message)
        if len(approvers) + 1 < item.quorum:
            return Applied(rows=(said, *used))
    status = STATUS_OF_VERDICT[change.verdict]
    decided = _decided(item, status, change.by, change.via, change.at, change.verdict)
    kept = replace(texts, reply=change.text, input=change.input)
    effect = _effect(change, decided, rows)
    if isinstance(effect, Refused):
        return effect
    return Applied(
        rows=(decided, kept, said, *used, *effect.rows),
        job=effect.job,
        run_id=effect.run_id,
        then=effect.then,
    )


def _refused(change: AnswerItem, item: InboxItem, texts: InboxTexts) -> Refused | None:
    """Why this answer does not count; None when it does."""
    if not item.is_pending:
        return Refused(why=Why.DECIDED, message=decided_text(item))
    if change.verdict is not Verdict.COMMENT and change.verdict not in VERDICTS[item.kind]:
        words = " or ".join(sorted(one.value for one in VERDICTS[item.kind]))
        message = f"{item.id} is of kind {item.kind.value}: {words} decides it, not {change.verdict.value}"
        return Refused(why=Why.STATUS, message=message)
    if texts.approvers and change.by not in texts.approvers:
        names = ", ".join(texts.approvers)
        return Refused(why=Why.NOT_ALLOWED, message=f"only {names} may answer {item.id}")
    if change.input is not None and item.quorum > 1 and item.node_id is None:
        message = (
            f"{item.id} needs {item.quorum} people: they approve the same arguments, or one rejects"
        )
        return Refused(why=Why.STATUS, message=message)
    if change.seen_hash is not None and change.seen_hash != item.hash:
        message = f"what {item.id} asks about has changed since it was shown; look at it again"
        return Refused(why=Why.STALE, message=message)
    if item.expires_at is not None and item.expires_at <= change.at:
        return Refused(why=Why.DECIDED, message=f"{item.id} has expired")
    return None


def _refused_link(link: AnswerLink | None, item: InboxItem, change: AnswerItem) -> Refused | None:
    """Why an answer by this link does not count; None when it does."""
    if link is None or link.item_id != item.id or link.approver != change.by:
        return Refused(why=Why.NOT_ALLOWED, message="this link answers nothing")
    if link.used_at is not None:
        return Refused(why=Why.NOT_ALLOWED, message="this link has been used already")
    if link.expires_at <= change.at:
        return Refused(why=Why.NOT_ALLOWED, message="this link has expired")
    return None


def _effect(change: AnswerItem, item: InboxItem, rows: Rows) -> Applied | Refused:
    """What the decision sets in motion."""
    if change.run is not None:
        return Applied(rows=(), run_id=change.run.run.id, then=(change.run,))
    if change.job is not None:
        return with_work(submit(change.job, rows), change.job, rows)
    if change.resume is not None:
        return resume(change.resume, rows)
    if item.kind is ItemKind.LIMIT and change.verdict is Verdict.REJECT and item.job_id is not None:
        message = f"{change.by} refused to raise the limit" + (
            f": {change.text}" if change.text else ""
        )
        return fail(FailSuspended(job_id=item.job_id, at=change.at, message=message), rows)
    return _continued(item, change.at, rows)


def _continued(item: InboxItem, at: datetime, rows: Rows) -> Applied | Refused:
    """The job goes on once nothing that it asked is open."""
    if item.kind not in ABOUT_CALLS or item.job_id is None:
        return Applied(rows=())
    job = rows.get(Job, item.job_id)
    if job is None or job.suspend_reason is not SuspendReason.APPROVAL:
        return Applied(rows=(), job=job)  # it waits for something else besides
    if any(one.id != item.id and one.kind in ABOUT_CALLS for one in rows.pending_items(job.id)):
        return Applied(rows=(), job=job)
    return resume(ResumeJob(job_id=job.id, at=at), rows)


def expire(change: ExpireItem, rows: Rows) -> Answer:
    """End an item whose time has passed: its call is refused, or its job fails."""
    item = rows.get(InboxItem, change.item_id)
    if item is None:
        return Refused(why=Why.MISSING, message=f"there is no inbox item {change.item_id}")
    if not item.is_pending:
        return Refused(why=Why.DECIDED, message=decided_text(item))
    if item.expires_at is None or item.expires_at > change.at:
        return Refused(why=Why.TOO_EARLY, message=f"{item.id} has not expired")
    over = _decided(item, ItemStatus.EXPIRED, NIGHTHERD, "expiry", change.at, None)
    if item.on_expiry is OnExpiry.FAIL and item.job_id is not None:
        message = f"nobody answered within the time allowed: {item.title}"
        ended = fail(FailSuspended(job_id=item.job_id, at=change.at, message=message), rows)
        return (
            Applied(rows=(over, *ended.rows), job=ended.job)
            if isinstance(ended, Applied)
            else ended
        )
    went_on = _continued(over, change.at, rows)
    return (
        Applied(rows=(over, *went_on.rows), job=went_on.job)
        if isinstance(went_on, Applied)
        else went_on
    )


def withdraw(change: WithdrawItem, rows: Rows) -> Answer:
    """Ask nobody any more."""
    item = rows.get(InboxItem, change.item_id)
    if item is None:
        return Refused(why=Why.MISSING, message=f"there is no inbox item {change.item_id}")
    if change.job_id is not None:
        found = owned(change.job_id, change.epoch, rows)
        if isinstance(found, Refused):
            return found
    if not item.is_pending:
        return Refused(why=Why.DECIDED, message=decided_text(item))
    return Applied(rows=(_over(item, ItemStatus.SUPERSEDED, change.at),))


def _decided(
    item: InboxItem, status: ItemStatus, by: str, via: str, at: datetime, verdict: Verdict | None
) -> InboxItem:
    return replace(
        item,
        status=ITEM_LIFECYCLE.check(item.status, status),
        decided_at=at,
        decided_by=by,
        decided_via=via,
        verdict=verdict,
    )


def _over(item: InboxItem, status: ItemStatus, at: datetime) -> InboxItem:
    return replace(item, status=ITEM_LIFECYCLE.check(item.status, status), decided_at=at)


def with_items(change: Change, decided: Applied, rows: Rows) -> Applied:
    """Add the items that come and go with the jobs that `decided` writes.

    A job that waits for a person at a limit, or that failed, is in the inbox from the same transaction on; what is
    open about a job ends with it.
    """
    at = getattr(change, "at", None)
    touched = {row.id for row in decided.rows if isinstance(row, InboxItem)}
    retried = change.retries if isinstance(change, SubmitJob) else None
    more = [
        row
        for job in decided.rows
        if type(job) is Job
        for row in _items_of(job, at or job.finished_at or job.created_at, touched, rows, retried)
    ]
    return replace(decided, rows=(*decided.rows, *_numbered(more, rows))) if more else decided


def _numbered(found: list[Row], rows: Rows) -> Iterator[Row]:
    number = rows.next_item_number()
    for row in found:
        if isinstance(row, InboxItem) and row.number == 0:
            yield replace(row, number=number)
            number += 1
        else:
            yield row


def _items_of(
    job: Job, at: datetime, touched: set[ItemId], rows: Rows, retried: JobId | None
) -> Iterator[Row]:
    """The items that open or close because the job stands as it does now."""
    before = rows.get(Job, job.id)
    if before is None:
        yield from _retried(job.resumed_from or retried, at, touched, rows)
    elif before.status is not job.status:
        yield from _closed(before, job, at, touched, rows)
        yield from _opened(job, at, rows)


def _retried(job_id: JobId | None, at: datetime, touched: set[ItemId], rows: Rows) -> Iterator[Row]:
    """A new job does the work of a failed one, or continues it: nobody has to decide about that any more."""
    if job_id is not None:
        for item in rows.pending_items(job_id):
            if item.kind is ItemKind.FAILURE and item.id not in touched:
                yield _over(item, ItemStatus.SUPERSEDED, at)


def _closed(before: Job, job: Job, at: datetime, touched: set[ItemId], rows: Rows) -> Iterator[Row]:
    """What was open about a job that has ended, or that somebody has resumed."""
    if before.status is not JobStatus.SUSPENDED and not job.is_terminal:
        return
    is_cancelled = job.status is JobStatus.CANCELLED
    for item in rows.pending_items(job.id):
        if item.id not in touched and (job.is_terminal or item.kind not in ABOUT_CALLS):
            yield _over(item, ItemStatus.CANCELLED if is_cancelled else ItemStatus.SUPERSEDED, at)


def _opened(job: Job, at: datetime, rows: Rows) -> Iterator[Row]:
    """What a person is asked because the job stands so."""
    asked = _asked_of(job, at)
    if asked is None or rows.get(InboxItem, asked.item.id) is not None:
        return
    if job.schedule is not None and asked.item.kind is ItemKind.FAILURE:
        # One of a kind is enough: the newest says what is wrong.
        for item in rows.pending_failures(job.agent, job.schedule):
            if item.job_id != job.id and not _is_suspended(item, rows):
                yield _over(item, ItemStatus.SUPERSEDED, at)
    yield asked.item
    yield asked.texts


def _is_suspended(item: InboxItem, rows: Rows) -> bool:
    """Whether the job of the item can continue: only its own item says how."""
    job = rows.get(Job, item.job_id) if item.job_id is not None else None
    return job is not None and job.status is JobStatus.SUSPENDED


def _asked_of(job: Job, at: datetime) -> Asked | None:
    """What a person is asked because the job stands so; None when nobody is."""
    match job.status:
        case JobStatus.SUSPENDED if job.not_before is None and job.error_code != CHILD_WAITS:
            if job.suspend_reason is SuspendReason.APPROVAL:
                return None  # the execution asked by itself
            kind = ItemKind.LIMIT if job.suspend_reason in LIMITED else ItemKind.FAILURE
        case JobStatus.FAILED if job.parent_job_id is None and job.node_id is None:
            kind = ItemKind.FAILURE
        case _:
            return None
    key = f"{kind.value}:{job.id}:{job.epoch}:{job.status.value}"
    error = job.error or job.status.value
    item = InboxItem(
        id=item_id(key),
        kind=kind,
        status=ItemStatus.PENDING,
        created_at=at,
        subject=job.id,
        title=shorten(" ".join(error.split()), TITLE_LIMIT),
        dedupe_key=key,
        epoch=job.epoch,
        job_id=job.id,
        agent=job.agent,
        schedule=job.schedule,
    )
    body = {"error": job.error, "code": job.error_code, "status": job.status.value}
    return Asked(item=item, texts=InboxTexts(item_id=item.id, body=body))
