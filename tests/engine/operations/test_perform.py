"""Requests: each is carried out the same way, whichever surface sends it, and survives being sent."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta

import anyio
import pytest
from msgspec.structs import replace

from engine.bench import AGENT, Bench
from nightherd.engine.operations.fork import AtCheckpoint, AtEvent, AtLastTurn, AtMessage
from nightherd.engine.operations.inbox import Answered
from nightherd.engine.operations.perform import gives_more, masked_request, perform
from nightherd.engine.operations.requests import (
    Cancel,
    ForkOf,
    InSession,
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
from nightherd.engine.operations.submit import Submitted
from nightherd.errors import AgentNotFoundError, InvalidValueError, RefusedError
from nightherd.model.ids import JobId, SessionId
from nightherd.model.jobs.job import Job, TriggerType
from nightherd.model.jobs.options import JobOptions
from nightherd.model.limits.limits import Limits
from nightherd.model.secrets import find_secrets
from nightherd.model.sessions.session import SessionMode

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
        Submit(agent="coder", trigger_type=TriggerType.SPAWNED),
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
