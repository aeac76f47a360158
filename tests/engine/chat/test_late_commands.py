"""Commands and answers that arrive long after they were said: they are about what went on then, and nothing later."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import pytest
from msgspec.structs import replace

from engine.chat.chat_bench import ChatBench, chat_bench
from engine.chat.test_commands_once import end_turn, written
from engine.chat.test_items import question, settings
from nightherd.engine.chat.intake import TAKEN_ALREADY, Intake
from nightherd.model.chat.incoming import ChatCommand, IncomingMessage
from nightherd.model.chat.message import MessageStatus
from nightherd.model.ids import JobId
from nightherd.model.inbox.changes import AskPerson
from nightherd.model.jobs.job import JobStatus
from nightherd.testing.contracts import inbox
from nightherd.testing.determinism import FakeClock
from nightherd.testing.local_chat import BEGINNING, HERE

MINUTE = timedelta(minutes=1)
SKEWS = [timedelta(hours=-1), timedelta(), timedelta(hours=3)]
"""How far our clock is ahead of the platform's."""


class Place:
    """A conversation, told when things are said and when they arrive, in minutes since the beginning."""

    def __init__(self, bench: ChatBench, clock: FakeClock, skew: timedelta) -> None:
        self.bench = bench
        self._clock = clock
        self._skew = skew

    def at(self, minute: float) -> None:
        """It is that late."""
        self._clock.advance(BEGINNING + self._skew + minute * MINUTE - self._clock.now())

    def said(self, text: str, minute: float) -> IncomingMessage:
        """What a person wrote then."""
        return replace(written(self.bench, text), sent_at=BEGINNING + minute * MINUTE)

    async def take(self, message: IncomingMessage, minute: float) -> str | None:
        """The message arrives; returns what the bot says to it."""
        self.at(minute)
        await Intake(self.bench.context).take(message)
        texts = [
            self.bench.reader.find_post_texts(one.id)
            for one in self.bench.reader.list_posts(self.bench.here, 100)
            if one.reply_to == message.message_id
        ]
        return next((one.text for one in texts if one is not None), None)

    async def turn(self, number: int, minute: float) -> JobId:
        """What waits is answered from then on."""
        self.at(minute)
        return await self.bench.start_turn(number)

    async def end(self, job: JobId, minute: float) -> None:
        """The turn is over."""
        self.at(minute)
        await end_turn(self.bench, job)

    def is_stopped(self, job: JobId) -> bool:
        """Whether the job of a turn was stopped."""
        found = self.bench.reader.find_job(job)
        assert found is not None
        return found.status is JobStatus.CANCELLED


def a_place(bench: ChatBench, skew: timedelta = SKEWS[1]) -> Place:
    """The channel of a bench, whose clock is a fake one."""
    clock = bench.clock
    assert isinstance(clock, FakeClock)
    return Place(bench, clock, skew)


@pytest.mark.parametrize("skew", SKEWS, ids=["behind", "same", "ahead"])
async def test_a_stop_never_stops_a_turn_that_began_when_the_one_it_was_about_was_over(
    tmp_path: Path, skew: timedelta
) -> None:
    async with chat_bench(tmp_path) as bench:
        here = a_place(bench, skew)
        await here.take(here.said("fix it", 1), 1.1)
        first = await here.turn(1, 1.2)
        await here.take(here.said("then this", 2), 2.1)
        stop = here.said("!stop", 3)  # the process is killed before anything of it is on record
        await here.end(first, 4)
        second = await here.turn(2, 4.1)
        told = await here.take(stop, 5)
        assert told is not None
        assert told.startswith("Something else was asked")
        assert not here.is_stopped(second)
        assert await here.take(here.said("!stop", 6), 6.1) == f"Stopping `{second}`."
        assert here.is_stopped(second)


