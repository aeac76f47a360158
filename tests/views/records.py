"""Jobs with workspaces and snapshots on record, without any files: for tests of what is shown."""

from __future__ import annotations

from datetime import timedelta

import anyio
from msgspec.structs import replace

from nightherd.model.change import Applied, Change
from nightherd.model.ids import generate_execution_id
from nightherd.model.jobs.job import ExitReason
from nightherd.model.jobs.outcome import Outcome
from nightherd.model.journal.event import AssistantEvent, describe
from nightherd.model.journal.system import SnapshotTaken, UserInput
from nightherd.model.sessions.session import SessionMode
from nightherd.model.workspaces.changes import LandWorkspace, NoteWorkspace, UseWorkspace
from nightherd.model.workspaces.policy import Keep, WorkspaceMode, WorkspaceScope
from nightherd.model.workspaces.workspace import (
    Landed,
    Workspace,
    WorkspaceId,
    WorkspaceStatus,
)
from nightherd.testing.determinism import FakeClock
from nightherd.testing.memory_journals import MemoryJournals
from nightherd.testing.memory_state import MemoryStore
from nightherd.testing.state_values import BEGINNING, job_id, settle, start, submit

NOW = BEGINNING + timedelta(hours=1)
FAILED = Outcome(exit_reason=ExitReason.ERROR, error="no luck", error_code="bad_luck")


class Records:
    """State and journals in memory."""

    def __init__(self) -> None:
        self.store = MemoryStore()
        self.reader = self.store.reader()
        self.journals = MemoryJournals(clock=FakeClock())

    def apply(self, *changes: Change) -> None:
        for answer in anyio.run(self.store.apply, changes):
            assert isinstance(answer, Applied), answer

    def job(
        self,
        number: int,
        *,
        workspace: Workspace | None = None,
        mode: SessionMode = SessionMode.FRESH_PER_JOB,
    ) -> Workspace:
        """Start job `number` in a workspace, its own unless one is given."""
        chosen = workspace or self.workspace(number)
        self.apply(submit(number, mode=mode), start(number))
        self.apply(
            UseWorkspace(
                job_id=job_id(number),
                epoch=1,
                workspace=chosen,
                directory=f"/workspaces/{chosen.id}",
                at=BEGINNING + timedelta(minutes=number),
            ),
            NoteWorkspace(
                workspace_id=chosen.id,
                at=BEGINNING + timedelta(minutes=number),
                is_made=True,
                store="store",
                base_tree="t0",
                tree="t0",
            ),
        )
        return chosen

    def workspace(
        self,
        number: int,
        *,
        scope: WorkspaceScope = WorkspaceScope.JOB,
        keep: Keep = Keep.UNTIL_MERGED,
    ) -> Workspace:
        return Workspace(
            id=WorkspaceId(job_id(number)),
            agent="grazer",
            mode=WorkspaceMode.WORKTREE,
            scope=scope,
            status=WorkspaceStatus.READY,
            root="/pasture",
            created_at=BEGINNING,
            last_used_at=BEGINNING,
            keep=keep,
        )

    def snapshot(
        self,
        number: int,
        tree: str,
        at: str,
        *,
        turn: int | None = None,
        epoch: int = 1,
        workspace: str | None = None,
        left_out: tuple[str, ...] = (),
    ) -> None:
        """A line in the journal of job `number`."""
        payload = SnapshotTaken(
            workspace=workspace or job_id(number),
            tree=tree,
            at=at,
            left_out=list(left_out),
            left_out_count=len(left_out),
        )
        self._append(number, describe(payload, turn=turn), epoch)

    def say(self, number: int, text: str, *, turn: int, epoch: int = 1) -> None:
        """A prompt and an answer in the journal of job `number`."""
        first = 2 * turn - 1
        asked = replace(describe(UserInput(), text), message=first, end=True)
        self._append(number, asked, epoch)
        self._append(
            number, AssistantEvent(content=text, turn=turn, message=first + 1, end=True), epoch
        )

    def _append(self, number: int, event: object, epoch: int) -> None:
        execution = generate_execution_id(job_id(number), epoch)
        journal = self.journals.open(job_id(number), epoch=epoch, execution=execution)
        journal.append(event)  # type: ignore[arg-type]  # events of every type come here
        journal.close()

    def end(self, number: int, tree: str, *, has_failed: bool = False, left_out: int = 0) -> None:
        """Job `number` has ended with these files."""
        row = self.reader.find_job(job_id(number))
        assert row is not None
        assert row.workspace_id is not None
        note = NoteWorkspace(
            workspace_id=WorkspaceId(row.workspace_id),
            at=BEGINNING + timedelta(minutes=number),
            tree=tree,
            left_out=left_out,
            size_bytes=1000 * number,
        )
        done = settle(number)
        self.apply(note, replace(done, outcome=FAILED) if has_failed else done)

    def land(self, number: int, tree: str, how: Landed = Landed.MERGED) -> None:
        self.apply(
            LandWorkspace(workspace_id=WorkspaceId(job_id(number)), tree=tree, how=how, at=NOW)
        )

    def row(self, number: int) -> Workspace:
        row = self.reader.find_workspace(job_id(number))
        assert row is not None
        return row
