"""Snapshots of jobs and sessions: which two states of the files a diff compares."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NotRequired, TypedDict

import msgspec

from nightherd.errors import NotFoundError, RefusedError, WorkspaceNotFoundError
from nightherd.model.ids import JobId
from nightherd.model.jobs.job import Job, JobStatus
from nightherd.model.journal.event import is_message
from nightherd.model.sessions.session import Session
from nightherd.model.text import counted
from nightherd.model.workspaces.snapshot import PlacedSnapshot, snapshots_in
from nightherd.model.workspaces.workspace import Workspace
from nightherd.next_step import Action, NextStep
from nightherd.ports import ChangedPath, Journals, StateReader
from nightherd.views.jobs.jobs import get_job
from nightherd.views.sessions.conversation import segments_of

START = "start"
HOW_TO_GET_ONE = (
    "set `mode: worktree` below `working_directory` of the agent; its next job gets a workspace"
)


class Comparison(msgspec.Struct, frozen=True, kw_only=True):
    """Two states of files: the trees, and the stores that have them."""

    before: str
    after: str
    store: str
    other: str | None = None
    """The store of `after`, if it is another."""

    @property
    def is_empty(self) -> bool:
        """Whether nothing differs."""
        return self.before == self.after


class JobChanges(msgspec.Struct, frozen=True, kw_only=True):
    """What a job changed: what to compare, and what that leaves out."""

    job: Job
    workspace: Workspace
    comparison: Comparison
    turn: int | None = None
    """The turn that it is about; None for all of them."""
    left_out: Sequence[str] = ()
    """Some of the files that the last snapshot does not hold."""
    left_out_count: int = 0


def snapshots_of(journals: Journals, job_id: JobId) -> list[PlacedSnapshot]:
    """Return the snapshots of a job, first to last."""
    return snapshots_in(job_id, journals.read(job_id, load_blobs=False))


def snapshot_at(journals: Journals, job_id: JobId, seq: int | None) -> PlacedSnapshot | None:
    """Return what the files were when the message that ends at `seq` had been said; None for `seq`: at the end.

    A turn is snapshotted right after its last result, so the snapshot behind the message counts, unless
    another message comes before it.
    """
    last: PlacedSnapshot | None = None
    for event in journals.read(job_id, load_blobs=False):
        if seq is not None and event.seq > seq and is_message(event):
            break
        placed = snapshots_in(job_id, [event])
        last = placed[0] if placed else last
    return last


def job_changes(
    reader: StateReader,
    journals: Journals,
    job_id: JobId,
    *,
    turn: int | None = None,
    is_from_base: bool = False,
) -> JobChanges:
    """Return what to compare for the changes of a job: its first snapshot with its last.

    `turn` asks for the changes of one turn, `is_from_base` for everything since the workspace began.
    """
    job = get_job(reader, job_id)
    placed = snapshots_of(journals, job_id)
    if not placed:
        raise _nothing_to_compare(reader, job)
    first, last = _of_turn(placed, turn, journals, job) if turn is not None else _ends(placed)
    workspace, store = _home(reader, last)
    before, before_store = first.tree, _home(reader, first)[1]
    if is_from_base and workspace.base_tree is not None:
        before, before_store = workspace.base_tree, store
    return JobChanges(
        job=job,
        workspace=workspace,
        comparison=_comparison(before, before_store, last.tree, store),
        turn=turn,
        left_out=last.left_out_paths,
        left_out_count=last.left_out,
    )


def _ends(placed: Sequence[PlacedSnapshot]) -> tuple[PlacedSnapshot, PlacedSnapshot]:
    """Return the snapshot that the job began with, once the workspace was set up, and its last."""
    first, epoch = placed[0], placed[0].epoch
    for snapshot in placed[1:]:
        if snapshot.at != START or snapshot.epoch != epoch:
            break
        first = snapshot
    return first, placed[-1]


def _of_turn(
    placed: Sequence[PlacedSnapshot], turn: int, journals: Journals, job: Job
) -> tuple[PlacedSnapshot, PlacedSnapshot]:
    """Return the snapshots around a turn; twice the same when it changed nothing.

    What a turn left that was cut off is in the snapshot with which the next run started.
    """
    before, after = placed[0], None
    for snapshot in placed:
        place = snapshot.turn or 0
        if place == turn and (snapshot.at != START or after is None):
            after = snapshot
        elif after is None and place < turn:
            before = snapshot
    if after is not None:
        return before, after
    turns = max((event.turn or 0 for event in journals.last(job.id, 64)), default=0)
    turns = max(turns, job.turns)
    if turn > turns:
        raise NotFoundError(
            f"job {job.id} has {counted(turns, 'turn')}",
            next_step=NextStep(Action.SHOW_EVENTS, job=job.id),
        )
    return before, before


def workspace_of(reader: StateReader, snapshot: PlacedSnapshot) -> Workspace | None:
    """Return the workspace that a snapshot is of; None when its record is not here.

    The job of an imported session ended before any workspace was made here: one with the same id is another one.
    """
    workspace, job = reader.find_workspace(snapshot.workspace), reader.find_job(snapshot.job_id)
    if workspace is None or job is None or job.finished_at is None:
        return workspace
    return workspace if job.finished_at >= workspace.created_at else None


def _home(reader: StateReader, snapshot: PlacedSnapshot) -> tuple[Workspace, str]:
    """Return the workspace that a snapshot is of, and the store that has it."""
    workspace = workspace_of(reader, snapshot)
    if workspace is None or workspace.store is None:
        raise WorkspaceNotFoundError(
            f"the files of job {snapshot.job_id} are not here: it was imported, "
            f"or the record of workspace {snapshot.workspace} is lost",
            next_step=NextStep(Action.CHECK_STATE),
        )
    return workspace, workspace.store


def _comparison(before: str, before_store: str, after: str, after_store: str) -> Comparison:
    other = None if after_store == before_store else after_store
    return Comparison(before=before, after=after, store=before_store, other=other)


def _nothing_to_compare(reader: StateReader, job: Job) -> Exception:
    """Why a job has no snapshots, and what to do about it."""
    if job.workspace_id is not None:
        return RefusedError(
            f"there is no snapshot of the files of job {job.id}"
            + (": it ended before it worked on any" if job.is_terminal else " yet"),
            next_step=NextStep(Action.SHOW_JOB, job=job.id),
        )
    if job.started_at is None:
        return RefusedError(
            f"job {job.id} has not started", next_step=NextStep(Action.SHOW_JOB, job=job.id)
        )
    session = reader.find_session(job.session_id) if job.session_id is not None else None
    where = f" {session.working_directory}" if session is not None else ""
    return WorkspaceNotFoundError(
        f"job {job.id} has no workspace: agent {job.agent!r} works in its directory{where} itself (mode: shared)",
        hint=HOW_TO_GET_ONE,
    )


def compare_sessions(
    reader: StateReader, journals: Journals, one: Session, other: Session
) -> Comparison | None:
    """Return the last files of both sessions; None where one of them has no snapshot."""
    first = snapshot_of_session(reader, journals, one)
    second = snapshot_of_session(reader, journals, other)
    if first is None or second is None:
        return None
    return _comparison(first.tree, _home(reader, first)[1], second.tree, _home(reader, second)[1])


def snapshot_of_session(
    reader: StateReader, journals: Journals, session: Session
) -> PlacedSnapshot | None:
    """Return the last files of a session; of a fork that nothing was said in, those it begins with."""
    for part in reversed(segments_of(reader, journals, session)):
        placed = snapshot_at(journals, part.job.id, part.upto)
        if placed is not None:
            return placed
    return None


def shown_path(path: str) -> str:
    """Return a path as text that every document can hold; bytes that are not UTF-8 are escaped."""
    return path.encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace")


class PathRow(TypedDict):
    """A changed file; lines are null for a binary one."""

    path: str
    status: str
    added: int | None
    removed: int | None
    old_path: str | None


class ChangesDocument(TypedDict):
    """What a job changed: from the snapshot `before` to the snapshot `after`."""

    job_id: str
    job_status: JobStatus
    workspace: str
    turn: int | None
    before: str
    after: str
    left_out: list[str]
    left_out_count: int
    files: list[PathRow]
    patch: NotRequired[str]


def path_row(changed: ChangedPath) -> PathRow:
    """Return a changed file as plain data."""
    return {
        "path": shown_path(changed.path),
        "status": changed.status,
        "added": changed.added,
        "removed": changed.removed,
        "old_path": None if changed.old_path is None else shown_path(changed.old_path),
    }


def changes_document(
    changes: JobChanges, paths: Sequence[ChangedPath], patch: bytes | None = None
) -> ChangesDocument:
    """Return what a job changed as plain data; `patch` is left out where it was not asked for."""
    document: ChangesDocument = {
        "job_id": changes.job.id,
        "job_status": changes.job.status,
        "workspace": changes.workspace.id,
        "turn": changes.turn,
        "before": changes.comparison.before,
        "after": changes.comparison.after,
        "left_out": [shown_path(path) for path in changes.left_out],
        "left_out_count": changes.left_out_count,
        "files": [path_row(path) for path in paths],
    }
    if patch is not None:
        document["patch"] = patch.decode("utf-8", "replace")
    return document
