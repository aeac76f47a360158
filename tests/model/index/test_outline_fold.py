"""The outline of a journal: the same wherever a reader stops, and of bounded size."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from itertools import pairwise

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nightherd.model.index.fold import extend
from nightherd.model.index.outline import (
    EMPTY,
    MOST_CHECKPOINTS,
    MOST_ERRORS,
    MOST_EXECUTIONS,
    MOST_GAPS,
    MOST_OPEN_CALLS,
    MOST_SEGMENTS,
    MOST_TOOLS,
    Outline,
    decode_outline,
    encode_outline,
)
from nightherd.model.jobs.job import SuspendReason
from nightherd.model.jobs.lost import WORKER_GONE
from nightherd.model.journal.event import (
    AssistantEvent,
    ErrorEvent,
    Event,
    SystemEvent,
    ToolResultEvent,
    ToolUseEvent,
    describe,
)
from nightherd.model.journal.system import (
    CheckpointSaved,
    Denied,
    End,
    ExecutionStarted,
    Header,
    HookRan,
    Recovered,
    Resumed,
    Suspension,
    SystemSubtype,
    ToolProgress,
    Warned,
)

BEGIN = datetime(2026, 3, 1, 8, tzinfo=UTC)
MOST_BYTES = 400_000

texts = st.text(max_size=300)
calls = st.sampled_from([f"call-{number}" for number in range(6)])
events = st.one_of(
    st.builds(AssistantEvent, content=texts, message=st.integers(1, 5), turn=st.integers(1, 9)),
    st.builds(AssistantEvent, thinking=texts, message=st.integers(1, 5)),
    st.builds(AssistantEvent, content=texts, partial=st.just(True)),
    st.builds(
        ToolUseEvent, tool_name=texts, tool_use_id=calls, input=st.dictionaries(texts, texts)
    ),
    st.builds(ToolResultEvent, tool_use_id=calls, result=texts, success=st.booleans()),
    st.builds(ToolResultEvent, tool_use_id=calls, error=texts),
    st.builds(ErrorEvent, message=texts),
    st.builds(SystemEvent, subtype=st.sampled_from(SystemSubtype), content=st.none() | texts),
    st.builds(
        describe, st.builds(CheckpointSaved, number=st.integers(1, 99), trigger=st.just("turn"))
    ),
    st.just(describe(ExecutionStarted(worker="worker-1"))),
    st.just(describe(Suspension(reason=SuspendReason.APPROVAL))),
    st.just(describe(Warned(code="retrying"), "tried again in 5 s")),
    st.just(describe(Resumed(reason="retry"))),
    st.builds(
        describe,
        st.builds(Recovered, lost_execution=texts, reason=st.just(WORKER_GONE) | texts),
    ),
)


def journal(*found: Event) -> list[Event]:
    """The events as a journal has them: numbered, a second apart, a new epoch with each execution."""
    epoch, lines = 0, []
    for seq, event in enumerate(found, 1):
        if isinstance(event, SystemEvent) and event.subtype is SystemSubtype.EXECUTION_STARTED:
            epoch += 1
        at = BEGIN + timedelta(seconds=seq)
        lines.append(msgspec.structs.replace(event, seq=seq, epoch=epoch, v=1, timestamp=at))
    return lines


def outline_of(*found: Event) -> Outline:
    return extend(EMPTY, journal(*found))


def begun(*found: Event) -> list[Event]:
    header = Header(id="job-1", agent="coder", trigger_type="manual", created_at=BEGIN)
    return [describe(header), describe(ExecutionStarted(worker="worker-1")), *found]


def assert_bounds_hold(outline: Outline) -> None:
    assert len(outline.segments) <= MOST_SEGMENTS
    assert len(outline.errors) <= MOST_ERRORS
    assert len(outline.executions) <= MOST_EXECUTIONS
    assert len(outline.gaps) <= MOST_GAPS
    assert len(outline.checkpoints) <= MOST_CHECKPOINTS
    assert len(outline.open_calls) <= MOST_OPEN_CALLS
    assert len(outline.counts.tools) <= MOST_TOOLS + 1
    assert len(encode_outline(outline)) <= MOST_BYTES


@settings(max_examples=60, deadline=None)
@given(st.lists(events, max_size=60), st.lists(st.integers(0, 60), max_size=5), st.integers(1, 40))
def test_it_is_the_same_wherever_a_reader_stops_and_however_long_the_journal(
    some: list[Event], stops: list[int], times: int
) -> None:
    lines = journal(*some * times)
    whole = extend(EMPTY, lines)
    places = sorted({0, len(lines), *(min(stop * times, len(lines)) for stop in stops)})
    pieces = EMPTY
    for begin, end in pairwise(places):
        kept = decode_outline(encode_outline(pieces))
        pieces = extend(kept, lines[begin:end])
    assert pieces == whole
    assert_bounds_hold(whole)


@settings(max_examples=60, deadline=None)
@given(st.lists(events, min_size=1, max_size=60), st.integers(1, 40))
def test_every_event_is_in_a_segment_and_segments_are_in_order(
    some: list[Event], times: int
) -> None:
    lines = journal(*some * times)
    outline = extend(EMPTY, lines)
    assert sum(segment.steps for segment in outline.segments) == outline.steps
    assert outline.counts.events == len(lines) == outline.last_seq
    reached = 0
    for segment in outline.segments:
        assert reached < segment.first_seq
        assert segment.first_seq <= segment.last_seq
        assert segment.start <= segment.end
        reached = segment.first_seq
    covered = {
        seq
        for segment in outline.segments
        for seq in range(segment.first_seq, segment.last_seq + 1)
    }
    assert covered == set(range(1, len(lines) + 1))


def test_an_event_that_it_has_already_changes_nothing() -> None:
    lines = journal(*begun(AssistantEvent(content="moo", message=2)))
    outline = extend(EMPTY, lines)
    assert extend(outline, lines) == outline


def test_a_long_job_has_as_many_segments_as_fit_and_says_how_many_steps_each_holds() -> None:
    outline = outline_of(*(AssistantEvent(content="moo", message=n) for n in range(100_000)))
    assert outline.span == 256
    assert len(outline.segments) == 391
    assert_bounds_hold(outline)
    assert outline.segments[0].steps == 256
    assert outline.counts.answers == 100_000


def test_a_tool_call_lasts_until_its_result() -> None:
    outline = outline_of(
        *begun(
            ToolUseEvent(tool_name="Bash", tool_use_id="a", input={"command": "make test"}),
            ToolUseEvent(tool_name="Read", tool_use_id="b", input={"file_path": "/tmp/x"}),
            describe(ToolProgress(tool_use_id="a")),
            ToolResultEvent(tool_use_id="a", result="ok", success=True),
            ToolResultEvent(tool_use_id="b", error="no such file", success=False),
        )
    )
    bash, read = outline.segments[-2:]
    assert (bash.label, bash.first_seq, bash.last_seq, bash.errors) == ("Bash make test", 3, 6, 0)
    assert (read.label, read.first_seq, read.last_seq, read.errors) == ("Read /tmp/x", 4, 7, 1)
    assert bash.end - bash.start == timedelta(seconds=3)
    assert outline.counts.tools == {"Bash": 1, "Read": 1}
    assert outline.open_calls == {}


def test_lines_of_one_answer_are_one_step() -> None:
    outline = outline_of(
        *begun(
            AssistantEvent(thinking="Hm.", message=2, index=0),
            AssistantEvent(content="Grass is green.", message=2, index=1),
            AssistantEvent(content="So is hay.", message=2, index=2, end=True),
            AssistantEvent(content="Not so.", message=4, index=0, end=True),
        )
    )
    assert [(one.kind, one.label) for one in outline.segments[-2:]] == [
        ("answer", "Grass is green."),
        ("answer", "Not so."),
    ]
    assert outline.counts.answers == 2


def test_only_the_first_errors_are_named_and_all_are_counted() -> None:
    outline = outline_of(*(ErrorEvent(message=f"fence {n} is broken") for n in range(1, 301)))
    assert len(outline.errors) == MOST_ERRORS
    assert outline.errors[0].text == "fence 1 is broken"
    assert outline.counts.errors == 300


def test_a_failed_hook_is_an_error_and_a_denied_call_is_counted() -> None:
    outline = outline_of(
        *begun(
            describe(Denied(tool_name="Bash", reason="not allowed")),
            describe(HookRan(name="notify", event="after_run")),
            describe(HookRan(name="notify", event="after_run", success=False, error="exit 1")),
        )
    )
    assert outline.counts.denied == 1
    assert [(error.kind, error.text) for error in outline.errors] == [
        ("hook", "hook notify failed: exit 1")
    ]


def test_the_time_before_the_first_execution_is_a_gap_of_waiting_in_the_queue() -> None:
    (gap,) = outline_of(*begun()).gaps
    assert (gap.reason, gap.start, gap.end) == ("queued", BEGIN, BEGIN + timedelta(seconds=2))


@pytest.mark.parametrize("reason", list(SuspendReason))
def test_the_time_of_a_suspension_is_a_gap_with_its_reason(reason: SuspendReason) -> None:
    outline = outline_of(
        *begun(
            describe(Suspension(reason=reason, code="why"), "it waits"),
            describe(ExecutionStarted(worker="worker-2", continues_after=3)),
            describe(Resumed(reason="suspended")),
        )
    )
    gap = outline.gaps[-1]
    assert (gap.reason, gap.text, gap.code) == (reason.value, "it waits", "why")
    assert (gap.after_seq, gap.before_seq) == (3, 4)
    assert [one.outcome for one in outline.executions] == ["suspended", None]
    assert outline.pause is None


def test_a_job_that_waits_says_for_what() -> None:
    until = BEGIN + timedelta(hours=1)
    waiting = Suspension(reason=SuspendReason.RATE_LIMIT, until=until)
    pause = outline_of(*begun(describe(waiting, "rate limited"))).pause
    assert pause is not None
    assert (pause.reason, pause.until, pause.end) == ("rate_limit", until, None)


def test_a_lost_worker_is_a_crash_and_a_worker_that_gave_the_job_back_is_a_restart() -> None:
    def outcome(reason: str) -> tuple[str, str | None]:
        outline = outline_of(
            *begun(
                describe(ExecutionStarted(worker="worker-2", continues_after=2)),
                describe(Recovered(lost_execution="exec-1", reason=reason)),
            )
        )
        return outline.gaps[-1].reason, outline.executions[0].outcome

    assert outcome(WORKER_GONE) == ("crash", "lost")
    assert outcome("the daemon was stopped") == ("restart", "restarted")


def test_a_pause_before_the_next_try_is_a_gap_inside_an_execution() -> None:
    outline = outline_of(
        *begun(
            describe(Warned(code="retrying"), "tried again in 5 s"),
            describe(Resumed(reason="retry")),
        )
    )
    assert outline.gaps[-1].reason == "retry"
    assert outline.gaps[-1].text == "tried again in 5 s"
    assert outline.counts.executions == 1


def test_the_end_of_the_job_ends_its_last_execution_and_what_it_waited_for() -> None:
    outline = outline_of(
        *begun(
            describe(Suspension(reason=SuspendReason.LIMIT)),
            describe(End(status="cancelled", exit_reason="cancelled")),
        )
    )
    assert outline.executions[-1].outcome == "cancelled"
    assert outline.gaps[-1].end == outline.last_at
    assert outline.is_ended


def test_of_many_checkpoints_some_are_named_evenly_spread_and_the_last_always() -> None:
    for count in (1, MOST_CHECKPOINTS, MOST_CHECKPOINTS + 1, 1_000, 1_003):
        saved = [
            describe(CheckpointSaved(number=number, trigger="turn", seq=number))
            for number in range(1, count + 1)
        ]
        outline = outline_of(*saved)
        numbers = [one.number for one in outline.checkpoints]
        assert outline.counts.checkpoints == count
        assert numbers[-1] == count
        assert numbers[0] == 1
        assert set(numbers) >= set(range(1, count + 1, outline.checkpoint_stride))
