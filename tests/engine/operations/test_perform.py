"""Requests: each is carried out the same way, whichever surface sends it, and survives being sent."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta

import anyio
import pytest
from msgspec.structs import replace

from engine.bench import AGENT, Bench, persistent
from engine.operations.test_resuming import RunsInTurn
from engine.yard import Yard
from nightherd.engine.operations.fork import AtCheckpoint, AtEvent, AtLastTurn, AtMessage
from nightherd.engine.operations.inbox import Answered
from nightherd.engine.operations.new_job import Submitted
from nightherd.engine.operations.perform import gives_more, masked_request, perform
from nightherd.engine.operations.requests import (
    Cancel,
    ForkOf,
    InSession,
    NewJobRequest,
    OwnSession,
    Request,
    ResetAgent,
    Resume,
    ResumeSession,
    Retry,
    RunSchedule,
    SetSchedule,
    Submit,
    decode_request,
    encode_request,
    with_key,
)
from nightherd.errors import AgentBlockedError, AgentNotFoundError, InvalidValueError, RefusedError
from nightherd.model.ids import JobId, SessionId
from nightherd.model.jobs.changes import FailWaiting
from nightherd.model.jobs.job import Job, JobQuery, JobStatus, TriggerType
from nightherd.model.jobs.options import JobOptions
from nightherd.model.jobs.retry import RetryPolicy
from nightherd.model.journal.event import AssistantEvent, ErrorEvent
from nightherd.model.limits.limits import Limits
from nightherd.model.problem import Place, Problem
from nightherd.model.secrets import find_secrets
from nightherd.model.sessions.session import SessionMode, SessionQuery

JOB, SESSION = JobId("job-2026-11-16-aaaaaa"), SessionId("sess-aaaaaaaa")
EVERY = (
    Submit(agent="coder", prompt="x", inputs={"a": 1, "b": None, "c": "d"}, priority=3),
    Submit(
        agent="coder",
        options=JobOptions(model="m", job_timeout=timedelta(minutes=90), limits={"spend": 5}),
        session=OwnSession(mode=SessionMode.PERSISTENT, channel="c", is_branch=True),
    ),
    Submit(agent="coder", session=InSession(session_id=SESSION)),
    *(
        Submit(agent="coder", session=ForkOf(session_id=SESSION, at=at))
        for at in (
            None,
            AtLastTurn(),
            AtMessage(number=2),
            AtEvent(seq=4, job_id=JOB),
            AtCheckpoint(number=1),
        )
    ),
    Retry(job_id=JOB, refuses_held=True),
    Resume(job_id=JOB, prompt="on", limits={"turns": 9}, at_checkpoint=2),
    ResumeSession(session_id=SESSION, agent="coder", prompt="on"),
    RunSchedule(agent="coder", schedule="nightly"),
    Cancel(job_id=JOB),
    SetSchedule(agent="coder", schedule="nightly", by="me", enabled=False),
    ResetAgent(agent="coder"),
)


async def nobody_to_rescue() -> None:
    """Everybody lives."""


def bench_with(**more: object) -> Bench:
    bench = Bench()
    bench.context = replace(bench.context, agents={AGENT.name: AGENT}, **more)
    return bench


def performed(bench: Bench, request: Request) -> Submitted | Job | Answered | None:
    async def go() -> Submitted | Job | Answered | None:
        return await perform(request, bench.context, rescue=nobody_to_rescue)

    return anyio.run(go)


@pytest.mark.parametrize("request_", EVERY, ids=lambda one: type(one).__name__)
def test_a_request_is_the_same_after_it_was_sent(request_: Request) -> None:
    assert decode_request(encode_request(request_)) == request_


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"{}",
        b'{"type":"dance"}',
        b'{"type":"cancel"}',
        b'{"type":"cancel","job_id":"x","when":"later"}',
    ],
)
def test_what_is_no_request_or_says_more_than_is_known_is_not_taken(data: bytes) -> None:
    with pytest.raises(InvalidValueError):
        decode_request(data)


@pytest.mark.parametrize(
    "request_",
    [
        Submit(agent="coder", options=JobOptions(required_caps=("Bash",))),
        Submit(agent="coder", options=JobOptions(resume_keys=("k",))),
        Submit(agent="coder", trigger_type=TriggerType.SPAWNED),
        Submit(agent="coder", parent_job_id=JOB),
        Submit(agent="coder", asked_about=JOB),
    ],
)
def test_a_sender_cannot_set_what_only_jobs_give_their_children(request_: Submit) -> None:
    with pytest.raises(RefusedError):
        decode_request(encode_request(request_))


def test_a_key_makes_one_job_and_is_refused_for_other_work() -> None:
    bench = bench_with()
    request = with_key(Submit(agent="coder", prompt="x"), "k")

    first, again = performed(bench, request), performed(bench, request)

    assert isinstance(first, Submitted)
    assert isinstance(again, Submitted)
    assert (first.is_new, again.is_new, again.job.id) == (True, False, first.job.id)
    assert first.job.dedupe_key == "api:k"
    with pytest.raises(RefusedError, match="used for other work"):
        performed(bench, replace(request, prompt="y"))
    own = replace(request, prompt="y", has_own_key=True)
    assert performed(bench, own) == again, "a key made for one request is not compared"


MAKING: tuple[Callable[[Job], Request], ...] = (
    lambda job: Submit(agent="coder", prompt="x"),
    lambda job: Retry(job_id=job.id),
    lambda job: Resume(job_id=job.id, prompt="on"),
    lambda job: ResumeSession(session_id=job.session_id or SESSION, prompt="on"),
    lambda job: RunSchedule(agent="coder", schedule="nightly"),
)


@pytest.mark.parametrize("make", MAKING)
def test_no_request_makes_a_job_of_an_agent_that_is_withheld_gone_or_has_no_runtime(
    make: Callable[[Job], Request],
) -> None:
    bench = bench_with()
    ended = bench.run()
    ready = bench.context

    bench.context = replace(ready, agents={}, withheld=frozenset({"coder"}))
    with pytest.raises(RefusedError, match="has not been accepted"):
        performed(bench, make(ended))
    bench.context = replace(ready, agents={})
    with pytest.raises(AgentNotFoundError):
        performed(bench, make(ended))
    bench.context = replace(ready, can_run=lambda name: False)
    with pytest.raises(RefusedError, match="not available here"):
        performed(bench, make(ended))
    assert [job.id for job in bench.reader.jobs_of_session(ended.session_id or SESSION)] == [
        ended.id
    ]


def test_only_requests_that_raise_a_limit_give_agents_more() -> None:
    limited = {AGENT.name: replace(AGENT, limits=Limits(turns=5))}
    submits = [
        Submit(agent="coder", options=JobOptions(limits={"turns": turns})) for turns in (4, 6)
    ]

    assert [gives_more(one, limited) is not None for one in submits] == [False, True]
    assert gives_more(Resume(job_id=JOB, limits={"turns": 9}), {}) is not None
    assert [gives_more(one, {}) for one in (Resume(job_id=JOB), Cancel(job_id=JOB))] == [None, None]


def test_secrets_are_masked_in_what_is_sent_also_when_they_are_put_together() -> None:
    secrets = find_secrets({"A_TOKEN": "a-hidden-value"})
    whole = Submit(agent="coder", prompt="say a-hidden-${inputs.end}", inputs={"end": "value"})
    resumed = Resume(job_id=JOB, prompt="a-hidden-value")

    for request in (whole, replace(whole, session=InSession(session_id=SESSION)), resumed):
        assert b"a-hidden-value" not in encode_request(masked_request(request, AGENT, secrets))
    assert masked_request(Cancel(job_id=JOB), None, secrets) == Cancel(job_id=JOB)


def test_inputs_fill_the_prompt_in_whichever_session_the_job_is() -> None:
    bench = bench_with()
    session_id = bench.run().session_id or SESSION
    places = (OwnSession(), InSession(session_id=session_id), ForkOf(session_id=session_id))

    for place in places:
        request = Submit(
            agent="coder", prompt="see ${inputs.issue}", inputs={"issue": 7}, session=place
        )
        submitted = performed(bench, request)
        assert isinstance(submitted, Submitted)
        texts = bench.reader.find_texts(submitted.job.id)
        assert texts is not None
        assert texts.prompt == "see 7"


def sessions_and_jobs(bench: Bench) -> tuple[list[SessionId], list[JobId]]:
    sessions = bench.reader.list_sessions(SessionQuery())
    return [one.id for one in sessions], [one.id for one in bench.reader.list_jobs(JobQuery())]


BRANCHING: tuple[Callable[[Job], NewJobRequest], ...] = (
    lambda job: Submit(agent="coder", prompt="x", session=ForkOf(session_id=session_of(job))),
    lambda job: Submit(agent="coder", prompt="x", session=InSession(session_id=session_of(job))),
    lambda job: Resume(job_id=job.id, prompt="x"),
    lambda job: ResumeSession(session_id=session_of(job), prompt="x"),
)


def session_of(job: Job) -> SessionId:
    assert job.session_id is not None
    return job.session_id


@pytest.mark.parametrize("make", BRANCHING)
def test_a_repeated_request_makes_neither_a_second_job_nor_an_empty_branch(
    make: Callable[[Job], NewJobRequest],
) -> None:
    bench = bench_with()
    request = with_key(make(bench.run()), "k")
    first = performed(bench, request)
    after_one = sessions_and_jobs(bench)

    again = performed(bench, request)

    assert len(after_one[0]) == len(after_one[1]) == 2
    assert sessions_and_jobs(bench) == after_one
    assert job_of(first).id == job_of(again).id


def job_of(result: Submitted | Job | Answered | None) -> Job:
    job = result.job if isinstance(result, Submitted | Answered) else result
    assert job is not None
    return job


def test_a_repeated_branch_of_the_agents_own_session_makes_no_empty_branch() -> None:
    agent = persistent()
    bench = Bench(agent=agent)
    bench.context = replace(bench.context, agents={agent.name: agent})
    bench.run()
    own = OwnSession(is_branch=True)
    request = with_key(Submit(agent="coder", prompt="x", session=own), "k")
    performed(bench, request)
    after_one = sessions_and_jobs(bench)

    performed(bench, request)

    assert sessions_and_jobs(bench) == after_one


def test_a_refused_fork_leaves_no_branch() -> None:
    problem = Problem(place=Place(file="f", line=1, column=1), message="no")
    bench = bench_with()
    ended = bench.run()
    before = sessions_and_jobs(bench)
    blocked = replace(AGENT, blocked_by=(problem,))
    bench.context = replace(bench.context, agents={AGENT.name: blocked})

    with pytest.raises(AgentBlockedError):
        performed(
            bench, Submit(agent="coder", prompt="x", session=ForkOf(session_id=session_of(ended)))
        )

    assert sessions_and_jobs(bench) == before


RESUMING: tuple[Callable[[Job], NewJobRequest], ...] = (
    lambda job: Resume(job_id=job.id, prompt="on"),
    lambda job: Resume(job_id=job.id, prompt="on", at_checkpoint=1),
    lambda job: Resume(job_id=job.id, limits={"turns": 9}),
    lambda job: ResumeSession(session_id=session_of(job), prompt="on"),
    lambda job: ResumeSession(session_id=session_of(job)),
)


@pytest.mark.parametrize("make", RESUMING)
def test_a_repeated_resume_is_done_once_also_when_its_job_has_ended(
    make: Callable[[Job], NewJobRequest],
) -> None:
    turn = AssistantEvent(content="half", turn=1, index=0, end=True)
    limited = ErrorEvent(message="Slow down", code="rate_limited", extra={"recoverable": True})
    failing = ErrorEvent(message="no", code="broken")
    bench = Bench(RunsInTurn([turn, limited], [turn, failing]), agent=persistent())
    bench.context = replace(
        bench.context, agents={AGENT.name: bench.agent}, retry=RetryPolicy(attempts=1)
    )
    waiting = bench.run()
    assert waiting.status is JobStatus.SUSPENDED
    request = with_key(make(waiting), "k")
    performed(bench, request)

    pending = job_of(performed(bench, request))
    ended = bench.execute(waiting.id)
    again = job_of(performed(bench, request))

    assert (pending.id, pending.status) == (waiting.id, JobStatus.PENDING)
    assert (again.id, again.status, ended.status) == (
        waiting.id,
        JobStatus.FAILED,
        JobStatus.FAILED,
    )
    assert len(sessions_and_jobs(bench)[1]) == 1


def test_a_repeated_raise_of_a_running_job_makes_no_new_job_once_it_has_failed() -> None:
    yard = Yard(bench=bench_with())
    bench = yard.bench
    limited = replace(AGENT, limits=Limits(turns=5))
    bench.context = replace(bench.context, agents={AGENT.name: limited})
    running = yard.taken(yard.register("worker-busyaaaa"))
    request = with_key(Resume(job_id=running.id, limits={"turns": 9}), "k")
    performed(bench, request)
    failed = FailWaiting(job_id=running.id, at=bench.clock.now(), message="no", code="no")
    bench.lose(running.id)
    anyio.run(bench.store.apply, [failed])

    again = job_of(performed(bench, request))

    assert (again.id, again.status) == (running.id, JobStatus.FAILED)
    assert len(sessions_and_jobs(bench)[1]) == 1
