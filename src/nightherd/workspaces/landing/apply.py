"""Apply: the changes between two snapshots, made to the user's files. Branches and the index stay as they are."""

from __future__ import annotations

from pathlib import Path

from nightherd.ports.workspaces import LandingResult
from nightherd.workspaces.landing.context import LandingContext
from nightherd.workspaces.landing.files import FileChanges
from nightherd.workspaces.landing.record import LandingRecord
from nightherd.workspaces.landing.stage import (
    check_paths,
    occupied_directories,
    read_files,
    stage_files,
    submodules_in,
)


def apply(
    context: LandingContext, top: Path, before: str, after: str, *, is_dry_run: bool
) -> LandingResult:
    """Merge the files below `top` with the changes, and put the result in their place: all of it, or nothing."""
    scratch = context.scratch
    old, new = context.committable(before), context.committable(after)
    wanted = scratch.diff(old, new)
    nested = submodules_in(wanted)
    if nested:
        return LandingResult(target=str(top), conflicts=nested)
    paths = [change.path for change in wanted]
    check_paths(top, paths, context.protected)
    files = FileChanges(top=top, stage=context.stage, changes=(), probe=context.probe)
    ours = context.known_files(read_files(scratch, top, old, paths, files.befores), old)
    merged = context.commits.merge_trees(old, ours, new)
    if merged.conflicts:
        return LandingResult(target=str(top), conflicts=merged.conflicts)
    changes = scratch.diff(ours, merged.tree)
    conflicts = occupied_directories(top, changes)
    if conflicts:
        return LandingResult(target=str(top), conflicts=conflicts)
    changed = tuple(change.path for change in changes)
    if changes and not is_dry_run:
        record = LandingRecord(
            id=context.id,
            store=context.store,
            target=str(top),
            top=str(top),
            changes=stage_files(scratch, top, merged.tree, changes, files),
        )
        context.finisher.apply(record)
    return LandingResult(target=str(top), paths=changed, is_nothing=not changes)
