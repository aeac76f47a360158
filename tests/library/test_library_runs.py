"""The library: a program opens a fleet, has jobs done, and reads what happened."""

from __future__ import annotations

import ast
import dataclasses
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import anyio
import pytest
from msgspec.structs import replace

import nightherd
from nightherd import (
    Cancel,
    JobQuery,
    NightherdError,
    Order,
    RunnerResult,
    SDKInitializationError,
    open_fleet,
    read_job_output,
)
from nightherd.errors import (
    AgentNotFoundError,
    ConfigNotFoundError,
    JobTimeoutError,
    MalformedResponseError,
    RefusedError,
    SDKStreamingError,
    SessionNotFoundError,
    UsageError,
)
from nightherd.model.change import RegisterWorker
from nightherd.model.jobs.changes import StartExecution
from nightherd.model.jobs.failure import (
    ADVICE,
    FAILURES,
    FailureType,
    classify_error,
    details_of,
    error_of,
)
from nightherd.model.jobs.job import CHILD_WAITS, PRICE_UNKNOWN, ExitReason, Job, JobStatus
from nightherd.model.jobs.outcome import EXIT_OF_CODE
from nightherd.model.journal.event import AssistantEvent, ErrorEvent, Event, SystemEvent, describe
from nightherd.model.journal.system import End
from nightherd.testing.state_values import submit, worker

FLEET = """\
agents:
  - name: teller
    runtime: scripted
    session: {mode: persistent}
    script:
      - say: "You said: ${prompt}"
  - name: sleeper
    runtime: scripted
    default_prompt: sleep
    script:
      - say: good night
      - sleep: 1h
  - name: lost
    runtime: scripted
    default_prompt: go
    working_directory: meadow
    script:
      - say: here
"""


@pytest.fixture
def fleet_file(tmp_path: Path) -> Path:
    file = tmp_path / "nightherd.yaml"
    file.write_text(FLEET)
    (tmp_path / "meadow").mkdir()
    return file


def test_job_is_recorded_before_it_runs_and_its_events_before_they_are_told(
    fleet_file: Path,
) -> None:
    made: list[Job] = []
    told: list[Event] = []

    async def go() -> RunnerResult:
        async with open_fleet(fleet_file, environ={}) as fleet:

            def on_job_created(job: Job) -> None:
                made.append(fleet.job(job.id))

            return await fleet.execute(
                Order(agent="teller", prompt="moo"),
                on_job_created=on_job_created,
                on_message=told.append,
            )

    result = anyio.run(go)

    assert (result.success, result.summary, result.error) == (True, "You said: moo", None)
    assert [job.status for job in made] == [JobStatus.PENDING]
    assert [event.seq for event in told] == list(range(1, len(told) + 1))
    assert result.duration_seconds is not None


def test_events_are_read_and_followed_to_the_end(fleet_file: Path) -> None:
    async def go() -> tuple[list[Event], list[Event]]:
        followed: list[Event] = []

        async def follow(job_id: str) -> None:
            followed.extend([one async for one in read_job_output(state, job_id, follow=True)])

        state = fleet_file.parent / ".nightherd"
        async with open_fleet(fleet_file, environ={}) as fleet, anyio.create_task_group() as tasks:
            job = await fleet.submit(Order(agent="teller", prompt="moo", dedupe_key="once"))
            tasks.start_soon(follow, job.id)
            result = await fleet.execute(Order(agent="teller", prompt="moo", dedupe_key="once"))
        return [event async for event in read_job_output(state, result.job_id)], followed

    read, followed = anyio.run(go)

    assert read == followed
    assert isinstance(read[-1], SystemEvent)
    assert nightherd.is_terminal_message(read[-1])
    assert not nightherd.is_terminal_message(AssistantEvent(content="x"))
    assert nightherd.is_terminal_message(ErrorEvent(message="x"))
    assert nightherd.is_terminal_message(describe(End(status="failed", exit_reason="error")))


def test_cancelled_from_elsewhere_it_ends_as_cancelled(fleet_file: Path) -> None:
    async def go() -> RunnerResult:
        async with open_fleet(fleet_file, environ={}) as fleet:
            cancel = Cancel()

            def stop_at_the_first_word(event: Event) -> None:
                if isinstance(event, AssistantEvent):
                    cancel()

            return await fleet.execute(
                Order(agent="sleeper"), on_message=stop_at_the_first_word, cancel=cancel
            )

    result = anyio.run(go)

    assert (result.success, result.job.exit_reason) == (False, ExitReason.CANCELLED)
    assert result.error_details is not None


