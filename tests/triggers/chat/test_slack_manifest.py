"""The manifest that the guide tells people to paste is enough for everything that the bot does."""

from __future__ import annotations

import textwrap
from pathlib import Path
from typing import Any

import pytest
import yaml

from document_blocks import blocks
from nightherd.model.chat.platform import ChatPlace
from nightherd.testing.contracts.chat import CHAT_CHECKS, Check
from nightherd.testing.slack_api import SlackApi
from nightherd.testing.slack_methods import GROUPS, SCOPES
from triggers.chat.slack_bot import connect, connected, opened

METHODS = frozenset({"auth.test", "apps.connections.open", "views.open"})
"""Methods that need no scope of the bot's token."""


@pytest.fixture(scope="module")
def manifest(repository: Path) -> dict[str, Any]:
    """The first block of the page."""
    first = next(blocks(repository / "docs/guide/slack.md"))
    assert first.language == "yaml"
    found = yaml.safe_load(textwrap.dedent(first.text))
    assert isinstance(found, dict)
    return found


def app_of(manifest: dict[str, Any]) -> SlackApi:
    """A Slack that gives the bot what the manifest asks for, and nothing else."""
    return SlackApi(
        scopes=manifest["oauth_config"]["scopes"]["bot"],
        events=manifest["settings"]["event_subscriptions"]["bot_events"],
    )


@pytest.mark.parametrize("check", CHAT_CHECKS, ids=lambda check: check.__name__)
async def test_the_manifest_is_enough_for_the_contract(
    check: Check, manifest: dict[str, Any], tmp_path: Path
) -> None:
    with app_of(manifest) as slack:
        await check(opened(slack, connect(slack), tmp_path))

    assert {call.method for call in slack.calls} <= SCOPES.keys() | METHODS


async def test_the_manifest_is_enough_for_every_kind_of_conversation(
    manifest: dict[str, Any], tmp_path: Path
) -> None:
    channels = ["C0OTHER", "G0PRIVATE", "D0ADA", "M0GROUP"]
    with app_of(manifest) as slack:
        async with connected(slack, tmp_path) as chat:
            for channel in channels:
                root = slack.say(f"hello <#{channel}>", channel=channel)
                await chat.receiver.until(lambda: chat.receiver.messages[-1:] != [])
                for thread in (None, root):
                    place = ChatPlace(channel_id=channel, thread_id=thread)
                    await chat.connection.history(place, None, 10)
                    await chat.connection.typing(place)
            await chat.receiver.until(lambda: len(chat.receiver.messages) == len(channels))

    assert {message.place.channel_id for message in chat.receiver.messages} == set(channels)
    assert len(slack.workspace.typed) == len(channels)


def test_the_manifest_asks_for_nothing_that_is_not_used(manifest: dict[str, Any]) -> None:
    of_methods = {
        scope.format(channel=group) for scope in SCOPES.values() for group in GROUPS.values()
    }
    for_what_comes_in = {"app_mentions:read", "commands"}
    # Only channels can be named in a message, and so asked for.
    unused = {"im:read", "mpim:read"}

    asked = set(manifest["oauth_config"]["scopes"]["bot"])
    assert asked == (of_methods | for_what_comes_in) - unused


def test_the_manifest_switches_on_what_the_bot_needs(manifest: dict[str, Any]) -> None:
    settings, features = manifest["settings"], manifest["features"]

    assert settings["interactivity"] == {"is_enabled": True}
    assert settings["socket_mode_enabled"] is True
    assert settings["token_rotation_enabled"] is False, "a token that changes would be refused"
    assert features["app_home"] == {
        "messages_tab_enabled": True,
        "messages_tab_read_only_enabled": False,
    }
    assert features["slash_commands"][0]["command"] == "/nightherd"


def test_the_page_explains_every_scope(manifest: dict[str, Any], repository: Path) -> None:
    page = (repository / "docs/guide/slack.md").read_text()

    rows = [line for line in page.splitlines() if line.startswith("| `")]
    assert [
        scope
        for scope in manifest["oauth_config"]["scopes"]["bot"]
        if not any(f"`{scope}`" in row for row in rows)
    ] == []
