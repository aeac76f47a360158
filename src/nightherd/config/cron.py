"""Cron expressions, checked when the file is read: five fields, six with seconds, or an alias."""

from __future__ import annotations

from datetime import UTC, datetime

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
