"""`nightherd retention`: plan and apply the deletion of old checkpoints and of workspaces that nothing keeps."""

from __future__ import annotations

from contextlib import closing

import anyio
import click

from nightherd.cli.imports import fleet_if_any
from nightherd.cli.invocation import Invocation, invocation_of, json_option
from nightherd.cli.lazy import Entry, LazyGroup
from nightherd.cli.screen.render import Screen, table
from nightherd.engine.chat.retention import count_forgettable
from nightherd.engine.checkpoints.retention import Applied, ApplyRetention, apply_retention, plans
from nightherd.engine.sessions.directories import removable_directories
from nightherd.engine.workspaces.cleanup import removable
from nightherd.model.chat.forgotten import NOTHING_FORGOTTEN, ForgottenChat
from nightherd.model.checkpoints.retention import JobPlan, directories_text
from nightherd.model.text import counted
from nightherd.model.units import format_size
from nightherd.model.workspaces.workspace import Workspace, WorkspaceStatus
from nightherd.views.health.retention import plan_row, retention_beside
from nightherd.views.jobs.jobs import find_job_id
from nightherd.wiring.stores import (
    last_retention,
    load_persistence,
    open_chat_files,
    open_journals,
    open_reader,
    open_retention,
    session_directories,
    system_clock,
)

HEADING = ("JOB", "DELETE", "WHY", "KEEP", "THEN")
NOTHING_TO_DELETE = "no checkpoints or workspaces to delete"
WORKSPACES = ("WORKSPACE", "AGENT", "SIZE", "WHY")


@click.group(
    "retention",
    cls=LazyGroup,
    entries={
        "plan": Entry(
            "nightherd.cli.checkpoints.retention:show_plan",
            "List the checkpoints and workspaces that would be deleted.",
        ),
        "apply": Entry("nightherd.cli.checkpoints.retention:apply", "Delete what is planned."),
    },
    default="plan",
    epilog="Example: nightherd retention plan",
)
def retention() -> None:
    """Plan and apply the deletion of old checkpoints, unneeded workspaces and old texts of chat. Jobs, journals and snapshots stay.

    `retention` in state_persistence.yaml decides about checkpoints and chat, `keep` in the fleet file about workspaces.
    """


@click.command("plan", epilog="Example: nightherd retention plan --json")
@click.option("--job", metavar="JOB", help="Show only this job.")
@json_option
@click.pass_obj
def show_plan(invocation: Invocation, job: str | None) -> None:
    """List the checkpoints and workspaces that would be deleted. Changes nothing."""
    screen, now = invocation.screen, system_clock().now()
    planned, workspaces, chat, directories = _planned(invocation, job)
    if screen.is_json:
        screen.document(
            "retention",
            [plan_row(plan) for plan in planned],
            now,
            **retention_beside(
                planned,
                workspaces,
                chat,
                is_dry_run=True,
                session_directories=directories,
                failures={},
                last_run=last_retention(invocation.state_directory()),
            ),
        )
        return
    if not planned and not workspaces and chat.is_empty and not directories:
        screen.say(NOTHING_TO_DELETE)
        return
    if planned:
        cells = [_cells(plan) for plan in planned]
        screen.show(table(HEADING, cells, width=screen.width, style=screen.out))
    if workspaces:
        rows = [_workspace_cells(row) for row in workspaces]
        screen.show(table(WORKSPACES, rows, width=screen.width, style=screen.out))
    screen.flush()
    if not chat.is_empty:
        days = load_persistence(invocation.state_directory()).retention.chat.delete_older_than_days
        screen.say(f"{_chat_text(chat)}, older than {counted(days, 'day')}")
    if directories:
        screen.say(directories_text(directories))
    screen.say("apply it: nightherd retention apply")


