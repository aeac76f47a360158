"""Claiming: find an issue for a due slot and make it this fleet's, step by step.

Each step is recorded before or after it so that another process can finish it: the row first, then the lock among
fleets, then the labels, then the row again. Whoever has the row of an issue is the only one of this fleet, and whoever
has the lock the only one of all fleets.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterator
from datetime import timedelta

from nightherd.engine.work.context import (
    WorkContext,
    blocked_state,
    blocked_text,
    end_claim,
    note,
    note_failure,
    note_success,
    take_in_hand,
)
from nightherd.engine.work.found import BusyIssue, FoundIssue, NoIssue
from nightherd.errors import WorkSourceError
from nightherd.model.change import Applied, Change, Refused
from nightherd.model.ids import RandomText
from nightherd.model.text import counted
from nightherd.model.work.changes import (
    HoldWork,
    LoseWork,
    ReserveWork,
    SettleWork,
    StepWork,
)
from nightherd.model.work.issue import Issue, has_label, why_not_taken
from nightherd.model.work.item import (
    HAND,
    WITHOUT_JOB,
    WorkItem,
    WorkOutcome,
    WorkStatus,
    work_id,
)
from nightherd.model.work.source import SourceStatus, WorkSource
from nightherd.ports.work import WorkTracker

PAGES = 10
"""Pages of ready issues that are looked through for one that can be taken."""
TRIES = 10
"""Issues that are tried in one look before it is left for the next slot."""
LOST_FOR = timedelta(minutes=5)
"""How long an issue is left alone that another fleet has."""
CHANGED_FOR = timedelta(minutes=1)
REFUSALS = 3
"""Issues whose claim is refused in one look before that is taken as the source's trouble."""
NAMED = 3
DECIDED = NoIssue(reason="another process has decided the slot")
CLAIM_LENGTH = 16


def always() -> bool:
    """Take an issue in any case."""
    return True


async def find_issue(
    agent: str,
    schedule: str,
    source: WorkSource,
    context: WorkContext,
    is_wanted: Callable[[], bool] = always,
) -> FoundIssue | NoIssue | BusyIssue:
    """Claim an issue for a job of the schedule. Continues what a killed process began for the same schedule.

    For one that a person asks for what others have begun is left to them. `is_wanted` is asked right before an issue is taken: another process may have decided the slot.
    """
    state = blocked_state(source.id, context)
    if state is not None:
        return NoIssue(reason=blocked_text(state), is_error=True)
    try:
        return await _find(agent, schedule, source, context, is_wanted)
    except WorkSourceError as error:
        failed = await note_failure(source.id, error, context)
        return NoIssue(reason=blocked_text(failed), is_error=True)


async def _find(
    agent: str,
    schedule: str,
    source: WorkSource,
    context: WorkContext,
    is_wanted: Callable[[], bool],
) -> FoundIssue | NoIssue | BusyIssue:
    tracker = context.tracker(source)
    for item in () if context.is_for_one else _begun(agent, schedule, context):
        if not await take_in_hand(item, context):
            return BusyIssue(by=item.step_by or "another process")
        if item.terms != source.terms():
            # Declared otherwise by now: it is given back as it was claimed.
            await end_claim(item, WorkOutcome.UNUSED, context)
            continue
        found = await _claim_or_end(item, source, tracker, context)
        if isinstance(found, FoundIssue):
            return found
    return await _find_new(agent, schedule, source, context, is_wanted)


def _begun(agent: str, schedule: str, context: WorkContext) -> Iterator[WorkItem]:
    """The issues that were being claimed for the schedule."""
    for item in context.fleet.reader.open_work_items():
        if item.status in WITHOUT_JOB and (item.agent, item.schedule) == (agent, schedule):
            yield item


