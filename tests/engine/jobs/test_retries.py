"""Runs that fail in passing: how often they are tried again, how long is waited, and when the job waits instead."""

from __future__ import annotations

import os
from collections.abc import AsyncGenerator, Sequence
from datetime import datetime, timedelta

import anyio
import msgspec
import pytest
from msgspec.structs import replace

from engine.bench import Bench
from nightherd.engine.workers.clock_watch import wake_jobs
from nightherd.model.jobs.changes import ResumeJob
from nightherd.model.jobs.failure import advice_on
from nightherd.model.jobs.job import ExitReason, Job, JobStatus, SuspendReason
from nightherd.model.jobs.outcome import Tally
from nightherd.model.jobs.retry import PASSING_ERRNOS, Failure, RetryPolicy, TryAgain, next_step
from nightherd.model.journal.event import (
    AssistantEvent,
    ErrorEvent,
    Event,
    SystemEvent,
    ToolResultEvent,
    ToolUseEvent,
    describe,
    payload_of,
)
from nightherd.model.journal.system import (
    Complete,
    Init,
    Resumed,
    Suspension,
    SystemSubtype,
    Warned,
)
from nightherd.model.usage import Usage
from nightherd.next_step import Action
from nightherd.ports import RuntimeRequest
from nightherd.testing.determinism import START, FakeClock
from nightherd.testing.runtime import ANSWER, PlayedRuntime
from nightherd.testing.state_values import BEGINNING

AT_ONCE = RetryPolicy(attempts=3, base=timedelta(0), cap=timedelta(0))
LIMITED = ErrorEvent(message="Slow down", code="rate_limited", extra={"recoverable": True})
UNREACHABLE = ErrorEvent(message="No route", code="network", extra={"recoverable": True})
BROKEN = ErrorEvent(message="No such model", code="model_not_found")


class RunsInTurn(PlayedRuntime):
    """A runtime that plays another piece each time it is run."""

    def __init__(self, *runs: Sequence[Event]) -> None:
        super().__init__()
        self.runs = runs
        self.asked: list[RuntimeRequest] = []

    async def execute(self, request: RuntimeRequest) -> AsyncGenerator[Event, None]:
        self.asked.append(request)
        for event in self.runs[min(len(self.asked), len(self.runs)) - 1]:
            await anyio.lowlevel.checkpoint()
            yield event


def bench_for(*runs: Sequence[Event], policy: RetryPolicy = AT_ONCE) -> tuple[Bench, RunsInTurn]:
    runtime = RunsInTurn(*runs)
    bench = Bench(runtime, clock=FakeClock(step=timedelta(0)))
    bench.context = replace(bench.context, retry=policy)
    return bench, runtime


def subtypes(events: list[Event]) -> list[str]:
    return [event.subtype.value for event in events if isinstance(event, SystemEvent)]


def test_run_that_fails_in_passing_is_tried_again_and_the_job_succeeds() -> None:
    bench, runtime = bench_for([LIMITED], [LIMITED], ANSWER)

    job = bench.run()

    assert (job.status, job.exit_reason, job.error) == (
        JobStatus.COMPLETED,
        ExitReason.SUCCESS,
        None,
    )
    assert [request.is_continued for request in runtime.asked] == [False, True, True]
    warned = [
        event.content
        for event in bench.journal(job.id)
        if isinstance(event, SystemEvent) and event.subtype is SystemSubtype.WARNING
    ]
    assert warned == ["tried again in 0s, 2 of 3", "tried again in 0s, 3 of 3"]


def test_failure_that_does_not_pass_suspends_the_job_until_the_next_try() -> None:
    bench, runtime = bench_for([LIMITED])

    job = bench.run()

    assert (job.status, job.suspend_reason) == (JobStatus.SUSPENDED, SuspendReason.RATE_LIMIT)
    assert (job.error, job.error_code) == ("Slow down (3 tries in 0s)", "rate_limited")
    assert job.resumes_at is not None
    assert timedelta(minutes=1.6) <= job.resumes_at - bench.clock.now() <= timedelta(minutes=2)
    assert (job.finished_at, len(runtime.asked)) == (None, 3)
    assert subtypes(bench.journal(job.id))[-1] == "suspended"


def resume_when_due(bench: Bench, job: Job) -> Job:
    """Let the time pass that the job waits for; the job as its next execution leaves it."""
    assert job.resumes_at is not None
    bench.clock.advance(job.resumes_at - bench.clock.now())
    anyio.run(wake_jobs, bench.context)
    return bench.execute(job.id)


