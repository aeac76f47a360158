"""Rows for deciding changes without a store, and what every step of a row has to keep to."""

from __future__ import annotations

from collections import Counter
from typing import Any

from nightherd.model.agents.state import AGENT_LIFECYCLE, AgentState
from nightherd.model.change import Answer, Applied, Change, Row
from nightherd.model.checkpoints.checkpoint import Checkpoint
from nightherd.model.decide import decide
from nightherd.model.jobs.job import (
    EXECUTION_LIFECYCLE,
    JOB_LIFECYCLE,
    Execution,
    ExecutionStatus,
    Job,
    JobStatus,
)
from nightherd.model.lifecycle import Lifecycle
from nightherd.model.schedules.schedule import SCHEDULE_LIFECYCLE, ScheduleState, Slot
from nightherd.model.sessions.session import SESSION_LIFECYCLE, Session, SessionStatus
from nightherd.model.webhooks import Delivery
from nightherd.model.worker import WORKER_LIFECYCLE, Worker, WorkerStatus
from nightherd.testing.memory_state import MemoryRows

LIFECYCLES: dict[type, Lifecycle[Any]] = {
    Job: JOB_LIFECYCLE,
    Session: SESSION_LIFECYCLE,
    Execution: EXECUTION_LIFECYCLE,
    Worker: WORKER_LIFECYCLE,
    ScheduleState: SCHEDULE_LIFECYCLE,
    AgentState: AGENT_LIFECYCLE,
}
FIRST: dict[type, Any] = {
    Job: JobStatus.PENDING,
    Session: SessionStatus.CREATED,
    Execution: ExecutionStatus.STARTED,
    Worker: WorkerStatus.ALIVE,
}
"""Where a new row begins; agents and schedules have no row before something happens to them."""
WRITTEN_ONCE = (Slot, Delivery)


class CheckedRows(MemoryRows):
    """The rows of a memory store; every step that a change takes with them is looked at."""

    def apply(self, change: Change) -> Answer:
        """Decide `change` and write what was decided, after looking at every row it touches."""
        before = self._copy()
        answer = decide(change, self)
        assert self._copy() == before, "deciding writes nothing"
        if isinstance(answer, Applied):
            touched = Counter((type(row), key_of(row)) for row in answer.rows)
            assert set(touched.values()) <= {1}, "a row is written once"
            for row in answer.rows:
                check_step(self.get(type(row), key_of(row)), row)
            self.write(answer.rows, answer.deleted)
        return answer

    def _copy(self) -> dict[type, dict[str, Row]]:
        return {kind: dict(rows) for kind, rows in self._rows.items()}


def key_of(row: Any) -> str:
    """The row's key: its first field."""
    return str(getattr(row, row.__struct_fields__[0]))


def check_step(old: Any, new: Any) -> None:
    """A row begins at its first status, takes only steps of its table, and is never touched once it ended."""
    kind = type(new)
    if old is None:
        assert kind not in FIRST or new.status is FIRST[kind]
        assert not isinstance(new, Job) or new.epoch == 0
        return
    assert kind not in WRITTEN_ONCE
    if isinstance(new, Checkpoint):
        assert (old.number, old.seq, old.epoch) == (new.number, new.seq, new.epoch)
    if kind in LIFECYCLES:
        lifecycle = LIFECYCLES[kind]
        assert old.status not in lifecycle.terminal
        assert old.status is new.status or lifecycle.allows(old.status, new.status)
    if isinstance(new, Job):
        assert isinstance(old, Job)
        is_start = new.status is JobStatus.RUNNING and old.status is not JobStatus.RUNNING
        assert new.epoch == old.epoch + is_start
        assert (new.number, new.session_id) == (old.number, old.session_id)