async def _find_new(
    agent: str,
    schedule: str,
    source: WorkSource,
    context: WorkContext,
    is_wanted: Callable[[], bool],
) -> FoundIssue | NoIssue | BusyIssue:
    tracker = context.tracker(source)
    seen, tried, refused = 0, 0, 0
    reasons: list[str] = []
    async for issue in _ready_issues(source, tracker):
        seen += 1
        reason = why_not_taken(issue, source)
        if reason is None:
            if not is_wanted():
                return DECIDED
            item = new_item(agent, schedule, source, issue, context)
            reserved = await reserve(item, context)
            if isinstance(reserved, BusyIssue):
                return reserved
            if reserved is None:
                tried += 1
                try:
                    found = await _claim_or_end(item, source, tracker, context)
                except WorkSourceError as error:
                    # May be about this issue alone: the next one shows.
                    refused += 1
                    if not is_about_one_issue(error) or refused >= REFUSALS:
                        raise
                    found = error.message
                if isinstance(found, FoundIssue):
                    await note_success(source.id, context, open_issues=seen)
                    return found
                reason = found
            else:
                reason = reserved
        reasons.append(f"#{issue.number}: {reason}")
        if tried >= TRIES:
            break
    await note_success(source.id, context, open_issues=seen)
    return NoIssue(reason=_why_none(source, seen, reasons))


def _why_none(source: WorkSource, seen: int, reasons: list[str]) -> str:
    if not seen:
        return f"no issue of {source.repo} has the label {source.ready!r}"
    more = "; ..." if len(reasons) > NAMED else ""
    said = "; ".join(reasons[:NAMED])
    return f"none of {counted(seen, 'ready issue')} of {source.repo} can be taken: {said}{more}"


async def _ready_issues(source: WorkSource, tracker: WorkTracker) -> AsyncIterator[Issue]:
    for page in range(1, PAGES + 1):
        listed = await tracker.list_issues(source.ready, page)
        for issue in listed.issues:
            yield issue
        if not listed.has_more:
            return


def new_item(
    agent: str, schedule: str, source: WorkSource, issue: Issue, context: WorkContext
) -> WorkItem:
    now = context.now()
    return WorkItem(
        id=work_id(source.id, issue.number),
        source=source.id,
        issue=issue.number,
        agent=agent,
        schedule=schedule,
        status=WorkStatus.RESERVED,
        claim=new_claim(context.fleet.random_text),
        reserved_at=now,
        changed_at=now,
        terms=source.terms(),
        title=context.masked(issue.title),
    )


def new_claim(random_text: RandomText) -> str:
    """The name of a claim; no other claim of any fleet has it."""
    return random_text(CLAIM_LENGTH)


def is_about_one_issue(error: WorkSourceError) -> bool:
    """Whether another issue of the source may fare better."""
    return error.kind == SourceStatus.REFUSED and error.wait_s is None


async def reserve(
    item: WorkItem, context: WorkContext, *, is_asked: bool = False
) -> BusyIssue | str | None:
    """Make the issue's row this schedule's; why it is not otherwise."""
    now = item.reserved_at
    step = StepWork(id=item.id, claim=item.claim, by=context.by, at=now, until=now + HAND)
    answer, _ = await context.fleet.state.apply([ReserveWork(item=item, is_asked=is_asked), step])
    if isinstance(answer, Applied):
        context.probe("work.reserved")
        return None
    known = context.fleet.reader.find_work_item(item.id)
    is_same = known is not None and known.schedule_id == item.schedule_id
    if known is not None and is_same and known.status in WITHOUT_JOB and not context.is_for_one:
        return BusyIssue(by=known.step_by or "another process")
    return answer.message or "it is taken"


async def _claim_or_end(
    item: WorkItem, source: WorkSource, tracker: WorkTracker, context: WorkContext
) -> FoundIssue | str:
    """Make the issue ours; why not, when it cannot be. A claim that fails midway is given back."""
    try:
        return await claim(item, source, tracker, context, _why_not_ours)
    except WorkSourceError:
        await end_claim(item, WorkOutcome.UNUSED, context)
        raise


WhyNot = Callable[[Issue, WorkItem, WorkSource], str | None]
"""Says why an issue is no work although it is ours."""


