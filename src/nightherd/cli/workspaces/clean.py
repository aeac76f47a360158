"""`nightherd workspace clean`: remove workspaces, and never work that is nowhere else."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

import anyio
import click

from nightherd.cli.imports import fleet_if_any
from nightherd.cli.invocation import DURATION, invocation_of, json_option
from nightherd.cli.screen.render import Screen
from nightherd.cli.workspaces.list import complete_workspaces
from nightherd.engine.workspaces.cleanup import (
    Cleanup,
    CleanupContext,
    removable,
)
from nightherd.engine.workspaces.cleanup import (
    clean as clean_workspaces,
)
from nightherd.errors import RefusedError, UsageError
from nightherd.model.text import counted
from nightherd.model.units import format_size
from nightherd.model.workspaces.workspace import Workspace, WorkspaceQuery
from nightherd.views.workspaces.workspaces import every_workspace, find_workspace
from nightherd.wiring.machine import agent_above_here
from nightherd.wiring.stores import system_clock
from nightherd.wiring.workspaces import open_cleanup

PAGE = 200
REFUSED = 5
FAILED = 1


class Chosen:
    """Which workspaces the command was asked to remove, and how."""

    def __init__(
        self,
        references: tuple[str, ...],
        *,
        is_merged: bool,
        is_all: bool,
        older_than: timedelta | None,
        is_forced: bool,
    ) -> None:
        self.references = references
        self.is_merged = is_merged
        self.is_all = is_all
        self.older_than = older_than
        self.is_forced = is_forced
        if references and (is_merged or is_all or older_than is not None):
            raise UsageError("--merged, --all and --older-than choose workspaces; name none then")
        if is_merged and is_all:
            raise UsageError("--merged and --all cannot be used together")
        if is_forced and not (references or is_all):
            raise UsageError(
                "--force needs the workspaces to remove, or --all",
                hint="nightherd workspace clean WORKSPACE --force",
            )

    @property
    def is_sweep(self) -> bool:
        """Whether `keep` chooses, not a person."""
        return not (self.references or self.is_merged or self.is_all)

    def rows(self, context: CleanupContext, now: datetime) -> list[Workspace]:
        """Return the workspaces that are meant."""
        if self.references:
            named = [find_workspace(context.reader, one) for one in self.references]
            return list({row.id: row for row in named}.values())
        if self.is_sweep:
            rows = list(removable(context.reader, now))
        else:
            every = every_workspace(context.reader, WorkspaceQuery(limit=PAGE))
            rows = [row for row in every if self.is_all or _is_merged(row)]
        oldest = now - self.older_than if self.older_than is not None else None
        return [row for row in rows if oldest is None or row.last_used_at <= oldest]


def _is_merged(row: Workspace) -> bool:
    return row.landed_tree is not None and not row.is_dirty


@click.command("clean", epilog="Example: nightherd workspace clean --merged --older-than 7d")
@click.argument(
    "workspaces", metavar="[WORKSPACE]...", nargs=-1, shell_complete=complete_workspaces
)
@click.option(
    "--merged", "is_merged", is_flag=True, help="Remove all that were applied, merged or pushed."
)
@click.option("--all", "is_all", is_flag=True, help="Remove all that no job works in.")
@click.option(
    "--older-than",
    type=DURATION,
    metavar="DURATION",
    help="Remove only those not used for this long.",
)
@click.option("--force", "is_forced", is_flag=True, help="Also remove work that is nowhere else.")
@click.option(
    "--dry-run", "is_dry", is_flag=True, help="Show what would be removed and change nothing."
)
@json_option
@click.pass_context
def clean(
    ctx: click.Context,
    workspaces: tuple[str, ...],
    is_merged: bool,
    is_all: bool,
    older_than: timedelta | None,
    is_forced: bool,
    is_dry: bool,
) -> None:
    """Remove workspaces. Without WORKSPACE: those that their `keep` rule does not keep any more.

    One with changes that are not merged is only removed with --force, one that a job works in never. The
    snapshots of removed workspaces stay: `jobs diff` and forks still work.
    """
    invocation = invocation_of(ctx)
    state = invocation.state_directory()
    chosen = Chosen(
        workspaces,
        is_merged=is_merged,
        is_all=is_all,
        older_than=older_than,
        is_forced=is_forced,
    )
    execution = agent_above_here(state) if not is_dry else None
    if execution is not None:
        raise RefusedError(
            f"only a person removes workspaces, and an agent started this process (execution {execution})",
            hint="run it from a shell of your own",
        )

    async def run() -> Cleanup:
        async with open_cleanup(state, fleet_if_any(invocation)) as context:
            rows = chosen.rows(context, context.clock.now())
            return await clean_workspaces(
                rows,
                context,
                is_forced=is_forced,
                is_dry=is_dry,
                is_sweep=chosen.is_sweep,
            )

    done = anyio.run(run)
    _show(done, invocation.screen, is_dry=is_dry)
    if done.failures:
        ctx.exit(FAILED)
    if done.refused and not (chosen.is_sweep or is_merged):
        if not (is_forced or invocation.screen.is_json):
            kept = done.refused[0].workspace
            invocation.screen.say(f"  look at it: nightherd workspace show {kept.id}")
            invocation.screen.say(f"  remove it: nightherd workspace clean {kept.id} --force")
        ctx.exit(REFUSED)


def _show(done: Cleanup, screen: Screen, *, is_dry: bool) -> None:
    if screen.is_json:
        screen.document(
            "workspace_cleanup", cleanup_document(done, is_dry=is_dry), system_clock().now()
        )
        return
    for row in done.removed:
        screen.show(row.id)
    screen.flush()
    verb = "would be removed" if is_dry else "removed"
    freed = f", {format_size(done.freed_bytes)}" if done.removed else ""
    screen.say(f"{counted(len(done.removed), 'workspace')} {verb}{freed}")
    for refusal in done.refused:
        screen.say(f"  kept {refusal.workspace.id}: {refusal.reason}")
    for name, problem in done.failures.items():
        screen.say(f"  not removed {name}: {problem}")


def cleanup_document(done: Cleanup, *, is_dry: bool) -> dict[str, Any]:
    """Return what became of a cleanup as plain data."""
    return {
        "is_dry_run": is_dry,
        "removed": [row.id for row in done.removed],
        "freed_bytes": done.freed_bytes,
        "kept": [
            {"id": refusal.workspace.id, "reason": refusal.reason} for refusal in done.refused
        ],
        "failures": dict(done.failures),
    }
