"""NotifyTarget: where notifications go, about what, and what may be connected to on the way."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from datetime import time, timedelta
from enum import StrEnum
from urllib.parse import quote, unquote, urlsplit

import msgspec

from nightherd.errors import InvalidValueError
from nightherd.model.push.subscription import PushSubscription


class NotifyEvent(StrEnum):
    """What a notification is about."""

    COMPLETED = "completed"
    FAILED = "failed"
    SUSPENDED = "suspended"
    """A job began to wait, for whatever reason. The more specific events below count as this one too."""
    APPROVAL = "approval"
    QUESTION = "question"
    LIMIT = "limit"
    LOST = "lost"
    """A job lost its worker and is resumed."""
    MESSAGE = "message"
    """A phase of a workflow says what its file has for the moment."""
    DIGEST = "digest"


DEFAULT_EVENTS = frozenset(
    {
        NotifyEvent.FAILED,
        NotifyEvent.SUSPENDED,
        NotifyEvent.APPROVAL,
        NotifyEvent.QUESTION,
        NotifyEvent.LIMIT,
        NotifyEvent.MESSAGE,
    }
)
"""What a target that names no events is told: what a person may have to act on, and what a workflow's author wrote."""

DISCORD_BOT = "discord-bot"
"""Our own scheme for `discord-bot://TOKEN@CHANNEL`: a bot's message, which Apprise cannot send."""
SCHEMES = frozenset(
    {
        *("mailto", "mailtos", "json", "jsons", "form", "forms", "xml", "xmls"),
        *("slack", "discord", "tgram", "workflow", "workflows", "gchat", "webex"),
        *(
            "matrix",
            "matrixs",
            "mmost",
            "mmosts",
            "rocket",
            "rockets",
            "zulip",
            "signal",
            "signals",
        ),
        *("whatsapp", "line", "feishu", "lark", "wecombot", "apprise", "apprises"),
        *("ntfy", "ntfys", "pover", "gotify", "gotifys", "pbul", "prowl", "spush", "bark", "barks"),
        *(
            "join",
            "hassio",
            "hassios",
            "psafer",
            "psafers",
            "ifttt",
            "pushed",
            "wxpusher",
            "pushme",
        ),
        *("pagerduty", "opsgenie", "victorops", "splunk", "signl4", "twilio", "sns", "ses"),
        *("sendgrid", "mailgun", "msgbird", "nexmo", "vonage", "clicksend", "resend", "sparkpost"),
        *("smtp2go", "brevo", "o365", "mailersend", "postmark", "nctalk", "nctalks", "mastodon"),
        *(
            "mastodons",
            "wxteams",
            "threema",
            "viber",
            "pagertree",
            "betterstack",
            "ilert",
            DISCORD_BOT,
        ),
    }
)
"""Services that may be used: those that only talk to a server. What writes files or reaches the desktop is not one."""

SHORTEST_SECRET, LONG_NUMBER, SURELY_A_KEY = 8, 15, 24
"""Characters of what is taken for a key: of any, of a number, and of a text without a digit."""
HOST = re.compile(r"[a-z0-9.-]+\.[a-z]{2,}(:\d+)?|[\d.]+(:\d+)?|localhost(:\d+)?", re.IGNORECASE)
ADDRESSES = frozenset({"mailto", "mailtos"})
"""Schemes whose paths and options are addresses of people, not secrets."""
TIME = re.compile(r"([01]\d|2[0-3]):([0-5]\d)")


class Digest(msgspec.Struct, frozen=True, kw_only=True):
    """When a summary is sent, every day."""

    at: time
    timezone: str = "UTC"


class BotService(StrEnum):
    """Where a bot can write."""

    SLACK = "slack"
    DISCORD = "discord"


class Bot(msgspec.Struct, frozen=True, kw_only=True):
    """A bot that writes to one channel."""

    service: BotService
    channel: str

    def url(self, token: str) -> str:
        """Return the address by which the bot with that token reaches the channel."""
        if self.service is BotService.DISCORD:
            return f"{DISCORD_BOT}://{quote(token, safe='')}@{quote(self.channel, safe='')}"
        is_id = re.fullmatch(r"[CDG][A-Z0-9]{7,}", self.channel) is not None
        channel = f"+{self.channel}" if is_id else f"#{self.channel.removeprefix('#')}"
        return f"slack://{quote(token, safe='')}/{quote(channel, safe='')}"