@click.command("apply", epilog="Example: nightherd retention apply")
@click.option("--job", metavar="JOB", help="Show only this job.")
@click.option("--dry-run", is_flag=True, help="Show what would be deleted and change nothing.")
@json_option
@click.pass_context
def apply(ctx: click.Context, job: str | None, dry_run: bool) -> None:
    """Delete what is planned. Archives checkpoints first if the configuration says so."""
    invocation = invocation_of(ctx)
    if dry_run:
        ctx.invoke(show_plan, job=job)
        return
    screen, now = invocation.screen, system_clock().now()
    applied = anyio.run(_apply, invocation, job)
    done, failures = applied.done, {**applied.failures, **applied.workspaces.failures}
    if screen.is_json:
        screen.document(
            "retention",
            [plan_row(plan) for plan in done],
            now,
            **retention_beside(
                done,
                applied.workspaces.removed,
                applied.chat,
                is_dry_run=False,
                session_directories=applied.session_directories,
                failures=failures,
                last_run=last_retention(invocation.state_directory()),
            ),
        )
    else:
        _say_applied(applied, screen)
    if failures:
        ctx.exit(1)


def _say_applied(applied: Applied, screen: Screen) -> None:
    done, cleaned = applied.done, applied.workspaces
    count = sum(len(plan.going) for plan in done)
    deleted = [f"{counted(count, 'checkpoint')} of {counted(len(done), 'job')}"] if done else []
    if cleaned.removed:
        size = format_size(cleaned.freed_bytes)
        deleted.append(f"{counted(len(cleaned.removed), 'workspace')} ({size})")
    if not applied.chat.is_empty:
        deleted.append(_chat_text(applied.chat))
    if applied.session_directories:
        deleted.append(directories_text(applied.session_directories))
    if deleted:
        screen.say(f"deleted {' and '.join(deleted)}")
    elif not applied.failures and not cleaned.failures:
        screen.say(NOTHING_TO_DELETE)
    for refusal in cleaned.refused:
        screen.say(f"kept workspace {refusal.workspace.id}: {refusal.reason}")
    for name, message in {**applied.failures, **cleaned.failures}.items():
        screen.say(f"{name}: {message}")


async def _apply(invocation: Invocation, job: str | None) -> Applied:
    async with open_retention(invocation.state_directory(), fleet_if_any(invocation)) as room:
        job_id = find_job_id(room.reader, job) if job is not None else None
        return await apply_retention(ApplyRetention(job_id=job_id), room)


def _chat_text(chat: ForgottenChat) -> str:
    """How much of chat goes."""
    texts = [counted(chat.texts, "text")] if chat.texts else []
    files = [counted(chat.files, "file")] if chat.files else []
    return f"{' and '.join((*texts, *files))} of chat"


def _planned(
    invocation: Invocation, job: str | None
) -> tuple[list[JobPlan], list[Workspace], ForgottenChat, int]:
    state = invocation.state_directory()
    persistence = load_persistence(state)
    with closing(open_reader(state)) as reader:
        job_id = find_job_id(reader, job) if job is not None else None
        now = system_clock().now()
        planned = list(plans(reader, open_journals(state), persistence, now, job_id))
        if job_id is not None:
            return planned, [], NOTHING_FORGOTTEN, 0
        directories = list(removable_directories(reader, session_directories(state), now))
        files = open_chat_files(state)
        chat = count_forgettable(reader, persistence.retention.chat, now, files)
        return planned, list(removable(reader, now)), chat, len(directories)


def _workspace_cells(row: Workspace) -> tuple[str, str, str, str]:
    size = "-" if row.size_bytes is None else format_size(row.size_bytes)
    is_half_removed = row.status is WorkspaceStatus.REMOVING
    return row.id, row.agent, size, "half removed" if is_half_removed else f"keep: {row.keep}"


def _cells(plan: JobPlan) -> tuple[str, str, str, str, str]:
    reasons = ", ".join(sorted({why.value for _, why in plan.going}))
    needed = ", ".join(f"{number} ({why.value})" for number, why in plan.needed) or "-"
    then = "archived" if plan.is_archived else "deleted" if plan.is_deleted else "-"
    return plan.job_id, ", ".join(str(number) for number in plan.numbers), reasons, needed, then
