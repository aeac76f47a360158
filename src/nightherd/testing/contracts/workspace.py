"""What every state store must do for workspaces; see `state_contract` for how to run checks."""

from __future__ import annotations

from datetime import timedelta

from msgspec.structs import replace

from nightherd.model.change import Why
from nightherd.model.workspaces.changes import (
    LandWorkspace,
    NoteWorkspace,
    RemoveWorkspace,
    UseWorkspace,
)
from nightherd.model.workspaces.policy import Keep, WorkspaceMode, WorkspaceScope
from nightherd.model.workspaces.workspace import (
    Landed,
    Workspace,
    WorkspaceId,
    WorkspaceQuery,
    WorkspaceStatus,
)
from nightherd.testing.contracts.state import OpenState, checks_in, must_apply, must_refuse
from nightherd.testing.state_values import BEGINNING, job_id, settle, start, submit

LATER = BEGINNING + timedelta(minutes=5)
DIRECTORY = "/pasture-workspaces/here"


async def check_workspace_is_recorded_before_it_is_made(state: OpenState) -> None:
    await must_apply(state, submit(1), start(1))

    used = await must_apply(state, use(1))

    row = replace(workspace(1), status=WorkspaceStatus.MAKING, number=1, last_used_at=LATER)
    row = replace(row, job_id=job_id(1), session_id=submit(1).session.id)
    assert state.reader.find_workspace(job_id(1)) == row
    assert used.job is not None
    assert used.job.workspace_id == row.id
    session = state.reader.find_session(submit(1).session.id)
    assert session is not None
    assert (session.workspace_id, session.root) == (row.id, "/pasture")
    assert session.working_directory == DIRECTORY
    assert session.agent_directory == "/pasture"


async def check_what_is_known_of_a_workspace_is_noted_and_stays(state: OpenState) -> None:
    await must_apply(state, submit(1), start(1), use(1))
    made = note(1, is_made=True, store="s1", base_tree="t0", tree="t0", branch="nightherd/x")

    await must_apply(state, made)
    await must_apply(state, note(1, tree="t1", left_out=2, size_bytes=77))

    row = find(state, 1)
    assert (row.status, row.store, row.branch) == (WorkspaceStatus.READY, "s1", "nightherd/x")
    assert (row.base_tree, row.tree, row.left_out, row.size_bytes) == ("t0", "t1", 2, 77)
    assert row.is_dirty
    missing = await must_refuse(state, replace(made, workspace_id=WorkspaceId("job-none")))
    assert missing.why is Why.MISSING


async def check_fenced_execution_neither_uses_nor_notes(state: OpenState) -> None:
    await must_apply(state, submit(1), start(1), use(1))
    stale = replace(note(1, tree="t9"), job_id=job_id(1), epoch=7)

    used = await must_refuse(state, replace(use(1), epoch=7))
    noted = await must_refuse(state, stale)

    assert {used.why, noted.why} == {Why.FENCED}
    assert find(state, 1).tree is None
    await must_apply(state, replace(stale, epoch=1))
    assert find(state, 1).tree == "t9"


async def check_open_job_keeps_others_out_of_its_workspace(state: OpenState) -> None:
    await must_apply(state, submit(1), start(1), use(1), submit(2), start(2))
    second = replace(use(2), workspace=workspace(1))

    busy = await must_refuse(state, second)
    assert busy.why is Why.WORKSPACE_BUSY
    assert busy.job is not None
    assert busy.job.id == job_id(1)
    assert (await must_refuse(state, removed(1))).why is Why.WORKSPACE_BUSY
    assert ids(state.reader.open_jobs_in_workspace(job_id(1))) == [job_id(1)]

    await must_apply(state, replace(second, shares=(job_id(1),)))
    assert ids(state.reader.open_jobs_in_workspace(job_id(1))) == [job_id(1), job_id(2)]
    assert ids(state.reader.jobs_of_workspace(job_id(1), 5)) == [job_id(2), job_id(1)]
    assert ids(state.reader.jobs_of_workspace(job_id(1), 1)) == [job_id(2)]

    await must_apply(state, settle(1), settle(2))
    assert ids(state.reader.open_jobs_in_workspace(job_id(1))) == []
    await must_apply(state, submit(3), start(3), replace(use(3), workspace=workspace(1)))
    assert find(state, 1).job_id == job_id(3)


async def check_workspace_that_landed_is_clean_until_it_changes(state: OpenState) -> None:
    await must_apply(state, submit(1), start(1), use(1))
    await must_apply(state, note(1, is_made=True, base_tree="t0", tree="t1"))
    landing = LandWorkspace(workspace_id=workspace(1).id, tree="t1", how=Landed.MERGED, at=LATER)

    await must_apply(state, landing)

    row = find(state, 1)
    assert (row.landed, row.landed_tree, row.landed_at) == (Landed.MERGED, "t1", LATER)
    assert not row.is_dirty
    await must_apply(state, note(1, tree="t2"))
    assert find(state, 1).is_dirty
    missing = await must_refuse(state, replace(landing, workspace_id=WorkspaceId("job-none")))
    assert missing.why is Why.MISSING


