"""Answers that are asked for and never seen: what is known of their cost is on record all the same."""

from __future__ import annotations

import threading
from contextlib import aclosing

import anyio
import pytest

from nightherd.model.jobs.outcome import is_afterthought
from nightherd.model.journal.event import AssistantEvent, ErrorEvent, Event
from nightherd.model.usage import NOTHING_USED, Usage
from nightherd.ports import RuntimeRequest
from nightherd.runtimes.native import answer
from nightherd.runtimes.native.runtime import NativeRuntime
from nightherd.testing.messages_api import MessagesApi
from nightherd.testing.messages_script import Answer, Cut, Refuse, Say, Tokens
from runtimes.heard import tally_of
from runtimes.native.native_stage import QUICK, NativeStage
from runtimes.native.test_native_streaming import streaming

MODEL = "anthropic:claude-sonnet-5-5"
SAID = Tokens(input=1_000, output=500, cache_read=9_000)
HEARD = "as much as this, and then nothing more"


def pieces(events: list[Event]) -> list[AssistantEvent]:
    return [event for event in events if isinstance(event, AssistantEvent) and event.partial]


def test_that_a_model_is_asked_is_said_before_with_what_it_will_probably_cost(
    stage: NativeStage,
) -> None:
    with MessagesApi(Say(text="Hello.", tokens=SAID), Say(text="done")) as api:
        request = stage.request(api=api, agent={"model": MODEL})
        events: list[Event] = []

        async def note() -> None:
            async with aclosing(NativeRuntime(grace=QUICK).execute(request)) as running:
                async for event in running:
                    events.append(event)
                    if pieces(events) and len(api.asked) == 0:
                        return

        anyio.run(note)
        unasked = len(api.asked)

    (first,) = pieces(events)
    assert unasked == 0, "on record before anything is sent"
    assert first.extra == {"cost_source": "estimate"}
    assert first.usage is not None
    assert first.usage.input_tokens > 0 < first.usage.cost_microusd
    assert first.usage.output_tokens == 0


def test_what_has_arrived_counts_with_each_piece(
    stage: NativeStage, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(answer, "USAGE_S", 0.0)

    events = stage.run(streaming("a" * 400, "b" * 400))

    used = [piece.usage.output_tokens for piece in pieces(events) if piece.usage is not None]
    assert used[0] == 0
    assert used[1:] == sorted(used[1:])
    assert used[-1] >= 200
    whole = [one for one in events if isinstance(one, AssistantEvent) and not one.partial]
    assert [tally_of(events).usage] == [one.usage for one in whole], "pieces are not added to it"


def test_what_an_answer_used_that_was_stopped_is_told_late(stage: NativeStage) -> None:
    told: list[Event] = []

    async def stop_once_asked(api: MessagesApi) -> None:
        request = stage.request(api=api, agent={"model": MODEL}, late=told.append)
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(run_to_the_end, request)
            while not api.asked:  # noqa: ASYNC110 (another thread is asked)
                await anyio.sleep(0.01)
            tasks.cancel_scope.cancel()

    async def run_to_the_end(request: RuntimeRequest) -> None:
        async with aclosing(NativeRuntime(grace=QUICK).execute(request)) as events:
            async for _ in events:
                pass

    with MessagesApi(Say(text=HEARD, tokens=SAID, hold=threading.Event())) as api:
        anyio.run(stop_once_asked, api)

    (late,) = told
    assert isinstance(late, AssistantEvent)
    assert is_afterthought(late)
    assert late.extra == {"cost_source": "estimate"}
    assert late.usage is not None
    assert late.usage.input_tokens > 0 < late.usage.cost_microusd


def test_what_was_said_to_be_asked_and_never_was_counts_for_nothing(stage: NativeStage) -> None:
    told: list[Event] = []

    async def close_before() -> None:
        request = stage.request(late=told.append)
        async with aclosing(
            NativeRuntime(model=streaming("x"), grace=QUICK).execute(request)
        ) as events:
            async for event in events:
                told.append(event)
                if isinstance(event, AssistantEvent):
                    return

    anyio.run(close_before)

    assert tally_of(told).cut_off.usage == NOTHING_USED
    assert pieces(told)


@pytest.mark.parametrize(
    ("said", "used"),
    [
        (Refuse(status=429), None),
        (Say(text=HEARD, tokens=SAID, drop=Cut.HEADERS), None),
        (
            Say(text=HEARD, tokens=SAID, drop=Cut.MIDDLE),
            Usage(input_tokens=1_000, cache_read_input_tokens=9_000, output_tokens=1),
        ),
    ],
    ids=["refused", "never begun", "broken off"],
)
def test_what_a_failed_request_used_is_what_the_provider_began_to_answer(
    stage: NativeStage, said: Answer, used: Usage | None
) -> None:
    with MessagesApi(said) as api:
        events = stage.run(None, stage.request(api=api, agent={"model": MODEL}))

    assert isinstance(events[-1], ErrorEvent)
    found = (events[-1].extra or {}).get("usage")
    total = tally_of(events)
    if used is None:
        assert found is None
        assert total.cut_off.usage == Usage()
        return
    assert found is not None
    assert found.pop("cost_microusd") > 0
    assert Usage(**found) == used
    assert total.cut_off.usage.input_tokens == used.input_tokens
