"""Deciding a change: given the rows as they are, which rows it writes, or why it is refused.

This and `decisions/` are the one place that knows what a change does. Stores only read the rows asked for
and write the rows given, inside one transaction; so every store means the same by every change, and the
rows written are the images the ledger keeps (INV-TERMINAL, INV-FENCE, INV-ONCE).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from nightherd.model import change as changes
from nightherd.model import schedule_change, session_change
from nightherd.model.adopted import AdoptTurns, RefreshAdopted
from nightherd.model.change import Answer, Change
from nightherd.model.checkpoint import RemoveCheckpoints
from nightherd.model.decisions import (
    bookmarks,
    claims,
    deliveries,
    jobs,
    records,
    schedules,
    sessions,
    spending,
    suspending,
    workers,
)
from nightherd.model.decisions.rows import Rows
from nightherd.model.raising import AmendJob
from nightherd.model.spending import CountUsage
from nightherd.model.suspension import FailSuspended, FailWaiting

DECISIONS: Mapping[type[Change], Callable[[Any, Rows], Answer]] = {
    changes.SubmitJob: schedules.submit,
    changes.StartExecution: jobs.start,
    changes.RecordRuntimeSession: jobs.record_runtime_session,
    changes.SettleExecution: jobs.settle,
    changes.SuspendExecution: suspending.suspend,
    changes.ResumeJob: suspending.resume,
    FailSuspended: suspending.fail,
    FailWaiting: suspending.fail_waiting,
    AmendJob: suspending.amend,
    session_change.ForkSession: sessions.fork,
    session_change.UseSession: sessions.use,
    session_change.RenameSession: sessions.rename,
    session_change.ExpireSession: sessions.expire,
    session_change.RemoveSession: sessions.remove,
    changes.LoseExecution: jobs.lose,
    changes.ClaimJob: claims.claim,
    changes.CancelJob: jobs.cancel,
    changes.RegisterWorker: workers.register,
    changes.ExtendLease: workers.extend,
    changes.EndWorker: workers.end,
    changes.ResetAgent: schedules.reset_agent,
    changes.FireSlot: schedules.fire,
    changes.RecordDelivery: deliveries.record,
    schedule_change.PlanSchedule: schedules.plan,
    schedule_change.OverrideSchedule: schedules.override,
    changes.SaveCheckpoint: bookmarks.save_checkpoint,
    RemoveCheckpoints: bookmarks.remove_checkpoints,
    CountUsage: spending.count_usage,
    changes.CorrectJob: records.correct,
    changes.AdoptRows: records.adopt,
    RefreshAdopted: records.refresh,
    AdoptTurns: records.adopt_turns,
}
"""Who decides which change."""


def decide(change: Change, rows: Rows) -> Answer:
    """What `change` does to `rows`: every row to write, or the reason it is refused. Writes nothing."""
    return DECISIONS[type(change)](change, rows)
