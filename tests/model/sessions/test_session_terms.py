"""What `timeout` and `idle_timeout` come to in each mode."""

from __future__ import annotations

from datetime import timedelta

import pytest
from msgspec.structs import replace

from nightherd.model.sessions.session import SessionMode, SessionTerms

HOUR = timedelta(hours=1)
DAY = timedelta(days=1)


@pytest.mark.parametrize("mode", [SessionMode.PERSISTENT, SessionMode.PER_CHANNEL])
@pytest.mark.parametrize(
    ("timeout", "idle_timeout", "max_age", "max_idle"),
    [
        (None, None, None, DAY),
        (HOUR, None, None, HOUR),
        (None, HOUR, None, HOUR),
        (DAY, HOUR, DAY, HOUR),
    ],
)
def test_a_shared_session_lives_by_age_and_by_use(
    mode: SessionMode,
    timeout: timedelta | None,
    idle_timeout: timedelta | None,
    max_age: timedelta | None,
    max_idle: timedelta | None,
) -> None:
    terms = SessionTerms(mode=mode, timeout=timeout, idle_timeout=idle_timeout)

    assert (terms.max_age, terms.max_idle, terms.job_timeout) == (max_age, max_idle, None)


def test_the_timeout_of_a_jobs_own_session_bounds_the_job() -> None:
    terms = SessionTerms(timeout=HOUR, idle_timeout=DAY)

    assert (terms.max_age, terms.max_idle, terms.job_timeout) == (None, None, HOUR)


def test_terms_in_another_mode_mean_what_they_mean_there() -> None:
    terms = replace(SessionTerms(timeout=HOUR), mode=SessionMode.PERSISTENT)

    assert (terms.max_idle, terms.job_timeout) == (HOUR, None)
