"""What people write on Discord, as it is handed on: where, to whom, with what."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import anyio
import pytest

from nightherd.errors import NightherdError
from nightherd.model.chat.incoming import IncomingMessage
from nightherd.model.chat.platform import ChatPlace
from nightherd.model.chat.settings import ChannelMode
from nightherd.testing.discord_api import DiscordApi
from nightherd.testing.recording_receiver import RecordingReceiver
from triggers.chat.discord_bot import bot_settings, running


@pytest.fixture
def discord(tmp_path: Path) -> Iterator[DiscordApi]:
    with DiscordApi(tmp_path) as api:
        yield api


async def test_a_message_of_a_channel_names_its_server(discord: DiscordApi) -> None:
    async with running(discord) as bot:
        discord.say("hello")
        message = await bot.message()

    assert (message.guild_id, message.parent_channel_id) == (discord.guild_id, None)
    assert not message.is_direct


async def test_a_thread_is_a_channel_with_a_parent(discord: DiscordApi) -> None:
    before = discord.add_thread("before")
    async with running(discord) as bot:
        after = discord.add_thread("after")
        discord.say("one", channel=before)
        discord.say("two", channel=after)
        await bot.receiver.until(lambda: len(bot.receiver.messages) >= 2)

    by_text = {message.text: message for message in bot.receiver.messages}
    assert by_text["one"].place == ChatPlace(channel_id=before)
    assert by_text["two"].place == ChatPlace(channel_id=after)
    assert {one.parent_channel_id for one in by_text.values()} == {discord.channel_id}


async def test_a_thread_that_discord_never_mentioned_is_asked_for_once(discord: DiscordApi) -> None:
    thread = discord.add_thread("quiet")
    discord.world.channels[thread]["thread_metadata"]["archived"] = True
    hidden = discord.world.channels.pop(thread)
    async with running(discord) as bot:
        discord.world.channels[thread] = hidden
        for n in range(3):
            discord.say(f"number {n}", channel=thread)
        await bot.receiver.until(lambda: len(bot.receiver.messages) >= 3)

    assert {one.parent_channel_id for one in bot.receiver.messages} == {discord.channel_id}
    assert discord.rest.lines.count(f"GET /channels/{thread}") == 1


async def test_a_direct_message_has_no_server(discord: DiscordApi) -> None:
    direct = discord.direct_channel()
    async with running(discord) as bot:
        discord.say("psst", channel=direct)
        message = await bot.message()
        history = await bot.connection.history(ChatPlace(channel_id=direct), None, 10)
        result = await bot.connection.post(bot.post("yes?", place=message.place))

    assert (message.is_direct, message.guild_id) == (True, None)
    assert message.place == ChatPlace(channel_id=direct)
    assert list(history) == [message]
    assert result.error is None
    assert [post.text for post in discord.posted(direct)] == ["yes?"]


async def test_history_of_a_thread_names_its_parent(discord: DiscordApi) -> None:
    thread = discord.add_thread("old")
    said = discord.say("hello", channel=thread)
    async with running(discord) as bot:
        (message,) = await bot.connection.history(ChatPlace(channel_id=thread), None, 10)

    assert message.message_id == said
    assert (message.guild_id, message.parent_channel_id) == (discord.guild_id, discord.channel_id)


async def test_the_role_of_the_bot_and_a_reply_to_it_name_it_too(discord: DiscordApi) -> None:
    async with running(discord) as bot:
        discord.say(f"<@&{discord.bot.role_id}> build it")
        discord.say("no word of you")
        sent = await bot.connection.post(bot.post("hello"))
        assert sent.message_id is not None
        discord.reply(sent.message_id, "and this?")
        discord.reply(sent.message_id, "or that?", pings=False)
        await bot.receiver.until(lambda: len(bot.receiver.messages) >= 4)

    shown = [(message.text, message.is_mention) for message in bot.receiver.messages]
    assert shown == [
        ("build it", True),
        ("no word of you", False),
        ("and this?", True),
        ("or that?", False),
    ]


async def test_people_channels_and_roles_are_named(discord: DiscordApi) -> None:
    grace = discord.add_user("Grace")
    other = discord.add_bot("reviewer", "loopback.token.of-reviewer")
    async with running(discord) as bot:
        discord.say(f"<@{grace}> <@{other.id}> see <#{discord.channel_id}>, <@&{other.role_id}>")
        message = await bot.message()

    assert message.text == "@Grace @reviewer see #general, @reviewer"
    assert not message.is_mention


async def test_what_bots_say_is_left_out(discord: DiscordApi) -> None:
    other = discord.add_bot("reviewer", "loopback.token.of-reviewer")
    async with running(discord) as bot:
        await bot.connection.post(bot.post("I am a bot"))
        discord.say("so am I", user=other.id)
        said = discord.say("I am not")
        message = await bot.message()
        history = await bot.connection.history(bot.place, None, 10)

    assert message.message_id == said
    assert [one.message_id for one in history] == [said]


async def test_history_goes_on_past_pages_of_what_bots_said(discord: DiscordApi) -> None:
    other = discord.add_bot("reviewer", "loopback.token.of-reviewer")
    first = discord.say("first")
    for n in range(150):
        discord.say(f"noise {n}", user=other.id)
    last = discord.say("last")
    async with running(discord) as bot:
        history = await bot.connection.history(bot.place, first, 10)

    assert [one.message_id for one in history] == [last]


async def test_history_of_a_channel_that_is_not_there_is_refused(discord: DiscordApi) -> None:
    async with running(discord) as bot:
        with pytest.raises(NightherdError, match="there is no channel with that id"):
            await bot.connection.history(ChatPlace(channel_id="123"), None, 10)
        with pytest.raises(NightherdError, match="no id of Discord's"):
            await bot.connection.history(ChatPlace(channel_id="C1"), None, 10)


async def test_the_channels_of_a_server_are_named_where_the_bot_listens_in_all(
    discord: DiscordApi,
) -> None:
    lively, thread = discord.add_channel("lively"), discord.add_thread("thread")
    discord.world.channels[lively]["last_message_id"] = discord.say("hello", channel=lively)
    modes = {discord.guild_id: ChannelMode.MENTION}
    async with running(discord, bot_settings(guild_modes=modes)) as bot:
        places = [place.channel_id for place in bot.receiver.states[0].places]
    async with running(discord) as bot:
        without = bot.receiver.states[0].places

    assert places[0] == lively
    assert set(places) == {lively, thread, discord.channel_id}
    assert without == ()


async def test_a_forum_has_no_messages_of_its_own(discord: DiscordApi) -> None:
    forum = discord.add_channel("forum")
    discord.world.channels[forum] |= {"type": 15, "available_tags": [], "default_forum_layout": 0}
    async with running(discord) as bot:
        history = await bot.connection.history(ChatPlace(channel_id=forum), None, 10)
        thread = discord.add_thread("a topic", forum)
        discord.say("hello", channel=thread)
        message = await bot.message()

    assert list(history) == []
    assert message.parent_channel_id == forum


async def test_a_voice_note_is_flagged_and_other_audio_is_not(discord: DiscordApi) -> None:
    async with running(discord) as bot:
        discord.say("", file=b"OggS", is_voice=True)
        discord.say("here", file=b"text")
        await bot.receiver.until(lambda: len(bot.receiver.messages) >= 2)

    voice, text = (message.files[0] for message in bot.receiver.messages)
    assert (voice.is_voice, voice.media_type) == (True, "audio/ogg")
    assert not text.is_voice


async def test_a_forwarded_message_is_shown_with_what_was_forwarded(discord: DiscordApi) -> None:
    async with running(discord) as bot:
        discord.forward("the build is **red**")
        message = await bot.message()

    assert message.text == "the build is **red**"


async def test_a_file_whose_address_expired_is_refused(discord: DiscordApi, tmp_path: Path) -> None:
    async with running(discord) as bot:
        discord.say("look", file=b"text")
        file = (await bot.message()).files[0]
        discord.world.files.clear()
        with pytest.raises(NightherdError, match="Discord answered 404") as refused:
            await bot.connection.download(file, str(tmp_path / "file"), 1_000)

    assert "hm=" not in str(refused.value)
    assert not (tmp_path / "file").exists()


async def test_a_file_that_cannot_be_written_is_refused(
    discord: DiscordApi, tmp_path: Path
) -> None:
    async with running(discord) as bot:
        discord.say("look", file=b"text")
        file = (await bot.message()).files[0]
        with pytest.raises(NightherdError, match="No such file or directory"):
            await bot.connection.download(file, str(tmp_path / "no" / "file"), 1_000)
        (tmp_path / "there").write_text("already")
        with pytest.raises(NightherdError, match="File exists"):
            await bot.connection.download(file, str(tmp_path / "there"), 1_000)

    assert (tmp_path / "there").read_text() == "already"


async def test_a_slow_channel_holds_up_no_other(discord: DiscordApi) -> None:
    class SlowChannel(RecordingReceiver):
        def __init__(self, slow: str) -> None:
            super().__init__()
            self.slow = slow
            self.may_go_on = anyio.Event()

        async def message(self, message: IncomingMessage) -> None:
            if message.place.channel_id == self.slow:
                await self.may_go_on.wait()
            await super().message(message)

    fast = discord.add_channel("fast")
    receiver = SlowChannel(discord.channel_id)
    async with running(discord, receiver=receiver) as bot:
        slow_ids = [discord.say("slow"), discord.say("slower")]
        fast_id = discord.say("fast", channel=fast)
        message = await bot.message()
        assert message.message_id == fast_id
        receiver.may_go_on.set()
        await receiver.until(lambda: len(receiver.messages) >= 3)

    assert [one.message_id for one in receiver.messages[1:]] == slow_ids


async def test_two_bots_hear_the_same_channel(discord: DiscordApi) -> None:
    other = discord.add_bot("reviewer", "loopback.token.of-reviewer")
    async with running(discord) as one:
        discord.bot = other
        async with running(discord) as two:
            discord.say("for the second of you", names_bot=True)
            messages = [await one.message(), await two.message()]

    assert [message.is_mention for message in messages] == [False, True]
    assert [message.text for message in messages] == [
        "@reviewer for the second of you",
        "for the second of you",
    ]


async def test_people_who_are_not_known_are_left_out(discord: DiscordApi) -> None:
    grace = discord.add_user("Grace")
    async with running(discord) as bot:
        people = await bot.connection.people([grace, "1", "nobody", grace])
        again = await bot.connection.people([grace])

    assert people == again == {grace: "Grace"}
    assert discord.rest.lines.count(f"GET /users/{grace}") == 1
