"""Resuming: which job goes on, in which session, and what its runtime is told."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Sequence
from datetime import timedelta
from typing import Any

import anyio
import msgspec
import pytest
from msgspec.structs import replace

from engine.bench import AGENT, Bench, no_one, persistent
from engine.yard import Yard
from nightherd.engine.jobs.oversight import Stopper
from nightherd.engine.jobs.runner import run_taken_job
from nightherd.engine.operations.fork import AtMessage
from nightherd.engine.operations.requests import (
    ForkOf,
    InSession,
    Resume,
    ResumeSession,
    Submit,
)
from nightherd.engine.operations.resume import resume_job, resume_session
from nightherd.engine.operations.submit import submit
from nightherd.engine.operations.wait import wait_for_job
from nightherd.engine.workers.clock_watch import wake_jobs
from nightherd.engine.workers.rescue import RescueTerms, rescue, resumes_of
from nightherd.errors import RefusedError, SessionNotFoundError
from nightherd.model.agents.agent import Agent, Fleet
from nightherd.model.ids import SessionId, WorkerId
from nightherd.model.jobs.changes import StartExecution
from nightherd.model.jobs.job import Job, JobStatus, SuspendReason
from nightherd.model.jobs.lost import HANDED_OVER
from nightherd.model.jobs.retry import RetryPolicy
from nightherd.model.journal.event import AssistantEvent, ErrorEvent, Event, SystemEvent, describe
from nightherd.model.journal.system import Complete, Init, Suspension, SystemSubtype
from nightherd.model.sessions.session import Session, SessionMode, SessionStatus, SessionTerms
from nightherd.ports import RuntimeRequest
from nightherd.testing.runtime import ANSWER, PlayedRuntime

ONCE = RetryPolicy(attempts=1)
LIMITED = ErrorEvent(message="Slow down", code="rate_limited", extra={"recoverable": True})


async def nobody_to_rescue() -> None:
    """Everybody lives."""


class RunsInTurn(PlayedRuntime):
    """A runtime that plays another piece each time it is run."""

    def __init__(self, *runs: Sequence[Event]) -> None:
        super().__init__()
        self.runs = runs

    async def execute(self, request: RuntimeRequest) -> AsyncGenerator[Event, None]:
        self.requests.append(request)
        for event in self.runs[min(len(self.requests), len(self.runs)) - 1]:
            await anyio.lowlevel.checkpoint()
            yield event


def bench_for(*runs: Sequence[Event], agent: Agent = AGENT) -> Bench:
    bench = Bench(RunsInTurn(*runs), agent=agent)
    bench.context = replace(bench.context, retry=ONCE, agents={agent.name: agent})
    return bench


def resume(bench: Bench, job: Job, prompt: str | None = None) -> Job:
    async def go() -> Job:
        request = Resume(job_id=job.id, prompt=prompt)
        return await resume_job(request, bench.agent, bench.context, rescue=nobody_to_rescue)

    return anyio.run(go)


def submitted(bench: Bench, agent: str = "coder", **more: Any) -> Job:
    request = Submit(agent=agent, prompt="Else?", **more)
    return anyio.run(submit, request, bench.context).job


def session_of(bench: Bench, job: Job) -> Session:
    found = bench.reader.find_session(job.session_id or SessionId(""))
    assert found is not None
    return found


def asked(bench: Bench, job: Job) -> list[str | None]:
    return [
        event.content
        for event in bench.journal(job.id)
        if isinstance(event, SystemEvent) and event.subtype is SystemSubtype.USER_INPUT
    ]


def test_suspended_job_goes_on_as_the_same_job_and_is_told_what_was_said() -> None:
    turn = AssistantEvent(content="half", turn=1, index=0, end=True)
    bench = bench_for([turn, LIMITED], ANSWER)
    waiting = bench.run()
    assert waiting.suspend_reason is SuspendReason.RATE_LIMIT

    again = resume(bench, waiting, "Mind the gap")
    ended = bench.execute(again.id)

    assert (ended.id, ended.status, ended.epoch) == (waiting.id, JobStatus.COMPLETED, 2)
    assert (ended.restart_count, ended.error, ended.suspend_reason) == (0, None, None)
    last = bench.runtime.requests[-1]
    assert (last.is_continued, last.follow_up, last.job_turns) == (True, "Mind the gap", 1)
    assert asked(bench, ended) == ["Fix it", "Mind the gap"]


def test_what_was_said_is_told_once_also_when_the_job_is_suspended_again() -> None:
    answered = AssistantEvent(content="I will", turn=1, index=0, end=True)
    bench = bench_for([LIMITED], [answered, LIMITED], ANSWER)
    job = bench.run()
    for prompt in ("Mind the gap", None):
        job = resume(bench, job, prompt)
        job = bench.execute(job.id)

    assert job.status is JobStatus.COMPLETED
    assert asked(bench, job) == ["Fix it", "Mind the gap"]
    assert [one.follow_up for one in bench.runtime.requests] == [None, "Mind the gap", None]


def test_what_was_said_is_told_again_as_long_as_it_is_not_answered() -> None:
    bench = bench_for([LIMITED], [LIMITED], ANSWER)
    job = bench.run()
    for prompt in ("Mind the gap", None):
        job = resume(bench, job, prompt)
        job = bench.execute(job.id)

    assert asked(bench, job) == ["Fix it", "Mind the gap"]
    assert bench.runtime.requests[-1].follow_up == "Mind the gap"


def test_job_that_has_ended_goes_on_as_a_new_one_in_its_session() -> None:
    bench = bench_for(ANSWER, agent=persistent())
    first = bench.run()

    again = resume(bench, first, "And now?")

    assert (again.resumed_from, again.session_id) == (first.id, first.session_id)
    assert again.id != first.id
    assert bench.execute(again.id).status is JobStatus.COMPLETED
    assert asked(bench, again) == ["And now?"]


def test_session_of_one_job_alone_is_read_only_and_goes_on_in_a_branch_of_its_end() -> None:
    init = describe(Init(runtime="scripted", runtime_session_id="abc"))
    bench = bench_for([init, *ANSWER])
    first = bench.run()
    before = session_of(bench, first)

    with pytest.raises(RefusedError, match="is completed"):
        resume(bench, first)
    again = resume(bench, first, prompt="more")
    bench.execute(again.id)

    branch = session_of(bench, again)
    assert session_of(bench, first) == before
    assert (branch.parent_session_id, branch.base_job_id) == (before.id, first.id)
    assert branch.base_messages == first.messages
    assert asked(bench, again) == ["more"]
    fork = bench.runtime.requests[-1].fork
    assert fork is not None
    assert (fork.runtime_session_id, fork.at_uuid) == ("abc", None)


def test_branch_at_a_message_names_it_as_the_runtime_does_and_keeps_no_more() -> None:
    init = describe(Init(runtime="scripted", runtime_session_id="abc"))
    said = AssistantEvent(content="one", turn=1, index=0, end=True, uuid="u-1")
    more = AssistantEvent(content="two", turn=2, index=0, end=True, uuid="u-2")
    bench = bench_for([init, said, more, *ANSWER[1:]])
    first = bench.run()
    session_id = first.session_id
    assert session_id is not None

    place = ForkOf(session_id=session_id, at=AtMessage(number=2))
    job = submitted(bench, session=place)
    bench.execute(job.id)

    request = bench.runtime.requests[-1]
    assert request.fork is not None
    assert (request.fork.runtime_session_id, request.fork.at_uuid) == ("abc", "u-1")
    assert (job.trigger_type.value, job.forked_from) == ("fork", first.id)
    history = [event.content for event in request.history() if isinstance(event, AssistantEvent)]
    assert history == ["one", "one", "two"]


def test_branch_of_an_earlier_job_does_not_begin_with_what_was_said_after_it() -> None:
    init = describe(Init(runtime="scripted", runtime_session_id="abc"))
    one = AssistantEvent(content="one", turn=1, index=0, end=True, uuid="u-1")
    inside = AssistantEvent(content="aside", end=True, uuid="u-s", parent_tool_use_id="t")
    two = AssistantEvent(content="two", turn=1, index=0, end=True, uuid="u-2")
    done = msgspec.structs.replace(describe(Complete()), uuid="u-done")
    bench = bench_for([init, one, inside, done], [init, two, done], ANSWER, agent=persistent())
    first, second = bench.run(), bench.run()
    assert first.session_id == second.session_id
    assert first.session_id is not None
    session_id = first.session_id

    points: list[str | None] = []
    for message in (first.messages, first.messages + 1, 1):
        place = ForkOf(session_id=session_id, at=AtMessage(number=message))
        bench.execute(submitted(bench, session=place).id)
        found = bench.runtime.requests[-1].fork
        points.append(None if found is None else found.at_uuid)

    # After the first job, after the second was asked, and after nothing but a question.
    assert points == ["u-1", "u-1", None]
    assert bench.runtime.requests[-1].fork is None


def test_history_is_everything_said_so_far_with_what_is_asked_now() -> None:
    seen: list[list[str | None]] = []

    class Looking(PlayedRuntime):
        async def execute(self, request: RuntimeRequest) -> AsyncGenerator[Event, None]:
            seen.append(
                [
                    event.content
                    for event in request.history()
                    if isinstance(event, AssistantEvent)
                    or (
                        isinstance(event, SystemEvent) and event.subtype is SystemSubtype.USER_INPUT
                    )
                ]
            )
            for event in ANSWER:
                await anyio.lowlevel.checkpoint()
                yield event

    bench = Bench(Looking(), agent=persistent())
    bench.run("first")
    bench.run("second")

    assert seen == [["first"], ["first", "done", "second"]]


@pytest.mark.parametrize("status", [JobStatus.PENDING, JobStatus.RUNNING])
def test_job_that_goes_on_anyway_is_not_resumed(status: JobStatus) -> None:
    bench = bench_for(ANSWER)
    job = bench.submit().job
    if status is JobStatus.RUNNING:
        start = StartExecution(
            job_id=job.id, worker=WorkerId("worker-otheraaa"), at=bench.clock.now()
        )
        anyio.run(bench.store.apply, [start])

    with pytest.raises(RefusedError):
        resume(bench, job)

    assert bench.job(job.id).status is status


def test_session_of_another_agent_and_a_session_that_is_not_there_are_refused() -> None:
    bench = bench_for(ANSWER, agent=persistent())
    job = bench.run()
    session_id = job.session_id
    assert session_id is not None

    agents = {"coder": bench.agent, "other": replace(AGENT, name="other")}
    bench.context = replace(bench.context, agents=agents)

    with pytest.raises(RefusedError, match="belongs to agent 'coder'"):
        submitted(bench, agent="other", session=InSession(session_id=session_id))
    with pytest.raises(SessionNotFoundError):
        submitted(bench, session=InSession(session_id=SessionId("sess-nowhere1")))


def test_job_that_waits_for_a_time_goes_on_by_itself_once_it_has_come() -> None:
    later = ErrorEvent(
        message="Later", code="rate_limited", extra={"recoverable": True, "retry_after_s": 3600}
    )
    bench = bench_for([later], ANSWER)
    job = bench.run()

    early = anyio.run(wake_jobs, bench.context)
    bench.clock.advance(timedelta(hours=2))
    due = anyio.run(wake_jobs, bench.context)
    again = anyio.run(wake_jobs, bench.context)

    assert (early, due, again) == (0, 1, 0)
    assert bench.execute(job.id).status is JobStatus.COMPLETED


def test_job_that_nobody_waits_for_is_handed_over_and_nothing_is_lost() -> None:
    turn = AssistantEvent(content="half", turn=1, index=0, end=True)
    bench = Bench(PlayedRuntime([turn], is_endless=True))
    job = bench.submit().job

    async def go() -> Job:
        stopper = Stopper()
        return await wait_for_job(
            job.id,
            bench.agent,
            bench.context,
            on_event=lambda event: (
                stopper.hand_over() if isinstance(event, AssistantEvent) else None
            ),
            on_wait=lambda reason: None,
            stopper=stopper,
        )

    handed = anyio.run(go)
    bench.runtime = PlayedRuntime()
    ended = bench.execute(job.id)

    assert (handed.status, handed.restart_count, handed.turns) == (JobStatus.PENDING, 0, 1)
    assert (ended.status, ended.epoch, ended.restart_count) == (JobStatus.COMPLETED, 2, 0)
    recovered = [
        (event.extra or {})["reason"]
        for event in bench.journal(job.id)
        if isinstance(event, SystemEvent) and event.subtype is SystemSubtype.RECOVERED
    ]
    assert recovered == [HANDED_OVER], "nothing was lost: its worker gave it back"


def test_worker_killed_between_the_last_word_and_the_row_leaves_a_job_that_waits() -> None:
    yard = Yard()
    job = yard.taken(yard.register("worker-goneaaaa", pid=7))
    yard.dead.add(7)
    journal = yard.bench.context.journals.open(job.id, epoch=1, execution=f"{job.id}.1")  # type: ignore[arg-type]
    until = yard.bench.clock.now() + timedelta(hours=1)
    journal.append(
        describe(
            Suspension(reason=SuspendReason.RATE_LIMIT, code="rate_limited", until=until), "Later"
        )
    )
    journal.close()

    (rescued,) = anyio.run(rescue, yard.record, yard.terms)

    assert (rescued.status, rescued.suspend_reason) == (
        JobStatus.SUSPENDED,
        SuspendReason.RATE_LIMIT,
    )
    assert (rescued.not_before, rescued.error, rescued.restart_count) == (until, "Later", 0)


@pytest.mark.parametrize(
    ("terms", "silent_s", "status"),
    [
        (SessionTerms(), 10_000, JobStatus.PENDING),
        (SessionTerms(auto_resume=False), 1, JobStatus.FAILED),
        (SessionTerms(resume_timeout=timedelta(hours=1)), 10, JobStatus.PENDING),
        (SessionTerms(resume_timeout=timedelta(hours=1)), 10_000, JobStatus.FAILED),
    ],
)
def test_lost_job_goes_on_by_itself_only_as_its_agent_says(
    terms: SessionTerms, silent_s: int, status: JobStatus
) -> None:
    agent = replace(AGENT, session=replace(terms, mode=SessionMode.PERSISTENT))
    yard = Yard(bench=Bench(agent=agent))
    job = yard.taken(yard.register("worker-goneaaaa", pid=7))
    yard.dead.add(7)
    yard.advance(seconds=silent_s)
    rules = resumes_of(Fleet(file="yard.yaml", agents={agent.name: agent}))
    how = RescueTerms(
        boot_id=yard.terms.boot_id,
        max_restarts=5,
        kill_all_marked=yard.terms.kill_all_marked,
        resumes=rules,
    )

    (rescued,) = anyio.run(rescue, yard.record, how)

    assert rescued.status is status
    assert session_of(yard.bench, job).status is SessionStatus.PAUSED
    if status is JobStatus.FAILED:
        assert rescued.error_code == "interrupted"


def test_wait_for_a_limit_does_not_count_as_silence_of_a_lost_job() -> None:
    terms = SessionTerms(resume_timeout=timedelta(hours=1))
    agent = replace(AGENT, session=replace(terms, mode=SessionMode.PERSISTENT))
    later = ErrorEvent(
        message="Later", code="rate_limited", extra={"recoverable": True, "retry_after_s": 18_000}
    )
    bench = Bench(RunsInTurn([later]), agent=agent)
    yard, job = Yard(bench=bench), bench.run()
    yard.advance(hours=5, minutes=1)
    anyio.run(wake_jobs, bench.context)
    gone = yard.register("worker-goneaaaa", pid=7)
    start = StartExecution(job_id=job.id, worker=gone, at=bench.clock.now())
    anyio.run(bench.store.apply, [start])
    yard.dead.add(7)  # before it wrote a single line
    rules = resumes_of(Fleet(file="yard.yaml", agents={agent.name: agent}))

    (rescued,) = anyio.run(rescue, yard.record, replace(yard.terms, resumes=rules))

    assert (rescued.status, rescued.error_code) == (JobStatus.PENDING, None)


def test_job_taken_over_after_a_suspension_is_not_called_lost() -> None:
    bench = bench_for([LIMITED], ANSWER)
    job = bench.run()
    resume(bench, job)
    start = StartExecution(job_id=job.id, worker=bench.context.worker, at=bench.clock.now())
    (answer,) = anyio.run(bench.store.apply, [start])
    assert answer.job is not None

    async def go(taken: Job) -> Job:
        return await run_taken_job(taken, bench.agent, bench.context, on_event=no_one)

    anyio.run(go, answer.job)

    subtypes = [
        event.subtype.value for event in bench.journal(job.id) if isinstance(event, SystemEvent)
    ]
    assert "recovered" not in subtypes
    assert subtypes.count("resumed") == 1


def resumed_session(bench: Bench, job: Job, **more: Any) -> Job:
    async def go() -> Job:
        request = ResumeSession(session_id=SessionId(job.session_id or ""), **more)
        return await resume_session(request, bench.agent, bench.context, rescue=nobody_to_rescue)

    return anyio.run(go)


def test_session_with_an_open_job_is_not_given_another_without_a_prompt() -> None:
    yard = Yard(bench=Bench(agent=persistent()))
    bench, job = yard.bench, yard.taken(yard.register("worker-busyaaaa"))

    with pytest.raises(RefusedError, match="is running"):
        resumed_session(bench, job)

    assert resumed_session(bench, job, prompt="more").id != job.id


def test_session_whose_last_job_failed_goes_on_with_a_new_one_once_for_each_key() -> None:
    bench = Bench(PlayedRuntime([ErrorEvent(message="no", code="broken")]), agent=persistent())
    failed = bench.run()
    assert failed.status is JobStatus.FAILED

    made = resumed_session(bench, failed, dedupe_key="k")
    again = resumed_session(bench, failed, dedupe_key="k")

    assert (made.resumed_from, made.id) == (failed.id, again.id)
    assert made.id != failed.id