def test_outage_is_tried_again_after_growing_pauses_until_it_passes() -> None:
    runs: list[Sequence[Event]] = [[UNREACHABLE] for _ in range(10)]
    bench, runtime = bench_for(*runs, ANSWER)
    job, pauses = bench.run(), []

    while job.status is JobStatus.SUSPENDED:
        assert (job.suspend_reason, job.restart_count) == (SuspendReason.ERROR, 0)
        assert job.resumes_at is not None
        pauses.append((job.resumes_at - bench.clock.now()) / timedelta(minutes=1))
        job = resume_when_due(bench, job)

    assert (job.status, job.exit_reason) == (JobStatus.COMPLETED, ExitReason.SUCCESS)
    assert len(runtime.asked) == 11
    wanted = [2, 4, 8, 16, 32, 60, 60, 60]
    assert all(0.8 * most <= one <= most for one, most in zip(pauses, wanted, strict=True))


def test_outage_that_lasts_longer_than_max_wait_leaves_the_job_to_a_person() -> None:
    bench, runtime = bench_for([UNREACHABLE])
    begun = bench.clock.now()
    job = bench.run()
    while job.resumes_at is not None:
        job = resume_when_due(bench, job)

    assert bench.clock.now() - begun == timedelta(hours=24)
    assert (job.status, job.suspend_reason) == (JobStatus.SUSPENDED, SuspendReason.ERROR)
    assert job.error == f"No route ({len(runtime.asked)} tries in 1d)"
    step = advice_on(job).step
    assert step is not None
    assert (step.action, step.job) == (Action.RESUME_JOB, job.id)

    anyio.run(bench.store.apply, [ResumeJob(job_id=job.id, at=bench.clock.now())])
    resumed = bench.execute(job.id)

    assert resumed.resumes_at is not None, "a person who resumes it begins the waiting anew"


def test_pauses_begin_anew_after_a_finished_turn() -> None:
    turn = AssistantEvent(content="so far", turn=1, index=0, end=True)
    bench, _ = bench_for(*([LIMITED],) * 6, [turn, LIMITED], [LIMITED])
    job = bench.run()
    for _ in range(4):
        job = resume_when_due(bench, job)

    assert job.resumes_at is not None
    assert job.resumes_at - bench.clock.now() <= timedelta(minutes=2)


@pytest.mark.parametrize("code", ["auth_failed", "token_expired", "billing", "missing_api_key"])
def test_refused_login_suspends_for_a_person_after_one_retry(code: str) -> None:
    bench, runtime = bench_for([ErrorEvent(message="No", code=code)])

    job = bench.run()

    assert (job.status, job.suspend_reason) == (JobStatus.SUSPENDED, SuspendReason.ERROR)
    assert (job.resumes_at, job.error_code, len(runtime.asked)) == (None, code, 2)
    step = advice_on(job).step
    assert step is not None
    assert (step.action, step.job) == (Action.RESUME_JOB, job.id)


def test_usage_limit_suspends_until_it_resets_however_far_away() -> None:
    for ahead in (timedelta(seconds=3), timedelta(days=6)):
        resets_at = START + ahead
        hit = ErrorEvent(
            message="You've hit your limit",
            code="rate_limited",
            extra={"recoverable": True, "resets_at": resets_at.isoformat(), "limit": "five_hour"},
        )
        bench, runtime = bench_for([hit], ANSWER)

        job = bench.run()

        assert (job.status, job.suspend_reason) == (JobStatus.SUSPENDED, SuspendReason.RATE_LIMIT)
        assert (job.resumes_at, len(runtime.asked)) == (resets_at, 1)
        assert resume_when_due(bench, job).status is JobStatus.COMPLETED


def test_wait_for_a_named_time_does_not_count_against_max_wait() -> None:
    resets_at = START + timedelta(days=6)
    facts = {"recoverable": True, "resets_at": resets_at.isoformat()}
    hit = ErrorEvent(message="Weekly limit", code="rate_limited", extra=facts)
    bench, _ = bench_for([hit], [UNREACHABLE])

    job = resume_when_due(bench, bench.run())

    assert job.error == "No route (3 tries in 0s)"
    assert job.resumes_at is not None


