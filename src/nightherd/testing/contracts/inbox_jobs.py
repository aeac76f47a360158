"""What every state store must do with inbox items that come and go with jobs; see `state_contract` for how to run it."""

from __future__ import annotations

from datetime import timedelta

from msgspec.structs import replace

from nightherd.model.change import AdoptRows, Why
from nightherd.model.inbox.changes import AnswerItem, AskAboutJob
from nightherd.model.inbox.item import ItemKind, ItemStatus, Verdict
from nightherd.model.jobs.changes import ResumeJob
from nightherd.model.jobs.job import CHILD_WAITS, ExitReason, JobStatus, SuspendReason
from nightherd.model.jobs.options import JobOptions
from nightherd.model.jobs.outcome import Outcome
from nightherd.testing.contracts.inbox import job_of, kinds_of, refused, suspend, titles
from nightherd.testing.contracts.state import NOW, OpenState, checks_in, must_apply
from nightherd.testing.state_values import fire, job_id, settle, start, submit

HOUR = timedelta(hours=1)
FAILED = Outcome(exit_reason=ExitReason.ERROR, error="the  model\nis gone", error_code="gone")


async def check_job_at_a_limit_is_in_the_inbox_until_it_is_raised(state: OpenState) -> None:
    await must_apply(state, submit(1), start(1), suspend(1, SuspendReason.LIMIT, code="spend"))
    (item,) = state.reader.items_of_job(job_id(1))
    assert (item.kind, item.title) == (ItemKind.LIMIT, "waits: spend")
    raised = ResumeJob(job_id=job_id(1), at=NOW, overrides=JobOptions(limits={"spend": 9}))
    answer = AnswerItem(
        item_id=item.id, verdict=Verdict.RAISE, by="ada", via="test", at=NOW, resume=raised
    )

    await must_apply(state, answer)

    assert job_of(state, 1).status is JobStatus.PENDING
    assert kinds_of(state, 1) == [(ItemKind.LIMIT, ItemStatus.ANSWERED)]
    texts = state.reader.find_texts(job_id(1))
    assert texts is not None
    assert texts.overrides.limits == {"spend": 9}
    await must_apply(state, start(1), suspend(1, SuspendReason.LIMIT, code="spend", epoch=2))
    assert kinds_of(state, 1)[1:] == [(ItemKind.LIMIT, ItemStatus.PENDING)], "asked anew"


async def check_refused_limit_fails_the_job(state: OpenState) -> None:
    await must_apply(state, submit(1), start(1), suspend(1, SuspendReason.BUDGET, code="spend"))
    (item,) = state.reader.items_of_job(job_id(1))
    no = AnswerItem(
        item_id=item.id, verdict=Verdict.REJECT, by="ada", via="test", at=NOW, text="too much"
    )

    await must_apply(state, no)

    job = job_of(state, 1)
    assert (job.status, job.error) == (JobStatus.FAILED, "ada refused to raise the limit: too much")


async def check_job_resumed_elsewhere_closes_its_limit(state: OpenState) -> None:
    limit = suspend(1, SuspendReason.LIMIT, code="spend")
    await must_apply(state, submit(1), start(1), limit, ResumeJob(job_id=job_id(1), at=NOW))

    assert kinds_of(state, 1) == [(ItemKind.LIMIT, ItemStatus.SUPERSEDED)]


async def check_waits_that_end_by_themselves_ask_nobody(state: OpenState) -> None:
    until = suspend(1, SuspendReason.RATE_LIMIT, code="rate_limit")
    until = replace(until, suspension=replace(until.suspension, until=NOW + HOUR))
    await must_apply(state, submit(1), start(1), until)
    await must_apply(state, submit(2), start(2), suspend(2, code=CHILD_WAITS))

    assert titles(state) == []
    assert (state.reader.count_pending_items(), state.reader.oldest_pending_item()) == ({}, None)


async def check_failed_job_is_in_the_inbox_until_somebody_decides(state: OpenState) -> None:
    await must_apply(state, submit(1), start(1), settle(1, outcome=FAILED))
    (item,) = state.reader.items_of_job(job_id(1))
    assert (item.kind, item.title) == (ItemKind.FAILURE, "the model is gone")
    again = submit(2)
    again = replace(again, job=replace(again.job, resumed_from=job_id(1)))

    await must_apply(state, again)

    assert kinds_of(state, 1) == [(ItemKind.FAILURE, ItemStatus.SUPERSEDED)]


