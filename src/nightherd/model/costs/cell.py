"""Cell: what one job used in one quarter of an hour with one model. All sums of costs are sums of cells.

Quarters of an hour are whole in every time zone, so cells add up to the days of any of them.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import msgspec

from nightherd.model.usage import NOTHING_USED, Usage, tokens_in

QUARTER = timedelta(minutes=15)
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
NO_MODEL = ""
"""Stands for the model where nothing on record names one."""


class Cell(msgspec.Struct, frozen=True, kw_only=True):
    """Something used. A correction of what was counted before may be below nothing."""

    quarter: int
    """Quarters of an hour since 1970, UTC."""
    model: str = NO_MODEL
    usage: Usage = NOTHING_USED
    turns: int = 0


class Amounts(msgspec.Struct, frozen=True, kw_only=True):
    """What cells add up to, and how many jobs they are of."""

    usage: Usage = NOTHING_USED
    turns: int = 0
    jobs: int = 0

    @property
    def tokens(self) -> int:
        """Tokens of every kind."""
        return tokens_in(self.usage)

    @property
    def is_nothing(self) -> bool:
        """Whether nothing was used in the end."""
        return self.usage == NOTHING_USED and not self.turns

    def __add__(self, other: Amounts) -> Amounts:
        """Both together; no job is in both."""
        return Amounts(
            usage=self.usage + other.usage,
            turns=self.turns + other.turns,
            jobs=self.jobs + other.jobs,
        )


NOTHING = Amounts()
"""Where every sum starts."""


def quarter_of(at: datetime) -> int:
    """Return the quarter of an hour that an instant is in."""
    return (at - EPOCH) // QUARTER


def quarter_after(at: datetime) -> int:
    """Return the first quarter that begins at an instant or after it."""
    return -((EPOCH - at) // QUARTER)


def start_of(quarter: int) -> datetime:
    """Return when a quarter begins."""
    return EPOCH + quarter * QUARTER
