"""Answering the inbox: what a person decides takes effect in the transaction that records it."""

from __future__ import annotations

import json

import msgspec

from nightherd.engine.contexts import FleetContext
from nightherd.engine.limits.logins import stopped_by
from nightherd.engine.operations.agents import Agents
from nightherd.engine.operations.gates import DECIDING, check_gate_input, gate_input
from nightherd.engine.operations.jobs import retry_draft
from nightherd.engine.operations.new_job import apply_with_fresh_ids, job_change
from nightherd.engine.operations.raise_limits import check_raised, given_before
from nightherd.engine.operations.requests import Answer
from nightherd.engine.operations.run_again import retry_change
from nightherd.engine.operations.run_requests import RetryRun
from nightherd.engine.operations.runs import get_run
from nightherd.engine.work.on_request import continue_issue, give_back
from nightherd.errors import (
    ForbiddenError,
    InvalidValueError,
    NightherdError,
    NotFoundError,
    RefusedError,
)
from nightherd.model.change import Applied, Refused, Why
from nightherd.model.ids import JobId
from nightherd.model.inbox.changes import AnswerItem
from nightherd.model.inbox.item import InboxItem, InboxTexts, ItemId, ItemKind, Verdict
from nightherd.model.jobs.changes import ResumeJob
from nightherd.model.jobs.job import Job, JobStatus
from nightherd.model.jobs.options import NO_OPTIONS, JobOptions
from nightherd.model.secrets import MASK_BEGINS
from nightherd.model.text import whole_text, whole_value
from nightherd.model.workflows.rows import WorkflowRun
from nightherd.model.workflows.run import RunId
from nightherd.next_step import Action, NextStep
from nightherd.ports import InboxReader
from nightherd.views.jobs.jobs import get_job
from nightherd.views.workflows.gate_artifact import is_gate

ANSWER_LIMIT = 64 * 1024
"""Characters of an answer."""
INPUT_LIMIT = 1024 * 1024
"""Characters of changed arguments, as JSON."""


class Answered(msgspec.Struct, frozen=True, kw_only=True):
    """An item after an answer, and the job or run that goes on or was made because of it."""

    item: InboxItem
    job: Job | None = None
    run: WorkflowRun | None = None


def get_item(reader: InboxReader, item_id: ItemId) -> InboxItem:
    """Return the item; `NotFoundError` when there is none."""
    item = reader.find_item(item_id)
    if item is None:
        raise NotFoundError(
            f"there is no inbox item {item_id}", next_step=NextStep(Action.LIST_INBOX)
        )
    return item


async def answer_item(request: Answer, agents: Agents, context: FleetContext) -> Answered:
    """Record the answer and do what it decides; `RefusedError` when somebody else decided before."""
    item = get_item(context.reader, request.item_id)
    asked = context.reader.find_item_texts(item.id) or InboxTexts(item_id=item.id)
    _check(request, item, asked)
    _check_input(request, context)
    text = None if request.text is None else whole_text(context.secrets.mask(request.text))
    change = AnswerItem(
        item_id=item.id,
        verdict=request.verdict,
        by=request.by,
        via=request.via,
        at=context.clock.now(),
        text=text,
        input=await gate_input(request, item, asked, context),
        seen_hash=request.seen_hash,
        link=request.link,
        resume=_resumed(request, item, agents, context) if item.is_pending else None,
    )

    work = None
    if _makes_job(request, item, context):
        ended = get_job(context.reader, _job_id(item))
        work = await continue_issue(ended, context, key=f"inbox:{item.id}")

    def with_job(change: AnswerItem) -> AnswerItem:
        failed = _failed_run(request, item, context)
        if failed is not None:
            key = RetryRun(run_id=failed.id, by=request.by, dedupe_key=f"inbox:{item.id}")
            again = retry_change(failed, request.by, context, key)
            return msgspec.structs.replace(change, run=again)
        if not _makes_job(request, item, context):
            return change
        agent = agents.get(item.agent or "")
        draft = retry_draft(_job_id(item), agent, context)
        once = msgspec.structs.replace(draft, dedupe_key=f"inbox:{item.id}", work=work)
        return msgspec.structs.replace(change, job=job_change(once, context))

    try:
        (answer,) = await apply_with_fresh_ids([with_job(change)], with_job, context.state.apply)
    except NightherdError:
        await give_back(work, context)
        raise
    if isinstance(answer, Refused):
        await give_back(work, context)
    match answer:
        case Applied(job=job, run_id=run_id):
            concerned = run_id or item.workflow_run_id
            run = None if concerned is None else context.reader.find_run(RunId(concerned))
            return Answered(item=get_item(context.reader, item.id), job=job, run=run)
        case Refused(why=Why.NOT_ALLOWED, message=message):
            raise ForbiddenError(message)
        case Refused(message=message):
            raise RefusedError(message, next_step=NextStep(Action.SHOW_INBOX_ITEM, item=item.id))


