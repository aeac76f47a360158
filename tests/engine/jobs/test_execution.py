"""Executing: every event on record before it is seen, and however it ends, the end is true."""

from __future__ import annotations

from datetime import timedelta

import pytest

from engine.bench import Bench, hurried, persistent
from nightherd.errors import FencedError, JobNotFoundError, JournalError, RefusedError
from nightherd.model.ids import ExecutionId, JobId
from nightherd.model.jobs.job import ExitReason, JobStatus
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
from nightherd.model.journal.system import End, ExecutionStarted, Header, Init, SystemSubtype
from nightherd.model.sessions.session import SessionStatus
from nightherd.model.units import MicroUsd
from nightherd.model.usage import Usage
from nightherd.testing.determinism import FakeClock
from nightherd.testing.memory_journals import MemoryJournal, MemoryJournals
from nightherd.testing.runtime import ANSWER, PlayedRuntime

TURN_WITH_TOOL: tuple[Event, ...] = (
    AssistantEvent(
        content="Looking",
        turn=1,
        index=0,
        usage=Usage(input_tokens=10, output_tokens=2, cost_microusd=MicroUsd(150)),
    ),
    ToolUseEvent(
        tool_name="Bash", tool_use_id="t1", input={"command": "ls"}, turn=1, index=1, end=True
    ),
    ToolResultEvent(tool_use_id="t1", result="a.py", success=True, turn=1, index=0, end=True),
)


def shape(events: list[Event]) -> list[str]:
    """The events' types and subtypes, in order."""
    return [
        f"system/{event.subtype}" if isinstance(event, SystemEvent) else type(event).__name__
        for event in events
    ]


def test_journal_tells_the_whole_story_in_order() -> None:
    init = describe(Init(runtime="scripted", runtime_session_id="abc"))
    bench = Bench(PlayedRuntime([init, *TURN_WITH_TOOL, *ANSWER]))

    job = bench.run()

    assert shape(bench.journal(job.id)) == [
        "system/header",
        "system/execution_started",
        "system/user_input",
        "system/init",
        "AssistantEvent",
        "ToolUseEvent",
        "ToolResultEvent",
        "AssistantEvent",
        "system/complete",
        "system/end",
    ]
    assert [event.seq for event in bench.journal(job.id)] == list(range(1, 11))
    assert {event.epoch for event in bench.journal(job.id)} == {1}


def test_first_line_is_the_whole_job() -> None:
    bench = Bench()
    job = bench.run(inputs={"issue": "1"}, priority=2)

    first = bench.journal(job.id)[0]

    assert isinstance(first, SystemEvent)
    header = payload_of(first)
    assert isinstance(header, Header)
    assert (header.id, header.agent, header.session_id) == (job.id, "coder", job.session_id)
    assert (header.priority, header.inputs) == (2, {"issue": "1"})
    assert header.nightherd_version == "9.9.9"


def test_row_has_what_the_record_comes_to() -> None:
    bench = Bench(PlayedRuntime([*TURN_WITH_TOOL, *ANSWER]))

    job = bench.run()

    assert (job.status, job.exit_reason) == (JobStatus.COMPLETED, ExitReason.SUCCESS)
    assert (job.turns, job.messages) == (1, 4)
    assert (job.input_tokens, job.output_tokens, job.cost_microusd) == (10, 2, 150)
    assert (job.summary, job.error) == ("done", None)
    assert job.last_seq == bench.journal(job.id)[-1].seq
    assert bench.job(job.id) == job
    (execution,) = bench.reader.list_executions(job.id)
    assert (execution.success, execution.turns, execution.cost_microusd) == (True, 1, 150)
    assert execution.stop_reason == "end_turn"
    assert execution.repo == "owner/project"


