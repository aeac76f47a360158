"""Addresses of targets: which services may be used, and what in an address is secret."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import apprise
import pytest
from apprise.manager_plugins import NotificationManager
from apprise.plugins.slack import NotifySlack

from nightherd.errors import InvalidValueError
from nightherd.model.notifications.retry_after import parse_retry_after
from nightherd.model.notifications.target import (
    DISCORD_BOT,
    SCHEMES,
    Bot,
    BotService,
    NotifyTarget,
    check_url,
    secret_parts,
)

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_every_listed_service_is_one_that_apprise_knows() -> None:
    known = set(NotificationManager().schemas())  # type: ignore[no-untyped-call]

    assert SCHEMES - known == {DISCORD_BOT}


@pytest.mark.parametrize("url", ["", "phone", "file:///x", "syslog://", "exec://x", "ntfy", "://x"])
def test_other_services_are_refused_without_showing_the_address(url: str) -> None:
    with pytest.raises(InvalidValueError, match="not one that notifications may use"):
        check_url(url)


def test_an_address_with_a_line_break_is_refused() -> None:
    with pytest.raises(InvalidValueError, match="control characters"):
        check_url("ntfys://host/topic\r\nX: y")


@pytest.mark.parametrize(
    ("url", "secrets", "plain"),
    [
        ("slack://xoxb-12345678-abcdefgh/C01234567", ["xoxb-12345678-abcdefgh"], []),
        (
            "mailtos://bot:pass%20word9@mail.example?to=ada@example.com",
            ["pass word9"],
            ["mail.example"],
        ),
        ("ntfys://ntfy.example/topic-4f8a91c2", ["topic-4f8a91c2"], ["ntfy.example"]),
        ("json://10.1.2.3:8080/notifications", [], ["notifications", "10.1.2.3:8080", "10.1.2.3"]),
        ("json://hook.example/path?token=abcdefgh12", ["abcdefgh12"], ["hook.example"]),
        ("tgram://123456789:AAbb11ddEE/987654321", ["123456789:AAbb11ddEE", "AAbb11ddEE"], []),
    ],
)
def test_keys_in_an_address_are_secret_and_hosts_are_not(
    url: str, secrets: list[str], plain: list[str]
) -> None:
    parts = set(secret_parts(url))

    assert url in parts
    assert not set(plain) & parts
    assert set(secrets) <= parts


def test_an_address_is_read_when_it_is_used_and_never_shown() -> None:
    target = NotifyTarget(id="phone", url_env="PHONE")

    assert target.address({"PHONE": " ntfy://host/topic\n"}) == "ntfy://host/topic"
    with pytest.raises(InvalidValueError, match="the variable PHONE is not set"):
        target.address({})
    assert "secret" not in repr(NotifyTarget(id="phone", url="ntfy://host/secret"))


@pytest.mark.parametrize(
    ("service", "channel", "url"),
    [
        (BotService.SLACK, "C0123456789", "slack://xoxb-a/%2BC0123456789"),
        (BotService.SLACK, "#builds", "slack://xoxb-a/%23builds"),
        (BotService.DISCORD, "42", "discord-bot://xoxb-a@42"),
    ],
)
def test_a_bot_writes_to_its_channel(service: BotService, channel: str, url: str) -> None:
    assert check_url(Bot(service=service, channel=channel).url("xoxb-a")) == url


@pytest.mark.parametrize(
    ("text", "wish"),
    [
        (None, None),
        ("", None),
        ("soon", None),
        ("-5", None),
        ("120", timedelta(seconds=120)),
        ("999999999", timedelta(days=366)),
        ("Sun, 01 Mar 2026 12:10:00 GMT", timedelta(minutes=10)),
        ("Sun, 01 Mar 2026 11:00:00 GMT", timedelta()),
    ],
)
def test_how_long_a_server_wants_to_be_left_alone(text: str | None, wish: timedelta | None) -> None:
    assert parse_retry_after(text, NOW) == wish


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
@pytest.mark.parametrize(
    ("channel", "named"), [("C0123456789", "+C0123456789"), ("builds", "#builds")]
)
def test_apprise_reads_the_address_of_a_slack_bot(channel: str, named: str) -> None:
    token = "xoxb-1234567890-1234567890-abcdefghijklmnopqrstuvwx"
    url = Bot(service=BotService.SLACK, channel=channel).url(token)

    service = apprise.Apprise.instantiate(url)

    assert isinstance(service, NotifySlack)
    assert service.mode == "bot"
    assert service.channels == [named]
