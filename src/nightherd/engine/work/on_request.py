"""Issues that a person's request is about: the next one of a schedule, or the one of an earlier job once more.

They are claimed by the rules of slots. The difference: nothing is left to a later look, so what is in the way is said.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress

import anyio

from nightherd.engine.contexts import FleetContext
from nightherd.engine.operations.new_job import JobDraft, Submitted, record_job
from nightherd.engine.work.claim import claim, find_issue, new_item, reserve
from nightherd.engine.work.context import (
    WorkContext,
    blocked_state,
    blocked_text,
    end_claim,
    note_failure,
)
from nightherd.engine.work.found import FoundIssue, NoIssue
from nightherd.engine.work.settle import end_finished, settle
from nightherd.errors import NightherdError, RefusedError, WorkSourceError
from nightherd.model.jobs.job import Job
from nightherd.model.jobs.overrides import ISSUE_REPO
from nightherd.model.schedules.schedule import schedule_id
from nightherd.model.work.changes import StartWork
from nightherd.model.work.issue import Issue
from nightherd.model.work.item import (
    WorkItem,
    WorkOutcome,
    WorkStatus,
    lies_ahead,
    short_id,
    work_id,
)
from nightherd.model.work.source import WorkSource, source_of
from nightherd.next_step import Action, NextStep

PATIENCE_S = 40.0
"""How long a request waits for a tracker."""
LOOK_S = 0.2
NAME_LENGTH = 12


def work_for_request(context: FleetContext) -> WorkContext:
    """What one request needs to ask trackers. `RefusedError` where none can be asked."""
    if context.open_tracker is None:
        raise RefusedError("no tracker of issues can be asked here")
    return WorkContext(
        fleet=context,
        open_tracker=context.open_tracker,
        by=f"request-{context.random_text(NAME_LENGTH)}",
        fleet_name=context.fleet_name,
        is_for_one=True,
    )


async def take_next(
    agent: str, schedule: str, source: WorkSource, context: FleetContext
) -> FoundIssue:
    """Claim the next issue of a schedule. `RefusedError`, with the reason, where there is none."""
    work = work_for_request(context)
    found = None
    with anyio.move_on_after(PATIENCE_S):
        found = await find_issue(agent, schedule, source, work)
    if isinstance(found, FoundIssue):
        return found
    key = schedule_id(agent, schedule)
    if not isinstance(found, NoIssue):
        raise RefusedError(f"{key} has no issue to work on: none was found within {PATIENCE_S:g}s")
    hint = f"give an open issue of {source.repo} the label {source.ready!r}"
    raise RefusedError(
        f"{key} has no issue to work on: {found.reason}", hint=None if found.is_error else hint
    )


async def continue_issue(
    job: Job, context: FleetContext, *, key: str | None = None
) -> StartWork | None:
    """Return the issue of an ended job for the one that does its work once more; None for a job without an issue.

    A claim that was not settled yet is continued; else the issue is claimed again, whatever its labels say.
    `RefusedError` while another job, or another fleet, has it. With the dedupe key of a job that works on it already
    it is not claimed: that job is the answer.
    """
    item = issue_of(job, context)
    if item is None or _is_made_by(key, item, context):
        return None
    if item.status is WorkStatus.WORKING and item.job_id == job.id:
        return StartWork(id=item.id, claim=item.claim, after=job.id)
    if item.is_open and item.status is not WorkStatus.SETTLING:
        raise _taken(item)
    work = work_for_request(context)
    with anyio.move_on_after(PATIENCE_S):
        await _wait_until_settled(item, work)
        return await _claim_again(item, _source_for(job, item, context), work)
    raise RefusedError(f"issue {short_id(item.id)} was not claimed again within {PATIENCE_S:g}s")


def issue_of(job: Job, context: FleetContext) -> WorkItem | None:
    """The issue that a job works on, or worked on before others did."""
    item = context.reader.work_item_of_job(job.id)
    agent = context.agents.get(job.agent)
    schedule = None if agent is None or job.schedule is None else agent.schedules.get(job.schedule)
    source = None if schedule is None else schedule.work
    if item is not None or source is None:
        return item
    texts = context.reader.find_texts(job.id)
    inputs = {} if texts is None else texts.inputs
    number, repo = inputs.get("issue_number"), inputs.get(ISSUE_REPO)
    if not isinstance(number, int) or str(repo).lower() != source.repo.lower():
        return None
    return context.reader.find_work_item(work_id(source.id, number))


def _is_made_by(key: str | None, item: WorkItem, context: FleetContext) -> bool:
    job = None if item.job_id is None else context.reader.find_job(item.job_id)
    return key is not None and job is not None and job.dedupe_key == key


def _taken(item: WorkItem) -> RefusedError:
    name = short_id(item.id)
    if item.job_id is None:
        return RefusedError(f"issue {name} is being taken by {item.schedule_id}")
    return RefusedError(
        f"issue {name} has another job already: {item.job_id}",
        next_step=NextStep(Action.SHOW_JOB, job=item.job_id),
    )


async def _wait_until_settled(item: WorkItem, work: WorkContext) -> None:
    """Settle what the last job left, or let the process finish that does."""
    current: WorkItem | None = item
    while current is not None and current.status is WorkStatus.SETTLING:
        if lies_ahead(current.due_at, work.now()):
            raise _unsettled(current)
        tries = current.tries
        await settle(current, work)
        current = work.fleet.reader.find_work_item(item.id)
        if current is not None and current.status is WorkStatus.SETTLING:
            if current.tries > tries:
                raise _unsettled(current)
            await anyio.sleep(LOOK_S)


def _unsettled(item: WorkItem) -> RefusedError:
    return RefusedError(
        f"the last job of issue {short_id(item.id)} is not commented yet: {item.last_error}"
    )


def _source_for(job: Job, item: WorkItem, context: FleetContext) -> WorkSource:
    """The source as it is declared now, else as it was when the issue was claimed."""
    agent = context.agents.get(job.agent)
    schedule = None if agent is None else agent.schedules.get(item.schedule)
    declared = None if schedule is None else schedule.work
    if declared is not None and declared.id == item.source:
        return declared
    return source_of(item.terms)


async def _claim_again(item: WorkItem, source: WorkSource, work: WorkContext) -> StartWork:
    name = short_id(item.id)
    blocked = blocked_state(source.id, work)
    if blocked is not None:
        raise RefusedError(f"issue {name} cannot be claimed: {blocked_text(blocked)}")
    known = Issue(number=item.issue, title=item.title)
    fresh = new_item(item.agent, item.schedule, source, known, work)
    reserved = await reserve(fresh, work, is_asked=True)
    if reserved is not None:
        raise _taken(work.fleet.reader.find_work_item(item.id) or item)
    try:
        found = await claim(fresh, source, work.tracker(source), work, _why_not_again)
    except WorkSourceError as error:
        await end_claim(fresh, WorkOutcome.UNUSED, work)
        await note_failure(source.id, error, work)
        raise RefusedError(f"issue {name} cannot be claimed: {error.message}") from error
    if isinstance(found, FoundIssue):
        return StartWork(id=found.item.id, claim=found.item.claim)
    raise RefusedError(f"issue {name} cannot be claimed: {found}")


def _why_not_again(issue: Issue, item: WorkItem, source: WorkSource) -> str | None:
    """A person wants this very issue: its labels are no reason, nor that it is closed."""
    return "it is a pull request" if issue.is_pull_request else None


async def record_issue_job(draft: JobDraft, context: FleetContext) -> Submitted:
    """Record the job with its issue, if it has one; the issue is given back where there will be no new job."""
    try:
        submitted = await record_job(draft, context)
    except NightherdError:
        await give_back(draft.work, context)
        raise
    if not submitted.is_new:
        await give_back(draft.work, context)
    return submitted


async def give_back(start: StartWork | None, context: FleetContext) -> None:
    """Give back an issue that was claimed for a job which there will not be. A settler does what fails here."""
    if start is None or start.after is not None:
        return
    with suppress(NightherdError), anyio.move_on_after(PATIENCE_S):
        work = work_for_request(context)
        item = context.reader.find_work_item(start.id)
        if item is not None and item.claim == start.claim:
            await end_claim(item, WorkOutcome.UNUSED, work)
            ended = context.reader.find_work_item(start.id)
            if ended is not None and ended.status is WorkStatus.SETTLING:
                await settle(ended, work)


async def settle_job(job: Job, context: FleetContext, on_trouble: Callable[[str], None]) -> None:
    """Tell the tracker what came of a job that has ended here: there may be no daemon that does.

    `on_trouble` is called where nobody does it at the moment.
    """
    item = context.reader.work_item_of_job(job.id) if job.is_terminal else None
    if item is None or not item.is_open or context.open_tracker is None:
        return
    work = work_for_request(context)
    with suppress(NightherdError), anyio.move_on_after(PATIENCE_S):
        if item.status is WorkStatus.WORKING:
            await end_finished(item, work)
        current = context.reader.find_work_item(item.id)
        if current is not None and current.status is WorkStatus.SETTLING:
            await settle(current, work)
    left = context.reader.find_work_item(item.id)
    is_left = left is not None and left.status is WorkStatus.SETTLING and left.claim == item.claim
    if left is not None and is_left and left.step_by in (None, work.by):
        why = f": {left.last_error}" if left.last_error else ""
        on_trouble(f"issue {short_id(left.id)} is not settled yet{why}; a daemon or worker does it")