def test_messages_are_numbered_as_people_count_them() -> None:
    bench = Bench(PlayedRuntime([*TURN_WITH_TOOL, *ANSWER]))

    job = bench.run()

    numbered = [
        (type(event).__name__, event.message)
        for event in bench.journal(job.id)
        if not isinstance(event, ErrorEvent) and event.message is not None
    ]
    assert numbered == [
        ("SystemEvent", 1),
        ("AssistantEvent", 2),
        ("ToolUseEvent", 2),
        ("ToolResultEvent", 3),
        ("AssistantEvent", 4),
    ]


def test_event_is_on_record_before_anybody_is_told() -> None:
    bench = Bench(PlayedRuntime([*TURN_WITH_TOOL, *ANSWER]))
    job_id = bench.submit().job.id
    told: list[Event] = []

    def look(event: Event) -> None:
        told.append(event)
        assert bench.journal(job_id)[-1] == event

    bench.execute(job_id, look)

    assert told == bench.journal(job_id)


def test_job_is_running_on_record_before_the_runtime_is_asked() -> None:
    found: list[JobStatus] = []
    bench = Bench(PlayedRuntime(before_each=lambda event: found.append(bench.job(job_id).status)))
    job_id = bench.submit().job.id

    bench.execute(job_id)

    assert found == [JobStatus.RUNNING, JobStatus.RUNNING]


def test_runtimes_session_id_is_on_record_the_moment_it_is_known() -> None:
    known: list[str | None] = []
    init = describe(Init(runtime="scripted", runtime_session_id="uuid-1"))
    runtime = PlayedRuntime(
        [init, *ANSWER],
        before_each=lambda event: known.append(bench.job(job_id).runtime_session_id),
    )
    bench = Bench(runtime)
    job_id = bench.submit().job.id

    job = bench.execute(job_id)

    assert known == [None, "uuid-1", "uuid-1"]
    assert job.session_id is not None
    session = bench.reader.find_session(job.session_id)
    assert session is not None
    assert session.runtime_session_id == "uuid-1"


def test_runtime_that_says_error_fails_the_job_with_its_words() -> None:
    bench = Bench(PlayedRuntime([ErrorEvent(message="no answer", code="refused")]))

    job = bench.run()

    assert (job.status, job.exit_reason) == (JobStatus.FAILED, ExitReason.ERROR)
    assert (job.error, job.error_code) == ("no answer", "refused")


def test_runtime_that_says_max_turns_ends_with_that_reason() -> None:
    job = Bench(PlayedRuntime([ErrorEvent(message="enough", code="max_turns")])).run()

    assert (job.status, job.exit_reason) == (JobStatus.FAILED, ExitReason.MAX_TURNS)


def test_runtime_that_just_stops_is_never_a_success() -> None:
    job = Bench(PlayedRuntime(TURN_WITH_TOOL)).run()

    assert (job.status, job.error_code) == (JobStatus.FAILED, "no_result")
    assert job.turns == 1


def test_runtime_that_raises_fails_its_job_and_the_trace_is_on_record() -> None:
    bench = Bench(PlayedRuntime(TURN_WITH_TOOL, error=ValueError("broken pipe dream")))

    job = bench.run()

    assert (job.status, job.error_code) == (JobStatus.FAILED, "runtime_error")
    error = bench.journal(job.id)[-2]
    assert isinstance(error, ErrorEvent)
    assert error.message == "ValueError: broken pipe dream"
    assert error.stack is not None
    assert "PlayedRuntime" in error.stack or "execute" in error.stack


def test_nothing_of_the_runtime_counts_after_its_last_word() -> None:
    bench = Bench(PlayedRuntime([*ANSWER, AssistantEvent(content="and another thing", turn=2)]))

    job = bench.run()

    assert job.summary == "done"
    assert bench.runtime.was_closed


def test_job_that_takes_too_long_times_out_and_its_runtime_is_stopped() -> None:
    bench = Bench(
        PlayedRuntime(TURN_WITH_TOOL, is_endless=True), hurried(timedelta(milliseconds=30))
    )

    job = bench.run()

    assert (job.status, job.exit_reason) == (JobStatus.FAILED, ExitReason.TIMEOUT)
    assert job.error == "the job ran longer than its job_timeout of 30ms"
    assert job.turns == 1
    assert bench.runtime.was_closed