def test_reset_that_is_over_is_tried_again_quickly() -> None:
    hit = Failure(code="rate_limited", message="x", is_recoverable=True, resets_at=BEGINNING)

    step = next_step(RetryPolicy(), hit, failures=1, at=BEGINNING, spread=0.5)

    assert isinstance(step, TryAgain)


def test_pause_between_tries_does_not_count_against_the_timeout_of_the_job() -> None:
    policy = RetryPolicy(attempts=3, base=timedelta(milliseconds=400))
    bench, _ = bench_for([LIMITED], [LIMITED], ANSWER, policy=policy)
    bench.agent = replace(bench.agent, job_timeout=timedelta(milliseconds=300))

    assert bench.run().status is JobStatus.COMPLETED


def test_failure_that_cannot_pass_ends_the_job_at_the_first_try() -> None:
    bench, runtime = bench_for([BROKEN])

    job = bench.run()

    assert (job.status, job.error_code, len(runtime.asked)) == (
        JobStatus.FAILED,
        "model_not_found",
        1,
    )


def test_turn_that_was_finished_begins_the_count_anew() -> None:
    def turn(number: int) -> AssistantEvent:
        return AssistantEvent(content=f"turn {number}", turn=number, index=0, end=True)

    bench, runtime = bench_for(
        [LIMITED], [LIMITED], [turn(1), LIMITED], [LIMITED], [turn(2), LIMITED], ANSWER
    )

    assert bench.run().status is JobStatus.COMPLETED
    assert len(runtime.asked) == 6


def test_call_that_was_cut_off_is_answered_and_not_left_open_for_the_next_try() -> None:
    use = ToolUseEvent(tool_name="Bash", tool_use_id="t1", turn=1, index=0, end=True)
    bench, _ = bench_for([use, LIMITED], ANSWER)

    job = bench.run()

    (result,) = (event for event in bench.journal(job.id) if isinstance(event, ToolResultEvent))
    assert (result.tool_use_id, result.success) == ("t1", False)
    assert job.status is JobStatus.COMPLETED


def test_every_try_counts_what_it_used_once() -> None:
    used = {"usage": {"input_tokens": 10, "output_tokens": 1}, "recoverable": True}
    failing = ErrorEvent(message="Slow down", code="rate_limited", extra=used)
    done = describe(Complete(usage=Usage(input_tokens=5, output_tokens=2)))
    bench, _ = bench_for([failing], [failing], [done])

    job = bench.run()

    assert (job.input_tokens, job.output_tokens) == (25, 4)


def test_time_that_is_too_long_to_sit_out_frees_the_worker_until_then() -> None:
    later = ErrorEvent(
        message="Come back later",
        code="rate_limited",
        extra={"recoverable": True, "retry_after_s": 3600},
    )
    bench, runtime = bench_for([later])

    job = bench.run()

    assert (job.status, job.suspend_reason) == (JobStatus.SUSPENDED, SuspendReason.RATE_LIMIT)
    assert job.not_before is not None
    assert timedelta(minutes=59) < job.not_before - job.created_at <= timedelta(minutes=61)
    assert len(runtime.asked) == 1


@pytest.mark.parametrize("seconds", [1_794_873_600_000, 10**17, 1e300, -5, "soon"])
def test_time_that_cannot_be_meant_is_taken_as_not_said(seconds: object) -> None:
    odd = ErrorEvent(
        message="Come back in many ages",
        code="rate_limited",
        extra={"recoverable": True, "retry_after_s": seconds},
    )
    bench, runtime = bench_for([odd], ANSWER)

    job = bench.run()

    assert (job.status, len(runtime.asked)) == (JobStatus.COMPLETED, 2)


def test_wait_for_the_next_try_can_be_cancelled() -> None:
    bench, runtime = bench_for(
        [LIMITED], policy=RetryPolicy(base=timedelta(hours=1), cap=timedelta(hours=1))
    )
    job_id = bench.submit().job.id

    def is_waiting(event: Event | None) -> bool:
        return isinstance(event, SystemEvent) and isinstance(payload_of(event), Warned)

    job = bench.execute(job_id, stop_when=is_waiting)

    assert (job.status, len(runtime.asked)) == (JobStatus.CANCELLED, 1)


def test_session_the_runtime_named_is_gone_on_with() -> None:
    init = describe(Init(runtime="scripted", runtime_session_id="abc"))
    bench, runtime = bench_for([init, LIMITED], ANSWER)

    bench.run()

    assert [request.runtime_session_id for request in runtime.asked] == [None, "abc"]


