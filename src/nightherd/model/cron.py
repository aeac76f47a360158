"""Cron expressions: five fields, six with seconds, or an alias; checked, and when they are due."""

from __future__ import annotations

from datetime import UTC, datetime
from zoneinfo import ZoneInfo

from cronsim import CronSim, CronSimError

from nightherd.errors import InvalidValueError

ALIASES = {
    "@yearly": "0 0 1 1 *",
    "@annually": "0 0 1 1 *",
    "@monthly": "0 0 1 * *",
    "@weekly": "0 0 * * 0",
    "@daily": "0 0 * * *",
    "@midnight": "0 0 * * *",
    "@hourly": "0 * * * *",
}
ANY_TIME = datetime(2025, 1, 1, tzinfo=UTC)
LONGEST = 256


def check_cron(text: str) -> str:
    """The expression that `text` stands for, aliases written out, or `InvalidValueError`."""
    expression = ALIASES.get(text.strip().lower(), text.strip())
    try:
        if len(expression) > LONGEST or not expression.isascii():
            raise CronSimError("it is too long or not ASCII")
        CronSim(expression, ANY_TIME)
    except CronSimError as error:
        reason = str(error).lower() or "it has the wrong number of fields"
        raise InvalidValueError(f"{text!r} is not a cron expression: {reason}") from error
    return expression


def next_match(expression: str, timezone: str, after: datetime) -> datetime | None:
    """The first instant after `after` that matches, in UTC; None when there is none in fifty years.

    A time that the clocks skip in spring comes right after the gap, one that they show twice in autumn
    comes once (the first time), as in Debian's cron; with a `*` in minutes or hours, or with seconds, every
    real instant counts.
    """
    for found in CronSim(expression, after.astimezone(ZoneInfo(timezone))):
        at = found.astimezone(UTC)
        # In the hour that is shown twice, and after a gap, two matches may fall on one instant.
        if at > after:
            return at
    return None
