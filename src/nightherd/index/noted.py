"""Noted: what changes of the feed are about, as far as the index needs to know it."""

from __future__ import annotations

from datetime import datetime
from typing import Any

import msgspec

from nightherd.decoding import json_decoder
from nightherd.errors import InvalidValueError
from nightherd.index.families import NotedJob, NotedRun
from nightherd.model.agents.agent import WORKFLOW_PREFIX
from nightherd.model.costs.fold import RowTotals
from nightherd.model.ids import parse_job_id
from nightherd.model.index.search import NamedSession
from nightherd.model.jobs.job import JOB_LIFECYCLE, JobStatus
from nightherd.model.schedules.schedule import schedule_id
from nightherd.model.units import MicroUsd
from nightherd.model.usage import Usage
from nightherd.ports import LedgerEntry


class _SessionRow(msgspec.Struct, frozen=True):
    """As much of a session's row image as is needed. Unknown columns are ignored, as in the others."""

    id: str = ""
    agent: str = ""
    name: str | None = None
    created_at: datetime | None = None
    removed_at: str | None = None


class _JobRow(msgspec.Struct, frozen=True):
    id: str = ""
    status: str = ""
    agent: str = ""
    schedule: str | None = None
    parent_job_id: str | None = None
    workflow_run_id: str | None = None
    finished_at: datetime | None = None
    turns: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    cache_creation_input_tokens: int = 0
    cache_read_input_tokens: int = 0
    cost_microusd: int = 0
    last_seq: int = 0


class _RunRow(msgspec.Struct, frozen=True):
    id: str = ""
    workflow_name: str = ""
    root_run_id: str | None = None
    schedule: str | None = None


_DECODERS: dict[str, msgspec.json.Decoder[Any]] = {
    "sessions": json_decoder(_SessionRow),
    "jobs": json_decoder(_JobRow),
    "workflow_runs": json_decoder(_RunRow),
}
ENDED = frozenset(status.value for status in JOB_LIFECYCLE.terminal)


class Noted:
    """What some changes of the feed are about, the last of each row."""

    def __init__(self) -> None:
        self.jobs: dict[str, NotedJob] = {}
        self.runs: dict[str, NotedRun] = {}
        self.sessions: dict[str, NamedSession] = {}
        self.deleted: set[str] = set()
        """Jobs whose rows were deleted."""

    def take(self, entry: LedgerEntry) -> list[str]:
        """Take in a change; what cannot be understood of it names nothing, and is returned as errors."""
        errors: list[str] = []
        images = [(table, image, False) for table, image in entry.rows]
        images += [(table, image, True) for table, image in entry.deleted]
        for table, image, is_deleted in images:
            decoder = _DECODERS.get(table)
            if decoder is None:
                continue
            try:
                self._take(decoder.decode(image), entry, is_deleted=is_deleted)
            except (msgspec.DecodeError, InvalidValueError) as error:
                errors.append(f"change {entry.change} of the ledger: {error}")
        return errors

    def _take(
        self, row: _SessionRow | _JobRow | _RunRow, entry: LedgerEntry, *, is_deleted: bool
    ) -> None:
        match row:
            case _SessionRow():
                is_gone = is_deleted or row.removed_at is not None
                name = None if is_gone else row.name
                self.sessions[row.id] = NamedSession(
                    id=row.id, agent=row.agent, name=name, at=row.created_at
                )
            case _JobRow() if is_deleted:
                self.jobs.pop(row.id, None)
                self.deleted.add(row.id)
            case _JobRow():
                self.jobs[parse_job_id(row.id)] = _job_of(row, entry)
                self.deleted.discard(row.id)
            case _RunRow():
                self.runs[row.id] = _run_of(row)


def _job_of(row: _JobRow, entry: LedgerEntry) -> NotedJob:
    totals = RowTotals(
        usage=Usage(
            input_tokens=row.input_tokens,
            output_tokens=row.output_tokens,
            cache_creation_input_tokens=row.cache_creation_input_tokens,
            cache_read_input_tokens=row.cache_read_input_tokens,
            cost_microusd=MicroUsd(row.cost_microusd),
        ),
        turns=row.turns,
        last_seq=row.last_seq,
        is_ended=row.status in ENDED,
        at=row.finished_at or entry.at,
    )
    return NotedJob(
        agent=row.agent,
        change=entry.change,
        is_live=row.status == JobStatus.RUNNING.value,
        parent_id=row.parent_job_id,
        run_id=row.workflow_run_id,
        schedule=None if row.schedule is None else schedule_id(row.agent, row.schedule),
        totals=totals,
    )


def _run_of(row: _RunRow) -> NotedRun:
    schedule = None
    if row.schedule is not None:
        schedule = schedule_id(f"{WORKFLOW_PREFIX}{row.workflow_name}", row.schedule)
    return NotedRun(workflow=row.workflow_name, root_id=row.root_run_id, schedule=schedule)
