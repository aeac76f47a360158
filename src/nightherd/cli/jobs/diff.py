"""`nightherd jobs diff`: what a job changed, as a patch, a summary or a list of files."""

from __future__ import annotations

from contextlib import closing

import click

from nightherd.cli.invocation import Invocation, job_argument, json_option
from nightherd.cli.screen.patch import path_line, show_patch
from nightherd.cli.screen.render import Screen, neutralise, one_line
from nightherd.errors import UsageError
from nightherd.model.text import counted
from nightherd.ports import SnapshotReader
from nightherd.views.jobs.jobs import find_job_id
from nightherd.views.workspaces.snapshots import (
    JobChanges,
    changes_document,
    job_changes,
    shown_path,
)
from nightherd.wiring.stores import open_journals, open_reader, system_clock
from nightherd.wiring.workspaces import open_snapshot_reader


@click.command("diff", epilog="Example: nightherd jobs diff @last --stat")
@job_argument
@click.option("--turn", type=click.IntRange(1), metavar="N", help="Show what turn N changed.")
@click.option("--stat", "is_stat", is_flag=True, help="Show a summary with a line for each file.")
@click.option("--name-only", "is_names", is_flag=True, help="Show the names of changed files.")
@click.option(
    "--all", "is_from_base", is_flag=True, help="Show everything since the workspace was made."
)
@json_option
@click.pass_obj
def diff(
    invocation: Invocation,
    job: str,
    turn: int | None,
    is_stat: bool,
    is_names: bool,
    is_from_base: bool,
) -> None:
    """Show what a job changed. Prints a git patch, from its first to its last snapshot; works after removal too."""
    if is_stat and is_names:
        raise UsageError("--stat and --name-only cannot be used together")
    if turn is not None and is_from_base:
        raise UsageError("--turn and --all cannot be used together")
    screen, state = invocation.screen, invocation.state_directory()
    with closing(open_reader(state)) as reader:
        job_id = find_job_id(reader, job)
        changes = job_changes(
            reader, open_journals(state), job_id, turn=turn, is_from_base=is_from_base
        )
    snapshots = open_snapshot_reader(state)
    if screen.is_json:
        _show_document(changes, snapshots, screen, has_patch=not (is_stat or is_names))
    elif is_names:
        _show_names(changes, snapshots, screen)
    elif is_stat:
        compared = changes.comparison
        text = snapshots.stat_text(
            compared.store, compared.before, compared.after, other=compared.other
        )
        screen.write(neutralise(text))
    else:
        compared = changes.comparison
        patch = snapshots.patch(
            compared.store, compared.before, compared.after, other=compared.other
        )
        show_patch(patch, screen)
    screen.flush()
    _say_what_is_missing(changes, screen)


def _show_document(
    changes: JobChanges, snapshots: SnapshotReader, screen: Screen, *, has_patch: bool
) -> None:
    compared = changes.comparison
    trees = (compared.store, compared.before, compared.after)
    paths = snapshots.changed_paths(*trees, other=compared.other)
    patch = snapshots.patch(*trees, other=compared.other) if has_patch else None
    screen.document("job_diff", changes_document(changes, paths, patch), system_clock().now())


def _show_names(changes: JobChanges, snapshots: SnapshotReader, screen: Screen) -> None:
    compared = changes.comparison
    for changed in snapshots.changed_paths(
        compared.store, compared.before, compared.after, other=compared.other
    ):
        screen.show(path_line(changed.path))


def _say_what_is_missing(changes: JobChanges, screen: Screen) -> None:
    """Say what the diff does not show, and why it is empty."""
    job = changes.job
    if not job.is_terminal:
        screen.say(f"job {job.id} is {job.status.value}: this is as of its last snapshot")
    if changes.left_out_count:
        shown = ", ".join(one_line(shown_path(path)) for path in changes.left_out)
        more = ", ..." if changes.left_out_count > len(changes.left_out) else ""
        files = counted(changes.left_out_count, "file")
        screen.say(f"not in the snapshot, and so not shown: {files}: {shown}{more}")
    if changes.comparison.is_empty:
        what = f"turn {changes.turn} of job {job.id}" if changes.turn else f"job {job.id}"
        screen.say(f"{what} changed no files")
