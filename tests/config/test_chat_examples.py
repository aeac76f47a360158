"""Fleets with chat as herdctl's users write them load as they are: every bot is there, and no key waits for a feature."""

from __future__ import annotations

from pathlib import Path

import pytest

from config.folder import Folder
from nightherd.config.load import LoadedFleet
from nightherd.model.chat.platform import Platform
from nightherd.model.chat.settings import BotSettings, ChannelMode
from nightherd.wiring.fleets import load_fleet

EXAMPLE = Path(__file__).parent / "examples" / "chat"
ENVIRONMENT = {
    "DISCORD_GUILD_ID": "100000000000000001",
    "DISCORD_CHANNEL_ID": "200000000000000002",
    "SLACK_CHANNEL_ID": "C0123456789",
}


@pytest.fixture(scope="module")
def loaded() -> LoadedFleet:
    return load_fleet(EXAMPLE / "herdctl.yaml", environ=ENVIRONMENT, cwd=EXAMPLE)


def bot_of(loaded: LoadedFleet, agent: str) -> BotSettings:
    (bot,) = loaded.fleet.agents[agent].bots
    return bot


def test_nothing_of_chat_is_reported(loaded: LoadedFleet) -> None:
    said = [notice.message for notice in loaded.notices if "chat" in notice.message]

    assert said == []
    assert not [notice for notice in loaded.notices if "not active" in notice.message]
    assert loaded.blocked == ()


def test_each_agent_has_its_bot(loaded: LoadedFleet) -> None:
    tokens = {
        name: {bot.platform.value: bot.variables for bot in agent.bots}
        for name, agent in loaded.fleet.agents.items()
    }

    assert tokens == {
        "watcher": {"discord": ("DISCORD_BOT_TOKEN",)},
        "helper": {"slack": ("SLACK_BOT_TOKEN", "SLACK_APP_TOKEN")},
        "first-officer": {"discord": ("FIRST_OFFICER_BOT_TOKEN",)},
        "navigator": {"discord": ("NAVIGATOR_BOT_TOKEN",)},
        "developer": {"discord": ("DEVELOPER_BOT_TOKEN",)},
        "reporter": {},
    }


def test_channels_of_a_server_and_direct_messages_are_listened_to(loaded: LoadedFleet) -> None:
    watcher, officer, navigator = (
        bot_of(loaded, name) for name in ("watcher", "first-officer", "navigator")
    )

    (channel,) = watcher.channels
    assert (channel.id, channel.guild_id) == ("200000000000000002", "100000000000000001")
    assert (channel.mode, channel.context_messages) == (ChannelMode.MENTION, 10)
    assert [one.enabled for one in watcher.direct] == [True]
    assert [one.enabled for one in officer.direct] == [False]
    assert [one.mode for one in navigator.channels] == [ChannelMode.AUTO]
    assert watcher.session.idle_timeout is not None
    assert watcher.session.idle_timeout.total_seconds() == 24 * 3600


def test_channel_of_slack_is_mentioned_into(loaded: LoadedFleet) -> None:
    helper = bot_of(loaded, "helper")

    assert helper.platform is Platform.SLACK
    assert [(one.id, one.mode) for one in helper.channels] == [("C0123456789", ChannelMode.MENTION)]


def test_a_schedule_of_type_chat_says_what_turns_are_like(folder: Folder) -> None:
    folder.fleet("""\
        agents:
          - name: a
            chat: {slack: {channels: []}}
            schedules:
              talk: {type: chat, prompt: "Be brief.", session: {mode: persistent}}
              off: {type: chat, enabled: false}
        """)

    assert folder.notices() == []
    agent = folder.load().fleet.agents["a"]
    assert agent.chat_schedule == "talk"
    (bot,) = agent.bots
    assert (bot.schedule, bot.session.mode) == ("talk", "persistent")


def test_a_schedule_of_type_chat_that_is_switched_off_is_the_bots_schedule_all_the_same(
    folder: Folder,
) -> None:
    folder.fleet("""\
        agents:
          - name: a
            chat: {slack: {channels: []}}
            schedules:
              talk: {type: chat, enabled: false, session: {mode: persistent}}
        """)

    agent = folder.load().fleet.agents["a"]
    assert agent.chat_schedule == "talk"
    (bot,) = agent.bots
    assert (bot.schedule, bot.session.mode) == ("talk", "persistent")


def test_a_second_schedule_of_type_chat_is_a_mistake(folder: Folder) -> None:
    folder.fleet("""\
        agents:
          - name: a
            schedules:
              talk: {type: chat}
              again: {trigger: {type: chat}}
        """)

    assert folder.errors() == [
        "nightherd.yaml:5:7 'talk' is the agent's schedule of type chat already"
    ]
