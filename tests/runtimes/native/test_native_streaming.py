"""Long answers: their text is streamed as it arrives, and is told to the model when the rest is lost."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import aclosing
from datetime import timedelta

import anyio
import pytest
from pydantic_ai.exceptions import ModelAPIError
from pydantic_ai.messages import ModelMessage
from pydantic_ai.models.function import AgentInfo, DeltaThinkingPart, DeltaToolCall, FunctionModel

from nightherd.model.journal.event import AssistantEvent, ErrorEvent, Event, ToolUseEvent
from nightherd.model.secrets import find_secrets
from nightherd.runtimes.native import answer
from nightherd.runtimes.native.conversation import recall
from nightherd.runtimes.native.runtime import NativeRuntime
from runtimes.heard import HeardText
from runtimes.native.native_stage import NativeStage, Record, Replies, of_type, says

Delta = str | dict[int, DeltaToolCall] | dict[int, DeltaThinkingPart]


def streaming(*deltas: Delta, hangs: bool = False) -> FunctionModel:
    """A model that says these one after the other, and then ends or never does."""

    async def stream(messages: list[ModelMessage], info: AgentInfo) -> AsyncIterator[Delta]:
        for delta in deltas:
            yield delta
        if hangs:
            await anyio.sleep_forever()

    return FunctionModel(stream_function=stream)


def pieces(events: list[Event]) -> list[str | None]:
    """The texts; the first piece of an answer has none, and says only that it is asked for."""
    partial = [event for event in events if isinstance(event, AssistantEvent) and event.partial]
    return [event.content for event in partial if event.content is not None]


def test_a_short_answer_is_on_record_once(stage: NativeStage) -> None:
    events = stage.run(streaming("All ", "done."))

    assert pieces(events) == []
    assert [line.content for line in of_type(events, AssistantEvent)] == ["All done."]


def test_a_long_answer_is_streamed_as_it_arrives_and_on_record_once(
    stage: NativeStage, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(answer, "USAGE_S", 0.0)
    heard = HeardText()

    events = stage.run(streaming("One. ", "Two. ", "Three."), stage.request(stream=heard))

    assert heard.texts == ["One. Two. Three."]
    assert len(heard.pieces) == 3
    assert pieces(events) == []
    assert [line.content for line in of_type(events, AssistantEvent)] == ["One. Two. Three."]


def test_thoughts_and_calls_are_no_pieces(
    stage: NativeStage, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(answer, "USAGE_S", 0.0)
    thought: Delta = {0: DeltaThinkingPart(content="hm")}
    call: Delta = {1: DeltaToolCall("Teleport", '{"to": "home"}', tool_call_id="c1")}

    events = stage.run(streaming(thought, call), stage.request(agent={"max_turns": 1}))

    assert pieces(events) == []
    (use,) = of_type(events, ToolUseEvent)
    assert use.input == {"to": "home"}


def test_what_had_arrived_when_the_model_fell_silent_is_told_to_the_next_turn(
    stage: NativeStage, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(answer, "USAGE_S", 0.0)
    record, said, seconds = Record(), "The answer is forty", 1
    silent = streaming("The answer ", "is forty", hangs=True)

    events = stage.run(silent, stage.request(record), patience=timedelta(seconds=seconds))
    while "".join(piece or "" for piece in pieces(events)) != said and seconds < 60:
        # As patient as it takes for both pieces to arrive, however busy the machine is.
        seconds *= 8
        events = stage.run(silent, stage.request(record), patience=timedelta(seconds=seconds))
    record.add(*events)
    model = Replies(says("Forty-two."))
    stage.run(model, stage.request(record, is_continued=True))

    assert isinstance(events[-1], ErrorEvent)
    assert events[-1].code == "stalled"
    assert said.encode() in model.asked[0]


def test_what_had_arrived_when_the_connection_broke_is_told_however_soon_that_was(
    stage: NativeStage,
) -> None:
    async def stream(messages: list[ModelMessage], info: AgentInfo) -> AsyncIterator[str]:
        yield "The answer "
        yield "is forty"
        raise ModelAPIError("function", "the connection is lost")

    record = Record()
    events = stage.run(FunctionModel(stream_function=stream), stage.request(record))
    record.add(*events)
    model = Replies(says("Forty-two."))
    stage.run(model, stage.request(record, is_continued=True))

    assert isinstance(events[-1], ErrorEvent)
    assert pieces(events) == ["The answer is forty"]
    assert b"The answer is forty" in model.asked[0]


def test_what_had_arrived_when_the_run_was_stopped_is_told_late(stage: NativeStage) -> None:
    heard, told = anyio.Event(), list[Event]()

    async def stream(messages: list[ModelMessage], info: AgentInfo) -> AsyncIterator[str]:
        yield "The answer "
        yield "is forty"
        heard.set()
        await anyio.sleep_forever()

    async def run_to_the_end() -> None:
        runtime = NativeRuntime(model=FunctionModel(stream_function=stream))
        async with aclosing(runtime.execute(stage.request(late=told.append))) as events:
            async for _ in events:
                pass

    async def stop_once_heard() -> None:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(run_to_the_end)
            await heard.wait()
            tasks.cancel_scope.cancel()

    anyio.run(stop_once_heard)

    assert pieces(told) == ["The answer is forty"]


def test_a_whole_answer_leaves_nothing_to_tell(
    stage: NativeStage, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(answer, "USAGE_S", 0.0)
    record = Record()

    record.add(*stage.run(streaming("One. ", "Two."), stage.request(record)))

    assert recall(record.events, find_secrets({})).cut_off is None
