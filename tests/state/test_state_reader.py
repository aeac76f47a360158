"""Reading: light to load, creates nothing, sees what is committed, refuses what it does not know."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import anyio
import pytest

from nightherd.db.connection import open_for_writing
from nightherd.db.migrate import load_migrations, migrate
from nightherd.db.schema import Queries, known_schema
from nightherd.errors import SchemaVersionError
from nightherd.model.jobs.job import JobQuery, JobStatus
from nightherd.state.directory import StateDirectory
from nightherd.state.reader import SqliteReader
from nightherd.testing.state_values import job_id, settle, start, submit
from state.stores import open_store

LISTS = """
import sys
from pathlib import Path
from nightherd.model.jobs.job import JobQuery
from nightherd.state.reader import SqliteReader
reader = SqliteReader(Path(sys.argv[1]))
assert len(reader.list_jobs(JobQuery())) == 1
reader.close()
import json
print(json.dumps(sorted(sys.modules)))
"""


def write_one(directory: StateDirectory) -> None:
    async def main() -> None:
        async with open_store(directory) as store:
            await store.apply([submit(1)])

    anyio.run(main)


def test_reading_loads_neither_event_loop_nor_what_writing_needs(
    directory: StateDirectory,
) -> None:
    write_one(directory)

    listed = subprocess.run(
        [sys.executable, "-c", LISTS, directory.root], capture_output=True, text=True, check=True
    )

    modules = set(json.loads(listed.stdout))
    assert modules & {"asyncio", "anyio", "threading", "nightherd.model.change"} == set()
    assert "apsw" in modules


def test_reading_a_directory_without_database_creates_nothing(tmp_path: Path) -> None:
    reader = SqliteReader(tmp_path / "nowhere")

    assert list(reader.list_jobs(JobQuery())) == []
    assert reader.find_job(job_id(1)) is None
    assert list(reader.job_ids("job", 2)) == []
    reader.close()
    assert list(tmp_path.iterdir()) == []


def test_reader_that_was_there_first_sees_the_database_appear(directory: StateDirectory) -> None:
    reader = SqliteReader(directory.root)
    assert reader.find_job(job_id(1)) is None

    write_one(directory)

    assert reader.find_job(job_id(1)) is not None
    reader.close()


def test_open_reader_sees_every_later_change_and_holds_nothing_up(
    directory: StateDirectory,
) -> None:
    async def main() -> None:
        reader = SqliteReader(directory.root)
        async with open_store(directory) as store:
            for change, status in (
                (submit(1), JobStatus.PENDING),
                (start(1), JobStatus.RUNNING),
                (settle(1), JobStatus.COMPLETED),
            ):
                await store.apply([change])
                job = reader.find_job(job_id(1))
                assert job is not None
                assert job.status is status
        reader.close()

    anyio.run(main)


def test_database_of_a_newer_nightherd_is_refused(directory: StateDirectory) -> None:
    write_one(directory)
    database = open_for_writing(directory.database)
    database.execute(f"PRAGMA user_version = {known_schema() + 1}")
    database.close()

    with pytest.raises(SchemaVersionError, match="newer nightherd"):
        SqliteReader(directory.root).list_jobs(JobQuery())


def test_database_of_an_older_nightherd_reads_as_far_as_it_goes(directory: StateDirectory) -> None:
    first = load_migrations()[:1]
    database = open_for_writing(directory.database)
    migrate(database, Queries(), first, "2026-03-01T12:00:00.000000Z")
    database.close()
    reader = SqliteReader(directory.root)

    assert list(reader.list_jobs(JobQuery())) == []
    assert list(reader.live_workers()) == []
    assert list(reader.list_checkpoints(job_id(1))) == []
    reader.close()