class NotifyTarget(msgspec.Struct, frozen=True, kw_only=True):
    """One declared target of the fleet, an agent or a schedule, resolved."""

    id: str
    """Its name; with `AGENT/` or `AGENT/SCHEDULE/` before it where it is declared there with an address of its own."""
    url: str | None = None
    url_env: str | None = None
    events: frozenset[NotifyEvent] = DEFAULT_EVENTS
    title: str | None = None
    template: str | None = None
    allow_hosts: tuple[str, ...] = ()
    """Hosts, by name or number, that may be reached although their address is private."""
    timeout: timedelta = timedelta(seconds=30)
    give_up_after: timedelta = timedelta(hours=24)
    digest: Digest | None = None
    bot: Bot | None = None
    """Set where `url_env` holds a bot's token instead of a URL."""
    approver: str | None = None
    """Under which name its reader answers by links; by default its own."""
    device: PushSubscription | None = None
    """Set for a device, which is told by pushes, and about its topics instead of `events`."""

    def __repr__(self) -> str:
        # The address is a secret.
        return f"NotifyTarget(id={self.id!r}, events={sorted(self.events)!r})"

    def address(self, environment: Mapping[str, str]) -> str:
        """Return the URL to send to, or `InvalidValueError`; the message has nothing of it."""
        if self.url_env is not None:
            found = environment.get(self.url_env, "").strip()
            if not found:
                raise InvalidValueError(f"the variable {self.url_env} is not set")
            return check_url(found if self.bot is None else self.bot.url(found))
        if self.url is None:
            raise InvalidValueError(f"notify target {self.id!r} has no url")
        return check_url(self.url)


def scheme_of(url: str) -> str:
    """Return the scheme of a URL in lower case; empty when it has none."""
    scheme, mark, _ = url.partition("://")
    return scheme.strip().lower() if mark else ""


def check_url(url: str) -> str:
    """`url`, if it names a service that may be used, else `InvalidValueError`; the message has nothing secret."""
    scheme = scheme_of(url)
    if scheme not in SCHEMES:
        named = f"the scheme {scheme!r}" if re.fullmatch(r"[a-z0-9+.-]{1,20}", scheme) else "this"
        raise InvalidValueError(
            f"{named} is not one that notifications may use",
            hint="an Apprise URL such as ntfys://HOST/TOPIC, slack://..., mailtos://...",
        )
    if any(ord(char) < 0x20 or ord(char) == 0x7F for char in url):
        raise InvalidValueError("the url has control characters")
    return url


def secret_parts(url: str) -> Iterator[str]:
    """Yield the url and what in it is a key: logins, and path segments and options that look like one."""
    yield url
    try:
        parts = urlsplit(url)
    except ValueError:
        return
    login, _, place = parts.netloc.rpartition("@")
    yield from (one for one in _spellings(login, *login.split(":")) if len(one) >= SHORTEST_SECRET)
    if scheme_of(url) in ADDRESSES:
        return
    options = [pair.partition("=")[2] for pair in parts.query.split("&")]
    pieces = [*parts.path.split("/"), *options, place, *place.split(":")]
    yield from (one for one in _spellings(*pieces) if _is_key(one))


def _spellings(*pieces: str) -> set[str]:
    return {text for piece in pieces for text in (piece, unquote(piece))}


def _is_key(text: str) -> bool:
    """Whether a part of an address is a key and not a word or a host: masking those would blot out ordinary text."""
    if len(text) < SHORTEST_SECRET or HOST.fullmatch(text):
        return False
    has_digit, has_letter = any(map(str.isdigit, text)), any(map(str.isalpha, text))
    return len(text) >= SURELY_A_KEY or (has_digit and (has_letter or len(text) >= LONG_NUMBER))


def parse_time(text: str) -> time:
    """A time of the day as `07:30`, or `InvalidValueError`."""
    found = TIME.fullmatch(text)
    if found is None:
        raise InvalidValueError(f"{text!r} is not a time of the day; write 07:30")
    return time(int(found[1]), int(found[2]))
