"""`nightherd workspace` and `workspace list`: the directories that jobs work in, and how large they are."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import closing
from datetime import datetime

import click

from nightherd.cli.invocation import (
    Command,
    Invocation,
    agent_filter,
    before_option,
    invocation_for_completion,
    json_option,
    page_option,
)
from nightherd.cli.lazy import Entry, LazyGroup
from nightherd.cli.screen.render import PAGE, Screen, neutralise, next_page, status_cell, table
from nightherd.model.units import format_size
from nightherd.model.workspaces.workspace import WorkspaceQuery
from nightherd.views.workspaces.workspaces import (
    WorkspaceView,
    list_page,
    total_size,
    workspace_row,
)
from nightherd.wiring.stores import open_reader, system_clock

MOST = 20


def complete_workspaces(
    ctx: click.Context, _parameter: click.Parameter, incomplete: str
) -> list[str]:
    """The newest workspace ids that begin so."""
    try:
        with closing(open_reader(invocation_for_completion(ctx).state_directory())) as reader:
            return list(reader.workspace_ids(incomplete, MOST))
    except Exception:  # noqa: BLE001 (an edge: a prompt that is being typed is no place for an error)
        return []


def workspace_argument(command: Command) -> Command:
    """A workspace: its id, a unique prefix of it, `@last`, or a job or session that is in it."""
    return click.argument("workspace", metavar="WORKSPACE", shell_complete=complete_workspaces)(
        command
    )


@click.group(
    "workspace",
    cls=LazyGroup,
    entries={
        "list": Entry("nightherd.cli.workspaces.list:list_workspaces", "List workspaces."),
        "show": Entry("nightherd.cli.workspaces.show:show", "Show a workspace."),
        "open": Entry("nightherd.cli.workspaces.open:open_workspace", "Open a workspace."),
        "clean": Entry("nightherd.cli.workspaces.clean:clean", "Remove workspaces."),
    },
    default="list",
    epilog="Example: nightherd workspace show @last",
)
def workspace() -> None:
    """List, show, open and remove workspaces. A workspace is a directory made for a job, session or run.

    WORKSPACE is an id, a unique prefix of one, @last, or a job or session that works in it.
    """


@click.command("list", epilog="Example: nightherd workspace list --agent coder")
@agent_filter
@click.option("--all", "has_removed", is_flag=True, help="Also list workspaces that were removed.")
@page_option(PAGE)
@before_option
@json_option
@click.pass_obj
def list_workspaces(
    invocation: Invocation, agent: str | None, has_removed: bool, limit: int, before: int | None
) -> None:
    """List workspaces. The newest come first; sizes are from when their last job ended."""
    screen, now = invocation.screen, system_clock().now()
    query = WorkspaceQuery(agent=agent, has_removed=has_removed, before=before, limit=limit)
    with closing(open_reader(invocation.state_directory())) as reader:
        page = list_page(reader, query, now)
        size = total_size(reader, agent)
    if screen.is_json:
        rows = [workspace_row(view) for view in page.workspaces]
        screen.document(
            "workspaces", rows, now, next_before=page.next_before, total_size_bytes=size
        )
        return
    if not page.workspaces:
        is_filtered = agent is not None or before is not None
        screen.say("no such workspaces" if is_filtered else "no workspaces")
        if not has_removed:
            screen.say("  try: nightherd workspace list --all")
        return
    screen.show(workspace_table(page.workspaces, screen, now))
    screen.flush()
    screen.say(f"{format_size(size)} in all workspaces")
    if page.next_before is not None:
        command = next_page("nightherd workspace list", page.next_before, limit, agent=agent)
        screen.say(f"more: {neutralise(command)}{' --all' if has_removed else ''}")


HEADING = ("ID", "AGENT", "MODE", "STATE", "SIZE", "LAST USED", "JOB", "BRANCH")
SPARE = ("MODE", "JOB", "LAST USED")


def workspace_table(views: Sequence[WorkspaceView], screen: Screen, now: datetime) -> str:
    """One line per workspace."""
    rows = [
        (
            view.workspace.id,
            view.workspace.agent,
            view.workspace.mode.value,
            status_cell(view.state),
            size_text(view.workspace.size_bytes),
            screen.when(view.workspace.last_used_at, now),
            view.workspace.job_id or "-",
            neutralise(view.workspace.branch or "-"),
        )
        for view in views
    ]
    return table(HEADING, rows, width=screen.width, style=screen.out, spare=SPARE)


def size_text(size_bytes: int | None) -> str:
    """A size for people; a dash when it was not measured."""
    return "-" if size_bytes is None else format_size(size_bytes)
