"""What of a journal people are shown: in order, each thing once, as the bot's settings say."""

from __future__ import annotations

from msgspec.structs import replace

from nightherd.engine.chat.turn_outputs import TurnOutputs
from nightherd.engine.chat.turn_texts import COMPACTED, GOES_ON, RECOVERED
from nightherd.model.chat.post import PostKind
from nightherd.model.chat.settings import OutputSettings, Texts
from nightherd.model.jobs.job import SuspendReason
from nightherd.model.journal.event import (
    AssistantEvent,
    Event,
    ToolResultEvent,
    ToolUseEvent,
    by_hand,
    describe,
)
from nightherd.model.journal.live_text import TextDelta, cut_off_event
from nightherd.model.journal.system import (
    CompactBoundary,
    ExecutionStarted,
    Recovered,
    Resumed,
    Suspension,
)

QUIET = OutputSettings(tool_results=False, system_status=False, progress_indicator=False)


def numbered(*events: Event) -> list[Event]:
    return [replace(event, seq=seq) for seq, event in enumerate(events, start=1)]


def say(text: str, *, end: bool = False) -> AssistantEvent:
    return AssistantEvent(content=text, end=end)


def call(command: str = "ls", id: str = "t1") -> ToolUseEvent:
    return ToolUseEvent(tool_name="Bash", tool_use_id=id, input={"command": command}, end=True)


def result(text: str, id: str = "t1", *, success: bool = True) -> ToolResultEvent:
    return ToolResultEvent(tool_use_id=id, result=text, success=success, end=True)


def shown(settings: OutputSettings, *events: Event, after: int = 0) -> list[str]:
    outputs = TurnOutputs(settings, after)
    for event in numbered(*events):
        outputs.take(event)
    return [one.text for one in outputs.take_ready()]


def test_text_before_a_call_is_no_answer_unless_all_texts_are_wanted() -> None:
    events = (say("let me look"), call(), result("a b"), say("there are two", end=True))
    all_texts = replace(QUIET, assistant_messages=Texts.ALL)

    assert shown(QUIET, *events) == ["there are two"]
    assert shown(all_texts, *events) == ["let me look", "there are two"]


def test_an_answer_of_several_texts_is_whole_when_its_message_ends() -> None:
    outputs = TurnOutputs(QUIET, 0)
    first, second = numbered(say("one"), say("two", end=True))
    outputs.take(first)
    assert outputs.take_ready() == []
    outputs.take(second)
    assert [one.text for one in outputs.take_ready()] == ["one", "two"]


def test_tool_results_are_cut_and_failures_named() -> None:
    settings = replace(QUIET, tool_results=True, tool_result_max_length=10)
    texts = shown(
        settings,
        call("cat big"),
        result("x" * 50),
        call("false", "t2"),
        result("exit 1", "t2", success=False),
        call("true", "t3"),
        result("", "t3"),
    )
    assert texts[0] == f"**Bash** `cat big`\n```\n{'x' * 9}…\n```"
    assert texts[1] == "**Bash** `false` failed\n```\nexit 1\n```"
    assert texts[2] == "**Bash** `true`: no output"


def test_a_result_with_a_fence_in_it_stays_in_its_block() -> None:
    (text,) = shown(replace(QUIET, tool_results=True), call(), result("```\nx\n````"))
    assert text.endswith("`````\n```\nx\n````\n`````")


def test_status_is_shown_where_it_is_wanted_and_never_before_an_undecided_text() -> None:
    events = (
        describe(Recovered(lost_execution="e", reason="gone")),
        say("maybe an answer"),
        describe(CompactBoundary()),
        say("it is", end=True),
    )
    assert shown(QUIET, *events) == ["maybe an answer", "it is"]
    wanted = replace(QUIET, system_status=True)
    assert shown(wanted, *events) == [RECOVERED, "maybe an answer", COMPACTED, "it is"]


def test_going_on_is_said_only_after_a_wait() -> None:
    waits = describe(Suspension(reason=SuspendReason.APPROVAL), "Bash: git push")
    goes_on = describe(Resumed(reason="answered"))
    wanted = replace(QUIET, system_status=True)
    assert shown(wanted, goes_on, waits, goes_on, goes_on) == [GOES_ON]


