"""Last Light's files as they may be found: damaged, too large, in use, torn, or of something else."""

from __future__ import annotations

import json
import shutil
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from imports.conftest import Importer
from imports.foreign_trees import fingerprint
from imports.lastlight_trees import LastLight, asked, at, said
from nightherd.model.journal.event import Event, SystemEvent, ToolUseEvent
from nightherd.model.journal.system import SystemSubtype
from nightherd.wiring.stores import open_journals


def asides(importer: Importer) -> list[dict[str, Any]]:
    """What was kept aside, by table and key."""
    kept = [json.loads(path.read_text()) for path in importer.copy("lastlight/aside").iterdir()]
    return sorted(kept, key=lambda one: (one["table"], one["key"], sorted(one["row"])))


def warnings(importer: Importer) -> list[tuple[str, str | None]]:
    """The warnings in the journal of the only job: code and text."""
    (job,) = importer.jobs()
    found: list[Event] = list(open_journals(importer.state).read(job.id))
    return [
        (str((event.extra or {})["code"]), event.content)
        for event in found
        if isinstance(event, SystemEvent) and event.subtype is SystemSubtype.WARNING
    ]


@pytest.mark.parametrize(
    ("table", "fields", "reason"),
    [
        ("execution", {"started_at": "yesterday"}, "started_at is not a date and time"),
        ("execution", {"finished_at": "later"}, "finished_at is not a date and time"),
        ("execution", {"trigger_type": "pigeon"}, "trigger_type is 'pigeon', which is not known"),
        ("execution", {"success": 7}, "success is neither 0 nor 1"),
        ("execution", {"cost_usd": -1.0}, "cost_usd: -1.0 is negative; amounts are zero or more"),
        ("execution", {"input_tokens": "many"}, "input_tokens is not a number of something"),
        ("execution", {"skill": ""}, "no skill"),
        ("run", {"status": "odd"}, "status is 'odd', which is not known"),
        ("run", {"phase_history": "[{"}, "phase_history is not JSON"),
        ("run", {"phase_history": {}}, "phase_history is not a list"),
        ("run", {"updated_at": "never"}, "updated_at is not a date and time"),
        ("run", {"restart_count": 5000}, "restart_count is more than 1000"),
        ("run", {"workflow_name": "../x"}, "is not a name"),
        ("approval", {"status": "maybe"}, "status is 'maybe', which is not known"),
        ("approval", {"created_at": "once"}, "created_at is not a date and time"),
    ],
)
def test_damaged_row_is_reported_kept_aside_and_costs_no_other(
    table: str, fields: dict[str, Any], reason: str, importer: Importer, lastlight: LastLight
) -> None:
    lastlight.run()
    lastlight.execution()
    lastlight.approval()
    make = {"execution": lastlight.execution, "run": lastlight.run, "approval": lastlight.approval}
    make[table]("bad", **fields)

    data = importer.data("lastlight", str(lastlight.root))

    (found,) = data["unreadable"]
    assert found["record"].endswith("/bad")
    assert found["file"].endswith("lastlight.db")
    assert reason in found["reason"]
    (kept,) = asides(importer)
    ((column, value),) = fields.items()
    stored = json.dumps(value) if isinstance(value, dict) else value
    assert (kept["key"], kept["row"]["id"], kept["row"][column]) == ("bad", "bad", stored)
    assert {kind: data["imported"][kind] for kind in ("jobs", "runs", "approvals")} == {
        "jobs": 1,
        "runs": 1,
        "approvals": 1,
    }


def test_text_that_is_not_utf_8_is_kept_byte_by_byte(importer: Importer, older: LastLight) -> None:
    older.run()
    older.approval()
    with older.open() as database:
        database.execute("UPDATE workflow_approvals SET summary = CAST(x'41ff42' AS TEXT)")

    data = importer.data("lastlight", str(older.root))

    assert data["unreadable"][0]["reason"] == "summary is not UTF-8 at byte 2"
    assert asides(importer)[0]["row"]["summary"] == {"base64": "Qf9C"}


@pytest.mark.parametrize("column", ["context", "scratch"])
@pytest.mark.parametrize("stored", ["{", "[1]", '"text"'])
def test_damaged_context_or_scratch_is_absent_not_empty(
    column: str, stored: str, importer: Importer, lastlight: LastLight
) -> None:
    lastlight.run(**{column: stored})

    data = importer.data("lastlight", str(lastlight.root))

    assert data["unreadable"][0]["record"] == "workflow_runs/r1"
    assert data["unreadable"][0]["reason"].startswith(f"{column}: ")
    assert [one["row"] for one in asides(importer)] == [{column: stored}]
    assert importer.query(f"SELECT {column} FROM workflow_runs") == [(None,)]