def test_stopped_job_is_cancelled_and_keeps_what_it_did() -> None:
    bench = Bench(PlayedRuntime(TURN_WITH_TOOL, is_endless=True))

    job = bench.execute(
        bench.submit().job.id, stop_when=lambda event: isinstance(event, ToolResultEvent)
    )

    assert (job.status, job.exit_reason) == (JobStatus.CANCELLED, ExitReason.CANCELLED)
    assert (job.turns, job.cost_microusd) == (1, 150)
    last = bench.journal(job.id)[-1]
    assert isinstance(last, SystemEvent)
    assert payload_of(last) == End(status="cancelled", exit_reason="cancelled")
    assert bench.runtime.was_closed


def test_job_stopped_before_its_first_event_is_cancelled() -> None:
    bench = Bench(PlayedRuntime((), is_endless=True))

    job = bench.execute(bench.submit().job.id, stop_when=lambda event: event is None)

    assert job.status is JobStatus.CANCELLED


def test_secrets_reach_neither_journal_nor_row() -> None:
    bench = Bench(
        PlayedRuntime(
            [
                AssistantEvent(content="the key is s3cret-value", thinking="s3cret-value!", turn=1),
                ToolUseEvent(
                    tool_name="Bash", input={"command": ["echo", "s3cret-value"]}, turn=1, end=True
                ),
                ToolResultEvent(
                    result={"out": "s3cret-value"}, error="s3cret-value", turn=1, end=True
                ),
                ErrorEvent(message="s3cret-value expired", stack="at s3cret-value"),
            ]
        ),
        environment={"MY_API_KEY": "s3cret-value"},
    )

    job = bench.run("use s3cret-value")

    assert "s3cret-value" not in repr(bench.journal(job.id))
    assert "s3cret-value" not in repr(job)
    assert job.error == "[secret:MY_API_KEY] expired"


def test_second_job_of_a_session_goes_on_where_the_first_ended() -> None:
    bench = Bench(PlayedRuntime([*TURN_WITH_TOOL, *ANSWER]), persistent())

    first = bench.run()
    bench.run()

    assert [request.session_turns for request in bench.runtime.requests] == [0, 1]
    assert [request.job_turns for request in bench.runtime.requests] == [0, 0]
    assert first.session_id is not None
    session = bench.reader.find_session(first.session_id)
    assert session is not None
    assert (session.status, session.job_count) == (SessionStatus.PAUSED, 2)
    assert (session.turn_count, session.message_count) == (2, 8)


def test_execution_continues_from_what_an_earlier_one_left_on_record() -> None:
    bench = Bench(PlayedRuntime([AssistantEvent(content="done", turn=2, end=True), ANSWER[-1]]))
    job_id = bench.submit().job.id
    earlier = bench.context.journals.open(job_id, epoch=1, execution=ExecutionId(f"{job_id}.1"))
    earlier.append(describe(ExecutionStarted(worker="worker-gone")))
    earlier.append(
        SystemEvent(subtype=SystemSubtype.USER_INPUT, content="Fix it", message=1, end=True)
    )
    for event in TURN_WITH_TOOL:
        earlier.append(event)
    earlier.close()

    job = bench.execute(job_id)

    (request,) = bench.runtime.requests
    assert (request.session_turns, request.job_turns) == (1, 1)
    inputs = [event for event in bench.journal(job_id) if "user_input" in repr(event)]
    assert len(inputs) == 1
    assert (job.turns, job.cost_microusd, job.summary) == (2, 150, "done")
    (execution,) = bench.reader.list_executions(job_id)
    assert (execution.turns, execution.cost_microusd) == (1, 0)


