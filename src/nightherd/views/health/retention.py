"""Retention as `retention --json` and the API show it: what goes, what stays, and the last automatic run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TypedDict

from nightherd.model.chat.forgotten import ForgottenChat
from nightherd.model.checkpoints.retention import JobPlan, Needed, Reason, RetentionRun
from nightherd.model.workspaces.policy import Keep
from nightherd.model.workspaces.workspace import Workspace
from nightherd.views.jobs.jobs import timestamp


class GoingRow(TypedDict):
    """A checkpoint that is deleted, and why."""

    number: int
    reason: Reason


class NeededRow(TypedDict):
    """A checkpoint that stays, and why."""

    number: int
    reason: Needed


class PlanRow(TypedDict):
    """What is done with the checkpoints of a job."""

    job_id: str
    going: list[GoingRow]
    needed: list[NeededRow]
    archived: bool
    deleted: bool


class RemovedWorkspaceRow(TypedDict):
    """A workspace that is removed."""

    id: str
    agent: str
    keep: Keep
    size_bytes: int | None


class RetentionRunRow(TypedDict):
    """An automatic run; the first one in a state directory only announces what the next one does."""

    at: str
    is_announcement: bool
    checkpoints: int
    jobs: int
    failures: int
    workspaces: int
    chat_texts: int
    chat_files: int
    next_at: str


class RetentionTotals(TypedDict):
    """All that is deleted, also what the lists leave out."""

    jobs: int
    checkpoints: int
    workspaces: int
    workspace_bytes: int
    session_directories: int
    chat_texts: int
    chat_files: int


def plan_row(plan: JobPlan) -> PlanRow:
    """A job's plan as plain data."""
    return {
        "job_id": plan.job_id,
        "going": [{"number": number, "reason": why} for number, why in plan.going],
        "needed": [{"number": number, "reason": why} for number, why in plan.needed],
        "archived": plan.is_archived,
        "deleted": plan.is_deleted,
    }


def removed_workspace_row(row: Workspace) -> RemovedWorkspaceRow:
    """A workspace as plain data."""
    return {"id": row.id, "agent": row.agent, "keep": row.keep, "size_bytes": row.size_bytes}


def retention_run_row(run: RetentionRun | None) -> RetentionRunRow | None:
    """The last automatic run; None when there was none."""
    if run is None:
        return None
    return {
        "at": timestamp(run.at),
        "is_announcement": run.is_announcement,
        "checkpoints": run.checkpoints,
        "jobs": run.jobs,
        "failures": run.failures,
        "workspaces": run.workspaces,
        "chat_texts": run.texts,
        "chat_files": run.files,
        "next_at": timestamp(run.next_at),
    }


class RetentionBeside(TypedDict):
    """What stands beside the plans of jobs."""

    is_dry_run: bool
    workspaces: list[RemovedWorkspaceRow]
    failures: Mapping[str, str]
    totals: RetentionTotals
    is_cut: bool
    last_run: RetentionRunRow | None


def retention_beside(
    plans: Sequence[JobPlan],
    workspaces: Sequence[Workspace],
    chat: ForgottenChat,
    *,
    is_dry_run: bool,
    session_directories: int = 0,
    failures: Mapping[str, str],
    last_run: RetentionRun | None,
    limit: int | None = None,
) -> RetentionBeside:
    """What stands beside the plans: workspaces, of which the first `limit` are shown, and how much there is in all, also of chat."""
    longest = max(len(plans), len(workspaces), len(failures))
    return {
        "is_dry_run": is_dry_run,
        "workspaces": [removed_workspace_row(one) for one in workspaces[:limit]],
        "failures": dict(list(failures.items())[:limit]),
        "totals": {
            "jobs": len(plans),
            "checkpoints": sum(len(plan.going) for plan in plans),
            "workspaces": len(workspaces),
            "workspace_bytes": sum(one.size_bytes or 0 for one in workspaces),
            "session_directories": session_directories,
            "chat_texts": chat.texts,
            "chat_files": chat.files,
        },
        "is_cut": limit is not None and longest > limit,
        "last_run": retention_run_row(last_run),
    }
