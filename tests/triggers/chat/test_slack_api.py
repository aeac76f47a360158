"""The loopback Slack behaves as Slack does where bots rely on it, and is reached from this machine alone."""

from __future__ import annotations

import socket
from collections.abc import Mapping
from typing import Any
from urllib.parse import urlsplit

import aiohttp
import pytest

from nightherd.testing.slack_api import SlackApi
from nightherd.testing.slack_workspace import APP_TOKEN, BOT_TOKEN, CHANNEL


async def call(slack: SlackApi, method: str, token: str = BOT_TOKEN, **form: str) -> Mapping[str, Any]:  # fmt: skip
    headers = {"authorization": f"Bearer {token}"}
    async with (
        aiohttp.ClientSession(headers=headers) as session,
        session.post(slack.url + method, data=form) as response,
    ):
        answer = await response.json()
        assert isinstance(answer, dict)
        return answer


async def test_a_ticket_opens_one_connection_and_is_given_for_the_apps_token_only() -> None:
    with SlackApi() as slack:
        refused = await call(slack, "apps.connections.open")
        url = (await call(slack, "apps.connections.open", APP_TOKEN))["url"]
        async with aiohttp.ClientSession() as session, session.ws_connect(url) as connection:
            hello = await connection.receive_json()
            with pytest.raises(aiohttp.WSServerHandshakeError):
                await session.ws_connect(url)

    assert refused == {"ok": False, "error": "not_allowed_token_type"}
    assert (hello["type"], hello["num_connections"]) == ("hello", 1)


async def test_an_event_that_nobody_acknowledges_is_delivered_four_times_in_all() -> None:
    with SlackApi() as slack:
        slack.redeliver_after(0.01)
        url = (await call(slack, "apps.connections.open", APP_TOKEN))["url"]
        async with aiohttp.ClientSession() as session, session.ws_connect(url) as connection:
            await connection.receive_json()
            slack.say("hello")
            got = [await connection.receive_json() for _ in range(4)]
            slack.command("status")
            last = await connection.receive_json()

    assert [one["retry_attempt"] for one in got] == [0, 1, 2, 3]
    assert {one["envelope_id"] for one in got} == {slack.deliveries[0].id}
    assert last["type"] == "slash_commands", "nothing more of the message"
    assert not slack.deliveries[0].is_acknowledged


async def test_what_is_said_while_nobody_is_connected_is_in_the_history_only() -> None:
    with SlackApi() as slack:
        said = slack.say("hello")
        url = (await call(slack, "apps.connections.open", APP_TOKEN))["url"]
        async with aiohttp.ClientSession() as session, session.ws_connect(url) as connection:
            await connection.receive_json()
            slack.say("later")
            first = await connection.receive_json()
        history = await call(slack, "conversations.history", channel=CHANNEL)

    assert first["payload"]["event"]["text"] == "later"
    assert [one["ts"] for one in history["messages"]][-1] == said


async def test_a_method_needs_its_scope_and_a_channel_that_the_bot_is_in() -> None:
    with SlackApi(scopes=["channels:history"]) as slack:
        post = await call(slack, "chat.postMessage", channel=CHANNEL, text="hello")
        public = await call(slack, "conversations.history", channel=CHANNEL)
        private = await call(slack, "conversations.history", channel="G1")
        unknown = await call(slack, "conversations.history", channel="C0NOWHERE")

    assert (post["error"], post["needed"]) == ("missing_scope", "chat:write")
    assert public["ok"]
    assert private["needed"] == "groups:history"
    assert unknown["error"] == "channel_not_found"


async def test_metadata_is_shown_to_those_who_ask_for_it() -> None:
    metadata = '{"event_type": "kind", "event_payload": {"a": 1}}'
    with SlackApi() as slack:
        await call(slack, "chat.postMessage", channel=CHANNEL, text="hello", metadata=metadata)
        without = await call(slack, "conversations.history", channel=CHANNEL)
        asked = await call(
            slack, "conversations.history", channel=CHANNEL, include_all_metadata="true"
        )

    assert "metadata" not in without["messages"][0]
    assert asked["messages"][0]["metadata"]["event_payload"] == {"a": 1}


def test_it_listens_on_the_loopback_address_of_ipv4_alone() -> None:
    with SlackApi() as slack:
        address = urlsplit(slack.url)
        port = address.port or 0
        others = ["127.0.0.2", *_addresses_of_this_machine()]
        reached = [host for host in others if _answers(host, port)]

    assert address.hostname == "127.0.0.1"
    assert reached == []


def _addresses_of_this_machine() -> set[str]:
    """Addresses that others could use, and IPv6's loopback."""
    found = {"::1"}
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            probe.connect(
                ("192.0.2.1", 9)
            )  # nothing is sent: it is only asked which address would be used
        except OSError:
            return found
        return found | {probe.getsockname()[0]} - {"127.0.0.1"}


def _answers(host: str, port: int) -> bool:
    try:
        socket.create_connection((host, port), timeout=5).close()
    except OSError:
        return False
    return True