def test_failure_says_what_kind_it_is_and_can_be_raised(fleet_file: Path) -> None:
    async def go() -> RunnerResult:
        async with open_fleet(fleet_file, environ={}) as fleet:
            (fleet_file.parent / "meadow").rmdir()
            return await fleet.execute(Order(agent="lost"))

    result = anyio.run(go)

    assert not result.success
    details = result.error_details
    assert details is not None
    assert (details.type, details.code, details.recoverable, details.messages_received) == (
        FailureType.INITIALIZATION,
        "working_directory",
        False,
        0,
    )
    assert isinstance(result.error, SDKInitializationError)
    assert (result.error.job_id, result.error.agent_name) == (result.job_id, "lost")
    assert not result.error.is_missing_api_key()


def test_resume_fork_queries_and_cancel(fleet_file: Path) -> None:
    async def go() -> None:
        async with open_fleet(fleet_file, environ={}) as fleet:
            first = await fleet.execute(Order(agent="teller", prompt="one"))
            session = fleet.session(str(first.session_id))
            forked = await fleet.execute(
                Order(agent="teller", prompt="two", fork=session.id, at_message=0)
            )
            resumed = await fleet.resume(first.job_id, prompt="three")
            waiting = await fleet.submit(Order(agent="sleeper", dedupe_key="once"))
            same = await fleet.submit(Order(agent="sleeper", dedupe_key="once"))
            ended = await fleet.cancel(waiting.id)

            assert forked.summary == "You said: two"
            assert forked.job.forked_from == first.job_id
            assert resumed.job.resumed_from == first.job_id
            assert resumed.session_id == first.session_id
            assert same.id == waiting.id
            assert ended.status is JobStatus.CANCELLED
            assert len(fleet.jobs(JobQuery(agent="teller"))) == 3
            assert len(fleet.sessions()) == 3

    anyio.run(go)


def test_a_job_whose_worker_is_gone_is_cancelled_at_once(fleet_file: Path) -> None:
    gone = worker("worker-00000009")

    async def go() -> None:
        async with open_fleet(fleet_file, environ={}) as fleet:
            job = await fleet.submit(Order(agent="sleeper"))
            taken = StartExecution(job_id=job.id, worker=gone.id, at=gone.started_at)
            await fleet._context.state.apply([RegisterWorker(worker=gone), taken])

            ended = await fleet.cancel(job.id)

            assert ended.status is JobStatus.CANCELLED
            with pytest.raises(RefusedError):
                await fleet.cancel(job.id)

    anyio.run(go)


def test_what_makes_no_sense_is_an_error_and_leaves_nothing(fleet_file: Path) -> None:
    async def go() -> None:
        async with open_fleet(fleet_file, environ={}) as fleet:
            with pytest.raises(AgentNotFoundError):
                await fleet.execute(Order(agent="nobody", prompt="x"))
            with pytest.raises(SessionNotFoundError):
                await fleet.execute(Order(agent="teller", prompt="x", resume="sess-nowhere1"))
            with pytest.raises(UsageError):
                await fleet.execute(Order(agent="teller", prompt="x", resume="a", fork="b"))
            with pytest.raises(NightherdError):
                await fleet.cancel("job-1999-01-01-aaaaaa")
            assert fleet.jobs() == []

    anyio.run(go)


@pytest.mark.parametrize("way", ["resume", "fork"])
def test_a_key_makes_one_job_in_a_session_or_a_branch_too(fleet_file: Path, way: str) -> None:
    async def go() -> None:
        async with open_fleet(fleet_file, environ={}) as fleet:
            first = await fleet.execute(Order(agent="teller", prompt="one"))
            order = Order(agent="teller", prompt="more", dedupe_key="once", priority=4)
            named: dict[str, Any] = {way: first.session_id}
            jobs = [await fleet.submit(dataclasses.replace(order, **named)) for _ in range(2)]

            assert jobs[0].id == jobs[1].id
            assert jobs[0].priority == 4

    anyio.run(go)


def test_directory_without_a_fleet_file_is_told(tmp_path: Path) -> None:
    async def go() -> None:
        async with open_fleet(cwd=tmp_path, environ={}):
            pass

    with pytest.raises(ConfigNotFoundError):
        anyio.run(go)


@pytest.mark.parametrize(
    ("error", "reason"),
    [
        (TimeoutError(), ExitReason.TIMEOUT),
        (RuntimeError("connect ETIMEDOUT 10.0.0.1"), ExitReason.TIMEOUT),
        (RuntimeError("This operation was aborted"), ExitReason.CANCELLED),
        (RuntimeError("Reached maximum turns (5)"), ExitReason.MAX_TURNS),
        (SDKStreamingError("x", code="max_turns"), ExitReason.MAX_TURNS),
        (RuntimeError("anything else"), ExitReason.ERROR),
    ],
)
def test_errors_of_any_origin_have_an_exit_reason(error: Exception, reason: ExitReason) -> None:
    assert classify_error(error) is reason


