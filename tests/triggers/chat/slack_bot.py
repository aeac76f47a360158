"""A bot on a loopback Slack, for tests of its connection."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from pathlib import Path

from anyio import to_thread
from msgspec.structs import replace

from nightherd.model.chat.platform import ChatPlace, Platform, bot_id
from nightherd.model.chat.settings import BotSettings, SlackMode, SlackSettings
from nightherd.testing.contracts.chat import OpenChat, running
from nightherd.testing.recording_receiver import RecordingReceiver
from nightherd.testing.slack_api import SlackApi
from nightherd.testing.slack_workspace import APP_TOKEN, BOT_TOKEN, CHANNEL, SIGNING_SECRET
from nightherd.triggers.chat.slack import SlackConnection, open_slack

HERE = ChatPlace(channel_id=CHANNEL)
SOCKET = SlackSettings(
    mode=SlackMode.SOCKET,
    app_token_env="SLACK_APP_TOKEN",
    signing_secret_env="SLACK_SIGNING_SECRET",
)
SETTINGS = BotSettings(
    bot=bot_id(Platform.SLACK, "coder"),
    platform=Platform.SLACK,
    agent="coder",
    token_env="SLACK_BOT_TOKEN",
    slack=SOCKET,
)
HTTP_SETTINGS = replace(SETTINGS, slack=replace(SOCKET, mode=SlackMode.HTTP))
SECRETS = (BOT_TOKEN, APP_TOKEN, SIGNING_SECRET, "ticket-0")


async def wait_for(slack: SlackApi, is_so: Callable[[], object]) -> bool:
    """Wait in a thread, so that the bot can go on."""
    return await to_thread.run_sync(slack.wait_for, is_so)


def connect(
    slack: SlackApi,
    settings: BotSettings = SETTINGS,
    environment: Mapping[str, str] | None = None,
) -> SlackConnection:
    """A connection of the bot, not running yet."""
    return open_slack(settings, {**slack.environment, **(environment or {})})


def opened(
    slack: SlackApi,
    connection: SlackConnection,
    directory: Path,
    receiver: RecordingReceiver | None = None,
) -> OpenChat:
    """What checks of the contract are given."""
    return OpenChat(
        connection=connection,
        platform=slack,
        place=HERE,
        user_id=slack.user_id,
        user_name=slack.user_name,
        secrets=SECRETS,
        directory=directory,
        receiver=receiver or RecordingReceiver(),
    )


@asynccontextmanager
async def connected(
    slack: SlackApi, directory: Path, receiver: RecordingReceiver | None = None
) -> AsyncIterator[OpenChat]:
    """A bot that is connected by Socket Mode while the context lasts."""
    chat = opened(slack, connect(slack), directory, receiver)
    async with running(chat):
        yield chat
