"""Messages that come in during a turn: on record before the agent is told them, once, whatever fails in between."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Sequence
from typing import Any

import anyio
import pytest
from msgspec.structs import replace

from engine.bench import AGENT, Bench
from engine.chat.chat_bench import settings_of
from nightherd.engine.operations.new_job import JobDraft, job_change
from nightherd.errors import StateError
from nightherd.model.change import Answer, Change
from nightherd.model.chat.changes import JoinTurn, StartTurn
from nightherd.model.chat.message import ChatMessage
from nightherd.model.chat.settings import SessionScope
from nightherd.model.ids import JobId
from nightherd.model.jobs.job import JobStatus, TriggerType
from nightherd.model.journal.event import (
    AssistantEvent,
    Event,
    SystemEvent,
    ToolResultEvent,
    ToolUseEvent,
    describe,
    messages_joined,
)
from nightherd.model.journal.system import Complete
from nightherd.ports import NewInput, RuntimeRequest
from nightherd.testing.chat_values import BOT, conversation, said
from nightherd.testing.memory_state import MemoryStore
from nightherd.testing.state_values import BEGINNING

SECRET = "hunter2-hunter2-hunter2"


class Listening:
    """A runtime that asks for input while its call runs, when it is done, and once more."""

    def __init__(self) -> None:
        self.told: list[Sequence[NewInput]] = []

    async def execute(self, request: RuntimeRequest) -> AsyncGenerator[Event, None]:
        yield ToolUseEvent(tool_name="Bash", tool_use_id="c1", end=True)
        self.told.append(await request.take_input())
        yield ToolResultEvent(tool_use_id="c1", success=True, end=True)
        self.told.append(await request.take_input())
        self.told.append(await request.take_input())
        yield AssistantEvent(content="Done.", end=True)
        yield describe(Complete())


class FailingJoins:
    """A store that fails before it puts messages into a turn."""

    def __init__(self, store: MemoryStore) -> None:
        self._store = store

    async def apply(self, changes: Sequence[Change]) -> Sequence[Answer]:
        if any(isinstance(one, JoinTurn) for one in changes):
            raise StateError("the disk is full", code="ENOSPC")
        return await self._store.apply(changes)


class Turn:
    """A turn that answers the first message; others wait."""

    def __init__(self, *waiting: Any, scope: SessionScope = SessionScope.CHANNEL) -> None:
        self.runtime = Listening()
        self.bench = bench = Bench(environment={"API_TOKEN": SECRET})
        bench.context = replace(bench.context, runtimes=lambda name: self.runtime)
        settings = replace(settings_of(session_scope=scope), bot=BOT)
        bench.agent = replace(AGENT, bots=(settings,), permission_mode="bypassPermissions")
        draft = JobDraft(agent=bench.agent, prompt="Go", trigger_type=TriggerType.SLACK)
        change = job_change(draft, bench.context)
        self.job_id: JobId = change.job.id
        first = said(1)
        start = StartTurn(
            conversation_id=conversation().id,
            messages=(first.message.id,),
            job=change,
            at=BEGINNING,
        )
        begun: list[Change] = [first, start, *waiting]
        anyio.run(bench.store.apply, begun)

    def run(self) -> None:
        assert self.bench.execute(self.job_id).status is JobStatus.COMPLETED

    def texts(self) -> list[list[str]]:
        """What the runtime was told, each time it asked."""
        return [[one.text for one in told] for told in self.runtime.told]

    def joined(self) -> list[SystemEvent]:
        events = self.bench.journal(self.job_id)
        return [e for e in events if isinstance(e, SystemEvent) and messages_joined(e)]

    def taken(self) -> Sequence[ChatMessage]:
        return self.bench.reader.chat_messages_of_job(self.job_id)

    def waiting(self) -> Sequence[ChatMessage]:
        return self.bench.reader.waiting_chat_messages(conversation().id, 100)


def test_messages_are_on_record_and_in_the_job_before_the_agent_is_told_them() -> None:
    turn = Turn(said(2, text="wait"), said(3, text=f"use {SECRET}", user="U2"))

    turn.run()

    during, after, again = turn.texts()
    (event,) = turn.joined()
    (given,) = turn.runtime.told[1]
    assert (during, again) == ([], []), "nothing while a call runs, and each message once"
    assert after == [event.content]
    assert (given.uuid, event.end) == (event.uuid, True)
    assert messages_joined(event) == [said(2).message.id, said(3).message.id]
    assert "wait" in after[0]
    assert after[0].count("<said") == 2
    assert SECRET not in after[0]
    assert [one.id for one in turn.taken()] == [said(n).message.id for n in (1, 2, 3)]
    known = turn.bench.reader.find_chat_turn(turn.job_id)
    assert known is not None
    assert known.message_count == 3


def test_messages_with_files_and_those_behind_them_wait_for_the_next_turn() -> None:
    turn = Turn(said(2, text="a"), said(3, files=({"id": "F1", "name": "hay.png"},)), said(4))

    turn.run()

    assert [len(texts) for texts in turn.texts()] == [0, 1, 0]
    assert [one.id for one in turn.waiting()] == [said(3).message.id, said(4).message.id]


@pytest.mark.parametrize(("user", "count"), [("U1", 1), ("U2", 0)])
def test_only_the_person_of_a_session_is_heard_in_it(user: str, count: int) -> None:
    turn = Turn(said(2, text="wait", user=user), scope=SessionScope.USER)

    turn.run()

    assert turn.texts()[1] == ["wait"] * count


def test_what_is_on_record_is_in_the_job_when_another_worker_continues() -> None:
    turn = Turn(said(2, text="wait"))
    bench = turn.bench
    whole = bench.context
    bench.context = replace(whole, state=FailingJoins(bench.store))
    with pytest.raises(StateError):
        bench.execute(turn.job_id)
    assert turn.texts() == [[]], "the agent is not told what is not in its job"
    assert [one.id for one in turn.waiting()] == [said(2).message.id]

    bench.context = whole
    turn.runtime.told.clear()
    turn.run()

    assert len(turn.joined()) == 1
    assert not turn.waiting()
    assert turn.texts() == [[], [], []], "the runtime finds it in the record"
    assert len(turn.taken()) == 2
