"""What was said by hand, read off a transcript: only what is new, along the line that counts."""

from __future__ import annotations

import json
from typing import Any

import anyio

from engine.bench import Bench, persistent
from nightherd.engine.hand_turns import known_uuids, record_hand_turns
from nightherd.imports.claude_turns import turns_since
from nightherd.model.event import AssistantEvent, SystemEvent, describe
from nightherd.model.message import Speaker, whole_messages
from nightherd.model.system import Complete, Init
from nightherd.testing.runtime import PlayedRuntime


def line(kind: str, uuid: str, parent: str | None, content: Any, **more: Any) -> bytes:
    message: dict[str, Any] = {"role": kind, "content": content}
    if kind == "assistant":
        message["id"] = more.pop("message_id", f"msg-{uuid}")
        message["usage"] = {"input_tokens": 90, "output_tokens": 10}
    entry = {"type": kind, "uuid": uuid, "parentUuid": parent, "message": message, **more}
    return json.dumps(entry).encode() + b"\n"


def text(value: str) -> list[dict[str, str]]:
    return [{"type": "text", "text": value}]


KNOWN = [
    line("user", "q1", None, "asked by the fleet"),
    line("assistant", "a1", "q1", text("answered to the fleet")),
]


def said(lines: list[bytes], known: set[str]) -> list[tuple[str, str]]:
    return [
        (message.speaker.value, message.text)
        for message in whole_messages(turns_since(lines, known))
    ]


def test_nothing_was_said_by_hand() -> None:
    assert turns_since(KNOWN, {"a1"}) == []
    assert turns_since([], {"a1"}) == []
    assert turns_since(KNOWN, set()) == []


def test_turns_after_what_is_known_are_found_with_their_calls() -> None:
    call = [{"type": "tool_use", "id": "t1", "name": "Bash", "input": {"command": "ls"}}]
    result = [{"type": "tool_result", "tool_use_id": "t1", "content": "a file"}]
    lines = [
        *KNOWN,
        line("user", "q2", "a1", "by hand"),
        line("assistant", "a2", "q2", text("I will look"), message_id="one"),
        line("assistant", "a3", "a2", call, message_id="one"),
        line("user", "r1", "a3", result),
        line("assistant", "a4", "r1", text("there is a file")),
    ]

    messages = list(whole_messages(turns_since(lines, {"a1"})))

    assert [message.speaker for message in messages] == [
        Speaker.USER,
        Speaker.ASSISTANT,
        Speaker.TOOL,
        Speaker.ASSISTANT,
    ]
    assert messages[1].text == "I will look"
    assert [call.tool_name for call in messages[1].calls] == ["Bash"]
    assert [message.turn for message in messages] == [None, 1, 1, 2]
    assert messages[-1].last.uuid == "a4"


def test_what_was_tried_and_given_up_does_not_count() -> None:
    lines = [
        *KNOWN,
        line("user", "q2", "a1", "given up"),
        line("assistant", "a2", "q2", text("given up too")),
        line("user", "q3", "a1", "instead"),
        line("assistant", "a3", "q3", text("it is")),
    ]

    assert said(lines, {"a1"}) == [("user", "instead"), ("assistant", "it is")]


def test_what_is_no_conversation_is_passed_over() -> None:
    lines = [
        *KNOWN,
        b'{"type":"attachment","uuid":"x1","parentUuid":"a1"}\n',
        line("user", "m1", "x1", "a reminder", isMeta=True),
        line("user", "q2", "m1", "by hand"),
        line("user", "s1", "q2", "a helper's", isSidechain=True),
        b'{"type":"user","uuid":"torn","par',
        line("assistant", "a2", "q2", text("an answer")),
        b"[]\n",
    ]

    assert said(lines, {"a1"}) == [("user", "by hand"), ("assistant", "an answer")]


def test_hand_turns_are_a_job_of_the_session_with_nothing_run() -> None:
    answer = AssistantEvent(content="a", turn=1, index=0, end=True, uuid="a1")
    introduced = describe(Init(runtime="cli", runtime_session_id="uuid-1"))
    bench = Bench(
        agent=persistent(), runtime=PlayedRuntime([introduced, answer, describe(Complete())])
    )
    job = bench.run("by the fleet")
    assert job.session_id is not None
    session = bench.reader.find_session(job.session_id)
    assert session is not None
    assert known_uuids(session, bench.workshop) == {"a1"}
    lines = [
        *KNOWN,
        line("user", "q2", "a1", "by hand"),
        line("assistant", "a2", "q2", text("an answer")),
    ]
    events = turns_since(lines, known_uuids(session, bench.workshop))

    made = anyio.run(record_hand_turns, session, events, bench.agent, bench.workshop)

    assert made is not None
    assert (made.status, made.session_id, made.messages) == ("completed", session.id, 2)
    assert len(bench.runtime.requests) == 1
    after = bench.reader.find_session(session.id)
    assert after is not None
    assert (after.message_count, after.token_estimate) == (4, 100)
    again = turns_since(lines, known_uuids(after, bench.workshop))
    assert anyio.run(record_hand_turns, after, again, bench.agent, bench.workshop) is None
    questions = [e.content for e in bench.journal(made.id) if isinstance(e, SystemEvent) and e.end]
    assert questions == ["by hand"]