def test_scratch_beyond_its_limit_loses_its_largest_values_only(
    importer: Importer, lastlight: LastLight
) -> None:
    scratch = {"small": 1, "large": "x" * 50_000, "larger": "y" * 60_000}
    lastlight.run(scratch=scratch)

    data = importer.data("lastlight", str(lastlight.root))

    ((kept,),) = importer.query("SELECT scratch FROM workflow_runs")
    assert json.loads(kept) == {"small": 1, "large": "x" * 50_000}
    (found,) = data["unreadable"]
    assert found["reason"] == (
        "scratch[larger]: a scratch has at most 64.0 KiB, and this value 58.6 KiB"
    )
    assert [one["row"] for one in asides(importer)] == [{"scratch[larger]": "y" * 60_000}]


def test_context_beyond_its_limit_is_kept_aside(importer: Importer, older: LastLight) -> None:
    context = {"body": "x" * (2 * 1024 * 1024)}
    older.run(context=context)

    data = importer.data("lastlight", str(older.root))

    assert data["unreadable"][0]["reason"] == "context: it is larger than 2.0 MiB"
    assert importer.query("SELECT context FROM workflow_runs") == [(None,)]
    assert asides(importer)[0]["row"] == {"context": context}


def test_entries_that_are_no_phases_are_reported_and_the_rest_is_imported(
    importer: Importer, older: LastLight
) -> None:
    good = {"phase": "architect", "timestamp": at(2), "success": True}
    bad = [
        {"phase": 'a"b', "timestamp": at(1), "success": True},
        {"phase": "a/b", "timestamp": at(1), "success": True},
        {"phase": "pr", "timestamp": "soon", "success": True},
        {"phase": "pr", "timestamp": at(1)},
        "pr",
    ]
    older.run(phase_history=[*bad, good], node_statuses={"architect": "succeeded", "pr": "blue"})

    data = importer.data("lastlight", str(older.root))

    assert [one["reason"].partition(":")[0] for one in data["unreadable"]] == [
        *(f"phase_history[{place}]" for place in range(5)),
        "node_statuses[pr]",
    ]
    ((history, statuses),) = importer.query(
        "SELECT phase_history, node_statuses FROM workflow_runs"
    )
    assert [entry["phase"] for entry in json.loads(history)] == ["architect"]
    assert json.loads(statuses) == {"architect": "succeeded"}
    assert len(asides(importer)) == 6


def test_what_belongs_to_a_run_that_is_not_there_is_named(
    importer: Importer, lastlight: LastLight
) -> None:
    lastlight.execution(workflow_run_id="gone")
    lastlight.approval(workflow_run_id="gone")

    data = importer.data("lastlight", str(lastlight.root))

    reasons = {one["source"].rpartition(": ")[2]: one["reason"] for one in data["skipped"]}
    assert reasons["executions/e1"] == "it is imported without its run gone"
    assert reasons["workflow_approvals/a1"] == "its run gone is not imported"
    assert [one["key"] for one in asides(importer)] == ["a1"]
    assert [job.workflow_run_id for job in importer.jobs()] == [None]


def test_an_execution_that_cannot_be_read_is_not_said_to_be_imported(
    importer: Importer, lastlight: LastLight
) -> None:
    lastlight.execution(workflow_run_id="gone", cost_usd="lots")

    data = importer.data("lastlight", str(lastlight.root))

    assert [one["reason"] for one in data["skipped"] if "executions/e1" in one["source"]] == []
    assert not importer.jobs()


def test_missing_logs_and_logs_without_an_execution_are_named(
    importer: Importer, older: LastLight
) -> None:
    older.execution(session_id="s1", workflow_run_id=None, output_text="The answer")
    lone = older.log(asked("Hi", 1), session="s9")
    older.log(asked("Hi", 1), session="agent-1")

    data = importer.data("lastlight", str(older.root))

    assert [one["reason"] for one in data["skipped"]] == [
        "no execution names it; only a copy of it is kept",
        "no execution names it; only a copy of it is kept",
        "there is no event log of it",
    ][1:]
    assert importer.copy("lastlight/-home-agent-workspace/s9.jsonl").read_bytes() == (
        lone.read_bytes()
    )
    assert importer.copy("lastlight/-home-agent-workspace/agent-1.jsonl").exists()
    assert [job.summary for job in importer.jobs()] == ["The answer"]


