"""Setup: the commands that prepare a workspace run once for the same files, or what they made is copied."""

from __future__ import annotations

from collections.abc import Callable

from msgspec.structs import replace

from nightherd.engine.contexts import WorkerContext
from nightherd.engine.workspaces.elsewhere import environment_in
from nightherd.errors import ContainerEngineError, WorkspaceError
from nightherd.model.chat.credentials import without_credentials
from nightherd.model.hooks import ShellCommand
from nightherd.model.ids import generate_execution_id
from nightherd.model.jobs.job import Job
from nightherd.model.journal.system import SetupStep
from nightherd.model.permissions.fingerprint import fingerprint
from nightherd.model.text import shorten
from nightherd.model.workspaces.policy import SetupCommand
from nightherd.model.workspaces.workspace import Workspace
from nightherd.ports import CommandContainer, HookCall

SHOWN_OUTPUT = 2_000
"""Characters of the end of a failed command's output that its error shows."""

OnStep = Callable[[SetupStep, str], object]
"""Called with what is done, before it is done, in one line."""


async def run_setup(
    job: Job,
    workspace: Workspace,
    commands: tuple[SetupCommand, ...],
    directory: str,
    context: WorkerContext,
    on_step: OnStep,
    *,
    is_new: bool = True,
    container: CommandContainer | None = None,
) -> None:
    """Run what the workspace has not had yet. `WorkspaceError` when a command fails; the next job tries it again.

    Only the results of an `is_new` workspace are kept for others: an agent may have changed those of any other.
    Commands of an agent with a container run in one like it, and results are shared only under the same terms.
    """
    if not commands:
        return
    if context.open_setup_cache is None or context.commands is None:
        raise WorkspaceError("setup commands cannot be run here")
    cache = context.open_setup_cache()
    for number, command in enumerate(commands):
        key = cache.key(workspace, command, _terms(container))
        if cache.is_done(workspace, key):
            continue
        if command.paths and await cache.restore(workspace, command, key):
            step = SetupStep(number=number, is_copied=True)
            on_step(step, f"{shorten(command.run, 80)}: copied from an earlier workspace")
            continue
        await _run(number, command, job, workspace, directory, context, on_step, container)
        try:
            kept = command if is_new else replace(command, paths=())
            await cache.save(workspace, kept, key)
        except (
            WorkspaceError
        ) as error:  # a copy that is not kept costs only the next workspace time
            step = SetupStep(number=number)
            on_step(step, f"{shorten(command.run, 80)}: its result is not kept: {error.message}")


async def _run(
    number: int,
    command: SetupCommand,
    job: Job,
    workspace: Workspace,
    directory: str,
    context: WorkerContext,
    on_step: OnStep,
    container: CommandContainer | None,
) -> None:
    assert context.commands is not None  # noqa: S101 (asked by the caller)
    on_step(SetupStep(number=number), shorten(command.run, 80))
    execution = generate_execution_id(job.id, job.epoch)
    call = HookCall(
        id=f"{job.id}/setup/{number}",
        execution=execution,
        event="setup",
        job_id=job.id,
        body=b"",
        working_directory=directory,
        environment=environment_in(
            workspace,
            directory,
            without_credentials(context.environment, context.agents.values()),
        ),
        secrets=context.secrets,
        container=container,
    )
    try:
        result = await context.commands.run_command(
            ShellCommand(command=command.run, timeout=command.timeout), call
        )
    except ContainerEngineError as error:
        raise WorkspaceError(error.message, hint=error.hint, can_pass=True) from error
    for notice in result.notices:
        on_step(SetupStep(number=number), notice)
    if not result.success:
        output = result.output.strip()[-SHOWN_OUTPUT:]
        said = f". Its output ends with:\n{output}" if output else ""
        raise WorkspaceError(
            f"the setup command {shorten(command.run, 200)!r} failed: {result.error}{said}"
        )


def _terms(container: CommandContainer | None) -> str:
    """Return what two commands must have in common to share what they made; nothing for commands on this machine."""
    policy = container.agent.container if container is not None else None
    if policy is None:
        return ""
    # How long the container is kept changes nothing of what is made in it.
    return fingerprint(replace(policy, is_ephemeral=True, max_containers=0))
