"""Intake: each message takes effect once, whether it is delivered live, again, or from the history."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from datetime import timedelta
from pathlib import Path

import anyio
import pytest
from msgspec.structs import replace

from engine.chat.chat_bench import THERE, ChatBench, chat_bench, settings_of, until
from nightherd.engine.chat.receiver import BotReceiver
from nightherd.errors import RefusedError
from nightherd.model.chat.bot import BotStatus
from nightherd.model.chat.incoming import ButtonPress, ChatCommand, IncomingMessage
from nightherd.model.chat.message import MessageStatus
from nightherd.model.chat.platform import ChatPlace
from nightherd.model.chat.post import PostKind
from nightherd.model.chat.settings import ChannelMode, ChannelSettings, UserRules
from nightherd.model.sessions.session import SessionMode, SessionTerms
from nightherd.ports.chat import ConnectionState
from nightherd.testing.determinism import FakeClock
from nightherd.testing.local_chat import BEGINNING, HERE, LocalPlatform

FRESH = ConnectionState(is_connected=True, bot_name="nightherd", is_fresh=True)


def last_said(bench: ChatBench) -> IncomingMessage:
    """The last message that somebody wrote."""
    event = bench.platform.events[-1]
    assert isinstance(event, IncomingMessage)
    return event


async def nothing_pressed(context: object, press: ButtonPress) -> str | None:
    """No button does anything."""
    return None


@asynccontextmanager
async def receiving(bench: ChatBench) -> AsyncIterator[BotReceiver]:
    """The bot takes what comes in, until the end."""
    receiver = BotReceiver(bench.context, nothing_pressed)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(receiver.run)
        yield receiver
        tasks.cancel_scope.cancel()


@asynccontextmanager
async def connected(bench: ChatBench) -> AsyncIterator[BotReceiver]:
    """The bot is connected to its platform, which hands on what happens."""
    async with receiving(bench) as receiver, anyio.create_task_group() as tasks:
        tasks.start_soon(bench.connection.run, receiver)
        await until(bench.reader.list_chat_bots)
        yield receiver
        tasks.cancel_scope.cancel()


async def test_a_message_is_recorded_with_its_person_and_waits(tmp_path: Path) -> None:
    async with chat_bench(tmp_path) as bench, connected(bench):
        bench.platform.say("hello")
        await until(bench.messages)
        (message,) = bench.messages()
        assert message.status is MessageStatus.WAITING
        assert (message.user_id, message.user_name) == ("U1", "Ada")
        assert bench.texts() == ["hello"]
        (session,) = bench.reader.active_messaging_sessions(bench.here)
        assert (session.user_id, session.message_count) == ("U1", 1)
        (bot,) = bench.reader.list_chat_bots()
        assert (bot.status, bot.name) == (BotStatus.CONNECTED, "nightherd")


async def test_a_message_that_is_delivered_again_changes_nothing(tmp_path: Path) -> None:
    async with chat_bench(tmp_path) as bench, receiving(bench) as receiver:
        bench.platform.say("hello")
        said = last_said(bench)
        for _ in range(3):
            await receiver.message(said)
        assert bench.texts() == ["hello"]
    async with chat_bench(tmp_path, platform=bench.platform) as after, receiving(after) as receiver:
        await receiver.message(said)
        assert after.texts() == ["hello"]


async def test_two_deliveries_at_once_make_one_row(tmp_path: Path) -> None:
    async with chat_bench(tmp_path) as bench, receiving(bench) as receiver:
        bench.platform.say("hello")
        said = last_said(bench)
        async with anyio.create_task_group() as tasks:
            for _ in range(5):
                tasks.start_soon(receiver.message, said)
        assert bench.texts() == ["hello"]
        (session,) = bench.reader.active_messaging_sessions(bench.here)
        assert session.message_count == 1


async def test_what_was_said_while_the_bot_was_away_is_taken_in_order(tmp_path: Path) -> None:
    async with chat_bench(tmp_path) as bench:
        async with connected(bench):
            bench.platform.say("one")
            await until(bench.messages)
        bench.platform.say("two")
        bench.platform.say("three")
    async with chat_bench(tmp_path, platform=bench.platform) as after, connected(after):
        after.platform.say("four")
        await until(lambda: len(after.messages()) == 4)
        assert after.texts() == ["one", "two", "three", "four"]


async def test_what_was_said_while_the_connection_was_cut_is_taken(tmp_path: Path) -> None:
    async with chat_bench(tmp_path) as bench, receiving(bench) as receiver:
        await receiver.state(FRESH)
        bench.platform.say("one")
        await receiver.message(last_said(bench))
        await receiver.state(ConnectionState(is_connected=False, error="cut"))
        (bot,) = bench.reader.list_chat_bots()
        assert (bot.status, bot.error) == (BotStatus.DISCONNECTED, "cut")
        bench.platform.say("two")
        await receiver.state(FRESH)
        await until(lambda: len(bench.messages()) == 2)
        assert bench.texts() == ["one", "two"]


async def test_what_was_said_before_the_bot_ever_came_is_not_answered(tmp_path: Path) -> None:
    platform = LocalPlatform()
    platform.connect(settings_of().bot)
    platform.say("long ago")
    late = FakeClock(BEGINNING + timedelta(seconds=0.5))
    async with chat_bench(tmp_path, platform=platform, clock=late) as bench, connected(bench):
        platform.say("now")
        await until(bench.messages)
        assert bench.texts() == ["now"]


async def test_a_history_that_cannot_be_had_is_fetched_at_the_next_connect(tmp_path: Path) -> None:
    async with chat_bench(tmp_path) as bench:
        history = bench.connection.history
        failures = [RefusedError("not now")] * 3

        async def failing(
            place: ChatPlace, after: str | None, limit: int
        ) -> Sequence[IncomingMessage]:
            if failures:
                raise failures.pop()
            return await history(place, after, limit)

        bench.connection.history = failing  # type: ignore[method-assign]
        async with receiving(bench) as receiver:
            receiver._catch_up._pause_s = 0
            await receiver.state(ConnectionState(is_connected=True, is_fresh=False))
            await bench.store.apply(receiver._catch_up.listed())
            bench.platform.say("missed")
            await receiver.state(FRESH)
            await until(lambda: not failures)
            bench.platform.say("live")
            await receiver.message(last_said(bench))
            assert bench.texts() == ["live"]
            await receiver.state(FRESH)
            await until(lambda: len(bench.messages()) == 2)
            assert sorted(bench.texts()) == ["live", "missed"]


async def test_the_cursor_of_a_place_moves_past_what_is_nobodys_business(tmp_path: Path) -> None:
    quiet = settings_of(channels=(ChannelSettings(id="C1", mode=ChannelMode.MENTION),))
    async with chat_bench(tmp_path, quiet) as bench:
        async with connected(bench) as receiver:
            id = bench.platform.say("not for you")
            await until(lambda: receiver._intake._seen)
        assert not bench.messages()
        conversation = bench.reader.find_conversation(bench.here)
        assert conversation is not None
        assert conversation.seen_message_id == id


async def test_who_is_blocked_or_elsewhere_is_not_heard(tmp_path: Path) -> None:
    rules = settings_of(users=UserRules(blocklist=frozenset({"U2"})))
    async with chat_bench(tmp_path, rules) as bench, connected(bench):
        bench.platform.say("let me in", user="U2")
        bench.platform.say("elsewhere", place=THERE)
        bench.platform.say("hello")
        await until(bench.messages)
        assert bench.texts() == ["hello"]
        assert not bench.messages(THERE)


async def test_who_says_too_much_is_told_once_and_then_ignored(tmp_path: Path) -> None:
    rules = settings_of(users=UserRules(max_messages_per_hour=2))
    async with chat_bench(tmp_path, rules) as bench, connected(bench):
        for number in range(4):
            bench.platform.say(f"{number}")
        bench.platform.say("mine", user="U2")
        await until(lambda: "mine" in bench.texts())
        messages = bench.messages()
        assert bench.texts() == ["0", "1", "2", "mine"]
        assert [one.status.value for one in messages] == [
            "waiting",
            "waiting",
            "dropped",
            "waiting",
        ]
        (told,) = bench.reader.list_posts(bench.here, 10)
        texts = bench.reader.find_post_texts(told.id)
        assert texts is not None
        assert "2 messages in the last hour" in texts.text
        assert told.reply_to == messages[2].platform_message_id


async def test_a_voice_note_is_refused_with_a_message(tmp_path: Path) -> None:
    async with chat_bench(tmp_path) as bench, receiving(bench) as receiver:
        bench.platform.say("", file=b"RIFF")
        said = last_said(bench)
        voice = replace(said.files[0], is_voice=True, media_type="audio/ogg")
        await receiver.message(replace(said, files=(voice,)))
        (message,) = bench.messages()
        assert message.status is MessageStatus.DROPPED
        (told,) = bench.reader.list_posts(bench.here, 10)
        texts = bench.reader.find_post_texts(told.id)
        assert texts is not None
        assert "voice notes" in texts.text


async def test_a_secret_in_a_message_is_masked_in_its_row(tmp_path: Path) -> None:
    async with chat_bench(tmp_path, secret="sk-very-secret-value") as bench, connected(bench):
        bench.platform.say("the key is sk-very-secret-value")
        await until(bench.messages)
        assert "sk-very-secret-value" not in bench.texts()[0]


async def test_a_person_who_was_quiet_for_long_begins_a_new_session(tmp_path: Path) -> None:
    terms = SessionTerms(mode=SessionMode.PER_CHANNEL, timeout=timedelta(hours=24))
    clock = FakeClock(BEGINNING - timedelta(days=3))
    bench_of = chat_bench(tmp_path, settings_of(session=terms), clock=clock)
    async with bench_of as bench, connected(bench):
        bench.platform.say("hello")
        await until(bench.messages)
        clock.advance(timedelta(hours=25))
        bench.platform.say("again")
        await until(lambda: len(bench.messages()) == 2)
        first, second = bench.messages()
        assert first.session_id != second.session_id
        assert len(bench.reader.active_messaging_sessions(bench.here)) == 1


@pytest.mark.parametrize("point", ["chat.before_record", "chat.after_record"])
async def test_a_message_survives_the_end_of_the_process_while_it_is_recorded(
    tmp_path: Path, point: str
) -> None:
    class Ended(BaseException):
        """The process is gone."""

    def end(name: str) -> None:
        if name == point:
            raise Ended

    platform = LocalPlatform()
    async with chat_bench(tmp_path, platform=platform, probe=end) as bench:
        await bench.store.apply(BotReceiver(bench.context, nothing_pressed)._catch_up.listed())
        platform.say("hello")
        receiver = BotReceiver(bench.context, nothing_pressed)
        with pytest.raises(Ended):
            await receiver.message(last_said(bench))
    async with chat_bench(tmp_path, platform=platform) as after, connected(after):
        await until(after.messages)
        platform.say("and then")
        await until(lambda: len(after.messages()) == 2)
        assert after.texts() == ["hello", "and then"]


async def test_many_people_in_many_places_each_in_order(tmp_path: Path) -> None:
    channels = tuple(ChannelSettings(id=f"C{n}", mode=ChannelMode.ALL) for n in range(1, 6))
    bench_of = chat_bench(tmp_path, settings_of(channels=channels))
    async with bench_of as bench, receiving(bench) as receiver:
        places = [ChatPlace(channel_id=one.id) for one in channels]
        async with anyio.create_task_group() as tasks:
            for number in range(100):
                place = places[number % len(places)]
                bench.platform.say(f"{number}", place=place, user=f"U{number % 10}")
                tasks.start_soon(receiver.message, last_said(bench))
        for number, place in enumerate(places):
            assert bench.texts(place) == [f"{one}" for one in range(number, 100, 5)]


async def test_a_slash_command_that_asks_is_taken_once(tmp_path: Path) -> None:
    async with chat_bench(tmp_path) as bench, receiving(bench) as receiver:
        command = ChatCommand(
            bot=bench.context.settings.bot,
            place=HERE,
            user_id="U1",
            user_name="Ada",
            name="skill",
            argument="review the last commit",
            command_id="K1",
        )
        assert await receiver.command(command) == "Running `review`."
        assert await receiver.command(command) == "I am on it already."
        assert bench.texts() == ["Use your skill `review`.\n\nthe last commit"]
        (message,) = bench.messages()
        assert message.message_to_reply_to is None
        stranger = replace(command, place=THERE, command_id="K2")
        assert await receiver.command(stranger) == "You may not use me here."


async def test_a_command_in_a_message_is_answered_and_no_turn_gets_it(tmp_path: Path) -> None:
    async with chat_bench(tmp_path) as bench, connected(bench):
        id = bench.platform.say("!ping")
        await until(bench.messages)
        (message,) = bench.messages()
        assert (message.status, message.reason) == (MessageStatus.DROPPED, "command ping")
        (told,) = bench.reader.list_posts(bench.here, 10)
        assert (told.kind, told.reply_to) == (PostKind.NOTICE, id)
