"""What each of Claude's messages becomes: one message a group, true successes, one answer, exact usage."""

from __future__ import annotations

import json
from typing import Any

import pytest

from nightherd.model.jobs.job import ExitReason
from nightherd.model.journal.event import (
    AssistantEvent,
    ErrorEvent,
    Event,
    SystemEvent,
    ToolResultEvent,
    ToolUseEvent,
    payload_of,
)
from nightherd.model.journal.system import (
    AuthStatus,
    CompactBoundary,
    Complete,
    Denied,
    HookRan,
    Init,
    SystemSubtype,
    ToolProgress,
    Warned,
)
from nightherd.model.units import MicroUsd
from nightherd.model.usage import Usage
from nightherd.runtimes.claude.translate import Translator
from runtimes.heard import HeardText, tally_of


def assistant(*blocks: dict[str, Any], name: str = "m1", **more: Any) -> dict[str, Any]:
    usage = {"input_tokens": 10, "output_tokens": 1, "cache_read_input_tokens": None}
    message = {"id": name, "content": list(blocks), "usage": usage}
    return {"type": "assistant", "message": message, "uuid": "u-a", **more}


def text(said: str) -> dict[str, Any]:
    return {"type": "text", "text": said}


def call(name: str = "Bash", call_id: str = "t1", **given: Any) -> dict[str, Any]:
    return {"type": "tool_use", "id": call_id, "name": name, "input": given}


def answered(call_id: str = "t1", content: Any = "ok", **more: Any) -> dict[str, Any]:
    block = {"type": "tool_result", "tool_use_id": call_id, "content": content, **more}
    return {"type": "user", "message": {"content": [block]}, "uuid": "u-r"}


def streamed(kind: str, parent: str | None = None, **fields: Any) -> dict[str, Any]:
    event = {"type": kind, **fields}
    return {"type": "stream_event", "event": event, "parent_tool_use_id": parent}


def result(**more: Any) -> dict[str, Any]:
    used = {"inputTokens": 10, "outputTokens": 5, "costUSD": 0.00024800000000000003}
    return {
        "type": "result",
        "subtype": "success",
        "is_error": False,
        "result": "hello",
        "stop_reason": "end_turn",
        "uuid": "u-end",
        "model_usage_since_last_result": {"opus": used},
        "total_cost_usd": 99.0,
        **more,
    }


def translator(**more: Any) -> Translator:
    return Translator(**{"runtime": "cli", "first_turn": 1, "is_resumed": False, **more})


def translate(*messages: Any, **more: Any) -> list[Event]:
    one = translator(**more)
    found = [event for message in messages for event in one.line(json.dumps(message).encode())]
    return [*found, *one.finish()]


def dear(model: str, usage: Usage) -> MicroUsd | None:
    """A dollar for a token that is sent, of the one model that has a price."""
    return MicroUsd(usage.input_tokens * 1_000_000) if model == "opus" else None


def priced(*blocks: dict[str, Any], model: str = "opus") -> dict[str, Any]:
    message = assistant(*blocks)
    return {**message, "message": {**message["message"], "model": model}}


def test_cost_is_estimated_until_claude_says_it() -> None:
    events = translate(priced(call(command="ls")), answered(), result(), price=dear)

    closing = [event for event in events if isinstance(event, AssistantEvent)][-1]
    assert (closing.end, closing.extra) == (True, {"cost_source": "estimate"})
    assert closing.usage is not None
    assert closing.usage.cost_microusd == 10_000_000
    assert tally_of(events[:-1]).usage.cost_microusd == 10_000_000
    assert tally_of(events).usage.cost_microusd == 248


def test_what_an_answer_used_may_be_known_only_after_its_tool_has_answered() -> None:
    late = streamed("message_delta", usage={"input_tokens": 10, "output_tokens": 500})

    events = translate(priced(call(command="ls")), answered(), late, late, price=dear_answers)

    *_, more = events
    assert isinstance(more, AssistantEvent)
    assert more.usage == Usage(output_tokens=499, cost_microusd=MicroUsd(499))
    tally = tally_of(events)
    assert tally.usage == Usage(input_tokens=10, output_tokens=500, cost_microusd=MicroUsd(500))
    assert (tally.messages, tally.turns) == (2, 1)
    assert tally.context_tokens == tally_of(events[:-1]).context_tokens


def dear_answers(model: str, usage: Usage) -> MicroUsd | None:
    return MicroUsd(usage.output_tokens)


