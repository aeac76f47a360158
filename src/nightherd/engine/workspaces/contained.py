"""Workspaces and containers: which kind a job gets, and where the commands run that prepare it or follow it."""

from __future__ import annotations

from msgspec.structs import replace

from nightherd.engine.contexts import WorkerContext
from nightherd.engine.workspaces.cleanup import usual_policy
from nightherd.errors import WorkspaceError
from nightherd.model.agents.agent import Agent
from nightherd.model.jobs.job import Job
from nightherd.model.permissions.protected import also_in
from nightherd.model.workspaces.policy import WorkspaceMode
from nightherd.model.workspaces.workspace import Workspace
from nightherd.ports import CommandContainer, Made


def command_container(
    job: Job, agent: Agent, made: Made, context: WorkerContext
) -> CommandContainer | None:
    """Return where setup commands and hooks run; None for an agent without a container.

    They are files of the workspace as often as not, which an agent may have changed.
    """
    if agent.container is None:
        return None
    protected = context.protected
    if protected is not None:
        protected = also_in(protected, agent.working_directory, made.directory)
    return CommandContainer(
        agent=replace(agent, working_directory=made.directory),
        session_id=job.session_id,
        protected=protected,
        workspace=top_of(made),
        borrowed=made.borrowed,
    )


def top_of(made: Made) -> str:
    """Return the directory of a workspace, which the agent may work below."""
    return made.directory.removesuffix(f"/{made.prefix}" if made.prefix else "")


def as_begun(job: Job, agent: Agent, context: WorkerContext) -> Agent:
    """Return the agent with the kind of workspace that the job began in: what it waits for is to happen there."""
    mode = agent.workspace.mode.in_place_of(is_contained=agent.container is not None)
    agent = replace(agent, workspace=replace(agent.workspace, mode=mode))
    known = _begun_in(job, context)
    if known is None or known.mode is mode or known.root != agent.working_directory:
        return agent
    if known.mode.has_branch and mode.has_branch:
        return agent  # refused before anything is made: see check_boundary
    return replace(agent, workspace=usual_policy(known))


def _begun_in(job: Job, context: WorkerContext) -> Workspace | None:
    workspace_id = job.workspace_id
    return context.reader.find_workspace(workspace_id) if workspace_id is not None else None


def check_boundary(job: Job, agent: Agent, context: WorkerContext) -> None:
    """Refuse a workspace of a container to an agent on the host, and the other way round.

    In the first, git would obey what was written inside; from the second, it would reach nothing.
    """
    for problem in agent.blocked_by:  # a command whose container is not there
        raise WorkspaceError(problem.message, hint=problem.hint)
    known = _begun_in(job, context)
    mode = agent.workspace.mode
    if known is None or known.mode is mode or known.root != agent.working_directory:
        return
    if known.mode.has_branch and mode.has_branch:
        where = (
            ("a container", "on the host")
            if mode is WorkspaceMode.WORKTREE
            else ("the host", "in a container")
        )
        raise WorkspaceError(
            f"{job.id} began in a workspace of {where[0]}, and its agent now runs {where[1]}",
            hint="resume the job: it then continues in a new workspace with the same files",
        )
