"""Snapshots of one execution: taken after turns that may have changed files, recorded when they did."""

from __future__ import annotations

from nightherd.engine.jobs.recorder import Recorder
from nightherd.errors import WorkspaceError
from nightherd.model.jobs.outcome import Tally
from nightherd.model.journal.event import (
    Event,
    SystemEvent,
    ToolResultEvent,
    ToolUseEvent,
    describe,
    payload_of,
)
from nightherd.model.journal.system import SnapshotTaken, SystemSubtype, ToolProgress, Warned
from nightherd.model.permissions.approval import READ_ONLY
from nightherd.model.text import counted
from nightherd.model.workspaces.policy import WorkspacePolicy
from nightherd.model.workspaces.snapshot import LISTED_LEFT_OUT, Snapshot
from nightherd.model.workspaces.workspace import Workspace
from nightherd.ports import WorkspaceFiles

SNAPSHOT_FAILED = "snapshot_failed"


class TurnSnapshots:
    """The snapshots of a workspace while one execution works in it."""

    def __init__(
        self,
        workspace: Workspace,
        policy: WorkspacePolicy,
        files: WorkspaceFiles,
        recorder: Recorder,
    ) -> None:
        self._workspace = workspace
        self._policy = policy
        self._files = files
        self._recorder = recorder
        self._has_acted = False
        """Whether a call since the last snapshot may have changed files."""
        self._tasks: set[str] = set()
        """What runs in the background, and may change files at any time."""
        self.last: Snapshot | None = None
        self.has_failed = False
        """Whether the last one failed: files may differ from `last`."""

    async def after(self, event: Event, tally: Tally) -> None:
        """Snapshot the files after the last result of a turn that may have changed them."""
        match event:
            case ToolUseEvent(tool_name=tool) if tool not in READ_ONLY:
                self._has_acted = True
            case SystemEvent(subtype=SystemSubtype.TOOL_PROGRESS):
                self._see_task(event)
            case ToolResultEvent() if not tally.open_calls:
                if self._has_acted or self._tasks:
                    await self.take("turn", turn=tally.turns)
            case _:
                pass

    def _see_task(self, event: SystemEvent) -> None:
        match payload_of(event):
            case ToolProgress(task_id=str(task), task=str()):
                self._tasks.add(task)
            case ToolProgress(task_id=str(task)):
                self._tasks.discard(task)
                self._has_acted = True
            case _:
                pass

    async def catch_up(self, tally: Tally) -> None:
        """Snapshot what calls left behind that were cut off with their run, before the next run."""
        if self._has_acted:
            await self.take("start", turn=tally.turns or None)

    async def take(self, at: str, *, turn: int | None = None) -> None:
        """Take a snapshot. One that fails is a warning: the next one holds what it would have held."""
        try:
            snapshot = await self._files.snapshot(self._workspace, self._policy)
        except WorkspaceError as error:
            if not self.has_failed:
                text = f"the files were not snapshotted: {error.message}"
                self._recorder.record(describe(Warned(code=SNAPSHOT_FAILED), text))
            self.has_failed = True
            return
        self.has_failed = self._has_acted = False
        self.note(snapshot, at, turn=turn)

    def note(self, snapshot: Snapshot, at: str, *, turn: int | None = None) -> None:
        """Record the snapshot, unless it is the same as the last one."""
        last, self.last = self.last, snapshot
        if last is not None and _is_same(last, snapshot):
            return
        payload = SnapshotTaken(
            workspace=self._workspace.id,
            tree=snapshot.tree,
            at=at,
            head=snapshot.head,
            changed=snapshot.changed,
            left_out=list(snapshot.left_out[:LISTED_LEFT_OUT]),
            left_out_count=len(snapshot.left_out),
        )
        text = f"{counted(snapshot.changed, 'path')} changed" if last is not None else None
        self._recorder.record(describe(payload, text, turn=turn))


def _is_same(last: Snapshot, snapshot: Snapshot) -> bool:
    return (last.tree, last.head, len(last.left_out)) == (
        snapshot.tree,
        snapshot.head,
        len(snapshot.left_out),
    )