def test_try_that_begins_says_why_on_record() -> None:
    bench, _ = bench_for([LIMITED], ANSWER)

    job = bench.run()

    resumed = [
        payload_of(event)
        for event in bench.journal(job.id)
        if isinstance(event, SystemEvent) and event.subtype is SystemSubtype.RESUMED
    ]
    assert [one.reason for one in resumed if isinstance(one, Resumed)] == ["retry"]


@pytest.mark.parametrize(
    ("failures", "spread", "delay"),
    [(1, 0.0, 1), (1, 1.0, 2), (2, 1.0, 4), (3, 0.0, 4), (4, 1.0, 16)],
)
def test_waits_grow_and_are_spread(failures: int, spread: float, delay: int) -> None:
    step = next_step(
        RetryPolicy(),
        Failure(code="network", message="gone", is_recoverable=True),
        failures=failures,
        at=BEGINNING,
        spread=spread,
    )

    assert step == TryAgain(delay=timedelta(seconds=delay), attempt=failures + 1, attempts=5)


def test_wait_never_exceeds_its_cap_and_never_cuts_the_provider_short() -> None:
    policy = RetryPolicy(attempts=50)
    gone = Failure(code="network", message="gone", is_recoverable=True)
    named = replace(gone, retry_after=timedelta(seconds=90))

    capped = next_step(policy, gone, failures=30, at=BEGINNING, spread=1.0)
    told = next_step(policy, named, failures=1, at=BEGINNING, spread=0.0)

    assert isinstance(capped, TryAgain)
    assert isinstance(told, TryAgain)
    assert (capped.delay, told.delay) == (timedelta(minutes=1), timedelta(seconds=90))


def test_pause_is_never_shorter_than_the_provider_asked_for() -> None:
    policy = RetryPolicy(attempts=1, first_pause=timedelta(seconds=60))
    named = Failure(
        code="rate_limited", message="x", is_recoverable=True, retry_after=timedelta(seconds=100)
    )

    step = next_step(policy, named, failures=1, at=BEGINNING, spread=0.0)

    assert isinstance(step, Suspension)
    assert step.until == BEGINNING + timedelta(seconds=100)


def test_time_in_which_no_worker_was_there_uses_up_no_patience() -> None:
    def at(hours: int) -> datetime:
        return BEGINNING + timedelta(hours=hours)

    pause = Suspension(reason=SuspendReason.ERROR, code="network", until=at(1))
    tally = (
        Tally()
        .add(msgspec.structs.replace(UNREACHABLE, timestamp=at(0)))
        .add(msgspec.structs.replace(describe(pause), timestamp=at(0)))
        .add(msgspec.structs.replace(describe(Resumed(reason="suspended")), timestamp=at(50)))
        .add(msgspec.structs.replace(UNREACHABLE, timestamp=at(50)))
    )

    assert (tally.failures, tally.failing_since) == (2, at(49))


def test_expired_session_is_tried_once_more_and_then_it_fails() -> None:
    expired = Failure(code="session_expired", message="expired")

    first = next_step(RetryPolicy(), expired, failures=1, at=BEGINNING, spread=0.5)
    second = next_step(RetryPolicy(), expired, failures=2, at=BEGINNING, spread=0.5)

    assert isinstance(first, TryAgain)
    assert (first.delay, second) == (timedelta(0), None)


class RaisesFirst(RunsInTurn):
    """A runtime that raises the error in its first run."""

    def __init__(self, error: Exception) -> None:
        super().__init__(ANSWER)
        self.error = error

    async def execute(self, request: RuntimeRequest) -> AsyncGenerator[Event, None]:
        is_first = not self.asked
        async for event in super().execute(request):
            if is_first:
                raise self.error
            yield event


@pytest.mark.parametrize(
    "error",
    [
        *(OSError(number, os.strerror(number)) for number in sorted(PASSING_ERRNOS)),
        RuntimeError("can't start new thread"),
        MemoryError(),
    ],
    ids=repr,
)
def test_a_runtime_that_raises_what_can_pass_is_run_again(error: Exception) -> None:
    runtime = RaisesFirst(error)
    bench = Bench(runtime, clock=FakeClock(step=timedelta(0)))
    bench.context = replace(bench.context, retry=AT_ONCE)

    job = bench.run()

    assert (job.status, len(runtime.asked)) == (JobStatus.COMPLETED, 2)
