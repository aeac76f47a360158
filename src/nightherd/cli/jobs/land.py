"""`nightherd jobs apply`, `merge` and `push`: bring the changes of a job home."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from contextlib import closing

import anyio
import click

from nightherd.cli.fleet.load import load_fleet_with_notices
from nightherd.cli.invocation import Invocation, invocation_of, job_argument, json_option
from nightherd.cli.next_steps import command_for
from nightherd.cli.screen.render import Screen, neutralise
from nightherd.engine.contexts import Stores
from nightherd.engine.operations.landing import (
    ApplyJob,
    JobLanding,
    MergeJob,
    PushJob,
    apply_job,
    merge_job,
    push_job,
)
from nightherd.errors import ConfigError, RefusedError
from nightherd.model.ids import JobId
from nightherd.model.text import counted
from nightherd.model.workspaces.policy import CloneTerms
from nightherd.model.workspaces.workspace import Landed
from nightherd.next_step import Action, NextStep
from nightherd.ports import Landing
from nightherd.views.jobs.jobs import find_job_id, get_job
from nightherd.views.workspaces.landing import landing_document
from nightherd.views.workspaces.snapshots import shown_path
from nightherd.wiring.machine import refuse_agents
from nightherd.wiring.running import open_fleet_context
from nightherd.wiring.stores import open_reader, system_clock
from nightherd.wiring.workspaces import follow_moved_project, open_landing

SHOWN_PATHS = 20
"""Files that are listed; `jobs diff --stat` lists all."""
COMMIT_LENGTH = 12
Operation = Callable[[Stores, Landing], Awaitable[JobLanding]]

message_option = click.option("-m", "--message", metavar="TEXT", help="Message of the commit.")
dry_run_option = click.option(
    "--dry-run", is_flag=True, help="Show what would change, and change nothing."
)


@click.command("apply", epilog="Example: nightherd jobs apply @last --dry-run")
@job_argument
@click.option(
    "--only-this-job",
    is_flag=True,
    help="Leave out changes of earlier jobs in the same workspace.",
)
@dry_run_option
@json_option
@click.pass_context
def apply(ctx: click.Context, job: str, only_this_job: bool, dry_run: bool) -> None:
    """Apply a job's changes to your files. Changes the agent's directory and commits nothing.

    All files change, or none if one of them conflicts (exit code 5).
    """
    invocation = invocation_of(ctx)
    refuse_agents(invocation.state_directory(), "jobs apply", "changes your files")
    request = ApplyJob(
        job_id=_find(invocation, job), is_only_this_job=only_this_job, is_dry_run=dry_run
    )
    _perform(ctx, lambda stores, landing: apply_job(request, stores, landing), is_dry_run=dry_run)


@click.command("merge", epilog="Example: nightherd jobs merge @last --into main")
@job_argument
@click.option(
    "--into", metavar="BRANCH", help="Branch to merge into; by default the workspace's base."
)
@message_option
@click.option("--no-ff", is_flag=True, help="Make a merge commit even for a fast-forward.")
@dry_run_option
@json_option
@click.pass_context
def merge(
    ctx: click.Context,
    job: str,
    into: str | None,
    message: str | None,
    no_ff: bool,
    dry_run: bool,
) -> None:
    """Merge a job's changes into a branch. A directory that has the branch checked out is updated.

    If a file conflicts, nothing is changed (exit code 5).
    """
    invocation = invocation_of(ctx)
    refuse_agents(invocation.state_directory(), "jobs merge", "changes your branches")
    request = MergeJob(
        job_id=_find(invocation, job),
        into=into,
        message=message,
        is_fast_forward=not no_ff,
        is_dry_run=dry_run,
    )
    _perform(ctx, lambda stores, landing: merge_job(request, stores, landing), is_dry_run=dry_run)


@click.command("push", epilog="Example: nightherd jobs push @last --pr")
@job_argument
@click.option(
    "--remote", metavar="REMOTE", help="Name or URL of the remote to push to (default: origin)."
)
@click.option("--pr", is_flag=True, help="Print the URL where a pull request is opened.")
@message_option
@click.option(
    "--force", is_flag=True, help="Replace the remote's branch if it is as it was last seen."
)
@dry_run_option
@json_option
@click.pass_context
def push(
    ctx: click.Context,
    job: str,
    remote: str | None,
    pr: bool,
    message: str | None,
    force: bool,
    dry_run: bool,
) -> None:
    """Push a job's changes to a remote. They arrive as the branch of the job's workspace."""
    invocation = invocation_of(ctx)
    refuse_agents(invocation.state_directory(), "jobs push", "uses your credentials")
    login = _login(invocation, job)
    request = PushJob(
        job_id=_find(invocation, job),
        remote=remote,
        message=message,
        is_forced=force,
        is_dry_run=dry_run,
    )
    _perform(
        ctx,
        lambda stores, landing: push_job(request, stores, landing, login),
        is_dry_run=dry_run,
        has_url=pr,
    )


def _find(invocation: Invocation, reference: str) -> JobId:
    with closing(open_reader(invocation.state_directory())) as reader:
        return find_job_id(reader, reference)


def _login(invocation: Invocation, reference: str) -> CloneTerms | None:
    """Return what the fleet file says the agent's repository is cloned with; None where it says nothing, or is gone."""
    with closing(open_reader(invocation.state_directory())) as reader:
        job = get_job(reader, find_job_id(reader, reference))
    try:
        fleet = load_fleet_with_notices(invocation, agent=job.agent, is_quiet=True)
    except ConfigError:
        return None
    agent = fleet.agents.get(job.agent)
    return None if agent is None else agent.workspace.clone