def test_cost_of_a_model_that_nobody_knows_is_not_estimated() -> None:
    events = translate(priced(call(command="ls"), model="other"), answered(), price=dear)

    closing = [event for event in events if isinstance(event, AssistantEvent)][-1]
    assert closing.extra is None
    assert closing.usage == Usage(input_tokens=10, output_tokens=1)


def test_cost_of_a_run_that_was_stopped_takes_the_place_of_its_estimate() -> None:
    one = translator(price=dear)
    events = [
        event for said in (priced(call(command="ls")), answered()) for event in one.hear(said)
    ]

    rest = one.cost_of_the_rest(result())

    assert rest is not None
    assert tally_of([*events, rest]).usage == Usage(
        input_tokens=10, output_tokens=5, cost_microusd=MicroUsd(248)
    )


def test_estimate_stands_where_claude_says_only_what_a_whole_session_cost() -> None:
    older = {"model_usage_since_last_result": None, "usage": {"input_tokens": 10}}

    events = translate(priced(text("hi")), result(**older), price=dear, is_resumed=True)

    assert tally_of(events).usage.cost_microusd == 10_000_000


def test_introduction_names_session_model_tools_and_place() -> None:
    init = {
        "type": "system",
        "subtype": "init",
        "session_id": "s-1",
        "model": "opus",
        "tools": ["Bash"],
        "cwd": "/w",
        "uuid": "u-1",
    }

    (event,) = translate(init, init)

    assert isinstance(event, SystemEvent)
    assert payload_of(event) == Init(
        runtime="cli",
        runtime_session_id="s-1",
        model="opus",
        working_directory="/w",
        tools=["Bash"],
    )
    assert event.uuid == "u-1"


def test_blocks_of_one_answer_are_one_message() -> None:
    thought = {"type": "thinking", "thinking": "hm", "signature": "sig"}

    events = translate(
        assistant(thought),
        assistant(text("let me")),
        assistant(call(command="ls")),
        assistant(call(call_id="t2", command="pwd")),
        streamed("message_delta", usage={"output_tokens": 5}),
        streamed("message_stop"),
        answered("t2"),
        answered("t1"),
    )

    said, first, second, closing, *results = events
    assert isinstance(said, AssistantEvent)
    assert (said.thinking, said.content, said.extra) == ("hm", "let me", {"signature": "sig"})
    assert isinstance(first, ToolUseEvent)
    assert (first.tool_name, first.tool_use_id, first.input) == ("Bash", "t1", {"command": "ls"})
    assert isinstance(second, ToolUseEvent)
    assert isinstance(closing, AssistantEvent)
    assert closing.usage == Usage(input_tokens=10, output_tokens=5)
    group = [said, first, second, closing]
    assert [event.index for event in group] == [0, 1, 2, 3]
    assert [event.end for event in group] == [False, False, False, True]
    assert [event.turn for event in events] == [1] * 6
    assert [event.tool_use_id for event in results if isinstance(event, ToolResultEvent)] == [
        "t2",
        "t1",
    ]
    tally = tally_of(events)
    assert (tally.turns, tally.messages, tally.open_calls) == (1, 3, frozenset())


def test_call_is_given_out_before_its_answer_is_whole() -> None:
    one = translator()

    said = list(one.message(assistant(call(command="ls"))))

    assert [type(event) for event in said] == [ToolUseEvent]


def test_answer_ends_also_where_claude_streams_nothing() -> None:
    events = translate(assistant(text("one")), assistant(text("two"), name="m2"), result())

    one, two, _ = events
    assert isinstance(one, AssistantEvent)
    assert isinstance(two, AssistantEvent)
    assert (one.content, one.turn, one.end) == ("one", 1, True)
    assert (two.content, two.turn, two.end) == ("two", 2, True)
    assert one.usage == Usage(input_tokens=10, output_tokens=1)


def test_turns_go_on_where_the_job_was() -> None:
    (event, _) = translate(assistant(text("x")), result(), first_turn=4)

    assert event.turn == 4


def test_result_of_a_tool_in_the_middle_of_an_answer_does_not_make_a_turn() -> None:
    events = translate(
        assistant(call()), answered(), assistant(call(call_id="t2")), answered("t2"), result()
    )

    assert {event.turn for event in events[:-1]} == {1}
    assert tally_of(events).turns == 1