def test_longer_of_two_logs_of_a_session_counts(importer: Importer, older: LastLight) -> None:
    older.execution(session_id="s1", workflow_run_id=None)
    older.log(asked("Hi", 1))
    older.log(asked("Hi", 1), said("Hello", 1), slug="-other")

    data = importer.data("lastlight", str(older.root))

    assert "is a longer log of the same session" in data["skipped"][0]["reason"]
    assert [job.summary for job in importer.jobs()] == ["Hello"]
    assert data["imported"]["event_logs"] == 2


def test_lines_that_cannot_be_read_are_kept_and_listed(
    importer: Importer, older: LastLight
) -> None:
    older.execution(session_id="s1", workflow_run_id=None)
    glued = '{"type":"assist' + json.dumps(said("lost", 1))
    path = older.log(asked("Hi", 1), glued, "[1]", said("Hello", 1))
    torn = b'{"type":"assistant","mess\xff'
    with path.open("ab") as log:
        log.write(torn)

    data = importer.data("lastlight", str(older.root))

    assert [one["line"] for one in data["unreadable"]] == [2, 3, 5]
    assert data["unreadable"][2]["reason"].endswith("it is not finished")
    assert warnings(importer) == [
        ("malformed", glued),
        ("malformed", "[1]"),
        ("malformed", torn.decode("utf-8", "replace")),
    ]
    copy = importer.copy("lastlight/-home-agent-workspace/s1.jsonl")
    assert copy.read_bytes() == path.read_bytes()
    assert [job.summary for job in importer.jobs()] == ["Hello"]


def test_lines_without_a_word_of_ours_are_warnings_with_their_text(
    importer: Importer, older: LastLight
) -> None:
    older.execution(session_id="s1", workflow_run_id=None)
    retry = {"role": "system", "subtype": "auto_retry_start", "content": "again"}
    report = {"type": "system", "subtype": "skills_status", "skills": ["x"]}
    failed = {"type": "assistant", "isApiErrorMessage": True, "error": "overloaded"}
    end = {"type": "result", "subtype": "success", "total_cost_usd": 0.5, "timestamp": at(1)}
    older.log(asked("Hi", 1), retry, report, failed, said("Hello", 1), end)

    data = importer.data("lastlight", str(older.root))

    assert data["unreadable"] == []
    assert warnings(importer) == [
        ("unknown_line", json.dumps(retry)),
        ("unknown_line", json.dumps(report)),
        ("api_error", "overloaded"),
    ]
    (job,) = importer.jobs()
    assert (job.summary, job.cost_microusd) == ("Hello", 123_457)


def test_result_counts_where_the_execution_was_never_closed(
    importer: Importer, older: LastLight
) -> None:
    older.execution(
        session_id="s1", workflow_run_id=None, finished_at=None, success=None, cost_usd=None
    )
    end = {"type": "result", "total_cost_usd": 0.5, "total_input_tokens": 9, "timestamp": at(1)}
    older.log(asked("Hi", 1), said("Hello", 1), end)

    importer.data("lastlight", str(older.root))

    (job,) = importer.jobs()
    assert (job.cost_microusd, job.input_tokens, job.error_code) == (500_000, 9, "interrupted")


def test_call_that_ends_an_answer_is_a_call(importer: Importer, older: LastLight) -> None:
    older.execution(session_id="s1", workflow_run_id=None)
    answer = said("", 1)
    answer["message"]["content"] = [{"type": "tool_use", "id": "t1", "name": "bash", "input": {}}]
    older.log(asked("Hi", 1), answer)

    importer.data("lastlight", str(older.root))

    (job,) = importer.jobs()
    events = list(open_journals(importer.state).read(job.id))
    assert [event.tool_name for event in events if isinstance(event, ToolUseEvent)] == ["bash"]


def test_rows_in_the_log_of_a_database_in_use_are_imported_and_nothing_is_written(
    importer: Importer, lastlight: LastLight
) -> None:
    with closing(sqlite3.connect(lastlight.database)) as writer:
        writer.execute("PRAGMA journal_mode = wal")
        writer.execute("SELECT count(*) FROM executions").fetchall()
        lastlight.run()
        before = fingerprint(lastlight.root)
        assert "lastlight.db-wal" in before

        data = importer.data("lastlight", str(lastlight.root))

        assert data["imported"]["runs"] == 1
        assert fingerprint(lastlight.root) == before


