"""Workspaces as they are found, listed and described."""

from __future__ import annotations

from datetime import timedelta

import pytest
from msgspec.structs import replace

from nightherd.errors import AmbiguousIdError, WorkspaceNotFoundError
from nightherd.model.sessions.session import SessionMode
from nightherd.model.workspaces.changes import RemoveWorkspace, UseWorkspace
from nightherd.model.workspaces.keeping import Hold
from nightherd.model.workspaces.policy import Keep, WorkspaceScope
from nightherd.model.workspaces.workspace import Landed, WorkspaceQuery
from nightherd.testing.state_values import job_id, settle, start, submit
from nightherd.views.workspaces.workspaces import (
    find_workspace,
    list_page,
    observe,
    total_size,
    what_keeps_it,
    workspace_row,
)
from views.records import NOW, Records


def remove(records: Records, number: int) -> None:
    going = RemoveWorkspace(workspace_id=records.row(number).id, at=NOW)
    records.apply(going, replace(going, is_gone=True))


def state(records: Records, number: int) -> str:
    return observe(records.reader, records.row(number), NOW).state


def test_a_workspace_has_one_word_for_where_it_stands() -> None:
    records = Records()
    words = []
    records.job(1)
    words.append(state(records, 1))
    records.end(1, "t0")
    words.append(state(records, 1))
    records.job(2)
    records.end(2, "t1")
    words.append(state(records, 2))
    for how in Landed:
        records.land(2, "t1", how)
        words.append(state(records, 2))
    records.land(2, "t9")
    words.append(state(records, 2))
    records.apply(RemoveWorkspace(workspace_id=records.row(2).id, at=NOW))
    words.append(state(records, 2))
    remove(records, 1)
    words.append(state(records, 1))

    assert words == [
        "working",
        "clean",
        "dirty",
        "applied",
        "merged",
        "pushed",
        "dirty",
        "removing",
        "removed",
    ]


def test_a_workspace_with_files_that_no_snapshot_holds_is_dirty() -> None:
    records = Records()
    records.job(1)
    records.end(1, "t0", left_out=1)

    assert state(records, 1) == "dirty"


@pytest.mark.parametrize(
    "reference",
    [job_id(1), job_id(1)[:-1], "000001", job_id(2), "000002", "sess-00000001", "@last"],
)
def test_a_workspace_is_found_by_its_id_a_job_or_a_session_in_it(reference: str) -> None:
    records = Records()
    mine = records.job(1)
    records.end(1, "t1")
    records.job(2, workspace=mine)

    assert find_workspace(records.reader, reference) == records.row(1)


def test_what_has_no_workspace_is_said_to_have_none() -> None:
    records = Records()
    with pytest.raises(WorkspaceNotFoundError, match="there are no workspaces"):
        find_workspace(records.reader, "@last")
    records.apply(submit(1), start(1))

    for owner in (job_id(1), submit(1).session.id):
        with pytest.raises(WorkspaceNotFoundError, match=f"{owner} has no workspace"):
            find_workspace(records.reader, owner)
    for reference in ("job-1999", "sess-none", "", "@first"):
        with pytest.raises(WorkspaceNotFoundError, match="no workspace, job or session begins"):
            find_workspace(records.reader, reference)


def test_a_beginning_of_several_is_ambiguous() -> None:
    records = Records()
    records.job(1)
    records.job(2)

    with pytest.raises(AmbiguousIdError, match=job_id(2)):
        find_workspace(records.reader, "job-2026")


def test_lists_have_pages_and_leave_out_what_is_removed() -> None:
    records = Records()
    for number in (1, 2, 3):
        records.job(number)
        records.end(number, "t0")
    remove(records, 2)

    first = list_page(records.reader, WorkspaceQuery(limit=1), NOW)
    rest = list_page(records.reader, WorkspaceQuery(limit=5, before=first.next_before), NOW)
    every = list_page(records.reader, WorkspaceQuery(limit=5, has_removed=True), NOW)

    assert [str(view.workspace.id) for view in first.workspaces] == [job_id(3)]
    assert [str(view.workspace.id) for view in rest.workspaces] == [job_id(1)]
    assert rest.next_before is None
    assert [view.state for view in every.workspaces] == ["clean", "removed", "clean"]
    assert total_size(records.reader) == 4000
    assert total_size(records.reader, "barker") == 0


def test_an_ended_session_lets_its_workspace_go_and_one_that_waits_does_not() -> None:
    records = Records()
    mine = records.workspace(1, scope=WorkspaceScope.SESSION, keep=Keep.NEVER)
    records.job(1, workspace=mine, mode=SessionMode.PERSISTENT)
    assert what_keeps_it(records.reader, records.row(1), NOW) is Hold.OPEN_JOB
    records.end(1, "t1")
    assert what_keeps_it(records.reader, records.row(1), NOW) is Hold.OWNER

    alone = records.workspace(2, scope=WorkspaceScope.SESSION, keep=Keep.NEVER)
    records.job(2, workspace=alone)
    records.end(2, "t1")

    assert what_keeps_it(records.reader, records.row(2), NOW) is None


def test_a_session_that_has_moved_on_keeps_nothing() -> None:
    records = Records()
    mine = records.workspace(1, scope=WorkspaceScope.SESSION, keep=Keep.NEVER)
    records.job(1, workspace=mine, mode=SessionMode.PERSISTENT)
    records.end(1, "t1")
    other = records.workspace(2, scope=WorkspaceScope.SESSION)
    records.job(2, workspace=other, mode=SessionMode.PERSISTENT)

    assert what_keeps_it(records.reader, records.row(1), NOW) is None


def test_a_run_keeps_its_workspace_until_its_first_job_has_ended() -> None:
    records = Records()
    records.apply(submit(1), start(1))
    child = submit(2)
    records.apply(replace(child, job=replace(child.job, parent_job_id=job_id(1))))
    shared = records.workspace(1, scope=WorkspaceScope.RUN, keep=Keep.NEVER)
    records.apply(start(2))
    records.apply(UseWorkspace(job_id=job_id(2), epoch=1, workspace=shared, directory="/w", at=NOW))
    records.end(2, "t1")
    assert what_keeps_it(records.reader, records.row(1), NOW) is Hold.OWNER

    records.apply(settle(1))

    assert what_keeps_it(records.reader, records.row(1), NOW) is None


def test_a_row_names_everything_a_program_needs() -> None:
    records = Records()
    records.job(1)
    records.end(1, "t1")
    row = workspace_row(observe(records.reader, records.row(1), NOW + timedelta(days=1)))

    assert row["id"] == row["job_id"] == job_id(1)
    assert (row["state"], row["is_dirty"], row["kept_by"]) == ("dirty", True, "not_merged")
    assert row["last_used_at"] == "2026-03-01T12:01:00.000250Z"
    assert row["open_jobs"] == []
