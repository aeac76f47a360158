"""What a bot on Discord is set up with: its token, its address, its permissions."""

from __future__ import annotations

import re
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import discord as library
import pytest

from nightherd.errors import ConfigError
from nightherd.model.agents.agent import Fleet
from nightherd.model.chat.platform import Platform
from nightherd.model.chat.settings import API_URL_VARIABLES
from nightherd.testing.discord_api import TOKEN_VARIABLE
from nightherd.triggers.chat.discord import open_discord
from nightherd.triggers.chat.discord_client import PERMISSIONS, SCOPES, intents
from nightherd.wiring.chat import environment_of
from triggers.chat.discord_bot import bot_settings

GUIDE = "docs/guide/discord.md"
TOKEN = {TOKEN_VARIABLE: "a-secret-token"}
URL = API_URL_VARIABLES[Platform.DISCORD]
LABELS = {
    "view_channel": "View Channels",
    "read_messages": "View Channels",
    "send_messages": "Send Messages",
    "send_messages_in_threads": "Send Messages in Threads",
    "read_message_history": "Read Message History",
    "add_reactions": "Add Reactions",
    "attach_files": "Attach Files",
}
"""What the developer portal calls a permission."""


def test_the_guide_invites_the_bot_with_the_permissions_it_needs(repository: Path) -> None:
    (address,) = re.findall(r"https://discord\.com/oauth2/\S+", (repository / GUIDE).read_text())
    query = parse_qs(urlsplit(address).query)

    assert query["permissions"] == [str(PERMISSIONS.value)]
    assert query["scope"] == [" ".join(SCOPES)]
    assert address == library.utils.oauth_url(
        "APPLICATION_ID", permissions=PERMISSIONS, scopes=SCOPES
    )


def test_the_guide_says_what_each_permission_is_for(repository: Path) -> None:
    text = (repository / GUIDE).read_text().partition("| permission |")[2].partition("\n\n")[0]
    rows = {line.split("|")[1].strip() for line in text.splitlines()[2:]}

    assert rows == {LABELS[name] for name, is_needed in PERMISSIONS if is_needed}


def test_the_only_privileged_intent_is_that_of_messages() -> None:
    asked = {name for name, is_on in intents() if is_on}

    assert asked & {"message_content", "members", "presences"} == {"message_content"}


@pytest.mark.parametrize(
    "url",
    [
        "http://127.0.0.1:1",
        "https://",
        "https://proxy.example/api",
        "https://user:password@proxy.example",
        "https://proxy.example:99999",
        "https://proxy.example?to=discord",
        "discord.com",
    ],
)
def test_an_address_that_is_not_discords_is_refused(url: str) -> None:
    with pytest.raises(ConfigError, match=URL) as refused:
        open_discord(bot_settings(), {**TOKEN, URL: url})

    assert "password" not in str(refused.value)
    assert refused.value.hint


@pytest.mark.parametrize("url", ["https://proxy.example", "https://proxy.example:8443/", ""])
def test_an_address_of_a_server_is_taken(url: str) -> None:
    open_discord(bot_settings(), {**TOKEN, URL: url})


def test_a_file_of_certificates_that_is_none_is_refused(tmp_path: Path) -> None:
    (tmp_path / "text").write_text("no certificate")
    for name in ("text", "missing"):
        with pytest.raises(ConfigError, match="SSL_CERT_FILE names no file of certificates"):
            open_discord(bot_settings(), {**TOKEN, "SSL_CERT_FILE": str(tmp_path / name)})


@pytest.mark.parametrize("environment", [{}, {TOKEN_VARIABLE: "  "}])
def test_a_token_that_is_not_set_is_refused(environment: dict[str, str]) -> None:
    with pytest.raises(ConfigError, match=f"{TOKEN_VARIABLE} is not set"):
        open_discord(bot_settings(), environment)


def test_a_connection_shows_no_token() -> None:
    assert "a-secret-token" not in repr(open_discord(bot_settings(), TOKEN))


def test_no_file_of_the_fleet_says_where_tokens_are_sent() -> None:
    theirs = {**TOKEN, URL: "https://elsewhere.example", "SSL_CERT_FILE": "/theirs.pem"}
    fleet = Fleet(file="/fleet/nightherd.yaml", agents={}, environment=theirs)

    assert environment_of(fleet, {}) == TOKEN
    assert environment_of(fleet, {URL: "https://proxy.example"}) == {
        **TOKEN,
        URL: "https://proxy.example",
    }