def test_failed_tool_is_a_failure_with_its_reason() -> None:
    events = translate(assistant(call()), answered(content="Exit code 1\nboom", is_error=True))

    last = events[-1]
    assert isinstance(last, ToolResultEvent)
    assert (last.success, last.error, last.result) == (False, "Exit code 1", "Exit code 1\nboom")
    assert last.uuid == "u-r"


def test_result_in_parts_is_kept_in_parts() -> None:
    parts = [text("no"), {"type": "image", "source": {}}]

    last = translate(assistant(call()), answered(content=parts, is_error=True))[-1]

    assert isinstance(last, ToolResultEvent)
    assert last.result == parts
    assert last.error == "no"


def test_what_a_subagent_says_is_attributed_and_no_turn() -> None:
    events = translate(
        assistant(call("Task")),
        assistant(text("inside"), name="m2", parent_tool_use_id="t1"),
        {**answered("t9"), "parent_tool_use_id": "t1"},
        answered(),
        result(),
    )

    inside = [event for event in events if event.parent_tool_use_id == "t1"]
    assert [type(event) for event in inside] == [AssistantEvent, ToolResultEvent]
    assert [event.turn for event in inside] == [None, None]
    assert tally_of(events).turns == 1


def test_end_of_a_subagents_stream_does_not_end_the_agents_answer() -> None:
    one = translator()
    list(one.message(assistant(text("mine"))))

    assert list(one.message(streamed("message_stop", parent="t1"))) == []
    assert len(list(one.message(streamed("message_stop")))) == 1


def test_success_is_complete_with_usage_by_model_and_without_the_answer() -> None:
    events = translate(assistant(text("hello")), result())

    last = events[-1]
    assert isinstance(last, SystemEvent)
    used = Usage(input_tokens=10, output_tokens=5, cost_microusd=248)  # type: ignore[arg-type]
    assert payload_of(last) == Complete(
        usage=used, stop_reason="end_turn", model_usage={"opus": used}
    )
    assert last.content is None
    assert last.uuid == "u-end"
    tally = tally_of(events)
    assert tally.usage == used
    assert tally.answer == "hello"
    assert tally.outcome is not None
    assert tally.outcome.exit_reason is ExitReason.SUCCESS


def test_usage_of_several_results_adds_up() -> None:
    events = translate(result(), result(uuid="u-2"))

    assert len(events) == 1
    assert tally_of(events).usage.cost_microusd == 496
    assert events[0].uuid == "u-2"


def test_older_claude_reports_totals_which_are_taken_apart() -> None:
    old = {"model_usage_since_last_result": None, "usage": {"input_tokens": 3}}

    events = translate(
        result(**old, total_cost_usd=0.5), result(**old, total_cost_usd=0.75), is_resumed=False
    )

    assert tally_of(events).usage == Usage(input_tokens=6, cost_microusd=750_000)  # type: ignore[arg-type]


def test_older_claude_that_resumed_does_not_charge_the_session_again() -> None:
    old = {"model_usage_since_last_result": None, "usage": {"input_tokens": 3}}

    warning, last = translate(result(**old, total_cost_usd=0.5), is_resumed=True)

    assert isinstance(warning, SystemEvent)
    assert (warning.extra or {})["code"] == "cost_unknown"
    assert tally_of([last]).usage == Usage(input_tokens=3)


@pytest.mark.parametrize(
    ("more", "code", "reason"),
    [
        ({"subtype": "error_max_turns"}, "max_turns", ExitReason.MAX_TURNS),
        ({"subtype": "error_max_budget_usd"}, "limit", ExitReason.LIMIT),
        ({"subtype": "error_during_execution"}, "claude_failed", ExitReason.ERROR),
        ({"is_error": True, "api_error_status": 529}, "overloaded", ExitReason.ERROR),
        ({"is_error": True, "result": ""}, "claude_failed", ExitReason.ERROR),
    ],
)
def test_failed_result_is_an_error_that_has_cost_money(
    more: dict[str, Any], code: str, reason: ExitReason
) -> None:
    events = translate(result(**more))

    (last,) = events
    assert isinstance(last, ErrorEvent)
    assert last.code == code
    assert last.message
    tally = tally_of(events)
    assert tally.usage.cost_microusd == 248
    assert tally.outcome is not None
    assert tally.outcome.exit_reason is reason


def test_success_after_a_failure_is_still_a_failure() -> None:
    (last,) = translate(result(is_error=True, api_error_status=500), result())

    assert isinstance(last, ErrorEvent)