def test_running_job_cannot_be_taken_again() -> None:
    bench = Bench()
    job = bench.run()

    with pytest.raises(RefusedError, match="is completed"):
        bench.execute(job.id)

    assert bench.job(job.id) == job


def test_unknown_job_cannot_be_taken() -> None:
    with pytest.raises(JobNotFoundError):
        Bench().execute(JobId("job-2026-01-01-aaaaaa"))


def test_execution_that_lost_its_job_stops_and_settles_nothing() -> None:
    bench = Bench()
    job_id = bench.submit().job.id
    taken_over = bench.context.journals.open(job_id, epoch=2, execution=ExecutionId(f"{job_id}.2"))
    taken_over.append(describe(ExecutionStarted(worker="worker-bbbbbbbb")))

    with pytest.raises(FencedError):
        bench.execute(job_id)

    assert bench.job(job_id).status is JobStatus.RUNNING
    assert bench.runtime.requests == []


class FullJournals(MemoryJournals):
    """Journals on a disk that fails with `code` after so many events."""

    def __init__(self, room: int, code: str) -> None:
        super().__init__(clock=FakeClock())
        self._room = room
        self._code = code

    def open(self, job_id: JobId, *, epoch: int, execution: ExecutionId) -> MemoryJournal:
        if self._room == 0:
            raise JournalError("it cannot be written", code=self._code)
        journal = super().open(job_id, epoch=epoch, execution=execution)
        return FullJournal(journal, self._room, self._code)  # type: ignore[return-value]  # stands in for it


class FullJournal:
    """Takes so many events and no more."""

    def __init__(self, journal: MemoryJournal, room: int, code: str) -> None:
        self._journal = journal
        self._code = code
        self._room = iter(range(room))

    @property
    def last_seq(self) -> int:
        return self._journal.last_seq

    def append(self, event: Event) -> Event:
        if next(self._room, None) is None:
            raise JournalError("it cannot be written", code=self._code)
        return self._journal.append(event)

    def sync(self) -> None:
        self._journal.sync()

    def close(self) -> None:
        self._journal.close()


@pytest.mark.parametrize("room", range(8))
def test_full_disk_gives_the_job_back_to_continue_after_what_its_record_holds(room: int) -> None:
    runtime = PlayedRuntime([*TURN_WITH_TOOL, *ANSWER])
    bench = Bench(runtime, journals=FullJournals(room, "ENOSPC"))
    job_id = bench.submit().job.id

    with pytest.raises(JournalError, match="cannot be written"):
        bench.execute(job_id)

    job = bench.job(job_id)
    assert (job.status, job.restart_count, job.error_code) == (JobStatus.PENDING, 0, None)
    assert job.last_seq == room
    assert len(bench.journal(job_id)) == room


@pytest.mark.parametrize("room", range(8))
def test_failed_disk_fails_the_job_with_what_its_record_holds(room: int) -> None:
    runtime = PlayedRuntime([*TURN_WITH_TOOL, *ANSWER])
    bench = Bench(runtime, journals=FullJournals(room, "EIO"))
    job_id = bench.submit().job.id

    with pytest.raises(JournalError, match="cannot be written"):
        bench.execute(job_id)

    job = bench.job(job_id)
    assert (job.status, job.error_code) == (JobStatus.FAILED, "journal_failed")
    assert job.last_seq == room
    assert len(bench.journal(job_id)) == room


def test_nothing_more_is_recorded_once_the_lease_is_lost_and_nothing_is_settled() -> None:
    bench = Bench(PlayedRuntime([*TURN_WITH_TOOL, *ANSWER]))
    job_id = bench.submit().job.id

    def lose_at_the_call(event: Event) -> None:
        if isinstance(event, ToolUseEvent):
            bench.lease.lose()

    with pytest.raises(FencedError):
        bench.execute(job_id, lose_at_the_call)

    assert shape(bench.journal(job_id))[-1] == "ToolUseEvent"
    assert bench.job(job_id).status is JobStatus.RUNNING