def _check(request: Answer, item: InboxItem, asked: InboxTexts) -> None:
    """`InvalidValueError` for an answer that lacks something, or has something that does not belong to it."""
    if request.text is not None and len(request.text) > ANSWER_LIMIT:
        raise InvalidValueError(f"an answer has at most {ANSWER_LIMIT:,} characters")
    if request.verdict is Verdict.REPLY and not (request.text or "").strip():
        raise InvalidValueError("a reply needs a text")
    if request.input is not None and is_gate(item) and request.verdict in DECIDING:
        check_gate_input(request.input, item, asked)
    elif request.input is not None and (
        request.verdict is not Verdict.APPROVE or item.kind is not ItemKind.APPROVAL
    ):
        raise InvalidValueError("only the approval of a call can change its arguments")
    if request.limits and request.verdict is not Verdict.RAISE:
        raise InvalidValueError("limits are only for raising")
    if request.verdict is Verdict.RAISE and item.kind is ItemKind.LIMIT and not request.limits:
        raise InvalidValueError("name the limit to raise and its new maximum, like spend=5")


def _check_input(request: Answer, context: FleetContext) -> None:
    """`InvalidValueError` for changed arguments that cannot be recorded, or would not run as they are meant."""
    if request.input is None:
        return
    encoded = json.dumps(request.input, ensure_ascii=False)
    if len(encoded) > INPUT_LIMIT:
        raise InvalidValueError(f"changed arguments have at most {INPUT_LIMIT:,} characters")
    if context.secrets.mask(request.input) != request.input:
        raise InvalidValueError("the changed arguments hold a secret; name its variable instead")
    if MASK_BEGINS in encoded:
        raise InvalidValueError(
            f"{MASK_BEGINS}...] in the changed arguments stands for a secret and would run as it is written"
        )
    if whole_value(request.input) != request.input:
        raise InvalidValueError("the changed arguments hold half a character")


def _job_id(item: InboxItem) -> JobId:
    return item.job_id or JobId(item.subject)


def _failed_run(request: Answer, item: InboxItem, context: FleetContext) -> WorkflowRun | None:
    """The failed run whose rest the answer runs again; None for every other answer."""
    is_retried = request.verdict is Verdict.RETRY and item.kind is ItemKind.FAILURE
    if not is_retried or item.job_id is not None or item.workflow_run_id is None:
        return None
    return get_run(context.reader, RunId(item.workflow_run_id)) if item.is_pending else None


def _makes_job(request: Answer, item: InboxItem, context: FleetContext) -> bool:
    """Whether the work is done again as a new job; one that is suspended is resumed instead."""
    if request.verdict is not Verdict.RETRY or item.kind is not ItemKind.FAILURE:
        return False
    if item.workflow_run_id is not None and item.job_id is None:
        return False
    return item.is_pending and get_job(context.reader, _job_id(item)).is_terminal


def _resumed(
    request: Answer, item: InboxItem, agents: Agents, context: FleetContext
) -> ResumeJob | None:
    """The resumed job of an answer that raises its limit or tries it again; None for every other answer."""
    if request.verdict not in (Verdict.RAISE, Verdict.RETRY) or item.job_id is None:
        return None
    job = get_job(context.reader, item.job_id)
    if job.status is not JobStatus.SUSPENDED:
        return None
    agent, options = agents.get(job.agent), NO_OPTIONS
    if request.limits:
        options = JobOptions(limits={**given_before(job, context.reader), **request.limits})
        check_raised(job, agent, options, context.reader)
    return ResumeJob(
        job_id=job.id,
        at=context.clock.now(),
        overrides=options,
        lifts=stopped_by(agent, context.environment),
    )
