"""The end of a turn: after an answer nothing else is said, unless something else can be seen that has to end."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, closing
from pathlib import Path

import anyio

from engine.chat.chat_bench import ChatBench, chat_bench, until
from engine.chat.test_chat_commands import said
from engine.chat.test_outbox import sending
from nightherd.engine.chat.follow_turns import TurnFollowers
from nightherd.engine.chat.outbox import Outbox
from nightherd.model.chat.post import PostStatus
from nightherd.model.ids import JobId, generate_execution_id
from nightherd.model.journal.event import AssistantEvent
from nightherd.model.journal.live_text import TextDelta
from nightherd.testing.state_values import settle

ANSWER = "It is 42."


@asynccontextmanager
async def following(bench: ChatBench, outbox: Outbox) -> AsyncIterator[None]:
    """Follow the turns of the bot, until the end."""
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(TurnFollowers(bench.context, outbox).run)
        yield
        tasks.cancel_scope.cancel()


async def answer_and_begin_another(bench: ChatBench, job: JobId) -> None:
    """The agent has answered, and more text comes in that is never recorded."""
    journals, execution = bench.context.fleet.journals, generate_execution_id(job, 1)
    with closing(journals.open(job, epoch=1, execution=execution)) as journal:
        journal.append(AssistantEvent(content=ANSWER, end=True))
        after = journal.last_seq
    live = journals.live_text(job, asyncio.get_running_loop().call_later)
    await until(lambda: len(bench.reader.posts_of_job(job)) == 1)
    live.append(TextDelta(epoch=1, after=after, part=1, at=0, text="And by the way"))
    await until(lambda: len(bench.reader.posts_of_job(job)) == 2)
    live.close()


async def end(bench: ChatBench, job: JobId) -> None:
    """The job is over, and its turn."""
    await bench.apply(settle(1))
    bench.context.signals.turns.set()
    await until(lambda: not bench.reader.answering_conversations(bench.context.settings.bot))


async def test_nothing_is_said_after_an_answer_in_place_of_what_nobody_has_seen(
    tmp_path: Path,
) -> None:
    async with chat_bench(tmp_path) as bench:
        await said(bench, "what is it?")
        job = await bench.start_turn(runs=True)
        async with following(bench, Outbox(bench.context)):
            await answer_and_begin_another(bench, job)
            await end(bench, job)
        first, second = bench.reader.posts_of_job(job)
        assert (first.status, second.status) == (PostStatus.PENDING, PostStatus.DROPPED)
        async with sending(bench):
            await until(lambda: not bench.reader.unsent_conversations(bench.context.settings.bot))
        assert [one.text for one in bench.platform.posted()] == [ANSWER]


async def test_what_people_have_seen_coming_in_after_an_answer_is_closed(tmp_path: Path) -> None:
    async with chat_bench(tmp_path) as bench:
        await said(bench, "what is it?")
        job = await bench.start_turn(runs=True)
        async with sending(bench) as outbox, following(bench, outbox):
            await answer_and_begin_another(bench, job)
            await until(lambda: len(bench.platform.posted()) == 2)
            await end(bench, job)
            await until(lambda: not bench.reader.unsent_conversations(bench.context.settings.bot))
        assert [one.text for one in bench.platform.posted()] == [ANSWER, "Done."]
