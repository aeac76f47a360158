"""Snapshot: what the files of a workspace were at one place of a job's record."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from nightherd.model.ids import JobId
from nightherd.model.journal.event import Event, SystemEvent, payload_of
from nightherd.model.journal.system import SnapshotTaken, SystemSubtype

LISTED_LEFT_OUT = 20
"""How many files that a snapshot could not hold are named in the journal."""


class Snapshot(msgspec.Struct, frozen=True, kw_only=True):
    """The files of a workspace, as a tree of git objects in our own store."""

    tree: str
    head: str | None = None
    """The commit that the branch of a worktree was at."""
    changed: int = 0
    """How many paths differ from the snapshot before."""
    left_out: tuple[str, ...] = ()
    """Paths it could not hold: too large, a repository of their own, or unreadable."""


class PlacedSnapshot(msgspec.Struct, frozen=True, kw_only=True):
    """A snapshot in the record of a job."""

    job_id: JobId
    seq: int
    turn: int | None
    workspace: str
    at: str
    """`start` of an execution, after a `turn`, or at its `end`."""
    tree: str
    head: str | None = None
    left_out: int = 0
    left_out_paths: tuple[str, ...] = ()
    """Some of the paths that it does not hold."""
    epoch: int = 0
    """The execution that took it."""


def snapshots_in(job_id: JobId, events: Iterable[Event]) -> list[PlacedSnapshot]:
    """Return the snapshots that a job's record names, first to last."""
    return [
        PlacedSnapshot(
            job_id=job_id,
            seq=event.seq,
            turn=event.turn,
            workspace=payload.workspace,
            at=payload.at,
            tree=payload.tree,
            head=payload.head,
            left_out=payload.left_out_count,
            left_out_paths=tuple(payload.left_out),
            epoch=event.epoch,
        )
        for event in events
        if isinstance(event, SystemEvent) and event.subtype is SystemSubtype.SNAPSHOT
        if isinstance(payload := payload_of(event), SnapshotTaken)
    ]
