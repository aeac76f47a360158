"""The system's clock."""

from __future__ import annotations

import time
from datetime import UTC, datetime


class SystemClock:
    """Reads the machine's clocks; the only place that does."""

    def now(self) -> datetime:
        """This instant, aware and in UTC."""
        return datetime.now(UTC)  # noqa: TID251 (this is the clock)

    def monotonic(self) -> float:
        """Seconds that only ever grow."""
        return time.monotonic()
