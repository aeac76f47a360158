"""Landing: bring the changes of a job to the user's files, into a branch, or to a remote.

Only a person asks for this. What a killed command left is finished first; what was brought home is recorded at last,
so that a kill in between leaves a workspace that counts as not merged and is kept.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from nightherd.engine.contexts import Stores
from nightherd.errors import RefusedError
from nightherd.model.change import Refused
from nightherd.model.ids import JobId
from nightherd.model.jobs.job import Job, JobStatus
from nightherd.model.text import shorten
from nightherd.model.workspaces.changes import LandWorkspace
from nightherd.model.workspaces.policy import CloneTerms
from nightherd.model.workspaces.workspace import Landed, Workspace
from nightherd.next_step import Action, NextStep
from nightherd.ports import Landing, LandingResult, Work
from nightherd.views.workspaces.snapshots import JobChanges, job_changes, snapshots_of

SUBJECT_LIMIT = 72
MOST_JOBS = 100
"""Jobs of a workspace that are looked at for one that works in it."""
AT_WORK = (JobStatus.PENDING, JobStatus.RUNNING)


class ApplyJob(msgspec.Struct, frozen=True, kw_only=True, tag="apply_job"):
    """The changes of a job's workspace, made to the files in the agent's directory."""

    job_id: JobId
    is_only_this_job: bool = False
    """Whether changes of earlier jobs in the same workspace are left out."""
    is_dry_run: bool = False


class MergeJob(msgspec.Struct, frozen=True, kw_only=True, tag="merge_job"):
    """The changes of a job's workspace, merged into a branch."""

    job_id: JobId
    into: str | None = None
    """None for the branch that the workspace began at."""
    message: str | None = None
    is_fast_forward: bool = True
    is_dry_run: bool = False


class PushJob(msgspec.Struct, frozen=True, kw_only=True, tag="push_job"):
    """The changes of a job's workspace, pushed as a branch."""

    job_id: JobId
    remote: str | None = None
    message: str | None = None
    is_forced: bool = False
    is_dry_run: bool = False


class JobLanding(msgspec.Struct, frozen=True, kw_only=True):
    """What became of a request."""

    job: Job
    workspace: Workspace
    how: Landed
    result: LandingResult
    finished: Sequence[str] = ()
    """What was finished or undone first, of landings that were killed."""


async def apply_job(request: ApplyJob, stores: Stores, landing: Landing) -> JobLanding:
    """Apply the changes: all of them, or none where one conflicts."""
    changes = _landable(request.job_id, stores, is_from_base=not request.is_only_this_job)
    finished = await landing.finish_interrupted()
    workspace, after = changes.workspace, changes.comparison.after
    result = await landing.apply(
        workspace, changes.comparison.before, after, is_dry_run=request.is_dry_run
    )
    earlier = workspace.landed_tree
    is_repeated = workspace.landed is Landed.APPLIED and not request.is_only_this_job
    if result.conflicts and is_repeated and earlier is not None:
        # The files have what was applied before; only what came after it is new to them.
        later = await landing.apply(workspace, earlier, after, is_dry_run=request.is_dry_run)
        result = result if later.conflicts else later
    is_whole = changes.comparison.before in (workspace.base_tree, earlier)
    if not request.is_dry_run and not result.conflicts and is_whole:
        await _record(workspace, after, Landed.APPLIED, stores)
    return JobLanding(
        job=changes.job,
        workspace=workspace,
        how=Landed.APPLIED,
        result=result,
        finished=finished,
    )


async def merge_job(request: MergeJob, stores: Stores, landing: Landing) -> JobLanding:
    """Merge the changes into a branch; nothing happens where one conflicts."""
    changes = _landable(request.job_id, stores)
    finished = await landing.finish_interrupted()
    work = _work(changes, request.message, stores)
    result = await landing.merge(
        changes.workspace,
        work,
        into=request.into,
        is_fast_forward=request.is_fast_forward,
        is_dry_run=request.is_dry_run,
    )
    if not request.is_dry_run and not result.conflicts:
        await _record(changes.workspace, work.tree, Landed.MERGED, stores)
    return JobLanding(
        job=changes.job,
        workspace=changes.workspace,
        how=Landed.MERGED,
        result=result,
        finished=finished,
    )


async def push_job(
    request: PushJob, stores: Stores, landing: Landing, login: CloneTerms | None = None
) -> JobLanding:
    """Push the changes as the workspace's branch; `login` is what the agent's repository is cloned with."""
    changes = _landable(request.job_id, stores)
    finished = await landing.finish_interrupted()
    work = _work(changes, request.message, stores)
    result = await landing.push(
        changes.workspace,
        work,
        remote=request.remote,
        login=login,
        is_forced=request.is_forced,
        is_dry_run=request.is_dry_run,
    )
    if not request.is_dry_run and not result.conflicts:
        await _record(changes.workspace, work.tree, Landed.PUSHED, stores)
    return JobLanding(
        job=changes.job,
        workspace=changes.workspace,
        how=Landed.PUSHED,
        result=result,
        finished=finished,
    )


def _landable(job_id: JobId, stores: Stores, *, is_from_base: bool = True) -> JobChanges:
    """Return the changes of the job; `RefusedError` while it works, or when they are spread over two repositories."""
    changes = job_changes(stores.reader, stores.journals, job_id, is_from_base=is_from_base)
    if changes.job.status in AT_WORK:
        raise RefusedError(
            f"job {job_id} is {changes.job.status}; its changes are not complete",
            next_step=NextStep(Action.FOLLOW_JOB, job=job_id),
        )
    if changes.comparison.other is not None:
        raise RefusedError(
            f"job {job_id} worked in two repositories; only the changes in the last one can be brought home",
            next_step=NextStep(Action.SHOW_DIFF, job=job_id),
        )
    return changes


def _work(changes: JobChanges, message: str | None, stores: Stores) -> Work:
    """Return the snapshot to merge or push, and the commit to make of it."""
    job, workspace = changes.job, changes.workspace
    last = snapshots_of(stores.journals, job.id)[-1]
    others = stores.reader.jobs_of_workspace(workspace.id, MOST_JOBS)
    is_in_use = any(other.status in AT_WORK for other in others)
    return Work(
        tree=last.tree,
        head=last.head,
        is_last=workspace.tree in (None, last.tree) and not is_in_use,
        message=str(stores.secrets.mask(message or _message(job, stores))),
        at=job.finished_at or job.started_at or job.created_at,
    )


def _message(job: Job, stores: Stores) -> str:
    """Return the message of a commit: what the job was asked, and which job it was."""
    texts = stores.reader.find_texts(job.id)
    lines = (texts.prompt if texts is not None else "").strip().splitlines()
    subject = shorten(lines[0].strip(), SUBJECT_LIMIT) if lines else f"Work of {job.agent}"
    return f"{subject}\n\nnightherd job {job.id}\n"


async def _record(workspace: Workspace, tree: str, how: Landed, stores: Stores) -> None:
    change = LandWorkspace(workspace_id=workspace.id, tree=tree, how=how, at=stores.clock.now())
    (answer,) = await stores.state.apply([change])
    if isinstance(answer, Refused):
        raise RefusedError(answer.message)
