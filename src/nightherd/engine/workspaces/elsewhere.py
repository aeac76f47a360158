"""An agent that works elsewhere than in its own directory: what it is told, and which settings it obeys there."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from anyio import to_thread
from msgspec.structs import replace

from nightherd.engine.contexts import WorkerContext
from nightherd.model.agents.agent import Agent
from nightherd.model.ids import JobId
from nightherd.model.jobs.job import Job
from nightherd.model.journal.event import SystemEvent, payload_of
from nightherd.model.journal.system import SystemSubtype, WorkspaceUsed
from nightherd.model.permissions.grants import PROJECT_SOURCES
from nightherd.model.sessions.session import Session
from nightherd.model.workspaces.workspace import Workspace
from nightherd.ports import Made, WorkspaceFiles
from nightherd.views.sessions.conversation import segments_of

CEILINGS = "GIT_CEILING_DIRECTORIES"


def used_text(used: WorkspaceUsed) -> str:
    """Return in one line where a job works and what its files began with."""
    commit = f" ({used.base_commit[:8]})" if used.base_commit is not None else ""
    base = f"{used.base or 'its base'}{commit}"
    begins = {
        "base": f"made from {base}",
        "snapshot": f"with the files of {used.from_job or 'an earlier job'}",
        "copy": "a copy",
        "empty": "empty",
        "kept": "as it was",
    }
    on_branch = f" on branch {used.branch}" if used.branch is not None else ""
    return f"{used.directory}{on_branch}, {begins.get(used.origin, used.origin)}"


def environment_in(
    workspace: Workspace, directory: str, environment: Mapping[str, str]
) -> Mapping[str, str]:
    """Return the environment of commands in a workspace: git does not look for a repository above it.

    The directory of workspaces is often in a repository of the user, and a copy or an empty one has none itself.
    """
    top = directory.removesuffix(f"/{workspace.prefix}") if workspace.prefix else directory
    ceilings = [top.rpartition("/")[0], environment.get(CEILINGS, "")]
    return {**environment, CEILINGS: ":".join(filter(None, ceilings))}


def moved_notice(
    job: Job,
    session: Session | None,
    agent: Agent,
    made: Made,
    files: WorkspaceFiles,
    context: WorkerContext,
) -> str | None:
    """Return what to say to an agent whose conversation so far was in another directory; None when it was not.

    It is the same in every execution of the job, so that the runtime knows whether it has been said.
    """
    if session is None or not agent.runtime.keeps_transcript:
        return None
    parts = segments_of(context.reader, context.journals, session)
    earlier = [part.job for part in parts if part.job.id != job.id and part.messages]
    if not earlier:
        return None
    workspace_id = earlier[-1].workspace_id
    workspace = context.reader.find_workspace(workspace_id) if workspace_id else None
    previous = agent.working_directory if workspace is None else files.directory(workspace)
    if previous == made.directory:
        return None
    used = _first_use(job, made.directory, context)
    if used is not None and _begins_with(used, workspace_id, context):
        holds = f"What was in {previous} at this point of the conversation is there."
    elif used is not None and used.origin == "kept":
        holds = f"What you changed in {previous} is not there."
    else:
        holds = f"It is new: what you changed in {previous} is there only if it was merged."
    return f"(Your working directory is {made.directory} now. {holds} Use paths in the new directory only.)"


def _first_use(job: Job, directory: str, context: WorkerContext) -> WorkspaceUsed | None:
    """Return how the job came to the directory; its later executions only find it again."""
    for event in context.journals.read(job.id, load_blobs=False):
        if isinstance(event, SystemEvent) and event.subtype is SystemSubtype.WORKSPACE:
            used = payload_of(event)
            if isinstance(used, WorkspaceUsed) and used.directory == directory:
                return used
    return None


def _begins_with(used: WorkspaceUsed, workspace_id: str | None, context: WorkerContext) -> bool:
    """Whether it was made from the files of that workspace."""
    if used.origin != "snapshot" or used.from_job is None or workspace_id is None:
        return False
    source = context.reader.find_job(JobId(used.from_job))
    return source is not None and source.workspace_id == workspace_id


async def accepted_settings(agent: Agent, context: WorkerContext) -> tuple[Agent, Sequence[str]]:
    """Return the agent without settings files of its workspace that nobody accepted, and their names.

    Accepted are those of its own directory, as they were. An agent with a shell can write others into its workspace,
    and they can run commands.
    """
    if not PROJECT_SOURCES.intersection(agent.setting_sources):
        return agent, ()
    found = await to_thread.run_sync(context.settings_in, replace(agent, schedules={}))
    changed = [name for name, one in found.items() if agent.project_settings.get(name) != one]
    if not changed:
        return agent, ()
    kept = tuple(one for one in agent.setting_sources if one not in PROJECT_SOURCES)
    return replace(agent, setting_sources=kept), changed
