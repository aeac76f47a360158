"""Filtered lists: exactly what fits, in order and in pages, through an index."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from random import Random
from typing import Any

import pytest

from db.databases import migrated
from nightherd.db.connection import Database
from nightherd.model.ids import JobId, SessionId
from nightherd.model.jobs.filter import fits, parse_job_filter
from nightherd.model.jobs.job import Job, JobQuery, JobStatus, TriggerType
from nightherd.model.units import MicroUsd
from nightherd.model.workflows.filter import parse_run_filter, run_fits
from nightherd.model.workflows.rows import RunQuery, WorkflowRun
from nightherd.model.workflows.run import RunId, RunStatus
from nightherd.state.filtered_list import job_statements
from nightherd.state.filtered_runs import run_statements
from nightherd.state.layout import DATABASE
from nightherd.state.reader import SqliteReader
from nightherd.state.table import Table

NOW = datetime(2026, 11, 18, 12, tzinfo=UTC)
COUNT = 400
JOB_FILTERS = [
    "",
    "agent:coder",
    "agent:coder,writer,nobody",
    "status:failed",
    "status:failed,cancelled,pending",
    "agent:coder status:failed",
    "agent:coder,writer status:failed,completed,running",
    "cost:>0.5",
    "cost:<0.5",
    "cost:0",
    "cost:0.1..0.6 agent:writer",
    "since:3d",
    "since:5d until:2d",
    "since:3d agent:coder cost:>0.5",
    "until:2026-11-15",
    "schedule:nightly",
    "schedule:coder/nightly",
    "schedule:coder/nightly,writer/hourly",
    "schedule:nightly,hourly status:failed",
    "session:sess-00000001",
    "session:00000002,sess-00000003",
    "session:sess-0000000",
    "run:run-2026-11-01-000001",
    "run:run-2026",
    "trigger:webhook",
    "trigger:webhook,schedule agent:coder",
    "broken",
    "BROKEN pipe",
    "100%",
    "a_b",
    "Größe",
    "agent:coder broken since:4d",
    "agent:a,b,c,d,e,f,g,h,i,j,k,l,coder",
]
RUN_FILTERS = [
    "",
    "workflow:build",
    "workflow:build,deploy status:failed",
    "status:paused,queued",
    "since:3d cost:>0.5",
    "schedule:build/nightly",
    "trigger:webhook broken",
]


def make_job(number: int, random: Random) -> Job:
    cost = random.choice([0, 0, 100_000, 500_000, 500_001, 2_000_000])
    errors = [None, "broken pipe", "100% full", "100 full", "a_b", "axb", "Größe", "GRÖSSE"]
    return Job(
        id=JobId(f"job-2026-11-01-{number:06d}"),
        agent=random.choice(["coder", "writer", "reader"]),
        trigger_type=random.choice(list(TriggerType)),
        status=random.choice(list(JobStatus)),
        # Several at the same moment, and some later ones older than those before: as imported jobs are.
        created_at=NOW - timedelta(hours=random.randrange(0, 7 * 24, 4)),
        schedule=random.choice([None, "nightly", "hourly"]),
        session_id=SessionId(f"sess-{random.randrange(5):08d}"),
        workflow_run_id=random.choice(
            [None, None, "run-2026-11-01-000001", "run-2026-11-02-000002"]
        ),
        cost_microusd=MicroUsd(cost),
        summary=random.choice([None, "all done", "it was BROKEN"]),
        error=random.choice(errors),
        number=number,
    )


def make_run(number: int, random: Random) -> WorkflowRun:
    at = NOW - timedelta(hours=random.randrange(0, 7 * 24, 4))
    return WorkflowRun(
        id=RunId(f"run-2026-11-01-{number:06d}"),
        workflow_name=random.choice(["build", "deploy", "test"]),
        trigger_id="t",
        status=random.choice(list(RunStatus)),
        current_phase=random.choice(["plan", "fix"]),
        started_at=at,
        updated_at=at,
        trigger_type=random.choice([TriggerType.WEBHOOK, TriggerType.MANUAL]),
        schedule=random.choice([None, "nightly"]),
        error=random.choice([None, "broken pipe"]),
        cost_microusd=MicroUsd(random.choice([0, 500_000, 2_000_000])),
        number=number,
    )


def fill(database: Database, table: Table[Any], rows: Sequence[Any]) -> None:
    for row in rows:
        database.execute(table.upsert, tuple(table.image(row).values()))


@contextmanager
def reader_of(
    directory: Path, kind: type[Any], table: str, make: Callable[[int, Random], Any]
) -> Iterator[tuple[SqliteReader, list[Any]]]:
    random = Random(7)
    rows = [make(number, random) for number in range(1, COUNT + 1)]
    with migrated(directory / DATABASE) as database:
        database.execute("PRAGMA foreign_keys = OFF")
        fill(database, Table(kind, table), rows)
    with closing(SqliteReader(directory)) as reader:
        yield reader, rows


@pytest.fixture(scope="module")
def jobs(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[SqliteReader, list[Job]]]:
    with reader_of(tmp_path_factory.mktemp("jobs"), Job, "jobs", make_job) as found:
        yield found


@pytest.fixture(scope="module")
def runs(
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[tuple[SqliteReader, list[WorkflowRun]]]:
    directory = tmp_path_factory.mktemp("runs")
    with reader_of(directory, WorkflowRun, "workflow_runs", make_run) as found:
        yield found


@pytest.mark.parametrize("text", JOB_FILTERS)
def test_list_of_jobs_has_exactly_what_fits_in_pages(
    text: str, jobs: tuple[SqliteReader, list[Job]]
) -> None:
    reader, rows = jobs
    filter = parse_job_filter(text, NOW)
    newest = sorted(rows, key=lambda job: (job.created_at, job.number), reverse=True)
    expected = [job.id for job in newest if fits(job, filter)]

    found: list[str] = []
    before = None
    while page := reader.list_jobs(JobQuery(filter=filter, before=before, limit=17)):
        found += [job.id for job in page]
        before = page[-1].number

    assert found == expected


def test_filters_of_the_test_let_something_through_and_not_everything(
    jobs: tuple[SqliteReader, list[Job]],
) -> None:
    _, rows = jobs
    counts = {
        text: sum(fits(job, parse_job_filter(text, NOW)) for job in rows) for text in JOB_FILTERS
    }

    assert counts.pop("") == COUNT
    assert counts.pop("session:sess-0000000") == COUNT
    assert all(0 < count < COUNT for count in counts.values()), counts


@pytest.mark.parametrize("text", RUN_FILTERS)
def test_list_of_runs_has_exactly_what_fits_in_pages(
    text: str, runs: tuple[SqliteReader, list[WorkflowRun]]
) -> None:
    reader, rows = runs
    filter = parse_run_filter(text, NOW)
    newest = sorted(rows, key=lambda run: (run.started_at, run.number), reverse=True)
    expected = [run.id for run in newest if run_fits(run, filter)]

    found: list[str] = []
    before = None
    while page := reader.list_runs(RunQuery(filter=filter, before=before, limit=7)):
        found += [run.id for run in page]
        before = page[-1].number

    assert found == expected
    assert expected


ORDERED = "created_at<?"
PLANS = {
    "": f"jobs_by_time ({ORDERED})",
    "agent:coder": f"jobs_by_agent (agent=? AND {ORDERED})",
    "status:failed": f"jobs_by_status (status=? AND {ORDERED})",
    "status:failed,pending": f"jobs_by_status (status=? AND {ORDERED})",
    "agent:coder status:failed": f"jobs_by_agent_and_status (agent=? AND status=? AND {ORDERED})",
    "agent:coder status:failed cost:>1 since:2d": (
        "jobs_by_agent_and_status (agent=? AND status=? AND created_at>? AND created_at<?)"
    ),
    "cost:>1": f"jobs_by_cost ({ORDERED})",
    "since:2d": "jobs_by_time (created_at>? AND created_at<?)",
    "schedule:nightly": f"jobs_by_schedule (schedule=? AND {ORDERED})",
    "schedule:coder/nightly status:failed": f"jobs_by_schedule (schedule=? AND {ORDERED})",
    "trigger:webhook": f"jobs_by_trigger (trigger_type=? AND {ORDERED})",
    "since:2d words": "jobs_by_time (created_at>? AND created_at<?)",
}
FEW = {
    "session:sess-00000001": "jobs_by_session (session_id=?)",
    "run:run-2026-11-01-000001": "jobs_of_workflow_run (workflow_run_id=?)",
}
"""These find the rows of one session or run, which are then put in order."""


def plan(directory: Path, statements: Sequence[tuple[str, Any]]) -> list[str]:
    with migrated(directory / "test.db") as database:
        return [
            str(row[3])
            for statement, values in statements
            for row in database.execute(f"EXPLAIN QUERY PLAN {statement}", values)
        ]


@pytest.mark.parametrize("text", [*PLANS, *FEW])
def test_filter_of_jobs_finds_its_rows_through_an_index(text: str, tmp_path: Path) -> None:
    steps = plan(tmp_path, job_statements(parse_job_filter(text, NOW), 1_000, 20))

    assert f"SEARCH jobs USING INDEX {PLANS.get(text) or FEW[text]}" in steps
    assert not any(step.startswith("SCAN ") for step in steps), steps
    assert text in FEW or not any("TEMP B-TREE" in step for step in steps), steps


@pytest.mark.parametrize("text", RUN_FILTERS)
def test_filter_of_runs_finds_its_rows_through_an_index(text: str, tmp_path: Path) -> None:
    columns = Table(WorkflowRun, "workflow_runs").columns
    statements = run_statements(parse_run_filter(text, NOW), columns, 1_000, 20)

    steps = plan(tmp_path, statements)

    assert any(step.startswith("SEARCH workflow_runs USING INDEX") for step in steps)
    assert not any(step.startswith("SCAN ") or "TEMP B-TREE" in step for step in steps), steps


def test_words_are_values_and_never_part_of_a_statement() -> None:
    words = "x'); DROP TABLE jobs; --"

    ((statement, values),) = job_statements(parse_job_filter(f'"{words}"', NOW), 1_000, 20)

    assert "DROP" not in statement
    assert f"%{words}%" in values
