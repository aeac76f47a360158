"""Which workspace a job works in: the one it had, its session's, that of the job it resumes, or a new one."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from nightherd.engine.contexts import Stores
from nightherd.engine.sessions.external_turns import RETOLD
from nightherd.engine.workspaces.files_at import kept_files, last_snapshot, snapshot_at_fork
from nightherd.errors import WorkspaceError
from nightherd.model.agents.agent import Agent
from nightherd.model.ids import JobId
from nightherd.model.jobs.job import Job, TriggerType
from nightherd.model.sessions.session import Session
from nightherd.model.workflows.run import RunId
from nightherd.model.workspaces.policy import WorkspaceMode, WorkspaceScope
from nightherd.model.workspaces.snapshot import PlacedSnapshot
from nightherd.model.workspaces.workspace import (
    Workspace,
    WorkspaceId,
    WorkspaceStatus,
)
from nightherd.ports import BeginsWith
from nightherd.views.workspaces.snapshots import snapshots_of, workspace_of
from nightherd.views.workspaces.workspaces import first_of_run


class Choice(msgspec.Struct, frozen=True, kw_only=True):
    """A workspace to be used, and what it begins with if it has to be made."""

    workspace: Workspace
    is_known: bool
    """Whether it is on record already."""
    begins_with: BeginsWith | None = None
    snapshot: PlacedSnapshot | None = None
    """The snapshot that `begins_with` is of."""
    shares: tuple[JobId, ...] = ()
    """A job with all jobs below it, which may work in it at the same time."""
    run_id: RunId | None = None
    """The workflow run whose jobs may."""


class Sharing(msgspec.Struct, frozen=True, kw_only=True):
    """With whom a job shares its workspace."""

    run_id: RunId | None = None
    jobs: tuple[JobId, ...] = ()

    def owners(self) -> Iterator[str]:
        """Yield the ids of workspaces that they may share, the first one first: each directory has its own."""
        if self.run_id is not None:
            yield self.run_id
            yield from (f"{self.run_id}-{number}" for number in range(2, MOST_SHARED + 1))
        elif self.jobs:
            yield self.jobs[0]


ALONE = Sharing()
MOST_SHARED = 9
"""Directories from which the phases of one run have workspaces that they share."""


def choose(job: Job, session: Session | None, agent: Agent, stores: Stores) -> Choice:
    """Return the workspace for an execution of the job."""
    is_run = agent.workspace.scope is WorkspaceScope.RUN
    shares = _sharing(job, stores) if is_run else ALONE
    known = _known(job, session, agent, shares, stores)
    if known is None:
        return _new(job, session, agent, shares, stores)
    source: Workspace | None = known
    snapshot = last_snapshot(known, stores)
    if snapshot is None:  # it was never made
        snapshot, source = _files_before(job, session, agent, stores)
    return Choice(
        workspace=known,
        is_known=True,
        begins_with=_beginning(snapshot, source),
        snapshot=snapshot,
        shares=shares.jobs,
        run_id=shares.run_id,
    )


def choose_new(job: Job, session: Session | None, agent: Agent, stores: Stores) -> Choice:
    """Return a workspace of the job's own, which begins with the files of the one it would have had."""
    choice = choose(job, session, agent, stores)
    if not choice.is_known or str(choice.workspace.id) == job.id:
        return choice
    fresh = _row(WorkspaceId(job.id), job, session, agent, stores)
    return Choice(
        workspace=fresh,
        is_known=False,
        begins_with=choice.begins_with,
        snapshot=choice.snapshot,
        shares=choice.shares,
        run_id=choice.run_id,
    )


def _known(
    job: Job,
    session: Session | None,
    agent: Agent,
    shares: Sharing,
    stores: Stores,
) -> Workspace | None:
    """Return the workspace that the job goes on in; None when it needs a new one."""
    for candidate in _candidates(job, session, agent, shares, stores):
        if candidate is None:
            continue
        workspace = stores.reader.find_workspace(candidate)
        if workspace is not None and _fits(workspace, job, agent, stores):
            return workspace
    return None


def _candidates(
    job: Job,
    session: Session | None,
    agent: Agent,
    shares: Sharing,
    stores: Stores,
) -> Iterator[str | None]:
    """Yield the workspaces that the job may go on in, the likeliest first."""
    yield job.workspace_id
    scope = agent.workspace.scope
    yield from shares.owners()
    if scope is WorkspaceScope.SESSION and session is not None:
        yield session.workspace_id
        # Its last job worked elsewhere, as a schedule said: the one before that is looked for.
        for job_id in reversed(stores.reader.session_job_ids(session.id)):
            other = stores.reader.find_job(job_id)
            yield other.workspace_id if other is not None else None
    if job.resumed_from is not None and job.trigger_type is not TriggerType.FORK:
        resumed = stores.reader.find_job(job.resumed_from)
        yield resumed.workspace_id if resumed is not None else None


def _fits(workspace: Workspace, job: Job, agent: Agent, stores: Stores) -> bool:
    """Whether the job may go on in it: it was made from the same directory in the same way, and is not shared by chance."""
    is_same = (workspace.root, workspace.mode) == (agent.working_directory, agent.workspace.mode)
    if workspace.id == job.workspace_id or not is_same:
        return is_same
    if agent.workspace.scope is WorkspaceScope.JOB:
        # Else another job has been in it since the one that is resumed.
        is_last = workspace.job_id in (job.resumed_from, job.id)
        return is_last or _is_last_by_hand(workspace, job, stores)
    return True