def test_words_about_a_failed_request_are_no_answer() -> None:
    failed = assistant(text("API Error"), error="rate_limit", is_api_error_message=True)

    (last,) = translate(failed, result(is_error=True, result="API Error"))

    assert isinstance(last, ErrorEvent)
    assert (last.code, last.message) == ("rate_limited", "API Error")


def test_stream_without_a_result_says_nothing_about_the_outcome() -> None:
    events = translate(assistant(text("hal")))

    assert tally_of(events).outcome is None
    assert tally_of(events).messages == 0
    assert events[-1] == AssistantEvent(content="hal", turn=1, index=0, uuid="u-a")


def test_words_put_in_for_the_user_are_on_record() -> None:
    note = {"type": "user", "message": {"content": [text("go on")]}}
    plain = {"type": "user", "message": {"content": "and on"}}
    replay = {"type": "user", "isReplay": True, "message": {"content": "hi"}}

    events = translate(note, plain, replay)

    assert [
        (event.subtype, event.content) for event in events if isinstance(event, SystemEvent)
    ] == [
        (SystemSubtype.USER_INPUT, "go on"),
        (SystemSubtype.USER_INPUT, "and on"),
    ]


def test_text_is_streamed_and_gives_no_event() -> None:
    heard = HeardText()
    text = {"type": "text_delta", "text": "he"}
    thought = {"type": "thinking_delta", "thinking": "hm"}

    events = translate(
        streamed("message_start"),
        streamed("content_block_delta", index=0, delta=thought),
        streamed("content_block_delta", index=1, delta=text),
        stream=heard,
    )

    assert events == []
    assert heard.pieces == [(1, "he")]
    assert heard.begun == 1


def test_text_of_a_subagent_is_not_streamed() -> None:
    heard = HeardText()
    text = {"type": "text_delta", "text": "he"}
    piece = streamed("content_block_delta", index=0, delta=text)

    translate({**piece, "parent_tool_use_id": "toolu_1"}, stream=heard)

    assert heard.pieces == []


@pytest.mark.parametrize(
    ("message", "payload"),
    [
        (
            {
                "subtype": "permission_denied",
                "tool_name": "Bash",
                "tool_use_id": "t",
                "message": "no",
            },
            Denied(tool_name="Bash", reason="no", tool_use_id="t"),
        ),
        (
            {
                "subtype": "compact_boundary",
                "compact_metadata": {"trigger": "auto", "pre_tokens": 9},
            },
            CompactBoundary(trigger="auto", tokens_before=9),
        ),
        (
            {"subtype": "hook_response", "hook_name": "h", "hook_event": "Stop", "exit_code": 0},
            HookRan(name="h", event="Stop", success=True),
        ),
        (
            {"subtype": "task_notification", "tool_use_id": "t", "summary": "x", "status": "done"},
            ToolProgress(tool_use_id="t"),
        ),
        (
            {"subtype": "api_retry", "error_status": 429, "retry_delay_ms": 1000.5},
            Warned(code="api_retry", raw={"status": 429}),
        ),
        ({"subtype": "informational", "content": "x"}, Warned(code="informational")),
        (
            {"type": "tool_progress", "tool_use_id": "t", "elapsed_time_seconds": 1.5},
            ToolProgress(tool_use_id="t", elapsed_ms=1500),
        ),
        ({"type": "auth_status", "error": "expired"}, AuthStatus(is_authenticated=False)),
        ({"type": "auth_status", "isAuthenticating": False}, AuthStatus(is_authenticated=True)),
        ({"type": "auth_status", "isAuthenticating": True, "output": ["a"]}, AuthStatus()),
    ],
)
def test_news_of_claude_become_our_own(message: dict[str, Any], payload: object) -> None:
    (event,) = translate({"type": "system", **message})

    assert isinstance(event, SystemEvent)
    assert payload_of(event) == payload


@pytest.mark.parametrize(
    ("line", "code"),
    [
        (b"{not json", "malformed_line"),
        (b"\xff\xfe", "malformed_line"),
        (b"[1]", "malformed_line"),
        (b'"text"', "malformed_line"),
        (b"null", "malformed_line"),
        (b'{"type":"novelty"}', "unknown_message"),
        (b'{"type":[7]}', "unknown_message"),
        (b"{}", "unknown_message"),
        (b'{"type":"system","subtype":"novelty"}', "unknown_message"),
        (b'{"type":"system","subtype":["x"]}', "unknown_message"),
    ],
)
def test_what_is_not_understood_is_a_warning_and_no_end(line: bytes, code: str) -> None:
    one = translator()

    (event,) = one.line(line)

    assert isinstance(event, SystemEvent)
    warned = payload_of(event)
    assert isinstance(warned, Warned)
    assert warned.code == code
    assert list(one.line(b"  ")) == []
    assert len(list(one.line(json.dumps(result()).encode()))) == 0
    assert len(list(one.finish())) == 1


