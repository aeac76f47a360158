"""When a schedule is due: the instants of its rule, spread by its jitter, and what becomes of missed ones.

An instant of the rule names the slot; the jitter only says when the slot is fired. Everything here follows
from its arguments, so every process computes the same instants.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Set
from datetime import UTC, datetime, timedelta

import msgspec

from nightherd.errors import InvalidValueError
from nightherd.model.schedules.rule import (
    CatchUp,
    Cron,
    Interval,
    Rule,
    Schedule,
    check_cron,
    next_match,
)
from nightherd.model.schedules.schedule import slot_id
from nightherd.model.units import parse_duration

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
GRACE = timedelta(minutes=1)
"""How late the latest slot may be and still fires under `catch_up: none`: a restart is no reason to miss it."""
MOST_AT_ONCE = 100
"""Missed slots of one schedule that are recorded one by one, and that `catch_up: all` makes up for."""
SHORTEST = timedelta(seconds=1)
RESOLUTION = timedelta(microseconds=1)
WINDOWS = tuple(timedelta(hours=1) * 24**power for power in range(5))
"""How far back missed slots are looked for: an hour first, then longer, so that few are walked over in vain."""

MISSED = "missed: no daemon was running"
TOO_MANY = f"missed: more than {MOST_AT_ONCE} slots were due, and only the latest are made up for"
SUPERSEDED = "missed: a later slot was due as well"


class Due(msgspec.Struct, frozen=True, kw_only=True):
    """A slot that is to come: its instant, and when it is fired."""

    instant: datetime
    runs_at: datetime


class Verdict(msgspec.Struct, frozen=True, kw_only=True):
    """What a due instant is to become: a job, or skipped for a reason."""

    instant: datetime
    reason: str | None = None

    @property
    def is_job(self) -> bool:
        """Whether it fires."""
        return self.reason is None


class Floor(msgspec.Struct, frozen=True, kw_only=True):
    """The earliest instant whose slot `catch_up: all` still makes up for, and why not earlier."""

    at: datetime
    reason: str


class Review(msgspec.Struct, frozen=True, kw_only=True):
    """Every slot of a schedule that is due by now, oldest first, and the one after them."""

    verdicts: tuple[Verdict, ...]
    next: Due | None


def parse_rule(text: str, timezone: str) -> Rule:
    """The rule that `text` spells: a duration for an interval, else a cron expression."""
    try:
        every = parse_duration(text)
    except InvalidValueError:
        every = None
    if every is not None:
        if every < SHORTEST:
            raise InvalidValueError(f"{text!r} is too often; an interval is at least 1s")
        return Interval(every=every)
    try:
        return Cron(expression=check_cron(text), timezone=timezone)
    except InvalidValueError as error:
        raise InvalidValueError(
            f"{error.message}, and not an interval such as 30m", hint="write 30m, or '0 9 * * 1'"
        ) from error


def next_due(rule: Rule, after: datetime) -> datetime | None:
    """The first instant of `rule` after `after`; None when there is none any more."""
    match rule:
        case Interval(every=every):
            return EPOCH + ((after - EPOCH) // every + 1) * every
        case Cron(expression=expression, timezone=timezone):
            return next_match(expression, timezone, after)


def spread(schedule: str, rule: Rule, instant: datetime, jitter: timedelta) -> Due:
    """The slot at `instant`, fired up to `jitter` later and always before the next one is due."""
    if not jitter:
        return Due(instant=instant, runs_at=instant)
    following = next_due(rule, instant)
    room = jitter if following is None else min(jitter, following - instant)
    digest = hashlib.blake2b(slot_id(schedule, instant).encode(), digest_size=8).digest()
    part = int.from_bytes(digest) / 2**64
    return Due(instant=instant, runs_at=instant + room * part)


def next_slot(
    schedule_id: str,
    schedule: Schedule,
    rule: Rule,
    after: datetime,
    decided: Set[datetime] = frozenset(),
) -> Due | None:
    """The first slot after `after` that is not `decided`: a clock set back fires nothing again."""
    instant = next_due(rule, after)
    while instant is not None and instant in decided:
        instant = next_due(rule, instant)
    if instant is None:
        return None
    return spread(schedule_id, rule, instant, schedule.jitter)


def review(
    schedule_id: str,
    schedule: Schedule,
    rule: Rule,
    first: datetime,
    now: datetime,
    floor: Floor | None = None,
) -> Review:
    """What becomes of the slots from `first` on that are due by `now`."""
    if schedule.catch_up is CatchUp.ALL:
        return _review_all(schedule_id, schedule, rule, first, now, floor)
    found = _latest(rule, first, now)
    while found and spread(schedule_id, rule, found[-1], schedule.jitter).runs_at > now:
        found.pop()
    if not found:
        return Review(verdicts=(), next=spread(schedule_id, rule, first, schedule.jitter))
    following = next_slot(schedule_id, schedule, rule, found[-1])
    latest = found.pop()
    due = spread(schedule_id, rule, latest, schedule.jitter)
    is_fired = schedule.catch_up is CatchUp.ONE or now - due.runs_at <= GRACE
    reason = SUPERSEDED if is_fired else MISSED
    skipped = [Verdict(instant=one, reason=reason) for one in found]
    if skipped and skipped[0].instant > first:
        older = f"{reason}; so were all since {first:%Y-%m-%dT%H:%M:%SZ}"
        skipped[0] = Verdict(instant=skipped[0].instant, reason=older)
    last = Verdict(instant=latest, reason=None if is_fired else MISSED)
    return Review(verdicts=(*skipped, last), next=following)


def _review_all(
    schedule_id: str,
    schedule: Schedule,
    rule: Rule,
    first: datetime,
    now: datetime,
    floor: Floor | None,
) -> Review:
    """Every slot fires, but for those below the floor and those that are too many: one row says so for all."""
    is_low = floor is not None and first < floor.at
    begin = next_due(rule, floor.at - RESOLUTION) if floor is not None and is_low else first
    found = _latest(rule, begin, now) if begin is not None and begin <= now else []
    while found and spread(schedule_id, rule, found[-1], schedule.jitter).runs_at > now:
        found.pop()
    after = found[-1] if found else None
    if after is not None:
        following = next_slot(schedule_id, schedule, rule, after)
    else:
        following = spread(schedule_id, rule, begin, schedule.jitter) if begin is not None else None
    jobs = tuple(Verdict(instant=one) for one in found)
    resumed = found[0] if found else begin
    if resumed == first:
        return Review(verdicts=jobs, next=following)
    reason = floor.reason if floor is not None and is_low else TOO_MANY
    until = "" if resumed is None else f"; so were all before {resumed:%Y-%m-%dT%H:%M:%SZ}"
    return Review(
        verdicts=(Verdict(instant=first, reason=f"{reason}{until}"), *jobs), next=following
    )


def upcoming(
    schedule_id: str, schedule: Schedule, rule: Rule, after: datetime, until: datetime
) -> Iterator[Due]:
    """The slots after `after` up to `until`, in order."""
    due = next_slot(schedule_id, schedule, rule, after)
    while due is not None and due.instant <= until:
        yield due
        due = next_slot(schedule_id, schedule, rule, due.instant)


def _latest(rule: Rule, first: datetime, now: datetime) -> list[datetime]:
    """The last few instants from `first` on, up to `now`."""
    found: list[datetime] = []
    for window in (*WINDOWS, now - first):
        begin = max(first, now - window)
        found = [first] if begin == first and first <= now else []
        instant = next_due(rule, begin)
        while instant is not None and instant <= now:
            found.append(instant)
            instant = next_due(rule, instant)
        if len(found) >= MOST_AT_ONCE or begin == first:
            break
    return found[-MOST_AT_ONCE:]
