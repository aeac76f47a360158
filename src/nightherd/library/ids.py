"""Fresh ids, for programs."""

from __future__ import annotations

from datetime import datetime

from nightherd.model import ids
from nightherd.model.ids import JobId, RandomText, SessionId
from nightherd.wiring.memories import random_text, system_clock


def generate_job_id(at: datetime | None = None, random: RandomText | None = None) -> JobId:
    """Return a fresh job id, `job-YYYY-MM-DD-xxxxxx`, with the UTC date of `at` (default: now).

    `random(length)` gives the last characters; tests pass their own. The store checks that an id is unique.
    """
    return ids.generate_job_id(at or system_clock().now(), random or random_text())


def generate_session_id(random: RandomText | None = None) -> SessionId:
    """Return a fresh session id, `sess-xxxxxxxx`."""
    return ids.generate_session_id(random or random_text())