async def claim(
    item: WorkItem,
    source: WorkSource,
    tracker: WorkTracker,
    context: WorkContext,
    why_not: WhyNot,
) -> FoundIssue | str:
    """Make a reserved issue ours for all fleets; why not, when it cannot be."""
    if source.lock:
        try:
            lock = await tracker.take_lock(
                item.issue, item.claim, context.fleet_name, context.now()
            )
        except WorkSourceError as error:
            if error.kind in (SourceStatus.REFUSED, SourceStatus.MISSING):
                await _drop_new(item, context)
            raise
        context.probe("work.locked")
        if not lock.is_ours:
            return await _lose(item, f"{lock.holder or 'another fleet'} has it", context)
    # Read once it is ours: what the list said may be old.
    issue = await tracker.find_issue(item.issue)
    reason = "it is gone" if issue is None else why_not(issue, item, source)
    if issue is None or reason is not None:
        await end_claim(item, WorkOutcome.UNUSED, context)
        return reason or "it is gone"
    if not await take_in_hand(item, context) or not await note(item, context, is_labelled=True):
        return "it is in other hands by now"
    context.probe("work.noted")
    if not await tracker.add_label(item.issue, source.in_progress):
        await end_claim(item, WorkOutcome.UNUSED, context)
        return "it is gone"
    context.probe("work.labelled")
    if not await take_in_hand(item, context):
        await _take_back_label(item, source, tracker, context)
        return "it is in other hands by now"
    await tracker.remove_label(item.issue, source.ready)
    context.probe("work.unready")
    return await _hold(item, issue, source, context)


def _why_not_ours(issue: Issue, item: WorkItem, source: WorkSource) -> str | None:
    """Why the issue is no work although it is ours; labels that we may have put there are no reason."""
    if not item.is_labelled:
        return why_not_taken(issue, source)
    if not has_label(issue, source.in_progress) and not has_label(issue, source.ready):
        # We add the one before we remove the other: a person has taken it off.
        return f"it has no label {source.ready!r}"
    ours = {source.in_progress.casefold(), source.ready.casefold()}
    others = tuple(label for label in issue.labels if label.casefold() not in ours)
    as_before = Issue(
        number=issue.number,
        title=issue.title,
        labels=(*others, source.ready),
        is_open=issue.is_open,
        is_pull_request=issue.is_pull_request,
    )
    return why_not_taken(as_before, source)


async def _take_back_label(
    item: WorkItem, source: WorkSource, tracker: WorkTracker, context: WorkContext
) -> None:
    """Remove the label that this process added too late, after it was frozen: others have settled the claim by now."""
    known = context.fleet.reader.find_work_item(item.id)
    is_over = known is None or not known.is_open
    # Without locks the label may be another fleet's.
    if is_over and source.lock and await tracker.find_lock(item.issue) is None:
        await tracker.remove_label(item.issue, source.in_progress)


async def _drop_new(item: WorkItem, context: WorkContext) -> None:
    """Let go of an issue whose lock was refused: nothing was written about it, so nothing is to be taken back."""
    is_new = item.step_by is None  # else a lock may be left of what was begun before
    if is_new and await take_in_hand(item, context):
        now = context.now()
        release = SettleWork(
            id=item.id, claim=item.claim, at=now, status=WorkStatus.RELEASED, not_before=now
        )
        await context.fleet.state.apply([release])


async def _lose(item: WorkItem, reason: str, context: WorkContext) -> str:
    """Leave the issue to another fleet for a while. Nothing was written to the tracker."""
    now = context.now()
    lost = LoseWork(id=item.id, claim=item.claim, at=now, not_before=now + LOST_FOR, reason=reason)
    (answer,) = await context.fleet.state.apply([lost])
    if isinstance(
        answer, Refused
    ):  # it was held before, and its lock is gone: give back what we wrote
        await end_claim(item, WorkOutcome.UNUSED, context)
    return reason


async def _hold(
    item: WorkItem, issue: Issue, source: WorkSource, context: WorkContext
) -> FoundIssue | str:
    now = context.now()
    changes: list[Change] = []
    if item.status is WorkStatus.RESERVED:
        title = context.masked(issue.title)
        changes.append(HoldWork(id=item.id, claim=item.claim, at=now, title=title))
    changes.append(StepWork(id=item.id, claim=item.claim, by=context.by, at=now, until=now + HAND))
    answers = await context.fleet.state.apply(changes)
    if any(isinstance(answer, Refused) for answer in answers):
        return "it is in other hands by now"
    context.probe("work.held")
    held = context.fleet.reader.find_work_item(item.id) or item
    return FoundIssue(item=held, issue=issue, source=source)