@pytest.mark.parametrize("kind", ["assistant", "user", "stream_event", "result", "system", "error"])
@pytest.mark.parametrize("value", [None, 7, "x", [], [7], {"content": 7}, {"content": [None]}])
def test_messages_of_the_wrong_shape_do_not_break_the_run(kind: str, value: object) -> None:
    names = ("message", "event", "usage", "errors", "error", "model_usage_since_last_result")

    one = translator()
    list(one.message({"type": kind, **dict.fromkeys(names, value)}))

    list(one.finish())


def test_long_messages_that_are_not_understood_are_cut() -> None:
    (event,) = translate({"type": "novelty", "x": "y" * 10_000})

    assert isinstance(event, SystemEvent)
    assert len((event.extra or {})["raw"]) == 2000


def denials(events: list[Event]) -> list[tuple[str, str | None]]:
    found = [payload_of(event) for event in events if isinstance(event, SystemEvent)]
    return [(one.tool_name, one.tool_use_id) for one in found if isinstance(one, Denied)]


def test_denial_is_told_once_however_often_it_is_said() -> None:
    at_once = {"type": "system", "subtype": "permission_denied", "tool_name": "Bash"}
    listed = [
        {"tool_name": "Bash", "tool_use_id": "t-1", "tool_input": {}},
        {"tool_name": "Write", "tool_use_id": "t-2", "tool_input": {}},
        "nonsense",
    ]

    events = translate({**at_once, "tool_use_id": "t-1"}, result(permission_denials=listed))

    assert denials(events) == [("Bash", "t-1"), ("Write", "t-2")]


def test_call_of_a_tool_that_was_taken_away_is_a_denial() -> None:
    said = "<tool_use_error>Error: No such tool available: Bash. Bash is disabled for this session."
    block = {"type": "tool_result", "tool_use_id": "t-1", "content": said, "is_error": True}
    unknown = {**block, "tool_use_id": "t-2", "content": "Error: No such tool available: Bosh"}
    message = {"type": "user", "message": {"role": "user", "content": [block, unknown]}}

    events = translate(message, result())

    assert denials(events) == [("Bash", "t-1")]
    assert [type(event) for event in events][:2] == [SystemEvent, ToolResultEvent]


def test_open_background_tasks_are_counted() -> None:
    one = translator()
    changed = {"type": "system", "subtype": "background_tasks_changed"}
    seen = []

    for tasks in ([{"task_id": "a"}], [], [{"task_id": "b"}, {"task_id": "c"}], None):
        assert list(one.message({**changed, "tasks": tasks})) == []
        seen.append(one.has_open_tasks)

    assert seen == [True, False, True, False]


def test_result_is_noted_when_it_comes() -> None:
    one = translator()
    before = one.has_result

    list(one.message(result()))

    assert (before, one.has_result) == (False, True)


def test_content_at_the_top_of_a_message_counts_too() -> None:
    events = translate(
        {"type": "assistant", "content": "hello", "usage": {"input_tokens": 7}, "uuid": "u-1"},
        {"type": "assistant", "content": [call()], "id": "m2", "uuid": "u-2"},
        {"type": "user", "content": [answered()["message"]["content"][0]], "uuid": "u-3"},
    )

    (said, *_) = [event for event in events if isinstance(event, AssistantEvent)]
    assert (said.content, said.usage) == ("hello", Usage(input_tokens=7))
    (used,) = [event for event in events if isinstance(event, ToolUseEvent)]
    (result_,) = [event for event in events if isinstance(event, ToolResultEvent)]
    assert (used.tool_use_id, result_.tool_use_id, result_.success) == ("t1", "t1", True)
    assert tally_of(events).turns == 2


@pytest.mark.parametrize("kind", ["assistant", "user"])
def test_message_without_content_is_a_warning(kind: str) -> None:
    (event,) = translate({"type": kind, "message": "hello", "uuid": "u-1"})

    assert isinstance(event, SystemEvent)
    warned = payload_of(event)
    assert isinstance(warned, Warned)
    assert warned.code == "unknown_message"
    assert "hello" in str(warned.raw)
