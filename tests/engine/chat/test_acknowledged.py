"""Reactions: a message that the agent has, or is told while it is at work, shows that until the turn is over."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

import anyio

from engine.chat.chat_bench import ChatBench, chat_bench, until
from engine.chat.test_chat_commands import said
from nightherd.engine.chat.follow_turns import MOST_ACKNOWLEDGED, TurnFollowers
from nightherd.engine.chat.outbox import Outbox
from nightherd.model.chat.changes import JoinTurn
from nightherd.model.ids import JobId, generate_execution_id
from nightherd.model.journal.event import describe
from nightherd.model.journal.system import UserInput
from nightherd.testing.state_values import settle

EYES = ["\N{EYES}"]


async def tell(bench: ChatBench, job: JobId) -> None:
    """Tell the agent what waits: on record first, then in the job."""
    waiting = tuple(one.id for one in bench.reader.waiting_chat_messages(bench.here, 100))
    execution = generate_execution_id(job, 1)
    with closing(bench.context.fleet.journals.open(job, epoch=1, execution=execution)) as journal:
        journal.append(describe(UserInput(messages=waiting), "more"))
    at = bench.clock.now()
    await bench.apply(JoinTurn(job_id=job, epoch=1, messages=waiting, at=at))


def reactions(bench: ChatBench) -> list[list[str]]:
    """The bot's reactions to each message of a person."""
    return [list(bench.platform.reactions(one.platform_message_id)) for one in bench.messages()]


async def test_messages_that_an_agent_is_told_at_work_are_acknowledged_until_its_turn_is_over(
    tmp_path: Path,
) -> None:
    async with chat_bench(tmp_path) as bench:
        await said(bench, *(f"{number}" for number in range(MOST_ACKNOWLEDGED + 1)))
        job = await bench.start_turn(runs=True)
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(TurnFollowers(bench.context, Outbox(bench.context)).run)
            began = [[], *[EYES] * MOST_ACKNOWLEDGED]
            await until(lambda: reactions(bench) == began)
            await said(bench, "and this")
            assert reactions(bench) == [*began, []]
            await tell(bench, job)
            await until(lambda: reactions(bench) == [*began, EYES])
            tasks.cancel_scope.cancel()
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(TurnFollowers(bench.context, Outbox(bench.context)).run)
            await said(bench, "that too")
            await tell(bench, job)
            await until(lambda: reactions(bench) == [*began, EYES, EYES])
            await bench.apply(settle(1))
            bench.context.signals.turns.set()
            await until(lambda: not any(reactions(bench)))
            tasks.cancel_scope.cancel()
