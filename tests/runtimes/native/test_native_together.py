"""Calls of one answer: those that only look are made beside each other, the model is told them in its order."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import anyio
import anyio.lowlevel
import pytest
from pydantic_ai.messages import ModelMessagesTypeAdapter

from nightherd.model.journal.event import ToolResultEvent
from nightherd.model.secrets import find_secrets
from nightherd.runtimes.native.conversation import recall
from nightherd.runtimes.native.runtime import NativeRuntime
from nightherd.runtimes.native.together import AT_ONCE
from nightherd.runtimes.tools.tool import ToolContext, ToolOutcome
from runtimes.native.native_stage import QUICK, NativeStage, Record, Replies, calls, results, says

PATIENCE_S = 60


@dataclass
class Meeting:
    """A tool that only looks: nobody leaves before `wanted` calls are there at once."""

    wanted: int
    name: str = "Read"
    starts_processes: bool = False
    is_read_only: bool = True
    here: int = 0
    most: int = 0
    made: list[str] = field(default_factory=list)
    is_full: anyio.Event = field(default_factory=anyio.Event)

    async def run(self, input: Mapping[str, Any], context: ToolContext) -> ToolOutcome:
        self.here += 1
        self.most = max(self.most, self.here)
        self.made.append(context.tool_use_id)
        if self.here == self.wanted:
            self.is_full.set()
        with anyio.fail_after(PATIENCE_S):
            await self.is_full.wait()
        await anyio.lowlevel.checkpoint()
        self.here -= 1
        return ToolOutcome(result=context.tool_use_id)


@dataclass
class Backwards:
    """A tool that only looks: the last call is answered first."""

    count: int
    name: str = "Read"
    starts_processes: bool = False
    is_read_only: bool = True
    left: list[anyio.Event] = field(default_factory=list)

    async def run(self, input: Mapping[str, Any], context: ToolContext) -> ToolOutcome:
        self.left = self.left or [anyio.Event() for _ in range(self.count + 1)]
        self.left[self.count].set()
        place = int(context.tool_use_id.removeprefix("call-"))
        with anyio.fail_after(PATIENCE_S):
            await self.left[place + 1].wait()
        self.left[place].set()
        return ToolOutcome(result=context.tool_use_id)


def told(model: Replies) -> list[str]:
    """The results as the model was told them."""
    return [str(part.content) for part in model.conversations[-1][-1].parts]  # type: ignore[union-attr]


def test_calls_that_only_look_are_made_beside_each_other_but_not_too_many(
    stage: NativeStage,
) -> None:
    count, tool = 200, Meeting(wanted=AT_ONCE)
    model = Replies(calls(*[("Read", {"file_path": "x"})] * count), says("done"))

    events = stage.run(model, tools=[tool])

    assert tool.most == AT_ONCE
    assert sorted(tool.made) == sorted(f"call-{n}" for n in range(count))
    assert len(results(events)) == count
    assert told(model) == [f"call-{n}" for n in range(count)]


def test_results_are_on_record_as_they_come_and_told_in_the_order_of_the_calls(
    stage: NativeStage,
) -> None:
    record, model = Record(), Replies(calls(*[("Read", {"file_path": "x"})] * 5), says("done"))

    events = stage.run(model, stage.request(record), tools=[Backwards(count=5)])

    assert [one.tool_use_id for one in results(events)] == [f"call-{n}" for n in (4, 3, 2, 1, 0)]
    assert told(model) == [f"call-{n}" for n in range(5)]
    record.add(*events[:-1])
    rebuilt = recall(record.events, find_secrets({})).messages
    sent = ModelMessagesTypeAdapter.validate_json(model.asked[-1])
    dump = ModelMessagesTypeAdapter.dump_json
    assert dump(rebuilt[:-1]) == dump(sent)


def test_a_change_is_made_after_what_stands_before_it_and_before_what_stands_after(
    stage: NativeStage,
) -> None:
    read = ("Read", {"file_path": "a.txt"})
    (stage.directory / "a.txt").write_text("old")
    model = Replies(
        calls(read, read, ("Write", {"file_path": "a.txt", "content": "new"}), read), says("done")
    )

    stage.run(model)

    before, again, _, after = told(model)
    assert (before, again, after) == ("old", "old", "new")


@dataclass(frozen=True)
class Faulty:
    """A tool that only looks, and has a mistake in it for one of its calls."""

    name: str = "Read"
    starts_processes: bool = False
    is_read_only: bool = True

    async def run(self, input: Mapping[str, Any], context: ToolContext) -> ToolOutcome:
        if context.tool_use_id == "call-1":
            raise ValueError("a mistake")
        await anyio.sleep_forever()
        raise AssertionError("nobody waits for it")


def test_a_mistake_in_one_tool_ends_those_beside_it(stage: NativeStage) -> None:
    model = Replies(calls(*[("Read", {})] * 3), says("never"))

    with pytest.raises(ValueError, match="a mistake"):
        stage.run(model, tools=[Faulty()])


@dataclass
class Endless:
    """Answers its first call; the others go on until they are cancelled."""

    name: str = "Read"
    starts_processes: bool = False
    is_read_only: bool = True
    cancelled: int = 0

    async def run(self, input: Mapping[str, Any], context: ToolContext) -> ToolOutcome:
        if context.tool_use_id == "call-0":
            return ToolOutcome(result="first")
        try:
            await anyio.sleep_forever()
        finally:
            self.cancelled += 1
        raise AssertionError("it never ends by itself")


@pytest.mark.parametrize("is_cancelled", [False, True], ids=["closed", "cancelled"])
def test_a_run_that_is_left_among_its_calls_leaves_none_behind(
    stage: NativeStage, is_cancelled: bool
) -> None:
    tool, model = Endless(), Replies(calls(*[("Read", {})] * 4), says("never"))

    async def leave() -> list[ToolResultEvent]:
        heard: list[ToolResultEvent] = []
        with anyio.CancelScope() as scope:
            events = NativeRuntime(model=model, tools=[tool], grace=QUICK).execute(stage.request())
            try:
                async for event in events:
                    if isinstance(event, ToolResultEvent):
                        heard.append(event)
                        if not is_cancelled:
                            break
                        scope.cancel()
            finally:
                await events.aclose()
        return heard

    assert [one.result for one in anyio.run(leave)] == ["first"]
    assert tool.cancelled == 3
