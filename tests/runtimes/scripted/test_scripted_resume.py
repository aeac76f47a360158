"""The place in a script: whatever happened before, exactly the turns that are not on record are played."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from typing import Any

import anyio
from hypothesis import given, settings
from hypothesis import strategies as st

from nightherd.model.agents.script import (
    End,
    Repeat,
    Say,
    Script,
    Sleep,
    Spend,
    Step,
    Think,
    UseTool,
    compile_script,
)
from nightherd.model.journal.event import AssistantEvent, Event, ToolResultEvent, is_terminal
from nightherd.model.usage import Usage
from nightherd.runtimes.scripted.runtime import ScriptedRuntime
from nightherd.runtimes.tools.tool import ToolContext, ToolOutcome
from runtimes.heard import tally_of
from runtimes.stage import Stage


@dataclass
class Counter:
    """A tool that notes how often each call was made."""

    name: str = "Count"
    starts_processes: bool = False
    is_read_only: bool = False
    made: dict[str, int] = field(default_factory=dict)

    async def run(self, input: Mapping[str, Any], context: ToolContext) -> ToolOutcome:
        self.made[context.tool_use_id] = self.made.get(context.tool_use_id, 0) + 1
        return ToolOutcome(result=str(input))


actions: st.SearchStrategy[Step] = st.one_of(
    st.builds(Say, st.just("turn ${turn}")),
    st.builds(Think, st.just("hm ${prompt}")),
    st.builds(UseTool, st.just("Count"), st.just({"at": "${turn}"})),
    st.builds(Sleep, st.just(timedelta())),
    st.builds(Spend, st.builds(Usage, input_tokens=st.integers(1, 5))),
)
steps: st.SearchStrategy[list[Step]] = st.recursive(
    st.lists(actions, max_size=5),
    lambda inner: st.lists(
        st.one_of(
            actions,
            st.builds(
                lambda count, body: Repeat(count, tuple(body)), count=st.integers(0, 3), body=inner
            ),
        ),
        max_size=4,
    ),
    max_leaves=4,
).filter(lambda found: compile_script(found).turn_count <= 30)

STAGE = Stage(Path(__file__).parent, environment={})
"""Nothing is run here, so any directory will do."""


async def play(script: Script, counter: Counter, at: int) -> list[Event]:
    request = STAGE.request(script, session_turns=at, job_turns=at)
    return [event async for event in ScriptedRuntime(tools=[counter]).execute(request)]


@settings(max_examples=60, deadline=None)
@given(steps=steps)
def test_from_any_turn_exactly_the_rest_is_played(steps: list[Step]) -> None:
    script = compile_script(steps)

    async def compare() -> None:
        whole = await play(script, Counter(), 0)
        assert {event.turn for event in whole[1:-1]} == set(range(1, script.turn_count + 1))
        for at in range(script.turn_count):
            rest = await play(script, Counter(), at)
            assert rest[1:] == [event for event in whole[1:] if (event.turn or at + 1) > at]
        assert len(await play(script, Counter(), script.turn_count)) == 2

    anyio.run(compare)


def test_a_job_ends_where_the_script_says_and_the_next_one_plays_on() -> None:
    script = compile_script([Say("One."), End(), Say("Two."), Say("Three.")])

    async def said(session_turns: int, job_turns: int) -> list[str | None]:
        request = STAGE.request(script, session_turns=session_turns, job_turns=job_turns)
        events = [event async for event in ScriptedRuntime().execute(request)]
        assert is_terminal(events[-1])
        return [event.content for event in events if isinstance(event, AssistantEvent)]

    async def play_three() -> list[list[str | None]]:
        return [await said(0, 0), await said(1, 1), await said(1, 0)]

    first, killed_at_its_end, second = anyio.run(play_three)
    assert (first, killed_at_its_end, second) == (["One."], [], ["Two.", "Three."])


@settings(max_examples=60, deadline=None)
@given(steps=steps, cut=st.integers(0, 200))
def test_a_run_cut_off_anywhere_is_finished_by_the_next_without_a_call_made_twice(
    steps: list[Step], cut: int
) -> None:
    script, counter = compile_script(steps), Counter()

    async def crash_and_resume() -> None:
        whole = await play(script, Counter(), 0)
        record: list[Event] = []
        events = ScriptedRuntime(tools=[counter]).execute(STAGE.request(script))
        async for event in events:
            record.append(event)
            if len(record) > cut:
                break
        await events.aclose()
        if is_terminal(record[-1]):
            assert record == whole
            return
        before = tally_of(record)
        answered = {event.tool_use_id for event in record if isinstance(event, ToolResultEvent)}

        record += await play(script, counter, before.turns)

        after = tally_of(record)
        assert after.turns == script.turn_count
        assert after.open_calls == frozenset()
        assert after.answer == tally_of(whole).answer
        assert all(counter.made[call or ""] == 1 for call in answered)
        assert counter.made.keys() == {
            event.tool_use_id for event in whole if isinstance(event, ToolResultEvent)
        }

    anyio.run(crash_and_resume)
