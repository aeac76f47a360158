"""The query files: one statement each, all used, and the lists that people wait for read no more than they show."""

from __future__ import annotations

import re
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
    "spent_by_agent_on_day": ("2026-03-01",),
    "slots_between": ("grazer/nightly", "2026-03-01", "2026-03-02", 20),
    "last_job_number": (),
    "last_session_number": (),
    "deliveries_of_endpoint": ("issues", 20),
    "outbox_span": (),
    "outbox_after": (3,),
    "outbox_clear": (3,),
    "list_runs": (1000, 20),
    "list_runs_by_status": (1000, 20, "running"),
    "list_runs_by_workflow": (1000, 20, "build"),
    "list_runs_by_workflow_and_status": (1000, 20, "build", "running"),
    "list_ended_jobs": ("failed", "2026-03-01", 5),
    "count_ended_jobs": ("2026-03-01",),
    "list_ended_runs": ("failed", "2026-03-01", 5),
    "count_ended_runs": ("2026-03-01",),
    "run_by_dedupe_key": ("delivery",),
    "run_ids_of_prefix": ("run-2", "run-3", 5),
    "runs_of_parent": ("run-2026-03-01-000001",),
    "open_runs_of_key": ("build", 3),
    "queued_runs_of_key": ("build", 3),
    "last_run_number": (),
    "nodes_of_run": ("run-2026-03-01-000001",),
    "jobs_of_run": ("run-2026-03-01-000001",),
    "items_of_run": ("run-2026-03-01-000001",),
    "events_of_run": ("run-2026-03-01-000001",),
    "waiting_chat_messages": ("slack/a:C1", 5),
    "waiting_conversations": ("slack/a",),
    "unsent_conversations": ("slack/a",),
    "answering_conversations": ("slack/a",),
    "active_conversations": ("slack/a", "2026-03-01", 5),
    "count_chat_messages": ("slack/a", "U1", "2026-03-01"),
    "list_chat_messages": ("slack/a:C1", 9, 5),
    "first_open_post": ("slack/a:C1",),
    "posts_of_job": ("job-2026-03-01-000001",),
    "posts_of_item": ("ask-1",),
    "post_of_message": ("slack/a:C1", "100.1"),
    "active_messaging_session": ("a", "slack", "C1", "", "U1"),
    "active_messaging_sessions": ("slack/a:C1",),
    "old_chat_messages": ("2026-03-01", 5),
    "old_posts": ("2026-03-01", 5),
    "list_work_items": ("9999", 5),
    "work_item_of_job": ("job-2026-03-01-000001",),
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
    "spent_by_agent_on_day": "INDEX spending_by_day (day=?)",
    "slots_between": "USING INDEX slots_by_schedule (schedule_id=? AND due_at>? AND due_at<?)",
    "waiting_chat_messages": "USING INDEX chat_messages_waiting (conversation_id=?)",
    "waiting_conversations": "USING COVERING INDEX chat_messages_unanswered (bot=?)",
    "unsent_conversations": "USING INDEX chat_posts_unsent (bot=?)",
    "answering_conversations": "USING INDEX chat_conversations_answering (bot=?)",
    "active_conversations": (
        "USING INDEX chat_conversations_by_activity (bot=? AND last_activity_at>?)"
    ),
    "count_chat_messages": (
        "USING COVERING INDEX chat_messages_of_user (bot=? AND user_id=? AND received_at>?)"
    ),
    "list_chat_messages": (
        "USING INDEX chat_messages_of_conversation (conversation_id=? AND number<?)"
    ),
    "first_open_post": "USING INDEX chat_posts_open (conversation_id=?)",
    "posts_of_job": "USING INDEX chat_posts_of_job (job_id=?)",
    "posts_of_item": "USING INDEX chat_posts_of_item (item_id=?)",
    "post_of_message": "USING INDEX chat_posts_of_message (conversation_id=? AND message_id=?)",
    "active_messaging_session": (
        "USING INDEX idx_msg_sessions_unique_active"
        " (agent=? AND platform=? AND channel_id=? AND <expr>=? AND user_id=?)"
    ),
    "active_messaging_sessions": (
        "USING INDEX messaging_sessions_of_conversation (conversation_id=?)"
    ),
    "old_chat_messages": "USING INDEX chat_messages_kept (received_at<?)",
    "old_posts": "USING INDEX chat_posts_kept (created_at<?)",
    "open_work_items": "USING INDEX work_items_open",
    "list_work_items": "USING INDEX work_items_by_change (changed_at<?)",
    "work_item_of_job": "USING INDEX work_items_of_job (job_id=?)",
    "list_ended_jobs": "USING INDEX jobs_by_end (status=? AND finished_at>?)",
    "count_ended_jobs": "USING COVERING INDEX jobs_by_end (status=? AND finished_at>?)",
    "list_ended_runs": "USING INDEX workflow_runs_by_end (status=? AND finished_at>?)",
    "count_ended_runs": "USING COVERING INDEX workflow_runs_by_end (status=? AND finished_at>?)",
    "list_runs": "USING INDEX idx_workflow_runs_started_at ((started_at,number)<(?,?))",
    "list_runs_by_status": "USING INDEX idx_workflow_runs_status (status=? AND (started_at,number)<(?,?))",
    "list_runs_by_workflow": (
        "USING INDEX idx_workflow_runs_name_started (workflow_name=? AND (started_at,number)<(?,?))"
    ),
    "list_runs_by_workflow_and_status": (
        "USING INDEX workflow_runs_name_status (workflow_name=? AND status=? AND (started_at,number)<(?,?))"
    ),
    "runs_of_parent": "USING INDEX workflow_runs_of_parent (parent_run_id=?)",
    "nodes_of_run": "USING INDEX workflow_nodes_of_run (run_id=?)",
    "open_runs_of_key": "USING INDEX workflow_runs_open_of_key (concurrency_key=?)",
    "queued_runs_of_key": "USING INDEX workflow_runs_open_of_key (concurrency_key=?)",
    "jobs_of_run": "USING INDEX jobs_of_workflow_run (workflow_run_id=?)",
}

RUN_BLOBS = ("phase_history", "node_statuses", "context", "scratch", "*")
"""Columns of runs that no list reads."""


@pytest.mark.parametrize(
    "name", [name for name in query_names() if "FROM workflow_runs" in Queries()[name]]
)
def test_query_of_runs_reads_no_long_column(name: str) -> None:
    (statement,) = statements(Queries()[name])
    chosen = statement.replace("count(*)", "").partition("FROM workflow_runs")[0]

    assert not any(column in re.findall(r"[a-z_]+|\*", chosen) for column in RUN_BLOBS)


@pytest.mark.parametrize("name", ["count_open_runs", "due_runs"])
def test_query_of_what_is_open_reads_only_what_is_open(name: str, tmp_path: Path) -> None:
    values = {"count_open_runs": (), "due_runs": ("2026-03-01", 5)}[name]
    with migrated(tmp_path / "test.db") as database:
        plan = database.execute(f"EXPLAIN QUERY PLAN {Queries()[name]}", values)

    steps = [str(row[3]) for row in plan]
    index = {"count_open_runs": "INDEX", "due_runs": "workflow_nodes_due (due_at>? AND due_at<?)"}[
        name
    ]
    assert any(index in step for step in steps), steps


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
