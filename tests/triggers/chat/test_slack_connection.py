"""The connection to Slack ends, comes back and is refused: what is said about it, and what is not missed."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import anyio
import pytest

from nightherd.errors import ChatRefusedError, ConfigError, unwrapped
from nightherd.ports.chat import PostResult
from nightherd.testing.contracts.chat import running
from nightherd.testing.slack_api import SlackApi
from triggers.chat.slack_bot import HERE, connect, connected, opened, wait_for


def is_replaced(slack: SlackApi, opened: int) -> bool:
    """Whether so many connections were opened, and only the newest is open."""
    return slack.opened == opened and slack.connections == 1


@pytest.mark.parametrize("reason", ["warning", "refresh_requested"])
async def test_a_new_connection_takes_the_place_of_one_that_slack_will_close(
    reason: str, tmp_path: Path
) -> None:
    with SlackApi() as slack:
        async with connected(slack, tmp_path) as chat:
            slack.disconnect(reason)
            assert await wait_for(slack, lambda: slack.opened == 2 and slack.connections == 1)
            slack.say("still there?")
            await chat.receiver.until(lambda: chat.receiver.texts == ["still there?"])

    assert [(state.is_connected, state.is_fresh) for state in chat.receiver.states] == [
        (True, True),
        (True, False),
    ]


async def test_what_is_under_way_is_acknowledged_on_the_connection_that_brought_it(
    tmp_path: Path,
) -> None:
    with SlackApi() as slack:
        async with connected(slack, tmp_path) as chat:
            chat.receiver.gate = anyio.Event()
            slack.say("slow")
            await chat.receiver.until(lambda: chat.receiver.begun == 1)
            slack.disconnect()
            await wait_for(slack, lambda: slack.opened == 2)
            chat.receiver.gate.set()
            assert await wait_for(slack, lambda: slack.deliveries[0].is_acknowledged)

    assert slack.deliveries[0].attempts == 1
    assert chat.receiver.texts == ["slow"]


async def test_what_was_not_acknowledged_on_a_lost_connection_comes_again(tmp_path: Path) -> None:
    with SlackApi() as slack:
        slack.redeliver_after(0.1)
        async with connected(slack, tmp_path) as chat:
            chat.receiver.fails = 1
            slack.say("remember this")
            await chat.receiver.until(lambda: chat.receiver.begun == 1)
            slack.drop()
            await wait_for(slack, lambda: slack.deliveries[0].is_acknowledged)

    assert chat.receiver.texts == ["remember this"]
    assert slack.opened == 2


async def test_what_was_said_while_the_bot_was_away_is_in_the_history(tmp_path: Path) -> None:
    with SlackApi() as slack:
        chat = opened(slack, connect(slack), tmp_path)
        async with running(chat):
            seen = slack.say("one")
            await chat.receiver.until(lambda: chat.receiver.texts == ["one"])
        missed = [slack.say(f"missed {n}") for n in range(3)]
        async with running(chat):
            history = await chat.connection.history(HERE, seen, 10)

    assert chat.receiver.texts == ["one"]
    assert chat.receiver.states[-1].is_fresh
    assert [message.message_id for message in history] == missed


async def test_socket_mode_that_is_switched_off_is_said_and_not_asked_for_in_a_loop(
    tmp_path: Path,
) -> None:
    with SlackApi() as slack:
        async with connected(slack, tmp_path) as chat:
            slack.disconnect("link_disabled")
            await chat.receiver.until(lambda: not chat.receiver.is_connected)

    assert "Socket Mode is switched off" in str(chat.receiver.states[-1].error)
    assert len(slack.called("apps.connections.open")) == 1


async def test_a_connection_that_ends_at_once_again_and_again_is_opened_with_growing_pauses(
    tmp_path: Path,
) -> None:
    with SlackApi() as slack:
        async with connected(slack, tmp_path):
            started_at = anyio.current_time()
            while slack.opened < 4:
                wanted = slack.opened + 1
                slack.disconnect()
                await wait_for(slack, partial(is_replaced, slack, wanted))
            took = anyio.current_time() - started_at

    assert took >= 0.5 + 1 + 2


@pytest.mark.parametrize("status", [200, 500, 503])
async def test_an_address_that_cannot_be_had_is_asked_for_again(
    status: int, tmp_path: Path
) -> None:
    with SlackApi() as slack:
        error = "internal_error" if status != 503 else None
        slack.fail("apps.connections.open", error=error, status=status)
        async with connected(slack, tmp_path) as chat:
            states = chat.receiver.states

    assert [state.is_connected for state in states] == [False, True]
    assert str(states[0].error).startswith("Slack: ")


async def test_slack_is_left_alone_for_as_long_as_it_asks(tmp_path: Path) -> None:
    with SlackApi() as slack:
        slack.fail("apps.connections.open", error="ratelimited", status=429, retry_after=2)
        started_at = anyio.current_time()
        async with connected(slack, tmp_path):
            took = anyio.current_time() - started_at

    assert took >= 2
    assert len(slack.called("apps.connections.open")) == 2


async def test_a_bot_starts_though_slack_cannot_say_who_it_is_at_first(tmp_path: Path) -> None:
    with SlackApi() as slack:
        slack.fail("auth.test", is_cut=True)
        async with connected(slack, tmp_path) as chat:
            states = chat.receiver.states

    assert [state.is_connected for state in states] == [False, True]


async def test_a_token_that_a_message_finds_revoked_ends_the_connection(tmp_path: Path) -> None:
    refused: BaseException | None = None
    result: PostResult | None = None
    with SlackApi() as slack:
        try:
            async with connected(slack, tmp_path) as chat:
                slack.revoke()
                result = await chat.connection.post(chat.post("hello", "n-1"))
                await anyio.sleep_forever()
        except* ChatRefusedError as group:
            refused = unwrapped(group)

    assert str(refused).startswith("Slack refuses the bot (token_revoked)")
    assert result is not None
    assert result.error == "Slack: token_revoked (the token was revoked)"
    assert not result.is_permanent, "with another token it can be sent"


@pytest.mark.parametrize(
    "event",
    [{"type": "app_uninstalled"}, {"type": "tokens_revoked", "tokens": {"bot": ["U0BOT"]}}],
    ids=lambda event: event["type"],
)
async def test_an_app_that_is_uninstalled_ends_the_connection(
    event: dict[str, object], tmp_path: Path
) -> None:
    refused = False
    with SlackApi() as slack:
        try:
            async with connected(slack, tmp_path):
                slack.tell(event)
                await anyio.sleep_forever()
        except* ChatRefusedError:
            refused = True

    assert refused


async def test_the_error_of_a_wrong_app_token_names_its_variable(tmp_path: Path) -> None:
    with SlackApi() as slack:
        connection = connect(slack, environment={"SLACK_APP_TOKEN": "xapp-wrong-one"})
        chat = opened(slack, connection, tmp_path)
        with pytest.raises(ChatRefusedError) as refused:
            await connection.run(chat.receiver)

    assert "SLACK_APP_TOKEN" in str(refused.value.hint)
    assert "xapp-wrong-one" not in f"{refused.value} {refused.value.hint} {connection!r}"


async def test_a_missing_scope_is_named(tmp_path: Path) -> None:
    with SlackApi(scopes=["users:read"]) as slack:
        async with connected(slack, tmp_path) as chat:
            result = await chat.connection.post(chat.post("hello", "n-1"))

    assert result.is_permanent
    assert (
        result.error == "Slack: missing_scope (add the scope chat:write and install the app again)"
    )


@pytest.mark.parametrize(
    ("variable", "value"),
    [("SLACK_BOT_TOKEN", ""), ("SLACK_APP_TOKEN", "xapp 1"), ("SLACK_BOT_TOKEN", "xoxb\r\nx: y")],
)
def test_what_cannot_be_a_token_is_refused_without_showing_it(variable: str, value: str) -> None:
    with SlackApi() as slack, pytest.raises(ConfigError, match=variable) as error:
        connect(slack, environment={variable: value})

    assert not value or value not in str(error.value)


@pytest.mark.parametrize(
    "url", ["http://slack.example/api/", "ftp://127.0.0.1/", "https://a:b@slack.com/api/"]
)
def test_an_api_address_by_which_tokens_could_be_read_is_refused(url: str) -> None:
    with SlackApi() as slack, pytest.raises(ConfigError, match="NIGHTHERD_SLACK_API_URL"):
        connect(slack, environment={"NIGHTHERD_SLACK_API_URL": url})