@pytest.mark.parametrize("command", ["!stop", "!retry", "!reset"])
async def test_a_command_changes_nothing_that_was_asked_after_it_was_said(
    tmp_path: Path, command: str
) -> None:
    async with chat_bench(tmp_path) as bench:
        here = a_place(bench)
        await here.take(here.said("old", 1), 1.1)
        await here.end(await here.turn(1, 1.2), 2)
        late = here.said(command, 3)
        await here.take(here.said("new", 4), 4.1)
        job = await here.turn(2, 4.2)
        if command != "!stop":
            await here.end(job, 5)
        told = await here.take(late, 6)
        assert told is not None
        assert told.startswith("Something else was asked")
        assert not here.is_stopped(job)
        conversation = bench.reader.find_conversation(bench.here)
        assert conversation is not None
        assert conversation.session_id is not None
        assert not bench.reader.waiting_chat_messages(bench.here, 10)


@pytest.mark.parametrize("skew", SKEWS, ids=["behind", "same", "ahead"])
async def test_a_stop_that_is_said_before_the_turn_has_begun_stops_it(
    tmp_path: Path, skew: timedelta
) -> None:
    async with chat_bench(tmp_path) as bench:
        here = a_place(bench, skew)
        await here.take(here.said("before", 1), 1.1)
        await here.end(await here.turn(1, 1.2), 2)
        await here.take(here.said("fix it", 3), 3.1)
        stop = here.said("!stop", 3.2)
        job = await here.turn(2, 3.3)
        assert await here.take(stop, 3.4) == f"Stopping `{job}`."
        assert here.is_stopped(job)


async def test_a_reset_keeps_what_was_said_after_it(tmp_path: Path) -> None:
    async with chat_bench(tmp_path) as bench:
        here = a_place(bench)
        await here.take(here.said("old", 1), 1.1)
        late = here.said("!reset", 2)
        await here.take(here.said("new", 3), 3.1)
        told = await here.take(late, 4)
        assert told == "The next message begins a new session. 1 message dropped."
        statuses = [one.status for one in bench.messages()]
        assert statuses[:2] == [MessageStatus.DROPPED, MessageStatus.WAITING]


async def test_a_slash_command_that_is_delivered_again_changes_nothing(tmp_path: Path) -> None:
    async with chat_bench(tmp_path) as bench:
        here = a_place(bench)
        stop = ChatCommand(
            bot=bench.context.settings.bot,
            place=HERE,
            user_id="U1",
            user_name="Ada",
            name="stop",
            command_id="K1",
        )
        await here.take(here.said("fix it", 1), 1.1)
        first = await here.turn(1, 1.2)
        assert await Intake(bench.context).command(stop) == f"Stopping `{first}`."
        await here.end(first, 2)
        await here.take(here.said("then this", 3), 3.1)
        second = await here.turn(2, 3.2)
        assert await Intake(bench.context).command(stop) == TAKEN_ALREADY
        assert not here.is_stopped(second)


@pytest.mark.parametrize("skew", SKEWS, ids=["behind", "same", "ahead"])
@pytest.mark.parametrize(("said_at", "is_answer"), [(2, False), (4, True)])
async def test_what_was_said_before_a_question_is_no_answer_to_it(
    tmp_path: Path, skew: timedelta, said_at: float, is_answer: bool
) -> None:
    async with chat_bench(tmp_path, settings()) as bench:
        here = a_place(bench, skew)
        await here.take(replace(here.said("push it", 1), is_direct=True), 1.1)
        here.at(1.2)
        job = await bench.start_turn(runs=True)
        message = replace(here.said("the third one", said_at), is_direct=True)
        here.at(3)
        asked = question("main")
        item = replace(asked.item, job_id=job, created_at=bench.clock.now())
        asked = replace(asked, item=item)
        await bench.apply(AskPerson(asked=(asked,), job_id=job, epoch=1), inbox.suspend(1))
        await here.take(message, 5)
        found = bench.reader.find_item(item.id)
        assert found is not None
        assert found.is_pending is not is_answer
        assert bool(bench.reader.waiting_chat_messages(bench.here, 10)) is not is_answer
