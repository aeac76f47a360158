"""Cleanup: records before it deletes, finishes what was cut off, and never removes what is used or would be lost."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import anyio
import pytest
from msgspec.structs import replace

from nightherd.engine.workspaces.cleanup import (
    Cleanup,
    CleanupContext,
    clean,
    policies_of,
    removable,
    sweep,
    usual_policy,
)
from nightherd.errors import WorkspaceError
from nightherd.model.agents.agent import Agent
from nightherd.model.workspaces.changes import RemoveWorkspace, UseWorkspace
from nightherd.model.workspaces.policy import Keep, WorkspaceMode, WorkspacePolicy
from nightherd.model.workspaces.snapshot import Snapshot
from nightherd.model.workspaces.workspace import Workspace, WorkspaceStatus
from nightherd.ports import BeginsWith, Made
from nightherd.runtimes.scripted.capabilities import SCRIPTED
from nightherd.testing.determinism import FakeClock
from nightherd.testing.state_values import job_id, settle, start, submit
from views.records import NOW, Records


@dataclass
class Disk:
    """Directories in memory: the tree each has now."""

    trees: dict[str, str] = field(default_factory=dict)
    left_out: tuple[str, ...] = ()
    removed: list[str] = field(default_factory=list)
    on_snapshot: Callable[[], None] = lambda: None
    on_remove: Callable[[], None] = lambda: None

    def directory(self, workspace: Workspace) -> str:
        return f"/workspaces/{workspace.id}"

    def is_directory(self, path: str) -> bool:
        return True

    def is_whole(self, workspace: Workspace) -> bool:
        return workspace.id in self.trees

    async def make(
        self, workspace: Workspace, policy: WorkspacePolicy, begins_with: BeginsWith | None = None
    ) -> Made:
        raise AssertionError("nothing is made here")

    async def snapshot(self, workspace: Workspace, policy: WorkspacePolicy) -> Snapshot:
        await anyio.to_thread.run_sync(self.on_snapshot)
        return Snapshot(tree=self.trees[workspace.id], left_out=self.left_out)

    async def remove(self, workspace: Workspace) -> None:
        await anyio.to_thread.run_sync(self.on_remove)
        self.trees.pop(workspace.id, None)
        self.removed.append(workspace.id)

    async def clone(self, terms: object, root: str) -> Sequence[str]:
        raise AssertionError("nothing is cloned here")

    def measure(self, workspace: Workspace) -> int:
        return 10 if workspace.id in self.trees else 0


@dataclass
class Yard:
    """Workspaces on record and on disk."""

    records: Records = field(default_factory=Records)
    disk: Disk = field(default_factory=Disk)

    @property
    def context(self) -> CleanupContext:
        records = self.records
        return CleanupContext(
            state=records.store,
            reader=records.reader,
            clock=FakeClock(NOW),
            files=self.disk,
        )

    def ended(self, number: int, tree: str = "t1", *, keep: Keep = Keep.NEVER) -> None:
        """A workspace whose job has ended with these files."""
        self.records.job(number, workspace=self.records.workspace(number, keep=keep))
        self.records.end(number, tree)
        self.disk.trees[job_id(number)] = tree

    def sweep(self, *, is_dry: bool = False) -> Cleanup:
        async def run() -> Cleanup:
            return await sweep(self.context, is_dry=is_dry)

        return anyio.run(run)

    def clean(self, number: int, *, is_forced: bool = False) -> Cleanup:
        async def run() -> Cleanup:
            return await clean([self.records.row(number)], self.context, is_forced=is_forced)

        return anyio.run(run)

    def status(self, number: int) -> WorkspaceStatus:
        return self.records.row(number).status


def test_a_sweep_removes_what_nothing_keeps_and_the_row_says_so() -> None:
    yard = Yard()
    yard.ended(1)
    yard.ended(2, keep=Keep.ALWAYS)
    yard.ended(3, keep=Keep.UNTIL_MERGED)

    assert [str(row.id) for row in removable(yard.records.reader, NOW)] == [job_id(1)]
    done = yard.sweep()

    assert [str(row.id) for row in done.removed] == [job_id(1)]
    assert done.freed_bytes == 1000
    assert yard.disk.removed == [job_id(1)]
    statuses = [yard.status(number) for number in (1, 2, 3)]
    assert statuses == [WorkspaceStatus.REMOVED, WorkspaceStatus.READY, WorkspaceStatus.READY]


def test_a_dry_sweep_changes_nothing() -> None:
    yard = Yard()
    yard.ended(1)

    assert len(yard.sweep(is_dry=True).removed) == 1
    assert (yard.status(1), yard.disk.removed) == (WorkspaceStatus.READY, [])


def test_the_row_says_removing_before_anything_is_deleted() -> None:
    yard = Yard()
    yard.ended(1)
    seen: list[WorkspaceStatus] = []
    yard.disk.on_remove = lambda: seen.append(yard.status(1))

    yard.sweep()

    assert seen == [WorkspaceStatus.REMOVING]


def test_a_removal_that_fails_is_finished_by_the_next_sweep() -> None:
    yard = Yard()
    yard.ended(1)
    yard.ended(2)

    def fail() -> None:
        yard.disk.on_remove = lambda: None
        raise WorkspaceError("the disk is read-only")

    yard.disk.on_remove = fail
    first = yard.sweep()
    second = yard.sweep()

    assert first.failures == {job_id(2): "the disk is read-only"}
    assert [str(row.id) for row in first.removed] == [job_id(1)]
    assert [str(row.id) for row in second.removed] == [job_id(2)]
    assert yard.status(2) is WorkspaceStatus.REMOVED


def test_a_removal_that_another_process_finished_first_is_done() -> None:
    yard = Yard()
    yard.ended(1)
    gone = RemoveWorkspace(workspace_id=yard.records.row(1).id, at=NOW, is_gone=True)
    yard.disk.on_remove = lambda: yard.records.apply(gone)

    done = yard.sweep()

    assert (len(done.removed), dict(done.failures)) == (1, {})


def test_a_job_that_came_and_went_meanwhile_keeps_what_it_did() -> None:
    yard = Yard()
    yard.ended(1)

    def work() -> None:
        records = yard.records
        records.apply(submit(2), start(2))
        records.apply(
            UseWorkspace(
                job_id=job_id(2), epoch=1, workspace=records.row(1), directory="/w", at=NOW
            ),
            settle(2),
        )

    yard.disk.on_snapshot = work
    done = yard.clean(1, is_forced=True)

    (refusal,) = done.refused
    assert refusal.reason == f"job {job_id(2)} has worked in workspace {job_id(1)} since"
    assert (yard.status(1), yard.disk.removed) == (WorkspaceStatus.READY, [])


@pytest.mark.parametrize("left_out", [(), ("big.bin",)])
def test_a_sweep_leaves_files_that_changed_or_that_no_snapshot_holds(
    left_out: tuple[str, ...],
) -> None:
    yard = Yard()
    yard.ended(1)
    if left_out:
        yard.disk.left_out = left_out
    else:
        yard.disk.trees[job_id(1)] = "t2"

    for _ in range(2):
        done = yard.sweep()
        (refusal,) = done.refused
        what = "no snapshot holds" if left_out else "changed after its last job"
        assert what in refusal.reason
    assert yard.disk.removed == []


def test_files_that_cannot_be_snapshotted_stay_unless_a_person_insists() -> None:
    yard = Yard()
    yard.ended(1)

    def fail() -> None:
        raise WorkspaceError("unreadable")

    yard.disk.on_snapshot = fail
    for done in (yard.sweep(), yard.clean(1)):
        assert [one.reason for one in done.refused] == [
            "its files cannot be snapshotted: unreadable"
        ]
    assert len(yard.clean(1, is_forced=True).removed) == 1


def test_what_is_lost_is_on_record_before_it_goes() -> None:
    yard = Yard()
    yard.ended(1, keep=Keep.UNTIL_MERGED)
    yard.disk.trees[job_id(1)] = "t9"
    used = yard.records.row(1).last_used_at

    assert [one.reason for one in yard.clean(1).refused] == ["changes that are not merged"]
    yard.clean(1, is_forced=True)

    row = yard.records.row(1)
    assert (row.status, row.tree, row.last_used_at) == (WorkspaceStatus.REMOVED, "t9", used)


def test_a_directory_that_is_gone_needs_no_snapshot() -> None:
    yard = Yard()
    yard.ended(1)
    yard.disk.trees.clear()

    assert len(yard.sweep().removed) == 1
    assert yard.status(1) is WorkspaceStatus.REMOVED


def test_a_sweep_stops_between_two_workspaces() -> None:
    yard = Yard()
    yard.ended(1)
    yard.ended(2)

    async def run() -> Cleanup:
        return await sweep(yard.context, is_stopped=lambda: bool(yard.disk.removed))

    done = anyio.run(run)

    assert (len(done.removed), done.is_whole) == (1, False)
    assert yard.sweep().is_whole


def test_a_workspace_is_snapshotted_as_its_agent_says_now() -> None:
    records = Records()
    records.job(1)
    row = records.row(1)
    policy = WorkspacePolicy(mode=WorkspaceMode.WORKTREE, snapshot_ignored=True)
    agent = Agent(name="grazer", runtime=SCRIPTED, working_directory="/pasture", workspace=policy)
    other = replace(agent, workspace=replace(policy, mode=WorkspaceMode.COPY))

    assert policies_of({"grazer": agent}, records.reader)(row) == policy
    assert policies_of({"grazer": other}, records.reader)(row) == usual_policy(row)
    assert policies_of({}, records.reader)(row) == usual_policy(row)
