"""Ids and names: what they look like, and that nothing else passes for one."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nightherd.errors import InvalidValueError
from nightherd.model.ids import (
    ALPHABET,
    NAME_LIMIT,
    JobId,
    check_name,
    generate_execution_id,
    generate_job_id,
    generate_session_id,
    generate_worker_id,
    parse_job_id,
    parse_session_id,
)

ANY_TIME = st.datetimes(
    min_value=datetime(1970, 1, 2),  # noqa: DTZ001 hypothesis adds the zone
    max_value=datetime(9990, 1, 1),  # noqa: DTZ001
    timezones=st.builds(timezone, st.builds(timedelta, minutes=st.integers(-1439, 1439))),
)
RANDOM = st.text(ALPHABET, min_size=8, max_size=8)


@given(ANY_TIME, RANDOM)
def test_a_job_id_is_its_utc_date_and_six_random_characters(at: datetime, random: str) -> None:
    job_id = generate_job_id(at, lambda length: random[:length])

    assert re.fullmatch(r"job-\d{4}-\d{2}-\d{2}-[a-z0-9]{6}", job_id)
    assert job_id == f"job-{at.astimezone(UTC).date().isoformat()}-{random[:6]}"
    assert parse_job_id(job_id) == job_id


def test_the_date_of_a_job_id_is_not_the_local_one() -> None:
    late_in_new_york = datetime(2024, 12, 31, 23, 0, tzinfo=timezone(timedelta(hours=-5)))

    assert generate_job_id(late_in_new_york, lambda length: "a" * length) == "job-2025-01-01-aaaaaa"


@given(RANDOM)
def test_session_and_worker_ids_have_eight_random_characters(random: str) -> None:
    session_id = generate_session_id(lambda length: random[:length])

    assert session_id == f"sess-{random}"
    assert parse_session_id(session_id) == session_id
    assert generate_worker_id(lambda length: random[:length]) == f"worker-{random}"


@given(st.lists(st.integers(1, 10**6), unique=True))
def test_every_epoch_of_a_job_has_its_own_execution_id(epochs: list[int]) -> None:
    job_id = JobId("job-2025-01-01-aaaaaa")

    assert len({generate_execution_id(job_id, epoch) for epoch in epochs}) == len(epochs)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "job-2025-01-01-abcde",
        "job-2025-01-01-abcdefg",
        "job-2025-01-01-ABCDEF",
        "job-2025-1-1-abcdef",
        "job-2025-01-01-abcdef\n",
        " job-2025-01-01-abcdef",
        "job-2025-01-01-abcde/",
        "job-\uff12\uff10\uff12\uff15-01-01-abcdef",
        "job-2025-01-01-abcde\u00e9",
        "../job-2025-01-01-abcdef",
    ],
)
def test_what_is_not_a_job_id_is_refused(text: str) -> None:
    with pytest.raises(InvalidValueError):
        parse_job_id(text)


@given(st.text())
def test_any_text_is_an_id_that_is_safe_in_a_path_or_refused(text: str) -> None:
    for parse in (parse_job_id, parse_session_id, check_name):
        try:
            assert parse(text) == text
        except InvalidValueError:
            continue
        assert re.fullmatch(r"[A-Za-z0-9_-]{1,100}", text)


@given(st.from_regex(r"[A-Za-z0-9][A-Za-z0-9_-]{0,99}", fullmatch=True))
def test_a_name_of_letters_digits_and_dashes_is_a_name(text: str) -> None:
    assert check_name(text) == text


@pytest.mark.parametrize(
    "text", ["", ".", "..", "../x", "/x", "a/b", "a.b", "-a", "_a", "a b", "a\0", "é", "a\n"]
)
def test_what_could_leave_a_directory_or_confuse_a_command_is_no_name(text: str) -> None:
    with pytest.raises(InvalidValueError):
        check_name(text)


def test_a_name_has_a_longest_length() -> None:
    assert check_name("a" * NAME_LIMIT)

    with pytest.raises(InvalidValueError, match="at most 100"):
        check_name("a" * (NAME_LIMIT + 1))
