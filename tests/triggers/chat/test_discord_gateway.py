"""The gateway of Discord: what is lost with a connection, what is not, and when a bot gives up."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from pathlib import Path

import anyio
import pytest

from nightherd.errors import ChatRefusedError
from nightherd.model.chat.platform import Platform
from nightherd.model.chat.settings import API_URL_VARIABLES, PresenceSettings
from nightherd.ports.chat import ConnectionState, PostResult
from nightherd.testing.discord_api import TOKEN_VARIABLE, DiscordApi
from nightherd.testing.recording_receiver import RecordingReceiver
from nightherd.triggers.chat.discord import DiscordConnection
from nightherd.triggers.chat.discord_session import Timing
from triggers.chat.discord_bot import QUICK, bot_settings, eventually, make_bot, running


@pytest.fixture
def discord(tmp_path: Path) -> Iterator[DiscordApi]:
    with DiscordApi(tmp_path) as api:
        yield api


async def test_a_dropped_connection_is_resumed_without_loss(discord: DiscordApi) -> None:
    async with running(discord) as bot:
        said = [discord.say("one")]
        discord.drop()
        said += [discord.say(f"number {n}") for n in range(10)]
        await bot.receiver.until(lambda: len(bot.receiver.messages) >= 11 and bot.connects >= 2)

    assert [message.message_id for message in bot.receiver.messages] == said
    assert (bot.fresh, discord.bot.resumed, discord.bot.identified) == (1, 1, 1)


async def test_a_lost_connection_is_shown_until_it_is_resumed(discord: DiscordApi) -> None:
    async with running(discord) as bot:
        discord.drop()
        await bot.receiver.until(lambda: bot.connects >= 2)

    assert [state.is_connected for state in bot.receiver.states] == [True, False, True]
    assert bot.receiver.states[1].error == "the connection was lost"


async def test_a_session_that_discord_forgot_begins_anew_and_is_fresh(discord: DiscordApi) -> None:
    async with running(discord) as bot:
        discord.forget_sessions()
        discord.drop()
        await bot.receiver.until(lambda: bot.fresh >= 2)
        discord.say("hello")
        await bot.message()

    assert (discord.bot.resumed, discord.bot.identified) == (0, 2)


async def test_a_session_that_discord_ends_begins_anew_and_is_fresh(discord: DiscordApi) -> None:
    async with running(discord) as bot:
        discord.invalidate()
        await bot.receiver.until(lambda: bot.fresh >= 2)

    assert (discord.bot.resumed, discord.bot.identified) == (0, 2)


async def test_a_session_that_may_be_resumed_is_resumed(discord: DiscordApi) -> None:
    async with running(discord) as bot:
        discord.invalidate(is_resumable=True)
        await bot.receiver.until(lambda: bot.connects >= 2)

    assert (bot.fresh, discord.bot.resumed) == (1, 1)


async def test_a_request_to_reconnect_is_followed_without_loss(discord: DiscordApi) -> None:
    async with running(discord) as bot:
        discord.reconnect()
        said = discord.say("while it reconnects")
        await bot.receiver.until(lambda: len(bot.receiver.messages) >= 1 and bot.connects >= 2)

    assert [message.message_id for message in bot.receiver.messages] == [said]
    assert (bot.fresh, discord.bot.resumed) == (1, 1)


async def test_heartbeats_are_sent_and_answered(tmp_path: Path) -> None:
    with DiscordApi(tmp_path, heartbeat_s=0.05) as discord:
        async with running(discord) as bot:
            await eventually(discord, lambda: discord.bot.heartbeats >= 3)

    assert bot.connects == 1


async def test_a_gateway_that_falls_silent_is_left_and_the_session_resumed(tmp_path: Path) -> None:
    timing = Timing(heartbeat_s=0.5)
    with DiscordApi(tmp_path, heartbeat_s=0.1) as discord:
        async with running(discord, timing=timing) as bot:
            discord.gateway.is_silent = True
            await bot.receiver.until(lambda: not bot.receiver.is_connected)
            discord.gateway.is_silent = False
            await bot.receiver.until(lambda: bot.connects >= 2)
            said = discord.say("are you there?")
            message = await bot.message()

    assert message.message_id == said


async def test_a_gateway_that_cuts_every_connection_is_left_alone_for_a_while(
    discord: DiscordApi,
) -> None:
    async with running(discord) as bot:
        before = discord.gateway.connected
        discord.gateway.cuts_at_once = True
        discord.drop()
        await bot.receiver.until(lambda: "again and again" in str(bot.receiver.states[-1].error))
        tried = discord.gateway.connected - before
        discord.gateway.cuts_at_once = False
        await bot.receiver.until(lambda: bot.fresh >= 2)

    assert tried <= 5


async def test_a_revoked_token_ends_the_bot_at_the_first_try(discord: DiscordApi) -> None:
    discord.revoke()
    bot = make_bot(discord)

    with pytest.raises(ChatRefusedError, match="refuses the bot's token") as refused:
        await bot.connection.run(bot.receiver)

    assert TOKEN_VARIABLE in str(refused.value.hint)
    assert bot.receiver.states == [
        ConnectionState(is_connected=False, error="Discord refuses the bot's token")
    ]
    assert len(discord.rest.lines) == 1
    assert discord.gateway.connected == 0


async def test_a_token_that_is_revoked_meanwhile_ends_the_bot_when_it_resumes(
    discord: DiscordApi,
) -> None:
    refused: list[str] = []
    try:
        async with running(discord):
            discord.revoke()
            discord.drop()
            with anyio.fail_after(30):
                await anyio.sleep_forever()
    except* ChatRefusedError as group:
        refused = [str(error) for error in group.exceptions]

    assert len(refused) == 1
    assert "4004" in refused[0]
    assert (discord.bot.logins, discord.gateway.connected) == (1, 2)


async def test_a_bot_that_may_not_read_messages_is_told_what_to_switch_on(
    discord: DiscordApi,
) -> None:
    discord.bot.may_read_content = False
    bot = make_bot(discord)

    with pytest.raises(ChatRefusedError, match="Message Content Intent is off") as refused:
        await bot.connection.run(bot.receiver)

    assert "developer portal" in str(refused.value.hint)
    assert (discord.bot.logins, discord.bot.identified) == (1, 1)


async def test_a_request_that_is_not_authorised_ends_the_bot(discord: DiscordApi) -> None:
    is_refused = False
    result = PostResult()
    try:
        async with running(discord) as bot:
            discord.revoke()
            result = await bot.connection.post(bot.post("hello"))
            with anyio.fail_after(30):
                await anyio.sleep_forever()
    except* ChatRefusedError:
        is_refused = True

    assert is_refused
    assert result.error
    assert not result.is_permanent, "it is sent once there is a new token"


async def test_a_server_that_cannot_be_reached_is_tried_again(discord: DiscordApi) -> None:
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        address = f"https://127.0.0.1:{unused.getsockname()[1]}"
        environment = {**discord.environment, API_URL_VARIABLES[Platform.DISCORD]: address}
        receiver = RecordingReceiver()
        connection = DiscordConnection(bot_settings(), environment, first_pause_s=0.01)
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(connection.run, receiver)
            await receiver.until(lambda: len(receiver.states) >= 3)
            tasks.cancel_scope.cancel()

    assert {state.error for state in receiver.states} == {"Discord cannot be reached"}


async def test_an_unknown_certificate_is_not_trusted(discord: DiscordApi) -> None:
    environment = {
        name: value for name, value in discord.environment.items() if name != "SSL_CERT_FILE"
    }
    receiver = RecordingReceiver()
    connection = DiscordConnection(bot_settings(), environment)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(connection.run, receiver)
        await receiver.until(lambda: len(receiver.states) >= 1)
        tasks.cancel_scope.cancel()

    assert receiver.states[0].error == "Discord's certificate is not trusted here"
    assert discord.rest.lines == []


async def test_a_silent_gateway_is_given_up_at_the_first_connect_too(discord: DiscordApi) -> None:
    discord.gateway.is_silent = True
    bot = make_bot(discord, timing=Timing(connect_s=0.2, identify_s=0.01))
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(bot.connection.run, bot.receiver)
        await bot.receiver.until(lambda: len(bot.receiver.states) >= 1)
        assert bot.receiver.states[0].error == "Discord's gateway cannot be reached"
        discord.gateway.is_silent = False
        await bot.receiver.until(lambda: bot.receiver.is_connected)
        tasks.cancel_scope.cancel()


async def test_messages_wait_until_it_is_known_that_some_may_have_been_missed(
    discord: DiscordApi,
) -> None:
    class Slow(RecordingReceiver):
        def __init__(self) -> None:
            super().__init__()
            self.may_go_on = anyio.Event()
            self.is_asked = anyio.Event()

        async def state(self, state: ConnectionState) -> None:
            self.is_asked.set()
            assert self.begun == 0
            await self.may_go_on.wait()
            assert self.begun == 0
            await super().state(state)

    receiver = Slow()
    bot = make_bot(discord, receiver=receiver)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(bot.connection.run, receiver)
        await receiver.is_asked.wait()
        discord.say("hello")
        # A later event of the same connection: the message has come when it is answered.
        await eventually(discord, lambda: bool(discord.bot.commands))
        discord.command("ping")
        await eventually(
            discord, lambda: any("/interactions/" in line for line in discord.rest.lines)
        )
        receiver.may_go_on.set()
        await bot.message()
        tasks.cancel_scope.cancel()


async def test_a_message_that_cannot_be_recorded_is_tried_again_in_order(
    discord: DiscordApi,
) -> None:
    async with running(discord) as bot:
        bot.receiver.fails = 2
        said = [discord.say("one"), discord.say("two")]
        await bot.receiver.until(lambda: len(bot.receiver.messages) >= 2)

    assert [message.message_id for message in bot.receiver.messages] == said
    assert bot.fresh == 1


async def test_what_cannot_be_recorded_for_long_is_fetched_by_a_fresh_connect(
    discord: DiscordApi,
) -> None:
    async with running(discord) as bot:
        bot.receiver.fails = 1 + len(QUICK.record_pauses_s)
        discord.say("one")
        await bot.receiver.until(lambda: bot.fresh >= 2)

    lost = next(state for state in bot.receiver.states if not state.is_connected)
    assert lost.error == "messages cannot be recorded: the disk is full"


async def test_the_presence_is_shown(discord: DiscordApi) -> None:
    presence = PresenceSettings(activity_type="watching", activity_message="the build")
    async with running(discord, bot_settings(presence=presence)):
        pass

    assert discord.bot.presence is not None
    game = discord.bot.presence["game"]
    assert (game["type"], game["name"]) == (3, "the build")


async def test_without_presence_nothing_is_shown(discord: DiscordApi) -> None:
    async with running(discord):
        pass

    assert discord.bot.presence is None


async def test_an_event_that_cannot_be_read_ends_the_session_and_not_the_bot(
    discord: DiscordApi,
) -> None:
    async with running(discord) as bot:
        discord.gateway.emit(discord.bot, "MESSAGE_CREATE", {"channel_id": "1"})
        await bot.receiver.until(lambda: bot.fresh >= 2)

    lost = next(state for state in bot.receiver.states if not state.is_connected)
    assert "discord.py cannot read what Discord sent" in str(lost.error)
