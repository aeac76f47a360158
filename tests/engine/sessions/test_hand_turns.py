"""What was said by hand, read off a transcript: only what is new, along the line that counts."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Any

import anyio
import msgspec
import pytest
from msgspec.structs import replace

from engine.bench import Bench, persistent
from nightherd.engine.doctor.record import RepairContext
from nightherd.engine.sessions.external_turns import OnRecord, external_events
from nightherd.engine.workers.rescue import RescueTerms, rescue
from nightherd.imports.claude_turns import ClaudeTranscripts, last_said, said_since
from nightherd.model.ids import ExecutionId, JobId
from nightherd.model.jobs.job import JobStatus
from nightherd.model.journal.event import (
    AssistantEvent,
    ErrorEvent,
    Event,
    ToolUseEvent,
    describe,
    is_by_hand,
    is_message,
)
from nightherd.model.journal.message import Speaker, whole_messages
from nightherd.model.journal.recollection import recollect
from nightherd.model.journal.system import Complete, Init
from nightherd.model.secrets import find_secrets
from nightherd.model.units import MicroUsd
from nightherd.model.usage import Usage
from nightherd.runtimes.claude.capabilities import CLI
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


def messages_of(events: Iterable[Event]) -> list[tuple[str, str]]:
    return [(message.speaker.value, message.text) for message in whole_messages(numbered(events))]


def numbered(events: Iterable[Event]) -> Iterator[Event]:
    """The events with the numbers that whoever records them gives them."""
    number = 1
    for event in events:
        assert not isinstance(event, ErrorEvent)
        yield msgspec.structs.replace(event, message=number)
        number += event.end


def said(lines: list[bytes], known: set[str]) -> list[tuple[str, str]]:
    return messages_of(said_since(lines, known))


def test_nothing_was_said_by_hand() -> None:
    assert said_since(KNOWN, {"a1"}) == []
    assert said_since([], {"a1"}) == []
    assert said_since(KNOWN, {"another session's"}) == []
    assert last_said(KNOWN) == "a1"
    assert last_said([]) is None


def test_everything_was_said_where_nothing_is_known() -> None:
    assert said(KNOWN, set()) == [
        ("user", "asked by the fleet"),
        ("assistant", "answered to the fleet"),
    ]


def test_lines_that_name_no_other_follow_the_one_above() -> None:
    plain = [
        b'{"type":"user","message":{"content":"one"}}',
        b'{"type":"user","message":{"content":"two"}}',
    ]

    assert said(plain, set()) == [("user", "one"), ("user", "two")]


def test_calls_side_by_side_keep_all_their_results() -> None:
    """Each result names the line of its call: only one of them is on the way back from the end."""

    def call(name: str) -> list[dict[str, Any]]:
        return [{"type": "tool_use", "id": name, "name": "Bash", "input": {}}]

    def result(name: str) -> list[dict[str, Any]]:
        return [{"type": "tool_result", "tool_use_id": name, "content": f"of {name}"}]

    lines = [
        *KNOWN,
        line("user", "q2", "a1", "by hand"),
        line("assistant", "c1", "q2", call("t1"), message_id="one"),
        line("assistant", "c2", "c1", call("t2"), message_id="one"),
        line("user", "r1", "c1", result("t1")),
        line("user", "r2", "c2", result("t2")),
        line("assistant", "a2", "r2", text("both")),
    ]

    assert said(lines, {"a1"})[2:] == [("tool", "of t1"), ("tool", "of t2"), ("assistant", "both")]


def test_conversation_goes_on_across_a_compaction() -> None:
    boundary = {"type": "system", "uuid": "b", "parentUuid": None, "logicalParentUuid": "a1"}
    lines = [
        *KNOWN,
        json.dumps(boundary).encode(),
        line("user", "s", "b", "a summary", isCompactSummary=True),
        line("user", "q2", "s", "by hand"),
    ]

    assert said(lines, {"a1"}) == [("user", "by hand")]
    assert len(said(lines, set())) == 3


@pytest.mark.parametrize("before", ["", "What was said before.\n\n"])
@pytest.mark.parametrize("notice", ["", "\n\n(Look before you do it again.)"])
def test_what_a_job_had_asked_and_was_not_answered_is_not_by_hand(before: str, notice: str) -> None:
    lines = [
        *KNOWN,
        line("user", "p2", "a1", f"{before}of a job that failed{notice}"),
        line("assistant", "lost", "p2", text("cut off from the record")),
        line("user", "i", "lost", "[Request interrupted by user]"),
        line("user", "q2", "i", "by hand"),
        line("assistant", "a2", "q2", text("an answer")),
    ]
    known = OnRecord(uuids=frozenset({"a1"}), unanswered=("of a job that failed",))

    found = external_events(said_since(lines, known.uuids), known, find_secrets({}), is_ours=True)

    assert messages_of(found) == [("user", "by hand"), ("assistant", "an answer")]


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

    messages = list(whole_messages(numbered(said_since(lines, {"a1"}))))

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


def test_what_a_job_asked_before_it_failed_is_passed_over_with_its_failure() -> None:
    """Claude puts in a line of its own that says so, and that one is on record."""
    failed = line("assistant", "e", "p2", text("API Error"))
    failed = failed.replace(b'"role": "assistant"', b'"model": "<synthetic>"')
    lines = [*KNOWN, line("user", "p2", "a1", "of a job"), failed]

    assert last_said(lines) == "e"
    assert said_since(lines, {"a1", "e"}) == []
    assert said([*lines, line("user", "q2", "e", "by hand")], {"a1", "e"}) == [("user", "by hand")]


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


class Spoken:
    """A transcript that is there in memory."""

    def __init__(self) -> None:
        self.all = [*KNOWN]

    def lines(self) -> list[bytes]:
        return self.all

    def newest_lines(self) -> list[bytes]:
        return self.all

    def tail(self, size: int) -> list[bytes]:
        return self.all[-1:]


def test_next_job_has_on_record_what_was_said_by_hand_before_it_was_asked() -> None:
    answer = AssistantEvent(content="a", turn=1, index=0, end=True, uuid="a1")
    introduced = describe(Init(runtime="cli", runtime_session_id="uuid-1"))
    played = PlayedRuntime([introduced, answer, describe(Complete())])
    bench = Bench(agent=replace(persistent(), runtime=CLI), runtime=played)
    spoken = Spoken()
    transcripts = ClaudeTranscripts(lambda uuid, directory: spoken, CLI.can_resume)
    bench.context = replace(bench.context, transcripts=transcripts)
    first = bench.run("by the fleet")
    spoken.all += [
        line("user", "q2", "a1", "by hand"),
        line("assistant", "a2", "q2", text("an answer")),
    ]

    job = bench.run("and now?")
    third = bench.run("and then?")

    assert job.session_id == first.session_id is not None
    session = bench.reader.find_session(first.session_id)
    assert session is not None
    assert (first.messages, job.messages, third.messages) == (2, 4, 2)
    assert (job.turns, session.message_count) == (1, 8)
    assert (
        session.token_estimate >= 100
    )  # as the answer by hand reported it, and what was said since
    events = [event for event in bench.journal(job.id) if is_message(event)]
    assert [(event.message, is_by_hand(event)) for event in numbered(events)] == [
        (1, True),
        (2, True),
        (3, False),
        (4, False),
    ]
    assert job.summary == "a"
    texts = bench.reader.find_texts(job.id)
    assert texts is not None
    assert texts.prompt == "and now?"
    known = recollect(bench.journal(job.id))
    assert (known.prompt, known.tally.turns, known.tally.messages) == ("and now?", 1, 4)


INTRODUCED = describe(Init(runtime="cli", runtime_session_id="uuid-1"))
CALL = ToolUseEvent(tool_name="Bash", tool_use_id="t1", turn=1, index=0, uuid="c1")
CALLED = AssistantEvent(turn=1, index=1, end=True, uuid="c1")


def die_after_the_call(event: Event) -> None:
    if event.uuid == "c1" and isinstance(event, AssistantEvent):
        raise KeyboardInterrupt


def killed_in_a_call() -> tuple[Bench, JobId]:
    """Killed while a call ran: its result and the next answer reached the transcript, and nobody else."""
    use = [{"type": "tool_use", "id": "t1", "name": "Bash", "input": {}}]
    result = [{"type": "tool_result", "tool_use_id": "t1", "content": "made"}]
    spoken = Spoken()
    spoken.all = [
        line("user", "q1", None, "by the fleet"),
        line("assistant", "c1", "q1", use),
        line("user", "r1", "c1", result),
        line("assistant", "a2", "r1", text("it is made")),
    ]
    bench = Bench(
        agent=replace(persistent(), runtime=CLI),
        runtime=PlayedRuntime([INTRODUCED, CALL, CALLED]),
    )
    transcripts = ClaudeTranscripts(
        lambda uuid, directory: spoken, CLI.can_resume, lambda model, used: MicroUsd(7)
    )
    bench.context = replace(bench.context, transcripts=transcripts)
    job_id = bench.submit("by the fleet").job.id
    with pytest.raises(KeyboardInterrupt):
        bench.execute(job_id, die_after_the_call)
    return bench, job_id


RECOVERED = [("by the fleet", None), ("", 1), ("made", 1), ("it is made", 2)]


def said_in(bench: Bench, job_id: JobId) -> list[tuple[str, int | None]]:
    return [(one.text, one.turn) for one in whole_messages(bench.journal(job_id))]


def test_answers_received_after_the_worker_died_are_recovered_by_the_next_execution() -> None:
    bench, job_id = killed_in_a_call()
    bench.lose(job_id)
    usage = Usage(input_tokens=5, cost_microusd=MicroUsd(100))
    answer = AssistantEvent(content="done", turn=3, index=0, end=True, uuid="a3")
    bench.runtime = PlayedRuntime([INTRODUCED, answer, describe(Complete(usage=usage))])

    job = bench.execute(job_id)

    assert said_in(bench, job_id) == [*RECOVERED, ("done", 3)]
    assert not any(is_by_hand(event) for event in bench.journal(job_id))
    assert (job.turns, job.input_tokens, job.cost_microusd) == (3, 95, 107)
    assert bench.runtime.requests[0].job_turns == 2
    assert recollect(bench.journal(job_id)).tally.usage.cost_microusd == 107


def test_answers_received_after_the_worker_died_are_recovered_when_the_job_ends_with_it() -> None:
    bench, job_id = killed_in_a_call()

    async def kill_all(executions: Collection[ExecutionId]) -> Mapping[ExecutionId, str]:
        return {}

    record = RepairContext(
        state=bench.store,
        reader=bench.reader,
        journals=bench.context.journals,
        clock=bench.clock,
        is_alive=lambda process: False,
        transcripts=bench.context.transcripts,
    )
    terms = RescueTerms(boot_id="b", max_restarts=0, kill_all_marked=kill_all)
    anyio.run(rescue, record, terms)
    anyio.run(rescue, record, terms)

    job = bench.job(job_id)
    assert (job.status, job.turns, job.cost_microusd) == (JobStatus.FAILED, 2, 7)
    assert said_in(bench, job_id) == RECOVERED
    assert recollect(bench.journal(job_id)).tally.totals.turns == job.turns