def _is_last_by_hand(workspace: Workspace, job: Job, stores: Stores) -> bool:
    """Whether the job that is resumed is of turns that a person added there after the last job."""
    reader = stores.reader
    resumed = reader.find_job(job.resumed_from) if job.resumed_from is not None else None
    last = reader.find_job(workspace.job_id) if workspace.job_id is not None else None
    if resumed is None or last is None or resumed.workspace_id != workspace.id:
        return False
    return resumed.worker == RETOLD and last.number < resumed.number


def _new(
    job: Job,
    session: Session | None,
    agent: Agent,
    shares: Sharing,
    stores: Stores,
) -> Choice:
    _check_same_side(agent, shares, stores)
    # The session or run may have some that do not fit.
    free = (one for one in _owners(job, session, agent, shares) if _is_free(one, job, stores))
    owner = next(free, job.id)
    snapshot, source = _files_before(job, session, agent, stores)
    return Choice(
        workspace=_row(WorkspaceId(owner), job, session, agent, stores),
        is_known=False,
        begins_with=_beginning(snapshot, source),
        snapshot=snapshot,
        shares=shares.jobs,
        run_id=shares.run_id,
    )


def _check_same_side(agent: Agent, shares: Sharing, stores: Stores) -> None:
    """Refuse to work beside the workspace that jobs share, only because it is of a container and the agent is not."""
    mode = agent.workspace.mode
    for owner in shares.owners():
        other = stores.reader.find_workspace(owner)
        if other is None or other.root != agent.working_directory or other.mode is mode:
            continue
        if other.mode.has_branch and mode.has_branch:
            where = "in a container" if mode is WorkspaceMode.CLONE else "on the host"
            other_side = "on the host" if mode is WorkspaceMode.CLONE else "in a container"
            raise WorkspaceError(
                f"agent {agent.name!r} runs {where}, and cannot use workspace {other.id}, where work was done {other_side}",
                hint="give all agents that share a workspace a container, or none of them, and leave `container: false`"
                " out of the commands of a workflow; or use mode: copy",
            )


def _is_free(owner: str, job: Job, stores: Stores) -> bool:
    return owner == job.id or stores.reader.find_workspace(owner) is None


def _owners(job: Job, session: Session | None, agent: Agent, shares: Sharing) -> Iterator[str]:
    """Yield the ids of what the workspace can be made for."""
    if agent.workspace.scope is WorkspaceScope.SESSION and session is not None:
        yield session.id
    yield from shares.owners()


def _row(
    workspace_id: WorkspaceId, job: Job, session: Session | None, agent: Agent, stores: Stores
) -> Workspace:
    at = stores.clock.now()
    policy = agent.workspace
    return Workspace(
        id=workspace_id,
        agent=agent.name,
        mode=policy.mode,
        scope=policy.scope,
        status=WorkspaceStatus.MAKING,
        root=agent.working_directory,
        created_at=at,
        last_used_at=at,
        keep=policy.keep,
        session_id=session.id if session is not None else None,
        job_id=job.id,
    )


def _files_before(
    job: Job, session: Session | None, agent: Agent, stores: Stores
) -> tuple[PlacedSnapshot | None, Workspace | None]:
    """Return the files that a new workspace begins with, and the workspace they are of.

    They are those at the place of a fork, or those of the job that is resumed, in whose workspace others worked since.
    """
    snapshot: PlacedSnapshot | None = None
    is_branch = session is not None and session.parent_session_id is not None
    if session is not None and is_branch and _is_first(job, session, stores):
        snapshot = snapshot_at_fork(session, stores)
    elif job.resumed_from is not None and job.trigger_type is not TriggerType.FORK:
        snapshot = next(reversed(snapshots_of(stores.journals, job.resumed_from)), None)
    elif job.workflow_run_id is not None:
        snapshot = kept_files(RunId(job.workflow_run_id), agent.working_directory, stores)
    source = workspace_of(stores.reader, snapshot) if snapshot is not None else None
    if source is None or source.root != agent.working_directory:
        return None, None
    return snapshot, source


def _is_first(job: Job, session: Session, stores: Stores) -> bool:
    """Whether no other job of the session has worked on files. One that ended before that does not count."""
    for job_id in stores.reader.session_job_ids(session.id):
        other = stores.reader.find_job(job_id) if job_id != job.id else None
        if other is None or (other.workspace_id is None and not other.turns):
            continue
        workspace = stores.reader.find_workspace(other.workspace_id) if other.workspace_id else None
        if workspace is None or workspace.base_tree is not None:
            return False
    return True


def _sharing(job: Job, stores: Stores) -> Sharing:
    """Return the workflow run that a job belongs to, else the first job of its tree and every job below it."""
    first = first_of_run(stores.reader, job.id) or job
    if first.workflow_run_id is not None:
        run = stores.reader.find_run(RunId(first.workflow_run_id))
        return Sharing(run_id=RunId(first.workflow_run_id) if run is None else run.root)
    return Sharing(jobs=(first.id, *(child.id for child in stores.reader.jobs_below(first.id))))


def _beginning(snapshot: PlacedSnapshot | None, source: Workspace | None) -> BeginsWith | None:
    if snapshot is None or source is None or source.store is None:
        return None
    return BeginsWith(
        store=source.store,
        tree=snapshot.tree,
        head=snapshot.head,
        base=source.base,
        base_commit=source.base_commit,
        base_tree=source.base_tree,
    )
