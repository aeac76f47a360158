"""`nightherd workspace show`: everything about one workspace, and what to do with it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from datetime import datetime
from pathlib import Path

import click

from nightherd.cli.invocation import Invocation, json_option
from nightherd.cli.screen.render import Screen, neutralise, one_line
from nightherd.cli.workspaces.list import size_text, workspace_argument
from nightherd.model.text import counted
from nightherd.model.workspaces.keeping import hold_text
from nightherd.ports import ChangedPath
from nightherd.views.workspaces.snapshots import shown_path
from nightherd.views.workspaces.workspaces import (
    ShownWorkspace,
    find_workspace,
    show_workspace,
    workspace_document,
)
from nightherd.wiring.stores import open_reader, system_clock
from nightherd.wiring.workspaces import open_snapshot_reader, open_workspace_files

SHOWN_PATHS = 20
COMMIT = 12


@click.command("show", epilog="Example: nightherd workspace show @last")
@workspace_argument
@json_option
@click.pass_obj
def show(invocation: Invocation, workspace: str) -> None:
    """Show a workspace. Prints where it is, what changed in it, what keeps it and what to do next."""
    screen, now = invocation.screen, system_clock().now()
    shown = look(invocation.state_directory(), workspace, now)
    if screen.is_json:
        screen.document("workspace", workspace_document(shown), now)
        return
    screen.show("\n".join(_card(shown, screen, now)))
    screen.flush()
    for line in _next_steps(shown):
        screen.say(line)


def look(state: Path, reference: str, now: datetime) -> ShownWorkspace:
    """Return the workspace that `reference` means with everything around it; its size is measured."""
    with closing(open_reader(state)) as reader:
        row = find_workspace(reader, reference)
        files, snapshots = open_workspace_files(state), open_snapshot_reader(state)
        return show_workspace(row, reader, files, snapshots, now)


def _card(shown: ShownWorkspace, screen: Screen, now: datetime) -> Iterator[str]:
    row, view, style = shown.view.workspace, shown.view, screen.out
    base = neutralise(row.base or "-")
    begun = f"{base} at {row.base_commit[:COMMIT]}" if row.base_commit else base
    landed = (
        f"{row.landed.value}, {screen.when(row.landed_at, now)}" if row.landed is not None else None
    )
    pairs = [
        ("workspace", style.bold(row.id)),
        ("agent", row.agent),
        ("mode", f"{row.mode.value}, one for each {row.scope.value}"),
        ("state", style.status(view.state)),
        ("directory", one_line(shown.directory) + ("" if shown.is_there else " (not there)")),
        ("made from", one_line(row.root)),
        ("branch", neutralise(row.branch) if row.branch else None),
        ("base", begun if row.base or row.base_commit else None),
        ("landed", landed),
        ("size", size_text(shown.size_bytes)),
        ("created", screen.when(row.created_at, now)),
        ("last used", screen.when(row.last_used_at, now)),
        ("removed", screen.when(row.removed_at, now) if row.removed_at else None),
        ("kept by", hold_text(view.hold, row)),
        ("session", row.session_id),
        *(("job", f"{job.id} {job.status.value}") for job in shown.jobs),
        ("left out", counted(row.left_out, "file") if row.left_out else None),
        ("changes", None if row.tree is None else counted(len(shown.changes), "file")),
    ]
    yield from (f"{label:<11}{value}" for label, value in pairs if value)
    for changed in shown.changes[:SHOWN_PATHS]:
        yield f"  {_path_text(changed)}"
    if len(shown.changes) > SHOWN_PATHS:
        yield f"  and {len(shown.changes) - SHOWN_PATHS} more; --json has them all"


def _path_text(changed: ChangedPath) -> str:
    lines = "binary" if changed.added is None else f"+{changed.added} -{changed.removed}"
    return f"{changed.status:<12} {one_line(shown_path(changed.path))} ({lines})"


def _next_steps(shown: ShownWorkspace) -> Iterator[str]:
    row = shown.view.workspace
    job = row.job_id
    if job is not None and shown.changes:
        yield f"changes: nightherd jobs diff {job}"
        if row.is_dirty:
            yield f"take them over: nightherd jobs merge {job}, or: nightherd jobs apply {job}"
    if shown.is_there:
        yield f"open it: nightherd workspace open {row.id}"
    if row.is_there and not shown.view.open_jobs:
        force = " --force" if row.is_dirty else ""
        yield f"remove it: nightherd workspace clean {row.id}{force}"
