"""Context limits: what gives way to a summary, what stays word for word, and that nothing is lost."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Sequence

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from engine.bench import AGENT, Bench
from nightherd.model.agents.agent import Agent
from nightherd.model.agents.runtime import RuntimeCapabilities
from nightherd.model.journal.event import (
    AssistantEvent,
    ErrorEvent,
    Event,
    SystemEvent,
    ToolResultEvent,
    ToolUseEvent,
    describe,
)
from nightherd.model.journal.message import Speaker, open_calls, whole_messages
from nightherd.model.journal.system import CompactBoundary, Complete, Summary, SystemSubtype
from nightherd.model.sessions.context_window import SUMMARY_FRAME, contextual, digest, plan_cut
from nightherd.model.sessions.session import SessionMode, SessionTerms
from nightherd.model.usage import Usage
from nightherd.ports import RuntimeRequest
from nightherd.runtimes.claude.capabilities import CLI, SDK
from nightherd.runtimes.native.capabilities import NATIVE
from nightherd.runtimes.scripted.capabilities import SCRIPTED
from nightherd.testing.runtime import PlayedRuntime

LONG = "x" * 480
"""A hundred and twenty tokens."""


def question(text: str) -> SystemEvent:
    return SystemEvent(subtype=SystemSubtype.USER_INPUT, content=text, end=True)


def answer(text: str) -> AssistantEvent:
    return AssistantEvent(content=text, turn=1, index=0, end=True)


def call(number: int) -> list[Event]:
    name = f"call-{number}"
    return [
        AssistantEvent(content="look", turn=1, index=0),
        ToolUseEvent(tool_name="Read", tool_use_id=name, input={"n": number}, index=1, end=True),
    ]


def result(number: int) -> ToolResultEvent:
    return ToolResultEvent(tool_use_id=f"call-{number}", result="seen", success=True, end=True)


def numbered(events: list[Event]) -> list[Event]:
    """As a recorder numbers them."""
    out: list[Event] = []
    message = 1
    for event in events:
        if isinstance(event, ErrorEvent):
            out.append(event)
            continue
        out.append(msgspec.structs.replace(event, message=message))
        message += event.end
    return out


def terms(tokens: int = 100, window: int = 2) -> SessionTerms:
    return SessionTerms(
        mode=SessionMode.PERSISTENT, max_context_tokens=tokens, context_window=window
    )


def limited(runtime: RuntimeCapabilities = SCRIPTED, **more: int) -> Agent:
    return replace(AGENT, runtime=runtime, session=terms(**more))


class Listening(PlayedRuntime):
    """Remembers what it was given, message by message, each time it is run."""

    def __init__(self, events: Sequence[Event]) -> None:
        super().__init__(events)
        self.heard: list[list[str]] = []

    async def execute(self, request: RuntimeRequest) -> AsyncGenerator[Event, None]:
        self.heard.append([message.text for message in whole_messages(request.history())])
        async for event in super().execute(request):
            yield event


def history(bench: Bench) -> list[str]:
    """What the last run was given, message by message."""
    assert isinstance(bench.runtime, Listening)
    return bench.runtime.heard[-1]


def summaries(bench: Bench, job: object) -> list[SystemEvent]:
    events = bench.journal(job)  # type: ignore[arg-type] # ids are texts
    return [
        event
        for event in events
        if isinstance(event, SystemEvent) and event.subtype is SystemSubtype.SUMMARY
    ]


def test_older_messages_give_way_to_a_summary_and_the_last_stay() -> None:
    bench = Bench(agent=limited(), runtime=Listening([answer(LONG), describe(Complete())]))
    first = bench.run("first question")
    assert summaries(bench, first.id) == []

    second = bench.run("second question")

    (summary,) = summaries(bench, second.id)
    assert (summary.extra or {})["covers_message"] == 1
    assert history(bench) == [
        SUMMARY_FRAME.format(text="- user: first question"),
        LONG,
        "second question",
    ]


def test_everything_said_stays_on_record() -> None:
    bench = Bench(agent=limited(), runtime=Listening([answer(LONG), describe(Complete())]))

    jobs = [bench.run(f"question {number}") for number in range(4)]

    texts = [m.text for job in jobs for m in whole_messages(bench.journal(job.id))]
    assert texts == [text for number in range(4) for text in (f"question {number}", LONG)]
    session = bench.reader.find_session(jobs[0].session_id or "")  # type: ignore[arg-type]
    assert session is not None
    assert session.message_count == 8


def test_a_summary_takes_in_the_one_before_it() -> None:
    bench = Bench(agent=limited(), runtime=Listening([answer(LONG), describe(Complete())]))
    bench.run("the first thing asked")
    bench.run("the second thing asked")

    third = bench.run("the third thing asked")

    (summary,) = summaries(bench, third.id)
    assert "the first thing asked" in (summary.content or "")
    assert "the second thing asked" in (summary.content or "")
    assert history(bench)[1:] == [LONG, "the third thing asked"]


def test_nothing_is_summarised_below_the_limit() -> None:
    bench = Bench(
        agent=limited(tokens=10_000), runtime=Listening([answer(LONG), describe(Complete())])
    )
    bench.run("one")

    second = bench.run("two")

    assert summaries(bench, second.id) == []
    assert history(bench) == ["one", LONG, "two"]


def test_what_is_reported_counts_for_what_it_is() -> None:
    usage = Usage(input_tokens=90, cache_read_input_tokens=50, output_tokens=10)
    said = AssistantEvent(content="short", usage=usage, turn=1, index=0, end=True)
    bench = Bench(agent=limited(window=1), runtime=Listening([said, describe(Complete())]))
    first = bench.run("one")
    session = bench.reader.find_session(first.session_id or "")  # type: ignore[arg-type]
    assert session is not None
    assert session.token_estimate == 150

    second = bench.run("two")

    (summary,) = summaries(bench, second.id)
    assert (summary.extra or {})["tokens_before"] == 150
    assert history(bench)[1:] == ["two"]


def test_the_model_writes_the_summary_where_there_is_one_and_what_it_costs_counts() -> None:
    spent = Usage(input_tokens=400, output_tokens=20, cost_microusd=7)  # type: ignore[arg-type] # money
    said = AssistantEvent(content="in short: " + LONG, usage=spent, turn=1, index=0, end=True)
    agent = limited(NATIVE)
    bench = Bench(agent=agent, runtime=Listening([said, describe(Complete())]))
    bench.run("one")

    second = bench.run("two")

    (summary,) = summaries(bench, second.id)
    assert summary.content == "in short: " + LONG
    asked = bench.runtime.requests[-2]
    assert "one" in asked.prompt
    assert list(asked.history()) == []
    assert asked.agent.tools == ()
    assert second.cost_microusd == 14
    assert second.messages == 2


def test_a_summary_that_fails_is_made_without_the_model() -> None:
    class Failing(PlayedRuntime):
        async def execute(self, request: RuntimeRequest) -> AsyncGenerator[Event, None]:
            self.requests.append(request)
            if "Summarise" in request.prompt:
                raise RuntimeError("no model today")
            for event in (answer(LONG), describe(Complete())):
                yield event

    bench = Bench(agent=limited(NATIVE), runtime=Failing())
    bench.run("one")

    second = bench.run("two")

    (summary,) = summaries(bench, second.id)
    assert (summary.extra or {})["written_by"] == "digest"
    warned = [e for e in bench.journal(second.id) if getattr(e, "subtype", None) == "warning"]
    assert "no model today" in (warned[0].content or "")  # type: ignore[union-attr]
    assert second.status == "completed"


@pytest.mark.parametrize("runtime", [CLI, SDK])
def test_claude_is_told_to_compact(runtime: RuntimeCapabilities) -> None:
    class Claude(PlayedRuntime):
        async def execute(self, request: RuntimeRequest) -> AsyncGenerator[Event, None]:
            self.requests.append(request)
            yield describe_init()
            if request.prompt == "/compact":
                yield describe(CompactBoundary(trigger="manual", tokens_before=900))
                yield question("This session is being continued")
                yield describe(Complete(usage=Usage(output_tokens=5)))
                return
            yield answer(LONG)
            yield describe(Complete())

    bench = Bench(agent=limited(runtime), runtime=Claude())
    bench.run("one")

    second = bench.run("two")

    assert [request.prompt for request in bench.runtime.requests] == ["one", "/compact", "two"]
    kinds = [e.subtype for e in bench.journal(second.id) if isinstance(e, SystemEvent)]
    assert SystemSubtype.COMPACT_BOUNDARY in kinds
    assert SystemSubtype.SUMMARY not in kinds
    assert second.messages == 2
    assert second.output_tokens == 5
    assert second.status == "completed"


def describe_init() -> SystemEvent:
    return SystemEvent(
        subtype=SystemSubtype.INIT, extra={"runtime": "claude", "runtime_session_id": "u-1"}
    )


@settings(max_examples=60, deadline=None)
@given(
    shape=st.lists(st.sampled_from("qac"), min_size=1, max_size=30),
    window=st.integers(1, 12),
    covered=st.integers(0, 5),
)
def test_no_cut_parts_a_call_from_its_result(shape: list[str], window: int, covered: int) -> None:
    events: list[Event] = []
    for number, kind in enumerate(shape):
        match kind:
            case "q":
                events.append(question(f"q{number}"))
            case "a":
                events.append(answer(f"a{number}"))
            case _:
                events += [*call(number), result(number)]
    messages = list(whole_messages(numbered(events)))
    covered = min(covered, len(messages))

    cut = plan_cut(messages, window=window, covered=covered)

    assert covered <= cut <= max(covered, len(messages) - window)
    if cut > covered:
        assert open_calls(messages[:cut]) == {}
        assert messages[cut].speaker is not Speaker.TOOL


def test_contextual_is_what_was_given_when_nothing_was_summarised() -> None:
    events = numbered([question("one"), answer("two"), *call(1), result(1)])

    assert list(contextual(events)) == events


def test_contextual_keeps_what_is_no_message() -> None:
    warning = SystemEvent(subtype=SystemSubtype.WARNING, content="careful", extra={"code": "x"})
    summary = describe(Summary(covers_message=2), "so far")
    events = [*numbered([question("one"), answer("two"), question("three")]), warning, summary]

    kept = list(contextual(events))

    assert [event.content for event in kept if isinstance(event, SystemEvent)] == [
        SUMMARY_FRAME.format(text="so far"),
        "three",
        "careful",
        "so far",
    ]


def test_digest_is_bounded_and_always_the_same() -> None:
    messages = list(whole_messages(numbered([question(LONG * 50) for _ in range(500)])))

    assert digest(messages) == digest(messages)
    assert len(digest(messages)) < 12_000


def test_partial_output_is_never_a_message() -> None:
    cut = AssistantEvent(content="never ended", turn=1, index=0, message=2, epoch=1, seq=3)
    again = AssistantEvent(content="whole", turn=1, index=0, message=2, epoch=2, seq=5, end=True)
    asked = SystemEvent(
        subtype=SystemSubtype.USER_INPUT, content="q", message=1, epoch=1, seq=2, end=True
    )

    assert [m.text for m in whole_messages([asked, cut, again])] == ["q", "whole"]
