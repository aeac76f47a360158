"""The schema: the sum of its migrations, exactly the rows of the model, and safe to bring forward."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest
from msgspec.structs import replace

from db.databases import AT, migrated
from nightherd.db.connection import Database, open_for_reading, open_for_writing
from nightherd.db.migrate import Migration, load_migrations, migrate, statements
from nightherd.db.schema import Queries, brought_forward, known_schema, schema_number
from nightherd.errors import SchemaVersionError, StateError, StateFileError
from nightherd.state.tables import TABLES

FIRST = Migration(number=1, name="cows", text="CREATE TABLE cows (name TEXT) STRICT;\n")
SECOND = Migration(number=2, name="age", text="ALTER TABLE cows ADD COLUMN age INTEGER;\n")
RECORDS = load_migrations()[0].text.partition("CREATE TABLE sessions")[0]
"""The table that migrations are recorded in."""


def schema(database: Database) -> list[tuple[object, ...]]:
    return [tuple(row) for row in database.execute("SELECT type, name, sql FROM sqlite_schema")]


def small(*migrations: Migration) -> tuple[Migration, ...]:
    return (replace(migrations[0], text=RECORDS + migrations[0].text), *migrations[1:])


def test_schema_is_the_sum_of_the_migrations(tmp_path: Path) -> None:
    bare = open_for_writing(tmp_path / "bare.db")
    for migration in load_migrations():
        for statement in statements(migration.text):
            bare.execute(statement)
    expected = schema(bare)
    bare.close()

    with migrated(tmp_path / "migrated.db") as database:
        assert schema(database) == expected
        recorded = database.execute("SELECT number, name, checksum, applied_at FROM migrations")
        assert recorded == [(one.number, one.name, one.checksum, AT) for one in load_migrations()]
        assert database.execute("PRAGMA user_version") == [(known_schema(),)]


PROJECTIONS = {
    "workflow_runs": frozenset({"phase_history", "node_statuses", "context", "scratch"}),
}
"""Columns that triggers keep for other readers of the database: no row has them."""


@pytest.mark.parametrize("row_type", TABLES, ids=lambda row_type: row_type.__name__)
def test_every_field_of_a_row_is_a_column_and_every_column_a_field(
    row_type: type[msgspec.Struct], tmp_path: Path
) -> None:
    names = set(row_type.__struct_fields__)

    with migrated(tmp_path / "test.db") as database:
        columns = database.execute(Queries()["columns_of_table"], (TABLES[row_type],))

    assert {name for (name,) in columns} == names | PROJECTIONS.get(TABLES[row_type], frozenset())


def test_migrating_again_changes_nothing(tmp_path: Path) -> None:
    with migrated(tmp_path / "test.db") as database:
        before = schema(database)

        assert migrate(database, Queries(), load_migrations(), AT) == ()
        assert schema(database) == before
        assert [path.name for path in tmp_path.glob("*backup*")] == []


def test_older_database_is_copied_before_it_is_migrated(tmp_path: Path) -> None:
    database = open_for_writing(tmp_path / "test.db")
    migrate(database, Queries(), small(FIRST), AT)
    database.execute("INSERT INTO cows (name) VALUES ('Bess')")

    ran = migrate(database, Queries(), small(FIRST, SECOND), AT)

    assert ran == (SECOND,)
    assert database.execute("SELECT name, age FROM cows") == [("Bess", None)]
    database.close()
    backup = tmp_path / "test.db.backup-1"
    assert backup.stat().st_mode & 0o777 == 0o600
    copy = open_for_writing(backup)
    assert copy.execute("SELECT * FROM cows") == [("Bess",)]
    assert copy.execute("PRAGMA user_version") == [(1,)]
    copy.close()


def test_migration_that_fails_leaves_the_schema_before_it(tmp_path: Path) -> None:
    bad = replace(SECOND, text=SECOND.text + "ALTER TABLE sheep ADD COLUMN age INTEGER;\n")
    database = open_for_writing(tmp_path / "test.db")
    migrate(database, Queries(), small(FIRST), AT)
    before = schema(database)

    with pytest.raises(StateFileError, match="sheep"):
        migrate(database, Queries(), small(FIRST, bad), AT)

    assert schema(database) == before
    assert database.execute("PRAGMA user_version") == [(1,)]
    assert not database.in_transaction
    database.close()


def test_newer_database_is_refused_and_not_touched(tmp_path: Path) -> None:
    database = open_for_writing(tmp_path / "test.db")
    migrate(database, Queries(), small(FIRST, SECOND), AT)

    with pytest.raises(SchemaVersionError, match="newer nightherd: schema 2, this one knows 1"):
        migrate(database, Queries(), small(FIRST), AT)

    assert [path.name for path in tmp_path.glob("*backup*")] == []
    database.close()


def test_migration_that_was_edited_later_is_noticed(tmp_path: Path) -> None:
    database = open_for_writing(tmp_path / "test.db")
    migrate(database, Queries(), small(FIRST), AT)
    edited = replace(FIRST, text=FIRST.text + "-- a harmless comment\n")

    with pytest.raises(SchemaVersionError, match=r"migration 1 \(cows\) differs from the one"):
        migrate(database, Queries(), small(edited, SECOND), AT)

    assert database.execute("PRAGMA user_version") == [(1,)]
    database.close()


def test_missing_number_among_migrations_is_noticed(tmp_path: Path) -> None:
    (tmp_path / "0001_one.sql").write_text("SELECT 1;\n")
    (tmp_path / "0003_three.sql").write_text("SELECT 1;\n")

    with pytest.raises(StateError, match="missing or doubled"):
        load_migrations(tmp_path)


def test_half_a_statement_is_not_a_migration() -> None:
    with pytest.raises(StateError, match="middle of a statement"):
        list(statements("CREATE TABLE cows (name TEXT);\nCREATE TABLE"))


@pytest.mark.parametrize(
    "statement",
    [
        "INSERT INTO jobs (id, agent, trigger_type, status, created_at)"
        " VALUES ('a', 'a', 'manual', 'asleep', '')",
        "INSERT INTO jobs (id, agent, trigger_type, status, created_at, restart_count)"
        " VALUES ('a', 'a', 'manual', 'pending', '', 101)",
        "INSERT INTO jobs (id, agent, trigger_type, status, created_at, session_id)"
        " VALUES ('a', 'a', 'manual', 'pending', '', 'sess-nowhere')",
        "INSERT INTO jobs (id, agent, trigger_type, status, created_at, turns)"
        " VALUES ('a', 'a', 'manual', 'pending', '', 'many')",
        "INSERT INTO job_texts (job_id, prompt) VALUES ('job-nowhere', '')",
    ],
)
def test_rows_that_no_job_can_have_are_refused(statement: str, tmp_path: Path) -> None:
    with migrated(tmp_path / "test.db") as database, pytest.raises(StateFileError):
        database.execute(statement)


def test_a_database_that_was_migrated_meanwhile_is_read_as_it_is(tmp_path: Path) -> None:
    path = tmp_path / "test.db"
    migrations, queries = load_migrations(), Queries()
    writer = open_for_writing(path)
    migrate(writer, queries, migrations[:-1], AT)
    reader = open_for_reading(path)
    assert reader is not None
    assert schema_number(reader, queries) == len(migrations) - 1
    migrate(writer, queries, migrations, AT)

    copy = brought_forward(reader, queries)

    assert schema_number(copy, queries) == len(migrations)
    for database in (copy, reader, writer):
        database.close()
