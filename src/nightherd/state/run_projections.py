"""Projections of runs: the columns of `workflow_runs` that show its nodes, context and scratch.

SQL triggers keep them while rows are written. They are in no row image, so they are compared and written again here.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import Any

from nightherd.db.connection import Database, open_for_reading, open_for_writing
from nightherd.db.lock import WriteLock
from nightherd.db.schema import Queries, known_schema, schema_number
from nightherd.engine.doctor.doctor import Check
from nightherd.errors import StateError
from nightherd.model.doctor import Finding, Level
from nightherd.next_step import Action, NextStep
from nightherd.state.directory import StateDirectory

NAME = "run-projections"
COLUMNS = ("node_statuses", "phase_history", "context", "scratch")
PAGE = 500
RUNS = f"""
SELECT workflow_runs.id, {", ".join(f"workflow_runs.{name}" for name in COLUMNS)},
  workflow_contexts.context, workflow_scratch.scratch
FROM workflow_runs
LEFT JOIN workflow_contexts ON workflow_contexts.run_id = workflow_runs.id
LEFT JOIN workflow_scratch ON workflow_scratch.run_id = workflow_runs.id
WHERE workflow_runs.id > ?1 ORDER BY workflow_runs.id LIMIT {PAGE}
"""
NODES = """
SELECT path, status, ended_at FROM workflow_nodes
WHERE run_id = ?1 AND iteration = 0 AND item = -1 AND path NOT GLOB '*[/:]*'
ORDER BY number, attempt
"""
WRITE = f"UPDATE workflow_runs SET {', '.join(f'{name} = ?' for name in COLUMNS)} WHERE id = ?"

Projection = tuple[str, str, str | None, str | None]
"""The columns as they should be."""


def projection_check(root: Path) -> Check:
    """The check that every run shows what its nodes, context and scratch say."""
    return Check(
        NAME, "what runs show", partial(wrong_projections, root), repair_all=partial(repair, root)
    )


def wrong_projections(root: Path) -> Iterator[Finding]:
    """Report every run with a column that does not show what its table has."""
    directory = StateDirectory(root=root)
    try:
        database = open_for_reading(directory.database)
        if database is None:
            return
        with closing(database):
            if schema_number(database, Queries()) != known_schema():
                return  # the next writer brings it forward
            database.execute("BEGIN")  # one moment for all of it: workers may be advancing runs
            for run_id, columns, _ in find_wrong(database):
                yield Finding(
                    check=NAME,
                    level=Level.PROBLEM,
                    message=f"run {run_id} shows something else than its records: {', '.join(columns)}",
                    path=str(directory.database),
                    row=("workflow_runs", run_id),
                    remedy="the columns are written again from its nodes, context and scratch",
                    next_step=NextStep(Action.SHOW_RUN, run=run_id),
                    is_fixable=True,
                )
    except StateError:
        return  # the check of the database says what is wrong with it


async def repair(root: Path, findings: Sequence[Finding]) -> None:
    """Write the columns of every such run again."""
    directory = StateDirectory(root=root)
    with (
        closing(WriteLock(directory.write_lock, notice=lambda text: None)) as lock,
        lock,
        closing(open_for_writing(directory.database)) as database,
    ):
        database.execute("BEGIN IMMEDIATE")
        try:
            project_runs(database)
        except BaseException:
            database.execute("ROLLBACK")
            raise
        database.execute("COMMIT")


def project_runs(database: Database) -> None:
    """Write the columns that are wrong again, in the transaction that is open.

    A history whose phases are not in the order of ending is wrong too: rows that were restored by their keys make one.
    """
    for run_id, _, projection in list(find_wrong(database, is_ordered=True)):
        database.execute(WRITE, (*projection, run_id))


def find_wrong(
    database: Database, *, is_ordered: bool = False
) -> Iterator[tuple[str, list[str], Projection]]:
    """Yield every run that shows something else than its records: which columns, and what they should be."""
    last = ""
    while page := database.execute(RUNS, (last,)):
        for run_id, statuses, history, context, scratch, kept_context, kept_scratch in page:
            last = str(run_id)
            shown = (statuses, history, context, scratch)
            projection = (*_of_nodes(database, last), _text(kept_context), _text(kept_scratch))
            pairs = zip(COLUMNS, shown, projection, strict=True)
            wrong = [
                name
                for name, one, two in pairs
                if not _is_same(name, one, two, is_ordered=is_ordered)
            ]
            if wrong:
                yield last, wrong, projection


def _of_nodes(database: Database, run_id: str) -> tuple[str, str]:
    """The statuses of the run's phases, and those that have ended, in the order of ending."""
    statuses: dict[str, str] = {}
    ended: list[dict[str, Any]] = []
    for path, status, ended_at in database.execute(NODES, (run_id,)):
        statuses[str(path)] = str(status)  # the last attempt counts
        if ended_at is not None:
            ended.append(
                {
                    "phase": path,
                    "timestamp": ended_at,
                    "success": status == "succeeded",
                    "status": status,
                }
            )
    ended.sort(key=lambda entry: str(entry["timestamp"]))
    return _json(statuses), _json(ended)


def _is_same(name: str, shown: object, projection: str | None, *, is_ordered: bool) -> bool:
    """Whether a column is right. Phases that ended at one instant may be in any order."""
    if name not in ("node_statuses", "phase_history"):
        return shown == projection
    try:
        value = json.loads(str(shown))
    except ValueError:
        return False
    expected = json.loads(projection or "null")
    if name == "node_statuses":
        return bool(value == expected)
    if not isinstance(value, list) or _sorted(value) != _sorted(expected):
        return False
    times = [str(entry["timestamp"]) for entry in value]
    return not is_ordered or times == sorted(times)


def _sorted(entries: list[Any]) -> list[str]:
    return sorted(json.dumps(entry, sort_keys=True) for entry in entries)


def _json(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def _text(value: object) -> str | None:
    return None if value is None else str(value)