def test_what_was_shown_before_a_restart_is_not_shown_again() -> None:
    events = (say("one", end=True), say("two", end=True), say("three", end=True))
    outputs = TurnOutputs(QUIET, 2)
    for event in numbered(*events):
        outputs.take(event)
    assert [(one.seq, one.text) for one in outputs.take_ready()] == [(3, "three")]
    assert outputs.has_answer


def test_helpers_of_the_agent_and_what_was_added_by_hand_are_not_shown() -> None:
    helper = replace(say("from a helper", end=True), parent_tool_use_id="t9")
    assert shown(QUIET, helper, by_hand(say("by hand", end=True)), say("mine", end=True)) == [
        "mine"
    ]


def test_streamed_text_is_live_until_it_is_on_record() -> None:
    outputs = TurnOutputs(QUIET, 0)
    outputs.stream([delta(0, "Hel"), delta(3, "lo")])
    assert outputs.live_text == "Hello"
    (event,) = numbered(say("Hello", end=True))
    outputs.take(event)
    assert outputs.live_text == ""
    outputs.stream([delta(0, "late piece of the same answer")])
    assert outputs.live_text == ""


def test_the_tool_that_runs_is_shown_where_progress_is_wanted() -> None:
    outputs = TurnOutputs(replace(QUIET, progress_indicator=True), 0)
    begins, ends = numbered(call("make test"), result("ok"))
    outputs.take(begins)
    assert outputs.progress.endswith("**Bash** `make test`")
    outputs.take(ends)
    assert outputs.progress == ""
    quiet = TurnOutputs(QUIET, 0)
    quiet.take(begins)
    assert quiet.progress == ""


def test_a_tool_that_was_cut_off_with_its_worker_is_not_shown_as_running() -> None:
    outputs = TurnOutputs(replace(QUIET, progress_indicator=True), 0)
    for event in numbered(call(), describe(ExecutionStarted(worker="w"))):
        outputs.take(event)
    assert outputs.progress == ""


def test_a_cut_off_answer_is_shown_when_nothing_follows_it() -> None:
    cut = cut_off_event(["half an ans"])
    assert cut is not None
    for follow, is_whole, texts in (
        ((), False, ["half an ans\n\n*(The answer was cut off here.)*"]),
        ((say("whole", end=True),), True, ["whole"]),
        ((say("whole", end=True),), False, ["whole"]),
    ):
        outputs = TurnOutputs(QUIET, 0)
        for event in numbered(cut, *follow):
            outputs.take(event)
        assert [one.text for one in outputs.take_rest(is_whole=is_whole)] == texts


def test_the_reason_of_a_wait_is_known() -> None:
    outputs = TurnOutputs(QUIET, 0)
    event = describe(Suspension(reason=SuspendReason.LIMIT), "2 of 2 turns are used")
    outputs.take(replace(event, seq=1))
    assert outputs.wait_message == "2 of 2 turns are used"


def test_kinds_tell_answers_from_results() -> None:
    outputs = TurnOutputs(replace(QUIET, tool_results=True), 0)
    for event in numbered(call(), result("x"), say("done", end=True)):
        outputs.take(event)
    assert [one.kind for one in outputs.take_ready()] == [PostKind.TOOL, PostKind.ANSWER]


def delta(at: int, text: str) -> TextDelta:
    return TextDelta(epoch=1, after=0, part=1, at=at, text=text)


def test_text_of_an_answer_that_was_begun_anew_is_not_live_once_the_answer_is_on_record() -> None:
    outputs = TurnOutputs(replace(QUIET, assistant_messages=Texts.ALL), 0)
    for part, text in ((1, "It is"), (2, "It is 42"), (3, "And")):
        outputs.stream([TextDelta(epoch=1, after=0, part=part, at=0, text=text)])
    outputs.take(*numbered(say("It is 42, I think.")))
    assert outputs.live_text == "And"


def test_text_that_is_recorded_in_other_words_is_not_live_any_more() -> None:
    outputs = TurnOutputs(replace(QUIET, assistant_messages=Texts.ALL), 0)
    outputs.stream([TextDelta(epoch=1, after=0, part=1, at=0, text="\n\nIt is 42")])
    outputs.take(*numbered(say("It is 42.")))
    assert outputs.live_text == ""


def test_nothing_runs_once_an_answer_has_ended() -> None:
    outputs = TurnOutputs(replace(QUIET, progress_indicator=True), 0)
    for event in numbered(call(), call(), say("All done.", end=True)):
        outputs.take(event)
    assert outputs.progress == ""