def _perform(
    ctx: click.Context, operation: Operation, *, is_dry_run: bool, has_url: bool = False
) -> None:
    """Carry it out on the state directory, show what became of it, and end with its exit code."""
    invocation = invocation_of(ctx)
    done = anyio.run(_run, invocation, operation)
    screen = invocation.screen
    for line in done.finished:
        screen.say(f"notice: {neutralise(line)}")
    if screen.is_json:
        document = landing_document(
            done.job.id,
            done.workspace.id,
            done.how,
            done.result,
            is_dry_run=is_dry_run,
            finished=done.finished,
        )
        screen.document("landing", document, system_clock().now())
    elif done.result.conflicts:
        _show_conflicts(done, screen)
    else:
        _show_done(done, screen, is_dry_run=is_dry_run, has_url=has_url)
    if done.result.conflicts:
        ctx.exit(RefusedError.exit_code)


async def _run(invocation: Invocation, operation: Operation) -> JobLanding:
    state_dir = invocation.state_directory()
    async with open_fleet_context(state_dir, None, invocation.environ) as context:
        await follow_moved_project(state_dir, context)
        return await operation(context, open_landing(state_dir))


def _show_done(done: JobLanding, screen: Screen, *, is_dry_run: bool, has_url: bool) -> None:
    result = done.result
    target = neutralise(shown_path(result.target))
    if result.is_nothing:
        screen.show(f"already {done.how.value}: {target} has these changes")
    else:
        would = "would be " if is_dry_run else ""
        screen.show(f"{would}{_what_happened(done, target)}")
        _list_paths(result.paths, screen.show)
    if has_url and result.url is not None:
        screen.show(result.url)
    elif has_url:
        screen.flush()
        screen.say("no URL is known for pull requests at this remote")


def _what_happened(done: JobLanding, target: str) -> str:
    result = done.result
    files = counted(len(result.paths), "file")
    if done.how is Landed.APPLIED:
        return f"applied to {target}: {files}"
    if done.how is Landed.PUSHED:
        return f"pushed to {target}: {files}, commit {_short(result.commit)}"
    how = "fast-forward to" if result.is_fast_forward else "merge commit"
    return f"merged into {target}: {files}, {how} {_short(result.commit)}"


def _show_conflicts(done: JobLanding, screen: Screen) -> None:
    count = counted(len(done.result.conflicts), "file")
    verb = "conflicts" if len(done.result.conflicts) == 1 else "conflict"
    target = neutralise(shown_path(done.result.target))
    screen.say(f"nightherd: {count} {verb} with {target}; nothing was changed")
    _list_paths(done.result.conflicts, screen.say)
    diff = command_for(NextStep(Action.SHOW_DIFF, job=done.job.id))
    ask = f"nightherd jobs resume {done.job.id} -p 'Merge {target} into your branch, resolve the conflicts and commit'"
    screen.say(f"  try: {diff}" if done.how is Landed.APPLIED else f"  try: {ask}")


def _list_paths(paths: Sequence[str], write: Callable[[str], None]) -> None:
    for path in paths[:SHOWN_PATHS]:
        write(f"  {neutralise(shown_path(path))}")
    if len(paths) > SHOWN_PATHS:
        write(f"  and {counted(len(paths) - SHOWN_PATHS, 'other')}")


def _short(commit: str | None) -> str:
    return (commit or "")[:COMMIT_LENGTH]
