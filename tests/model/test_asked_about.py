"""A job that decides about the limit of another names that job, also in rows older than the column for it."""

from __future__ import annotations

from msgspec.structs import replace

from nightherd.model.hooks import asked_about
from nightherd.testing.state_values import job_id, submit

JOB = submit(2).job


def test_the_column_names_the_job_that_met_a_limit() -> None:
    assert asked_about(replace(JOB, asked_about=job_id(1))) == job_id(1)
    assert asked_about(JOB) is None


def test_an_older_row_is_known_by_its_dedupe_key() -> None:
    for place in ("limits.hooks[0]", "fleet.limits.hooks[1]"):
        key = f"hook:{job_id(1)}:{place}:suspended-1"
        assert asked_about(replace(JOB, trigger_id=job_id(1), dedupe_key=key)) == job_id(1)


def test_a_job_of_another_hook_decides_about_nothing() -> None:
    key = f"hook:{job_id(1)}:after_run[0]:completed"

    assert asked_about(replace(JOB, trigger_id=job_id(1), dedupe_key=key)) is None
