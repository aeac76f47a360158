"""Slack's HTTP mode, through a real server: only what is signed, and signed now, has an effect, and only once."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import pytest
from anyio import to_thread

from nightherd.ports.chat import TakesRequests
from nightherd.testing.contracts.chat import CHAT_CHECKS, Check, OpenChat, running
from nightherd.testing.contracts.chat_events import (
    check_reconnect_after_a_cut_is_fresh_and_hears_again,
    check_token_revoked_while_running_ends_the_connection,
)
from nightherd.testing.slack_api import SlackApi
from nightherd.testing.slack_socket import signed
from nightherd.testing.slack_workspace import CHANNEL
from nightherd.web.access.guard import Door
from nightherd.web.ports import Port
from triggers.chat.slack_bot import HTTP_SETTINGS, connect, connected, opened
from web.web_world import Answer, World, served

PATH = "/v1/slack/coder"
SOCKET_MODE_ONLY = (
    # There is no connection that could be cut.
    check_reconnect_after_a_cut_is_fresh_and_hears_again,
    check_token_revoked_while_running_ends_the_connection,
)
JSON = "application/json"
FORM = "application/x-www-form-urlencoded"


def only_hooks(site: Any) -> list[Port]:
    """The port that `webhooks.enabled` opens."""
    door = Door(counters=site.counters, hook_limit=lambda: 1_000_000, only_hooks=True)
    return [Port(host="127.0.0.1", port=0, door=door)]


@asynccontextmanager
async def reached(slack: SlackApi, tmp_path: Path) -> AsyncIterator[tuple[OpenChat, World]]:
    """A bot in HTTP mode behind a server that Slack delivers to."""
    connection = connect(slack, HTTP_SETTINGS)
    bots = {HTTP_SETTINGS.bot: connection}
    async with served(tmp_path, make_ports=only_hooks, bot_requests=bots.get) as world:
        slack.deliver_to(f"http://127.0.0.1:{world.ports[0]}{PATH}")
        yield opened(slack, connection, tmp_path), world


@pytest.mark.parametrize(
    "check",
    [check for check in CHAT_CHECKS if check not in SOCKET_MODE_ONLY],
    ids=lambda check: check.__name__,
)
async def test_slack_by_http_keeps_the_contract(check: Check, tmp_path: Path) -> None:
    with SlackApi() as slack:
        async with reached(slack, tmp_path) as (chat, _):
            await check(chat)


async def send(
    world: World,
    body: str,
    *,
    late_s: float = 0,
    secret: str | None = None,
    headers: dict[str, str] | None = None,
    kind: str = JSON,
    path: str = PATH,
) -> Answer:
    """A request on the port that is open to others."""
    now = world.site.context.clock.now().timestamp() - late_s
    made = signed(body, now) if secret is None else signed(body, now, secret)
    sent = {"content-type": kind, **made, **(headers or {})}
    return await world.ask("POST", path, body.encode(), port=world.ports[0], **sent)


def said(text: str, ts: str = "1767225600.000100", **more: Any) -> str:
    event = {"type": "message", "channel": CHANNEL, "user": "U0ADA", "ts": ts, "text": text}
    return json.dumps({"type": "event_callback", "team_id": "T0LOOPBACK", "event": {**event, **more}})  # fmt: skip


async def test_a_signed_message_is_taken_and_a_copy_of_it_has_no_effect(tmp_path: Path) -> None:
    with SlackApi() as slack:
        async with reached(slack, tmp_path) as (chat, world), running(chat):
            first = await send(world, said("hello"))
            copy = await send(world, said("hello"))

    assert (first.status, copy.status) == (200, 200)
    assert chat.receiver.texts == ["hello"]


async def test_a_copied_command_is_carried_out_once(tmp_path: Path) -> None:
    body = f"command=/nightherd&text=reset&user_id=U0ADA&channel_id={CHANNEL}&trigger_id=t1"
    with SlackApi() as slack:
        async with reached(slack, tmp_path) as (chat, world), running(chat):
            headers = signed(body, world.site.context.clock.now().timestamp())
            first = await send(world, body, kind=FORM, headers=headers)
            copy = await send(world, body, kind=FORM, headers=headers)

    assert [command.name for command in chat.receiver.commands] == ["reset"]
    assert first.document == copy.document == {"response_type": "ephemeral", "text": "done"}


@pytest.mark.parametrize("late_s", [301, 3_600, -3_600])
async def test_an_old_request_is_refused(late_s: float, tmp_path: Path) -> None:
    with SlackApi() as slack:
        async with reached(slack, tmp_path) as (chat, world), running(chat):
            answer = await send(world, said("hello"), late_s=late_s)

    assert answer.status == 401
    assert chat.receiver.begun == 0


@pytest.mark.parametrize(
    "headers",
    [
        {"x-slack-signature": "v0=" + "0" * 64},
        {"x-slack-signature": ""},
        {"x-slack-signature": "v0=\u00e9"},
        {"x-slack-request-timestamp": "soon"},
        {"x-slack-request-timestamp": ""},
        {"x-slack-request-timestamp": "1" * 400},
    ],
    ids=str,
)
async def test_a_request_that_is_not_signed_is_refused(
    headers: dict[str, str], tmp_path: Path
) -> None:
    with SlackApi() as slack:
        async with reached(slack, tmp_path) as (chat, world), running(chat):
            answer = await send(world, said("hello"), headers=headers)

    assert answer.status == 401
    assert chat.receiver.begun == 0


async def test_a_request_signed_with_another_secret_is_refused(tmp_path: Path) -> None:
    with SlackApi() as slack:
        async with reached(slack, tmp_path) as (chat, world), running(chat):
            answer = await send(world, said("hello"), secret="of another app")
            challenge = json.dumps({"type": "url_verification", "challenge": "c"})
            wrong = await send(world, challenge, secret="of another app")
            right = await send(world, challenge)

    assert (answer.status, wrong.status) == (401, 401)
    assert right.document == {"challenge": "c"}, "Slack checks the address so when it is entered"
    assert chat.receiver.begun == 0


async def test_a_message_that_is_not_recorded_is_no_success_and_comes_again(
    tmp_path: Path,
) -> None:
    with SlackApi() as slack:
        async with reached(slack, tmp_path) as (chat, world), running(chat):
            chat.receiver.fails = 1
            failed = await send(world, said("remember this"))
            again = await send(world, said("remember this"))

    assert (failed.status, again.status) == (500, 200)
    assert chat.receiver.texts == ["remember this"]


async def test_a_copy_of_a_request_that_is_under_way_is_to_come_again(tmp_path: Path) -> None:
    answers: list[Answer] = []
    with SlackApi() as slack:
        async with reached(slack, tmp_path) as (chat, world), running(chat):
            chat.receiver.gate = anyio.Event()
            async with anyio.create_task_group() as tasks:
                headers = signed(said("slow"), world.site.context.clock.now().timestamp())

                async def first() -> None:
                    answers.append(await send(world, said("slow"), headers=headers))

                tasks.start_soon(first)
                await chat.receiver.until(lambda: chat.receiver.begun == 1)
                copy = await send(world, said("slow"), headers=headers)
                chat.receiver.gate.set()

    assert (copy.status, answers[0].status) == (503, 200)
    assert chat.receiver.texts == ["slow"]


async def test_a_bot_that_does_not_run_asks_slack_to_come_again(tmp_path: Path) -> None:
    with SlackApi() as slack:
        async with reached(slack, tmp_path) as (chat, world):
            before = await send(world, said("hello"))
            async with running(chat):
                during = await send(world, said("hello"))

    assert (before.status, during.status) == (503, 200)
    assert chat.receiver.texts == ["hello"]


async def test_slack_delivers_again_what_a_bot_could_not_take(tmp_path: Path) -> None:
    with SlackApi() as slack:
        slack.redeliver_after(0.05)
        async with reached(slack, tmp_path) as (chat, _), running(chat):
            chat.receiver.fails = 2
            slack.say("remember this")
            await to_thread.run_sync(
                slack.wait_for, lambda: slack.deliveries and slack.deliveries[0].is_acknowledged
            )

    assert chat.receiver.texts == ["remember this"]
    assert slack.deliveries[0].attempts == 3


async def test_other_paths_of_that_port_stay_closed(tmp_path: Path) -> None:
    with SlackApi() as slack:
        async with reached(slack, tmp_path) as (chat, world), running(chat):
            unknown = await send(world, said("hello"), path="/v1/slack/nobody")
            below = await send(world, said("hello"), path="/v1/slack/coder/x")
            other = await world.ask("GET", "/v1/jobs", port=world.ports[0])

    assert (unknown.status, below.status, other.status) == (404, 404, 404)
    assert chat.receiver.begun == 0


async def test_a_bot_in_socket_mode_takes_no_requests(tmp_path: Path) -> None:
    with SlackApi() as slack:
        async with connected(slack, tmp_path) as chat:
            connection = chat.connection
            assert isinstance(connection, TakesRequests)
            answer = await connection.take_request(
                signed(said("hello"), 1.0), said("hello").encode()
            )

    assert answer.status == 404
    assert chat.receiver.begun == 0


async def test_a_body_that_is_no_text_is_refused(tmp_path: Path) -> None:
    with SlackApi() as slack:
        connection = connect(slack, HTTP_SETTINGS)
        chat = opened(slack, connection, tmp_path)
        async with running(chat):
            headers = signed("x", 1.0)
            answer = await connection.take_request(headers, b"\xff\xfe")

    assert answer.status == 401