def test_database_without_a_log_is_read_without_a_file_beside_it(
    importer: Importer, lastlight: LastLight
) -> None:
    with closing(sqlite3.connect(lastlight.database)) as writer:
        writer.execute("PRAGMA journal_mode = wal")
    lastlight.run()
    before = fingerprint(lastlight.root)
    assert list(before) == ["lastlight.db"]
    lastlight.database.chmod(0o400)
    before = fingerprint(lastlight.root)

    assert importer.data("lastlight", str(lastlight.root))["imported"]["runs"] == 1

    assert fingerprint(lastlight.root) == before


def test_transaction_that_was_cut_off_is_not_imported(
    importer: Importer, older: LastLight, tmp_path: Path
) -> None:
    older.run()
    copied = tmp_path / "copied"
    copied.mkdir()
    with closing(sqlite3.connect(older.database, isolation_level=None)) as writer:
        writer.execute("PRAGMA cache_size = 2")
        writer.execute("BEGIN")
        for number in range(200):
            writer.execute(
                "INSERT INTO workflow_runs (id, workflow_name, trigger_id, current_phase, started_at, updated_at,"
                " context) VALUES (?, 'build', 't', '', ?, ?, ?)",
                (f"half{number}", at(1), at(1), json.dumps({"text": "x" * 5000})),
            )
        for path in older.root.iterdir():
            shutil.copyfile(path, copied / path.name)
        writer.execute("ROLLBACK")
    assert (copied / "lastlight.db-journal").stat().st_size
    before = fingerprint(copied)

    assert importer.data("lastlight", str(copied))["imported"]["runs"] == 1

    assert fingerprint(copied) == before


@pytest.mark.parametrize(
    ("statement", "reason"),
    [
        ("ALTER TABLE workflow_runs DROP COLUMN scratch", "workflow_runs has no column scratch"),
        ("DROP TABLE executions", "it has no table executions"),
        ("ALTER TABLE executions RENAME COLUMN cost_usd TO cost", "has no column cost_usd"),
    ],
)
def test_database_of_another_schema_is_refused(
    statement: str, reason: str, importer: Importer, lastlight: LastLight
) -> None:
    with lastlight.open() as database:
        database.execute(statement)

    result = importer("lastlight", str(lastlight.root))

    assert result.code == 5
    assert "is not a database of Last Light" in result.err
    assert reason in result.err
    assert not importer.state.exists()


def test_own_database_is_refused(importer: Importer, older: LastLight) -> None:
    older.run()
    importer.data("lastlight", str(older.root))

    result = importer("lastlight", str(importer.state / "nightherd.db"))

    assert (result.code, "is not a database of Last Light" in result.err) == (5, True)


def test_file_that_is_no_database_is_an_error(importer: Importer, tmp_path: Path) -> None:
    (tmp_path / "lastlight.db").write_bytes(
        b"not a database, and long enough to be read as one" * 99
    )

    result = importer("lastlight", str(tmp_path))

    assert result.code == 5
    assert "lastlight.db is not a database of Last Light" in result.err
    assert "doctor" not in result.err
    assert not importer.state.exists()


@pytest.mark.parametrize("name", ["", "lastlight.db"])
def test_path_without_a_database_is_not_found(
    name: str, importer: Importer, tmp_path: Path
) -> None:
    result = importer("lastlight", str(tmp_path / name))

    assert (result.code, "nightherd import lastlight PATH" in result.err) == (3, True)


def test_damaged_page_costs_only_what_it_held(importer: Importer, older: LastLight) -> None:
    with older.open() as database:
        for number in range(60):
            database.execute(
                "INSERT INTO workflow_runs (id, workflow_name, trigger_id, current_phase, status, started_at,"
                " updated_at, context) VALUES (?, 'build', 't', '', 'failed', ?, ?, ?)",
                (f"r{number:02d}", at(1), at(1), json.dumps({"text": "x" * 9000})),
            )
    data = bytearray(older.database.read_bytes())
    page = data.index(b"x" * 4092) // 4096 * 4096
    assert data[page : page + 3] == b"\0\0\0"  # where the row continues
    data[page : page + 4] = b"\xff\xff\xff\xff"
    older.database.write_bytes(data)

    found = importer.data("lastlight", str(older.root))

    assert found["imported"]["runs"] == 59
    assert [one["record"].partition("/")[0] for one in found["unreadable"]] == ["workflow_runs"]
