"""What Last Light leaves on disk, made by hand: its database in both schemas, and its event logs."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

from imports.foreign_trees import lines

EXECUTIONS = """
CREATE TABLE executions (
  id TEXT PRIMARY KEY, trigger_type TEXT NOT NULL, trigger_id TEXT NOT NULL, skill TEXT NOT NULL, {owner} repo TEXT,
  issue_number INTEGER, started_at TEXT NOT NULL, finished_at TEXT, success INTEGER, error TEXT, turns INTEGER,
  duration_ms INTEGER, {actor} session_id TEXT, cost_usd REAL, input_tokens INTEGER,
  cache_creation_input_tokens INTEGER, cache_read_input_tokens INTEGER, output_tokens INTEGER,
  api_duration_ms INTEGER, stop_reason TEXT, workflow_run_id TEXT, output_text TEXT {reports}
)"""
RUNS = """
CREATE TABLE workflow_runs (
  id TEXT PRIMARY KEY, workflow_name TEXT NOT NULL, trigger_id TEXT NOT NULL, {owner} repo TEXT, issue_number INTEGER,
  current_phase TEXT NOT NULL, phase_history TEXT NOT NULL DEFAULT '[]', status TEXT NOT NULL DEFAULT 'running',
  context TEXT, scratch TEXT, {nodes} restart_count INTEGER NOT NULL DEFAULT 0, started_at TEXT NOT NULL,
  updated_at TEXT NOT NULL, {actor} finished_at TEXT {trace}
)"""
APPROVALS = """
CREATE TABLE workflow_approvals (
  id TEXT PRIMARY KEY, workflow_run_id TEXT NOT NULL, gate TEXT NOT NULL, summary TEXT NOT NULL,
  status TEXT NOT NULL DEFAULT 'pending', kind TEXT NOT NULL DEFAULT 'approve', requested_by TEXT, responded_by TEXT,
  response TEXT, responded_at TEXT, created_at TEXT NOT NULL {artifact}
)"""
OTHERS = """
CREATE TABLE cron_overrides (
  name TEXT PRIMARY KEY, enabled INTEGER NOT NULL DEFAULT 1, schedule TEXT, updated_at TEXT NOT NULL, updated_by TEXT
);
CREATE TABLE workflow_overrides (
  name TEXT PRIMARY KEY, enabled INTEGER NOT NULL DEFAULT 1, updated_at TEXT NOT NULL, updated_by TEXT
);
CREATE TABLE messaging_sessions (
  id TEXT PRIMARY KEY, platform TEXT NOT NULL, channel_id TEXT NOT NULL, thread_id TEXT, user_id TEXT NOT NULL,
  agent_session_id TEXT, created_at TEXT NOT NULL, last_activity_at TEXT NOT NULL, message_count INTEGER DEFAULT 0,
  active INTEGER DEFAULT 1
);
CREATE TABLE messaging_messages (
  id INTEGER PRIMARY KEY AUTOINCREMENT, session_id TEXT NOT NULL REFERENCES messaging_sessions(id),
  role TEXT NOT NULL, content TEXT NOT NULL, timestamp TEXT NOT NULL, platform_message_id TEXT
);
"""
NEWER = {
    "owner": "owner TEXT,",
    "actor": "triggered_by TEXT, trigger_actor_type TEXT,",
    "reports": ", extension_status TEXT, skills_status TEXT",
    "nodes": "",
    "trace": ", trace_id TEXT, span_id TEXT",
    "artifact": ", artifact TEXT",
}
SEED = dict.fromkeys(NEWER, "") | {"nodes": "node_statuses TEXT,"}


def at(minute: int, second: int = 0) -> str:
    """An instant as JavaScript writes it."""
    return f"2026-08-20T10:{minute:02d}:{second:02d}.000Z"


def said(text: str, minute: int, session: str = "s1", **more: Any) -> dict[str, Any]:
    """A line of an answer."""
    message = {
        "role": "assistant",
        "model": "model-a",
        "content": [{"type": "text", "text": text}],
        "usage": {"input_tokens": 10, "output_tokens": 5},
    }
    line = {"type": "assistant", "message": message, "timestamp": at(minute), "sessionId": session}
    return line | more


def asked(text: Any, minute: int, session: str = "s1") -> dict[str, Any]:
    """A line of what was asked."""
    message = {"role": "user", "content": text}
    return {"type": "user", "message": message, "timestamp": at(minute), "sessionId": session}


class LastLight:
    """A state directory of Last Light."""

    def __init__(self, root: Path, *, is_newer: bool = False) -> None:
        self.root = root
        self.is_newer = is_newer
        root.mkdir(parents=True)
        parts = NEWER if is_newer else SEED
        with self.open() as database:
            for table in (EXECUTIONS, RUNS, APPROVALS):
                database.execute(table.format(**parts))
            database.executescript(OTHERS)
            if is_newer:
                database.execute("CREATE TABLE cron_runs (id TEXT PRIMARY KEY, cron_name TEXT)")
                database.execute("CREATE TABLE __drizzle_migrations (id INTEGER, hash TEXT)")
                database.execute("INSERT INTO __drizzle_migrations VALUES (1, 'x')")

    @property
    def database(self) -> Path:
        """Its database."""
        return self.root / "lastlight.db"

    @contextmanager
    def open(self) -> Iterator[sqlite3.Connection]:
        """A connection that commits at the end of the block."""
        with closing(sqlite3.connect(self.database)) as database, database:
            yield database

    def insert(self, table: str, **values: Any) -> None:
        """One row; mappings and lists as JSON."""
        columns = {
            name: json.dumps(value) if isinstance(value, dict | list) else value
            for name, value in values.items()
            if value is not ...
        }
        names, marks = ", ".join(columns), ", ".join("?" * len(columns))
        with self.open() as database:
            database.execute(
                f"INSERT INTO {table} ({names}) VALUES ({marks})", tuple(columns.values())
            )

    def execution(self, id: str = "e1", minute: int = 1, **fields: Any) -> str:
        """An execution of a phase that succeeded; its id."""
        values: dict[str, Any] = {
            "trigger_type": "webhook",
            "trigger_id": "acme/shop#7",
            "skill": "build:architect",
            "repo": "shop" if self.is_newer else "acme/shop",
            "issue_number": 7,
            "started_at": at(minute),
            "finished_at": at(minute, 50),
            "success": 1,
            "turns": 1,
            "duration_ms": 50_000,
            "cost_usd": 0.1234567,
            "input_tokens": 100,
            "output_tokens": 20,
            "cache_read_input_tokens": 3,
            "cache_creation_input_tokens": 4,
            "stop_reason": "success",
            "workflow_run_id": "r1",
        }
        if self.is_newer:
            values["owner"] = "acme"
        self.insert("executions", id=id, **(values | fields))
        return id

    def run(self, id: str = "r1", **fields: Any) -> str:
        """A run of one phase that succeeded; its id."""
        values: dict[str, Any] = {
            "workflow_name": "build",
            "trigger_id": "acme/shop#7",
            "repo": "shop" if self.is_newer else "acme/shop",
            "issue_number": 7,
            "current_phase": "architect",
            "phase_history": [{"phase": "architect", "timestamp": at(2), "success": True}],
            "status": "succeeded",
            "context": {"issueTitle": "The cart is empty"},
            "started_at": at(0),
            "updated_at": at(3),
            "finished_at": at(3),
        }
        if self.is_newer:
            values |= {"owner": "acme", "triggered_by": "ada", "trigger_actor_type": "github"}
        self.insert("workflow_runs", id=id, **(values | fields))
        return id

    def approval(self, id: str = "a1", **fields: Any) -> str:
        """An approval that was given; its id."""
        values: dict[str, Any] = {
            "workflow_run_id": "r1",
            "gate": "post_architect",
            "summary": "Build it\nlike this?",
            "status": "approved",
            "kind": "approve",
            "requested_by": "ada",
            "responded_by": "grace",
            "response": "go",
            "responded_at": at(3),
            "created_at": at(2),
        }
        self.insert("workflow_approvals", id=id, **(values | fields))
        return id

    def log(self, *values: Any, session: str = "s1", slug: str = "-home-agent-workspace") -> Path:
        """An event log of these lines."""
        path = self.root / "agent-sessions" / "projects" / slug / f"{session}.jsonl"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(lines(*values))
        return path
