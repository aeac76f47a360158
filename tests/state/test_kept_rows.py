"""Rows that the writer remembers are always those that the database has."""

from __future__ import annotations

from pathlib import Path

import anyio
import pytest
from msgspec.structs import replace

from nightherd.db.connection import Database, open_for_writing
from nightherd.db.migrate import load_migrations, migrate
from nightherd.db.schema import Queries
from nightherd.errors import InvalidValueError
from nightherd.model.change import Applied, Refused, Why
from nightherd.model.jobs.changes import CancelJob
from nightherd.model.jobs.job import Job, JobTexts
from nightherd.model.sessions.session import Session
from nightherd.state import kept_rows
from nightherd.state.directory import StateDirectory
from nightherd.state.kept_rows import KeptRows
from nightherd.state.tables import table_of
from nightherd.testing.determinism import START
from nightherd.testing.state_values import BEGINNING, job_id, settle, start, submit
from state.stores import contents, open_store, replayed


def new_database(path: Path) -> Database:
    database = open_for_writing(path)
    migrate(database, Queries(), load_migrations(), f"{START:%Y-%m-%dT%H:%M:%S.%fZ}")
    return database


def test_what_another_process_writes_is_seen_by_the_next_change(directory: StateDirectory) -> None:
    async def main() -> None:
        async with open_store(directory) as ours, open_store(directory) as others:
            await ours.apply([submit(1)])
            await others.apply([CancelJob(job_id=job_id(1), at=BEGINNING)])

            (answer,) = await ours.apply([start(1)])

            assert isinstance(answer, Refused)
            assert answer.why is Why.STATUS

    anyio.run(main)


def test_two_writers_by_turns_leave_the_rows_that_the_ledger_has(
    directory: StateDirectory, tmp_path: Path
) -> None:
    async def main() -> None:
        async with open_store(directory) as ours, open_store(directory) as others:
            for number in range(1, 12):
                for store, change in ((ours, submit), (others, start), (ours, settle)):
                    (answer,) = await store.apply([change(number)])
                    assert isinstance(answer, Applied)

    anyio.run(main)

    assert contents(directory.database) == replayed(directory, tmp_path / "again.db")


def test_a_row_that_was_undone_is_not_remembered(directory: StateDirectory) -> None:
    change = submit(1)
    # The session is written first; then the job holds a number that the database cannot.
    impossible = replace(change, job=replace(change.job, priority=2**63))

    async def main() -> None:
        async with open_store(directory) as store:
            with pytest.raises(InvalidValueError):
                await store.apply([impossible])

            (answer,) = await store.apply([change])

            assert isinstance(answer, Applied)

    anyio.run(main)


def test_a_change_that_raises_takes_no_other_of_its_group_with_it(
    directory: StateDirectory, tmp_path: Path
) -> None:
    change = submit(2)
    impossible = replace(change, job=replace(change.job, priority=2**63))

    async def main() -> None:
        async with open_store(directory) as store:
            with pytest.raises(InvalidValueError):
                await store.apply([submit(1), impossible, submit(3)])
            (answer,) = await store.apply([start(1)])
            assert isinstance(answer, Applied)

    anyio.run(main)

    rows = contents(directory.database)
    assert [row[1] for row in rows["jobs"]] == [job_id(1)]
    assert rows == replayed(directory, tmp_path / "again.db")


def test_of_a_row_that_is_known_only_what_differs_is_written(tmp_path: Path) -> None:
    database = new_database(tmp_path / "rows.db")
    kept, table = KeptRows(database), table_of(Session)
    session = replace(submit(1).session, number=1)
    kept.write(kept.draft(table, session))

    draft = kept.draft(table, replace(session, turn_count=3, name="spring"))

    assert draft.changed == ("name", "turn_count")
    assert draft.image == table.image(replace(session, turn_count=3, name="spring"))
    kept.write(draft)
    assert kept.draft(table, draft.row).changed == ()
    database.close()


def test_long_texts_are_not_kept_once_they_are_written(tmp_path: Path) -> None:
    database = new_database(tmp_path / "rows.db")
    kept, change = KeptRows(database), submit(1)
    job = replace(change.job, number=1)
    kept.write(kept.draft(table_of(Job), job))

    kept.put(JobTexts, job.id, change.texts)
    assert kept.get(JobTexts, job.id) == change.texts
    kept.forget()
    kept.write(kept.draft(table_of(JobTexts), change.texts))

    assert kept.get(JobTexts, job.id) is None
    database.close()


def test_no_more_rows_are_kept_than_the_limit_says(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(kept_rows, "LIMIT", 3)
    database = new_database(tmp_path / "rows.db")
    kept, table = KeptRows(database), table_of(Session)
    sessions = [replace(submit(number).session, number=number) for number in range(1, 6)]

    for session in sessions:
        kept.write(kept.draft(table, session))

    remembered = [kept.get(Session, session.id) is not None for session in sessions]
    assert remembered == [False, False, False, True, True]
    database.close()


def test_numbers_go_on_over_two_writers_and_a_change_that_was_undone(
    directory: StateDirectory,
) -> None:
    change = submit(2)
    impossible = replace(change, job=replace(change.job, priority=2**63))

    async def main() -> None:
        async with open_store(directory) as ours, open_store(directory) as others:
            await ours.apply([submit(1)])
            with pytest.raises(InvalidValueError):
                await ours.apply([impossible])
            await others.apply([submit(3)])
            await ours.apply([submit(4), submit(5)])
            await others.apply([submit(6)])

    anyio.run(main)

    rows = contents(directory.database)
    assert sorted(str(row[1]) for row in rows["jobs"]) == [job_id(n) for n in (1, 3, 4, 5, 6)]
    assert [row[0] for row in rows["jobs"]] == [1, 2, 3, 4, 5]
    assert [row[0] for row in rows["sessions"]] == [1, 2, 3, 4, 5]
