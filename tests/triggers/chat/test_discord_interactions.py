"""Slash commands, buttons and windows on Discord: acknowledged in time, answered to one person alone."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import anyio
import pytest

from nightherd.model.chat.commands import COMMANDS
from nightherd.model.chat.platform import ChatPlace
from nightherd.model.chat.settings import ChannelMode
from nightherd.ports.chat import Button
from nightherd.testing.discord_api import DiscordApi
from nightherd.testing.discord_interactions import LATER_MESSAGE, LATER_UPDATE, WINDOW
from triggers.chat.discord_bot import bot_settings, eventually, running

NAMES = [one.name for one in COMMANDS]
YES = Button(id="yes:7", label="Yes", is_primary=True)
ASK = Button(id="no:7", label="No", is_dangerous=True, asks_comment=True)


@pytest.fixture
def discord(tmp_path: Path) -> Iterator[DiscordApi]:
    with DiscordApi(tmp_path) as api:
        yield api


async def registered(discord: DiscordApi) -> None:
    await eventually(discord, lambda: bool(discord.bot.commands))


async def test_commands_are_registered_everywhere(discord: DiscordApi) -> None:
    async with running(discord):
        await registered(discord)

    assert list(discord.bot.commands) == [None]
    assert [one["name"] for one in discord.bot.commands[None]] == NAMES


async def test_commands_that_are_registered_are_not_written_again(discord: DiscordApi) -> None:
    async with running(discord):
        await registered(discord)
    commands = f"/applications/{discord.bot.id}/commands"
    async with running(discord):
        reads = lambda: discord.rest.lines.count(f"GET {commands}") == 2  # noqa: E731
        await eventually(discord, reads)
        await eventually(discord, lambda: discord.bot.identified == 2)

    assert discord.rest.lines.count(f"PUT {commands}") == 1


async def test_commands_of_one_server_replace_those_of_everywhere(discord: DiscordApi) -> None:
    async with running(discord):
        await registered(discord)
    discord.bot.commands[None].append({"id": "1", "name": "theirs", "description": "not ours"})
    settings = bot_settings(command_guild_id=discord.guild_id)
    async with running(discord, settings):
        await eventually(discord, lambda: len(discord.bot.commands[None]) == 1)

    assert [one["name"] for one in discord.bot.commands[discord.guild_id]] == NAMES
    assert [one["name"] for one in discord.bot.commands[None]] == ["theirs"]


async def test_commands_of_everywhere_replace_those_of_a_server_that_is_named(
    discord: DiscordApi,
) -> None:
    theirs = {"id": "1", "name": "theirs", "description": "not ours"}
    async with running(discord, bot_settings(command_guild_id=discord.guild_id)):
        await eventually(discord, lambda: discord.guild_id in discord.bot.commands)
    discord.bot.commands[discord.guild_id].append(theirs)
    modes = {discord.guild_id: ChannelMode.ALL, "123": ChannelMode.ALL}
    async with running(discord, bot_settings(guild_modes=modes)) as bot:
        await eventually(discord, lambda: len(discord.bot.commands[discord.guild_id]) == 1)

    assert [one["name"] for one in discord.bot.commands[None]] == NAMES
    assert [one["name"] for one in discord.bot.commands[discord.guild_id]] == ["theirs"]
    assert bot.receiver.states[-1].error is None


@pytest.mark.parametrize(
    ("guild_id", "why"),
    [("123", "Discord: 403 Missing Access"), ("ours", "'ours' is no id of a server")],
)
async def test_a_bot_whose_commands_are_refused_works_and_says_so(
    discord: DiscordApi, guild_id: str, why: str
) -> None:
    async with running(discord, bot_settings(command_guild_id=guild_id)) as bot:
        await bot.receiver.until(lambda: bool(bot.receiver.states[-1].error))
        discord.say("hello")
        await bot.message()

    state = bot.receiver.states[-1]
    assert state.is_connected
    assert f"slash commands cannot be registered: {why}" in str(state.error)


async def test_a_command_is_answered_to_that_person_alone(discord: DiscordApi) -> None:
    async with running(discord) as bot:
        await registered(discord)
        bot.receiver.command_answer = "# Done\n\nAll is **well**, @everyone."
        discord.command("skill", "deploy to production")
        await eventually(discord, lambda: bool(discord.answers()[0].said))

    (command,) = bot.receiver.commands
    assert (command.name, command.argument) == ("skill", "deploy to production")
    assert (command.user_id, command.user_name) == (discord.user_id, "Ada")
    assert (command.place, command.guild_id) == (bot.place, discord.guild_id)
    (answer,) = discord.answers()
    assert command.command_id == answer.id
    assert answer.said[0].startswith("# Done")
    assert "@everyone" not in answer.said[0]
    assert answer.said_openly == []


async def test_a_command_is_acknowledged_before_it_is_carried_out(discord: DiscordApi) -> None:
    async with running(discord) as bot:
        await registered(discord)
        bot.receiver.gate = anyio.Event()
        discord.command("status")
        await bot.receiver.until(lambda: bool(bot.receiver.commands))
        (answer,) = discord.answers()
        assert (answer.answer, answer.is_ephemeral, answer.said) == (LATER_MESSAGE, True, [])
        bot.receiver.gate.set()
        await eventually(discord, lambda: answer.said == ["done"])


async def test_a_command_waits_for_what_was_said_before(discord: DiscordApi) -> None:
    async with running(discord) as bot:
        await registered(discord)
        bot.receiver.gate = anyio.Event()
        discord.say("do it")
        await bot.receiver.until(lambda: bot.receiver.begun == 1)
        discord.command("stop")
        await eventually(discord, lambda: discord.answers()[0].answer == LATER_MESSAGE)
        assert bot.receiver.commands == []
        bot.receiver.gate.set()
        await bot.receiver.until(lambda: bool(bot.receiver.commands))

    assert bot.receiver.texts == ["do it"]


async def test_a_long_answer_comes_in_parts(discord: DiscordApi) -> None:
    async with running(discord) as bot:
        await registered(discord)
        bot.receiver.command_answer = "\n".join(f"line {n} of many" for n in range(300))
        discord.command("tools")
        await eventually(discord, lambda: len(discord.answers()[0].said) >= 3)

    said = discord.answers()[0].said
    assert all(len(part) <= 2_000 for part in said)
    assert "\n".join(said).split("\n") == bot.receiver.command_answer.split("\n")


async def test_commands_of_threads_and_direct_messages_name_their_place(
    discord: DiscordApi,
) -> None:
    thread, direct = discord.add_thread("thread"), discord.direct_channel()
    async with running(discord) as bot:
        await registered(discord)
        discord.command("status", channel=thread)
        discord.command("status", channel=direct)
        await bot.receiver.until(lambda: len(bot.receiver.commands) >= 2)

    by_place = {one.place.channel_id: one for one in bot.receiver.commands}
    assert by_place[thread].parent_channel_id == discord.channel_id
    assert (by_place[direct].is_direct, by_place[direct].guild_id) == (True, None)


async def test_what_discord_does_not_acknowledge_has_no_effect(discord: DiscordApi) -> None:
    async with running(discord) as bot:
        await registered(discord)
        discord.rest.fail("/interactions", 404, code=10062, message="Unknown interaction")
        discord.command("reset")
        discord.command("status")
        await bot.receiver.until(lambda: bool(bot.receiver.commands))

    assert [one.name for one in bot.receiver.commands] == ["status"]


async def test_a_press_is_acknowledged_and_answered_to_that_person(discord: DiscordApi) -> None:
    grace = discord.add_user("Grace")
    async with running(discord) as bot:
        bot.receiver.press_answer = "Noted, **thank you**."
        sent = await bot.connection.post(bot.post("shall I?", buttons=(YES, ASK)))
        assert sent.message_id is not None
        discord.press(sent.message_id, "Yes", user=grace)
        await eventually(discord, lambda: bool(discord.answers()[0].said))

    (answer,) = discord.answers()
    assert (answer.answer, answer.said) == (LATER_UPDATE, ["Noted, **thank you**."])
    assert answer.said_openly == []
    press = bot.receiver.presses[0]
    assert (press.user_id, press.user_name, press.button) == (grace, "Grace", "yes:7")


async def test_a_press_without_answer_is_acknowledged_only(discord: DiscordApi) -> None:
    async with running(discord) as bot:
        sent = await bot.connection.post(bot.post("shall I?", buttons=(YES,)))
        assert sent.message_id is not None
        discord.press(sent.message_id, "Yes")
        await bot.receiver.until(lambda: bool(bot.receiver.presses))

    (answer,) = discord.answers()
    assert (answer.answer, answer.said) == (LATER_UPDATE, [])


async def test_buttons_have_ids_as_long_as_they_may_be(discord: DiscordApi) -> None:
    long = Button(id="n" * 99, label="No", asks_comment=True)
    async with running(discord) as bot:
        sent = await bot.connection.post(bot.post("shall I?", buttons=(YES, long)))
        discord.press(sent.message_id or "", "No", "because")
        await bot.receiver.until(lambda: bool(bot.receiver.presses))

    assert bot.receiver.presses[0].button == long.id


async def test_a_window_is_named_like_its_button_and_may_stay_empty(discord: DiscordApi) -> None:
    async with running(discord) as bot:
        sent = await bot.connection.post(bot.post("shall I?", buttons=(YES, ASK)))
        assert sent.message_id is not None
        discord.press(sent.message_id, "No", "  ")
        await bot.receiver.until(lambda: bool(bot.receiver.presses))

    opened, submitted = discord.answers()
    assert (opened.answer, submitted.answer) == (WINDOW, LATER_UPDATE)
    assert opened.window is not None
    assert opened.window["title"] == "No"
    press = bot.receiver.presses[0]
    assert (press.button, press.comment) == ("no:7", None)


async def test_a_window_that_is_closed_counts_for_nothing(discord: DiscordApi) -> None:
    async with running(discord) as bot:
        sent = await bot.connection.post(bot.post("shall I?", buttons=(YES, ASK)))
        assert sent.message_id is not None
        discord.press(sent.message_id, "No")
        await eventually(discord, lambda: discord.answers()[0].answer == WINDOW)
        discord.press(sent.message_id, "Yes")
        await bot.receiver.until(lambda: bool(bot.receiver.presses))

    assert [press.button for press in bot.receiver.presses] == ["yes:7"]


async def test_a_press_of_a_message_from_before_a_restart_counts(discord: DiscordApi) -> None:
    thread = discord.add_thread("thread")
    async with running(discord) as bot:
        place = ChatPlace(channel_id=thread)
        sent = await bot.connection.post(bot.post("shall I?", buttons=(ASK,), place=place))
    assert sent.message_id is not None
    async with running(discord) as bot:
        discord.press(sent.message_id, "No", "not on a Friday")
        await bot.receiver.until(lambda: bool(bot.receiver.presses))

    press = bot.receiver.presses[0]
    assert (press.place, press.message_id) == (place, sent.message_id)
    assert (press.button, press.comment) == ("no:7", "not on a Friday")
