"""The query files: one statement each, all used, and the lists that people wait for read no more than they show."""

from __future__ import annotations

from pathlib import Path

import pytest

from db.databases import migrated
from nightherd.db.migrate import statements
from nightherd.db.schema import Queries, query_names

PARAMETERS = {
    "list_jobs": (1000, 20),
    "list_jobs_by_agent": (1000, 20, "grazer"),
    "list_jobs_by_status": (1000, 20, "pending"),
    "list_jobs_by_agent_and_status": (1000, 20, "grazer", "pending"),
    "oldest_running_job": ("grazer", "job-2026-03-01-000001"),
    "job_by_dedupe_key": ("slot",),
    "executions_of_job": ("job-2026-03-01-000001",),
    "current_session": ("grazer", "persistent", "", ""),
    "list_sessions": (9, 20),
    "list_sessions_by_agent": (9, 20, "grazer", None, None),
    "list_sessions_by_status": (9, 20, "paused", None, None),
    "list_sessions_by_mode": (9, 20, "persistent", None, None),
    "jobs_ahead": ("sess-00000001", 7, 1),
    "next_waiting_job": ("grazer", "2026-03-01"),
    "workable_job": ("grazer",),
    "open_jobs_of_session": ("sess-00000001",),
    "busy_job_of_schedule": ("grazer", "nightly", "job-2026-03-01-000001"),
    "occupying_jobs_of_schedule": ("grazer", "nightly", 1),
    "suspended_jobs_of_schedule": ("grazer", "nightly", 1),
    "last_job_number": (),
    "last_session_number": (),
    "deliveries_of_endpoint": ("issues", 20),
    "outbox_span": (),
    "outbox_after": (3,),
    "outbox_clear": (3,),
}

INDEXES = {
    "list_jobs": "USING INDEX jobs_by_time (created_at<?)",
    "list_jobs_by_agent": "USING INDEX jobs_by_agent (agent=? AND created_at<?)",
    "list_jobs_by_status": "USING INDEX jobs_by_status (status=? AND created_at<?)",
    "list_jobs_by_agent_and_status": (
        "USING INDEX jobs_by_agent_and_status (agent=? AND status=? AND created_at<?)"
    ),
    "list_sessions": "USING INDEX sessions_kept (created_at<?)",
    "list_sessions_by_agent": "USING INDEX sessions_by_agent (agent=? AND created_at<?)",
    "list_sessions_by_status": "USING INDEX sessions_by_status (status=? AND created_at<?)",
    "list_sessions_by_mode": "USING INDEX sessions_by_mode (mode=? AND created_at<?)",
    "current_session": "USING INDEX sessions_current (agent=? AND mode=? AND <expr>=? AND <expr>=?)",
    "jobs_ahead": "USING INDEX jobs_open_in_session (session_id=? AND number<?)",
    "next_waiting_job": "USING INDEX jobs_waiting (agent=?)",
    "job_by_dedupe_key": "USING INDEX jobs_by_dedupe_key (dedupe_key=?)",
}


@pytest.mark.parametrize("name", query_names())
def test_query_file_holds_one_statement(name: str) -> None:
    assert len(list(statements(Queries()[name]))) == 1


@pytest.mark.parametrize("name", query_names())
def test_query_file_is_asked_for_by_name(name: str, repository: Path) -> None:
    source = [path.read_text() for path in (repository / "src/nightherd").rglob("*.py")]

    assert any(f'"{name}"' in text for text in source)


@pytest.mark.parametrize("name", PARAMETERS)
def test_query_finds_its_rows_without_scanning_or_sorting(name: str, tmp_path: Path) -> None:
    with migrated(tmp_path / "test.db") as database:
        plan = database.execute(f"EXPLAIN QUERY PLAN {Queries()[name]}", PARAMETERS[name])

    steps = [str(row[3]) for row in plan]
    assert steps
    assert not any(step.startswith("SCAN ") for step in steps if step != "SCAN CONSTANT ROW"), steps
    assert not any("TEMP B-TREE" in step for step in steps), steps
    assert INDEXES.get(name, "") in " ".join(steps)
