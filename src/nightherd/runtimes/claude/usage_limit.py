"""Messages in which `claude` reports that a request failed: they look like answers of the model and are none."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta, tzinfo
from typing import Any
from zoneinfo import ZoneInfo

import msgspec
from msgspec.structs import replace

from nightherd.runtimes.claude.answer import body_of

STATUS = re.compile(r"\bAPI Error: (\d{3})\b")
"""Older versions (2.1.100) give the status in the text alone."""


def is_api_error(message: Mapping[str, Any]) -> bool:
    """Whether an `assistant` message is such a report."""
    return bool(message.get("error") or message.get("is_api_error_message"))


class ApiError(msgspec.Struct, frozen=True):
    """One such report; without a message, none was made."""

    message: Mapping[str, Any] = msgspec.field(default_factory=dict)

    @property
    def text(self) -> str:
        """What it says."""
        content = (body_of(self.message) or {}).get("content")
        blocks = content if isinstance(content, list) else [{"text": content}]
        texts = (block.get("text") for block in blocks if isinstance(block, Mapping))
        return "\n".join(text for text in texts if isinstance(text, str))

    @property
    def status(self) -> int | None:
        """The API's status."""
        given = self.message.get("api_error_status")
        if isinstance(given, int):
            return given
        matched = STATUS.search(self.text)
        return int(matched[1]) if matched is not None else None

    @property
    def kind(self) -> str:
        """Claude's own word for the error."""
        given = self.message.get("api_error") or self.message.get("error")
        return given if isinstance(given, str) else ""


REJECTED = "rejected"
USABLE_OVERAGE = frozenset({"allowed", "allowed_warning"})
MILLISECONDS = 1e11
"""An epoch from here on is in milliseconds."""
EARLIEST = datetime.fromtimestamp(0, UTC)
ONE_DAY = timedelta(days=1)
LONGEST = timedelta(days=366)
"""A time further away than this is a misreading, and counts as not named."""
NAME_LENGTH = 64

EPOCH = re.compile(r"limit reached\|(\d{10,13})\b")
"""How older versions named the time."""
RESETS = re.compile(
    r"\bresets?\s+(?:at\s+)?"
    r"(?:(?P<month>[A-Z][a-z]{2})[a-z]*\.?\s+(?P<day>\d{1,2})(?:,\s*(?P<year>\d{4}))?(?:,|\s+at)?\s+)?"
    r"(?P<hour>\d{1,2})(?::(?P<minute>\d{2}))?\s*(?P<half>am|pm|AM|PM)\b"
    r"(?:\s*\((?P<zone>[A-Za-z0-9_+\-/]+)\))?"
)
MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")


class UsageLimit(msgspec.Struct, frozen=True, kw_only=True):
    """A limit that rejects requests until `resets_at`; None where Claude does not say when."""

    resets_at: datetime | None
    name: str | None = None
    """Claude's word for it: `five_hour`, `seven_day`, `seven_day_opus` ..."""


class UsageLimits:
    """What one run has heard of the subscription's limits; `now` and `zone` give a time in a text its date."""

    def __init__(
        self, now: Callable[[], datetime] = lambda: EARLIEST, zone: tzinfo | None = None
    ) -> None:
        self._now = now
        self._zone = zone
        self._is_reported = False
        self._limit: UsageLimit | None = None

    def hear(self, message: Mapping[str, Any]) -> None:
        """Take in a `rate_limit_event`; the latest one counts."""
        self._is_reported = _status_in(message) == REJECTED
        self._limit = limit_in_event(message)

    def hit(self, api_error: str) -> UsageLimit | None:
        """The limit that rejected a request which failed with the text `api_error`."""
        now = self._now()
        if not self._is_reported:
            resets_at = reset_in_text(api_error, now, self._zone)
            return None if resets_at is None else UsageLimit(resets_at=_reasonable(resets_at, now))
        if self._limit is None:
            return None
        return replace(self._limit, resets_at=_reasonable(self._limit.resets_at, now))


def limit_in_event(message: Mapping[str, Any]) -> UsageLimit | None:
    """The limit that a `rate_limit_event` reports as hit; None for a warning, or while overage can be used."""
    info = message.get("rate_limit_info")
    if not isinstance(info, Mapping) or _status_in(message) != REJECTED:
        return None
    if info.get("isUsingOverage") is True or info.get("overageStatus") in USABLE_OVERAGE:
        return None
    name = info.get("rateLimitType")
    return UsageLimit(
        resets_at=_from_epoch(info.get("resetsAt")),
        name=name[:NAME_LENGTH] if isinstance(name, str) else None,
    )


def _status_in(message: Mapping[str, Any]) -> object:
    info = message.get("rate_limit_info")
    return info.get("status") if isinstance(info, Mapping) else None


def reset_in_text(text: str, now: datetime, zone: tzinfo | None = None) -> datetime | None:
    """The time at which an API error's text says that the limit resets: the next such time after `now`.

    Times without a zone are in `zone`, by default the zone of this process.
    """
    epoch = EPOCH.search(text)
    if epoch is not None:
        return _from_epoch(int(epoch[1]))
    matched = RESETS.search(text)
    if matched is None:
        return None
    local = now.astimezone(_zone(matched["zone"]) or zone)
    hour, minute = int(matched["hour"]), int(matched["minute"] or 0)
    if not 1 <= hour <= 12:
        return None
    hour = hour % 12 + (12 if matched["half"].lower() == "pm" else 0)
    try:
        at = local.replace(hour=hour, minute=minute, second=0, microsecond=0, fold=0)
        if matched["month"] is not None:
            return _on_date(matched, at, local)
    except ValueError:  # no such minute, or no such day
        return None
    # The text has no seconds: a time of this very minute has just come, not tomorrow.
    at = at if at + timedelta(minutes=1) > local else at + ONE_DAY
    return at.astimezone(UTC)


def zone_of(environment: Mapping[str, str]) -> tzinfo | None:
    """The zone in which a process with that environment writes times; None for the zone of this one."""
    return _zone(environment.get("TZ") or None)


def _reasonable(at: datetime | None, now: datetime) -> datetime | None:
    """`at` unless it is so far away that it cannot be meant."""
    return at if at is not None and at - now <= LONGEST else None


def _on_date(found: re.Match[str], at: datetime, local: datetime) -> datetime | None:
    month = found["month"].capitalize()
    if month not in MONTHS:
        return None
    number, day = MONTHS.index(month) + 1, int(found["day"])
    if found["year"] is not None:
        return at.replace(year=int(found["year"]), month=number, day=day).astimezone(UTC)
    dated = at.replace(month=number, day=day)
    # Without a year: a day long past is one of next year.
    if local - dated > LONGEST / 2:
        dated = dated.replace(year=dated.year + 1)
    return dated.astimezone(UTC)


def _zone(name: str | None) -> tzinfo | None:
    if name is None:
        return None
    try:
        return ZoneInfo(name)
    except (
        KeyError,
        ValueError,
        OSError,
    ):  # unknown here: the zone of this process is the best guess
        return None


def _from_epoch(value: object) -> datetime | None:
    if not isinstance(value, int | float) or isinstance(value, bool) or value <= 0:
        return None
    seconds = value / 1_000 if value >= MILLISECONDS else value
    try:
        return datetime.fromtimestamp(seconds, UTC)
    except (OverflowError, ValueError, OSError):
        return None
