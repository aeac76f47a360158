"""Rows to columns and back: nothing lost, older and newer columns understood."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from nightherd.errors import InvalidValueError
from nightherd.model.jobs.job import Execution, ExecutionStatus, Job, JobStatus, JobTexts
from nightherd.model.text import utc_text
from nightherd.model.worker import Worker
from nightherd.state.table import Table
from nightherd.state.tables import TABLES, in_table_order, table_of
from nightherd.testing.state_values import BEGINNING, submit

TEXT = st.text(alphabet=st.characters(exclude_categories=["Cs"]), max_size=20)
TIMES = st.datetimes(timezones=st.just(UTC))
BIG = st.integers(-(2**63), 2**63 - 1)


@given(
    at=TIMES,
    text=TEXT,
    number=BIG,
    status=st.sampled_from(JobStatus),
    finished=st.none() | TIMES,
)
def test_job_comes_back_from_its_columns(
    at: datetime, text: str, number: int, status: JobStatus, finished: datetime | None
) -> None:
    table = table_of(Job)
    job = replace(
        submit(1).job,
        created_at=at,
        finished_at=finished,
        summary=text,
        priority=number,
        status=status,
    )

    image = table.image(job)

    assert all(type(value) in (str, int, type(None)) for value in image.values())
    assert table.row(tuple(image), tuple(image.values())) == job


@pytest.mark.parametrize("success", [None, True, False])
def test_flags_come_back_as_flags(success: bool | None) -> None:
    execution = Execution(
        id="job-1.1",  # type: ignore[arg-type]  # a NewType, given as text
        job_id=submit(1).job.id,
        epoch=1,
        worker="worker-1",  # type: ignore[arg-type]  # a NewType, given as text
        status=ExecutionStatus.STARTED,
        trigger_type="api",
        trigger_id="x",
        skill="grazer",
        started_at=BEGINNING,
        success=success,
    )
    table = table_of(Execution)
    image = table.image(execution)

    assert image["success"] == (None if success is None else int(success))
    assert table.row(tuple(image), tuple(image.values())).success is success


def test_maps_are_the_same_text_whatever_their_order() -> None:
    table = table_of(JobTexts)
    texts = submit(1).texts

    one = table.image(replace(texts, inputs={"b": "2", "a": "ä"}))
    other = table.image(replace(texts, inputs={"a": "ä", "b": "2"}))

    assert one["inputs"] == other["inputs"] == '{"a":"ä","b":"2"}'


def test_columns_that_an_older_database_lacks_get_their_defaults() -> None:
    table = table_of(Job)
    image = table.image(submit(1).job)
    needed = ("id", "agent", "trigger_type", "status", "created_at")

    assert table.row(needed, [image[name] for name in needed]) == submit(1).job
    without = tuple(name for name in needed if name != "status")
    with pytest.raises(ValueError, match="missing required field `status`"):
        table.row(without, [image[name] for name in without])


def test_columns_that_a_newer_database_has_are_passed_over() -> None:
    table = table_of(Job)
    image = table.image(submit(1).job)

    assert table.row(("moo", *image), ("?", *image.values())) == submit(1).job


def test_instants_have_one_width_and_sort_as_text() -> None:
    whole = datetime(2026, 3, 1, 12, tzinfo=UTC)
    elsewhere = whole.astimezone(timezone(timedelta(hours=5)))

    assert utc_text(whole) == utc_text(elsewhere) == "2026-03-01T12:00:00.000000Z"
    assert utc_text(whole) < utc_text(whole + timedelta(microseconds=1))
    with pytest.raises(InvalidValueError, match="no time zone"):
        utc_text(whole.replace(tzinfo=None))


@pytest.mark.parametrize("kind", TABLES, ids=lambda kind: kind.__name__)
def test_every_field_of_every_row_has_a_column_type(kind: type[msgspec.Struct]) -> None:
    table: Table[Any] = table_of(kind)

    assert table.columns == kind.__struct_fields__
    assert table.upsert.startswith(f"INSERT INTO {TABLES[kind]} ({table.key}, ")


def test_rows_are_written_after_the_rows_they_refer_to() -> None:
    change = submit(1)

    ordered = in_table_order([change.texts, change.job, change.session])

    assert ordered == [change.session, change.job, change.texts]
    assert list(TABLES).index(Worker) > list(TABLES).index(Job)
