"""Job options are stored as JSON, and read back as the same options."""

from __future__ import annotations

import json
from datetime import timedelta

import pytest

from nightherd.model.ids import JobId
from nightherd.model.jobs.options import NO_OPTIONS, FollowUp, JobOptions, ParentLimits

DOCUMENT = {
    "model": "other",
    "max_turns": 3,
    "job_timeout": "5m",
    "limits": {"spend": 500_000},
    "required_caps": [],
    "within": [
        {"job": "job-2026-01-01-aaaaaa", "limits": {"turns": 9}, "fail": ["turns"]},
        {"job": "job-2026-01-01-bbbbbb", "limits": {"turns": 4}},
    ],
    "follow_up": {"text": "Mind the test.", "after_epoch": 2},
}
OPTIONS = JobOptions(
    model="other",
    max_turns=3,
    job_timeout=timedelta(minutes=5),
    limits={"spend": 500_000},
    required_caps=(),
    within=(
        ParentLimits(job=JobId("job-2026-01-01-aaaaaa"), limits={"turns": 9}, fail=("turns",)),
        ParentLimits(job=JobId("job-2026-01-01-bbbbbb"), limits={"turns": 4}),
    ),
    follow_up=FollowUp(text="Mind the test.", after_epoch=2),
)


def test_options_have_the_stored_form_they_always_had() -> None:
    assert JobOptions.from_document(DOCUMENT) == OPTIONS
    assert json.loads(json.dumps(OPTIONS.document())) == DOCUMENT


def test_no_options_are_an_empty_document_and_unknown_keys_are_passed_over() -> None:
    assert NO_OPTIONS.document() == {}
    assert JobOptions.from_document({}) == NO_OPTIONS
    assert JobOptions.from_document({"of_a_newer_version": [1]}) == NO_OPTIONS


@pytest.mark.parametrize(
    ("damaged", "message"),
    [({"limits": "x"}, "limits"), ({"job_timeout": "soon"}, "soon"), ({"within": {}}, "within")],
)
def test_options_that_no_job_can_have_are_an_error(
    damaged: dict[str, object], message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        JobOptions.from_document(damaged)


def test_merged_options_replace_only_what_is_set() -> None:
    merged = OPTIONS.merged(JobOptions(limits={"turns": 5}))

    assert merged.limits == {"turns": 5}
    assert merged.within == OPTIONS.within
    assert OPTIONS.merged(NO_OPTIONS) == OPTIONS


def test_a_retry_has_all_options_but_what_only_the_first_job_was_told() -> None:
    assert set(OPTIONS.for_retry().document()) == set(DOCUMENT) - {"within", "follow_up"}