def failed(code: str | None, reason: ExitReason = ExitReason.ERROR) -> Job:
    job = submit(1).job
    return Job(
        id=job.id,
        agent=job.agent,
        trigger_type=job.trigger_type,
        status=JobStatus.FAILED,
        exit_reason=reason,
        created_at=job.created_at,
        error="it failed",
        error_code=code,
        messages=3,
    )


@pytest.mark.parametrize(
    ("code", "kind"),
    [
        ("missing_api_key", SDKInitializationError),
        ("rate_limited", SDKStreamingError),
        ("malformed_answer", MalformedResponseError),
        ("never heard of", nightherd.RunnerError),
    ],
)
def test_codes_become_errors_of_their_kind(code: str, kind: type[NightherdError]) -> None:
    error = error_of(failed(code))

    assert type(error) is kind


def test_predicates_tell_what_may_pass() -> None:
    limited = error_of(failed("rate_limited"))
    gone = error_of(failed("network"))
    long = error_of(failed("prompt_too_long"))

    assert isinstance(limited, SDKStreamingError)
    assert isinstance(gone, SDKStreamingError)
    assert isinstance(long, SDKStreamingError)
    assert (limited.is_rate_limited(), limited.is_connection_error()) == (True, False)
    assert (gone.is_rate_limited(), gone.is_connection_error()) == (False, True)
    assert [one.is_recoverable() for one in (limited, gone, long)] == [True, True, False]
    late = error_of(failed("timeout", ExitReason.TIMEOUT))
    assert isinstance(late, JobTimeoutError)
    assert (late.job_id, late.agent_name) == (failed("timeout").id, submit(1).job.agent)


def test_network_that_was_never_there_kept_the_run_from_beginning() -> None:
    job = replace(failed("network"), messages=1)

    error, details = error_of(job), details_of(job)

    assert isinstance(error, SDKInitializationError)
    assert (error.is_network_error(), error.is_missing_api_key()) == (True, False)
    assert details is not None
    assert (details.type, details.recoverable, details.messages_received) == (
        FailureType.INITIALIZATION,
        True,
        0,
    )


def test_what_nobody_could_read_is_in_the_error() -> None:
    error = error_of(failed("no_result"), raw_response="<html>")

    assert isinstance(error, MalformedResponseError)
    assert (error.raw_response, error.expected) == ("<html>", "a result before the end")


def codes_in(path: Path) -> Iterator[str]:
    """The codes that the module gives to errors."""
    for call in ast.walk(ast.parse(path.read_text())):
        if not isinstance(call, ast.Call) or not isinstance(call.func, ast.Name):
            continue
        if call.func.id not in ("ErrorEvent", "Failure", "RunFailure", "Outcome"):
            continue
        named = [word.value for word in call.keywords if word.arg in ("code", "error_code")]
        for value in (*named, *call.args[: call.func.id == "RunFailure"]):
            if isinstance(value, ast.Constant) and isinstance(value.value, str):
                yield value.value


def test_every_code_in_the_house_is_in_the_table() -> None:
    house = Path(nightherd.__file__).parent
    rooms = [house / "engine", house / "runtimes"]
    found = {code for room in rooms for path in room.rglob("*.py") for code in codes_in(path)}

    assert len(found) > 20
    assert found - set(FAILURES) - set(EXIT_OF_CODE) == set()


def test_advice_is_only_given_on_codes_that_exist() -> None:
    assert set(ADVICE) - set(FAILURES) == {CHILD_WAITS, PRICE_UNKNOWN}, "jobs fail with the others"
    error = error_of(failed("missing_api_key"))
    assert error is not None
    assert "ANTHROPIC_API_KEY" in (error.hint or "")


def test_job_without_a_container_had_not_begun_and_an_engine_may_come_back() -> None:
    found = [details_of(failed(code)) for code in ("container", "container_engine")]

    assert [details and (details.type, details.recoverable) for details in found] == [
        (FailureType.INITIALIZATION, False),
        (FailureType.INITIALIZATION, True),
    ]
    assert ["then retry the job" in ((details and details.hint) or "") for details in found] == [
        True,
        True,
    ]


def test_every_code_of_a_limit_says_that_the_run_had_begun() -> None:
    found = [details_of(failed(code)) for code in ("spend_exceeded", "depth_exceeded", "limit")]

    assert [details and details.type for details in found] == [FailureType.STREAMING] * 3


def test_job_that_succeeded_has_no_error_and_every_code_has_a_kind() -> None:
    assert details_of(submit(1).job) is None
    assert error_of(submit(1).job) is None
    details = details_of(failed("stalled"))
    assert details is not None
    assert (details.recoverable, details.messages_received) == (True, 2)
    assert all(kind.type is not FailureType.UNKNOWN for kind in FAILURES.values())