async def check_removal_is_recorded_before_and_after(state: OpenState) -> None:
    await must_apply(state, submit(1), start(1), use(1))
    await must_apply(state, note(1, is_made=True, tree="t1", size_bytes=9), settle(1))
    early = await must_refuse(state, replace(removed(1), is_gone=True))
    used_since = replace(removed(1), unused_since=LATER - timedelta(seconds=1))
    assert (await must_refuse(state, used_since)).why is Why.WORKSPACE_BUSY

    last = replace(removed(1), unused_since=LATER, tree="t7", left_out=3)
    await must_apply(state, last)
    going = find(state, 1)
    assert (going.status, going.tree, going.left_out) == (WorkspaceStatus.REMOVING, "t7", 3)
    await must_apply(state, removed(1))
    noted = await must_refuse(state, note(1, tree="t2"))
    await must_apply(state, submit(2), start(2))
    used = await must_refuse(state, replace(use(2), workspace=workspace(1)))
    await must_apply(state, replace(removed(1), is_gone=True))

    assert [one.why for one in (early, noted, used)] == [
        Why.STATUS,
        Why.STATUS,
        Why.WORKSPACE_BUSY,
    ]
    row = find(state, 1)
    assert (row.status, row.removed_at, row.size_bytes) == (WorkspaceStatus.REMOVED, LATER, 0)
    assert row.tree == "t7"
    # Whoever looked before it was removed proposes it as it was: it is made again all the same.
    await must_apply(state, replace(use(2), workspace=workspace(1)))
    again = find(state, 1)
    assert (again.status, again.removed_at, again.tree) == (WorkspaceStatus.MAKING, None, "t7")
    assert again.number == row.number


async def check_workspaces_are_listed_newest_first(state: OpenState) -> None:
    for number, agent in ((1, "grazer"), (2, "barker"), (3, "grazer")):
        await must_apply(state, submit(number), start(number))
        proposed = replace(workspace(number), agent=agent)
        await must_apply(state, replace(use(number), workspace=proposed), settle(number))
    await must_apply(state, removed(2), replace(removed(2), is_gone=True))
    reader = state.reader

    assert ids(reader.list_workspaces(WorkspaceQuery())) == [job_id(3), job_id(1)]
    every = WorkspaceQuery(has_removed=True)
    assert ids(reader.list_workspaces(every)) == [job_id(3), job_id(2), job_id(1)]
    assert ids(reader.list_workspaces(replace(every, before=3, limit=1))) == [job_id(2)]
    assert ids(reader.list_workspaces(replace(every, agent="barker"))) == [job_id(2)]
    assert ids(reader.list_workspaces(WorkspaceQuery(agent="barker"))) == []
    prefix = job_id(1)[:-1]
    assert [str(one) for one in reader.workspace_ids(prefix, 2)] == [job_id(3), job_id(2)]
    assert [str(one) for one in reader.workspace_ids(job_id(2), 5)] == [job_id(2)]
    assert list(reader.workspace_ids("sess-", 5)) == []
    assert reader.find_workspace("job-none") is None


def workspace(number: int) -> Workspace:
    """The workspace of job `number`, as it is recorded first."""
    return Workspace(
        id=WorkspaceId(job_id(number)),
        agent="grazer",
        mode=WorkspaceMode.WORKTREE,
        scope=WorkspaceScope.JOB,
        status=WorkspaceStatus.READY,
        root="/pasture",
        created_at=BEGINNING,
        last_used_at=BEGINNING,
        keep=Keep.ON_FAILURE,
    )


def use(number: int) -> UseWorkspace:
    """Job `number` works in a workspace of its own."""
    return UseWorkspace(
        job_id=job_id(number),
        epoch=1,
        workspace=workspace(number),
        directory=DIRECTORY,
        at=LATER,
    )


def note(
    number: int,
    *,
    is_made: bool = False,
    store: str | None = None,
    branch: str | None = None,
    base_tree: str | None = None,
    tree: str | None = None,
    left_out: int | None = None,
    size_bytes: int | None = None,
) -> NoteWorkspace:
    """What is known of the workspace of job `number`."""
    return NoteWorkspace(
        workspace_id=workspace(number).id,
        at=LATER,
        is_made=is_made,
        store=store,
        branch=branch,
        base_tree=base_tree,
        tree=tree,
        left_out=left_out,
        size_bytes=size_bytes,
    )


def removed(number: int) -> RemoveWorkspace:
    """The workspace of job `number` is to be removed."""
    return RemoveWorkspace(workspace_id=workspace(number).id, at=LATER)


def find(state: OpenState, number: int) -> Workspace:
    """The row of the workspace of job `number`."""
    row = state.reader.find_workspace(job_id(number))
    assert row is not None
    return row


def ids(rows: object) -> list[str]:
    """The ids of rows."""
    assert isinstance(rows, list | tuple)
    return [row.id for row in rows]


WORKSPACE_CHECKS = checks_in(globals())
"""Every check of this module."""