async def check_job_that_is_tried_again_elsewhere_leaves_the_inbox(state: OpenState) -> None:
    await must_apply(state, submit(1), start(1), settle(1, outcome=FAILED))
    await must_apply(state, replace(submit(2), retries=job_id(1)))

    assert kinds_of(state, 1) == [(ItemKind.FAILURE, ItemStatus.SUPERSEDED)]


async def check_jobs_of_an_older_version_come_into_the_inbox_once(state: OpenState) -> None:
    failed = replace(
        submit(1).job,
        session_id=None,
        status=JobStatus.FAILED,
        exit_reason=ExitReason.ERROR,
        finished_at=NOW,
        epoch=1,
        worker="worker-1",
        error="it broke",
    )
    waiting = replace(
        failed,
        id=job_id(2),
        status=JobStatus.SUSPENDED,
        exit_reason=None,
        suspend_reason=SuspendReason.LIMIT,
        finished_at=None,
        error="too dear",
    )
    foreign = replace(failed, id=job_id(3), worker=None)
    asking = replace(
        waiting, id=job_id(4), suspend_reason=SuspendReason.APPROVAL, error_code="approval"
    )
    phase = replace(failed, id=job_id(5), workflow_run_id="run-1", node_id="run-1/dig")
    texts = [replace(submit(1).texts, job_id=job_id(number)) for number in (1, 2, 3, 4, 5)]
    await must_apply(
        state, AdoptRows(rows=(failed, waiting, foreign, asking, phase, *texts), source="old")
    )
    jobs = list(state.reader.jobs_without_item(9))
    assert jobs == [job_id(1), job_id(2), job_id(4)]

    for _ in range(2):
        await must_apply(state, *(AskAboutJob(job_id=one, at=NOW + HOUR) for one in jobs))

    assert titles(state) == ["too dear", "it broke"]
    assert job_of(state, 4).status is JobStatus.PENDING, "it asks again by itself"
    assert list(state.reader.jobs_without_item(9)) == []
    await must_apply(state, AskAboutJob(job_id=job_id(4), at=NOW))
    missing = AskAboutJob(job_id=job_id(9), at=NOW)
    assert (await refused(state, missing)).why is Why.MISSING


async def check_retry_makes_its_job_in_the_same_transaction(state: OpenState) -> None:
    await must_apply(state, submit(1), start(1), settle(1, outcome=FAILED))
    (item,) = state.reader.items_of_job(job_id(1))
    retry = AnswerItem(
        item_id=item.id, verdict=Verdict.RETRY, by="ada", via="test", at=NOW, job=submit(2)
    )

    taken = await refused(state, replace(retry, job=submit(1)))
    applied = await must_apply(state, retry)

    assert taken.why is Why.ID_TAKEN
    assert applied.job == job_of(state, 2)
    assert kinds_of(state, 1) == [(ItemKind.FAILURE, ItemStatus.ANSWERED)]


async def check_newest_failure_of_a_schedule_stands_for_the_others(state: OpenState) -> None:
    for number in (1, 2):
        await must_apply(state, fire(number, minute=number), start(number))
        await must_apply(state, settle(number, outcome=FAILED))

    assert kinds_of(state, 1) == [(ItemKind.FAILURE, ItemStatus.SUPERSEDED)]
    assert kinds_of(state, 2) == [(ItemKind.FAILURE, ItemStatus.PENDING)]


async def check_suspended_job_of_a_schedule_keeps_its_item(state: OpenState) -> None:
    await must_apply(state, fire(1, minute=1), start(1))
    await must_apply(state, suspend(1, SuspendReason.ERROR, code="login"))
    await must_apply(state, fire(2, minute=2), start(2), settle(2, outcome=FAILED))

    assert kinds_of(state, 1) == [(ItemKind.FAILURE, ItemStatus.PENDING)], "it can still continue"


INBOX_JOBS_CHECKS = checks_in(globals())
