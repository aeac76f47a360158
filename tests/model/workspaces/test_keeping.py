"""Keeping: when a workspace goes by itself, for every rule and every state."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from nightherd.model.ids import SessionId
from nightherd.model.jobs.job import JobStatus
from nightherd.model.workspaces.keeping import Hold, hold_text, what_keeps
from nightherd.model.workspaces.policy import Keep, WorkspaceMode, WorkspaceScope
from nightherd.model.workspaces.workspace import (
    Workspace,
    WorkspaceId,
    WorkspaceStatus,
)

AT = datetime(2026, 3, 1, tzinfo=UTC)
COMPLETED, FAILED, CANCELLED = JobStatus.COMPLETED, JobStatus.FAILED, JobStatus.CANCELLED
BASE, WORK, MORE = "a" * 40, "b" * 40, "c" * 40


def workspace(
    keep: Keep = Keep.UNTIL_MERGED,
    *,
    tree: str | None = WORK,
    landed: str | None = None,
    left_out: int = 0,
    status: WorkspaceStatus = WorkspaceStatus.READY,
    scope: WorkspaceScope = WorkspaceScope.JOB,
) -> Workspace:
    return Workspace(
        id=WorkspaceId("job-2026-03-01-aaaaaa"),
        agent="coder",
        mode=WorkspaceMode.WORKTREE,
        scope=scope,
        status=status,
        root="/project",
        created_at=AT,
        last_used_at=AT,
        keep=keep,
        session_id=SessionId("sess-aaaaaaaa"),
        base_tree=BASE,
        tree=tree,
        left_out=left_out,
        landed_tree=landed,
    )


@pytest.mark.parametrize(
    ("keep", "last", "tree", "landed", "left_out", "hold"),
    [
        (Keep.ALWAYS, COMPLETED, BASE, None, 0, Hold.ALWAYS),
        (Keep.ALWAYS, COMPLETED, WORK, WORK, 0, Hold.ALWAYS),
        (Keep.NEVER, COMPLETED, WORK, None, 0, None),
        (Keep.NEVER, FAILED, WORK, None, 0, None),
        (Keep.NEVER, COMPLETED, BASE, None, 0, None),
        (Keep.NEVER, COMPLETED, WORK, None, 1, Hold.LEFT_OUT),
        (Keep.ON_FAILURE, COMPLETED, WORK, None, 0, None),
        (Keep.ON_FAILURE, FAILED, WORK, None, 0, Hold.FAILED),
        (Keep.ON_FAILURE, CANCELLED, BASE, None, 0, Hold.FAILED),
        (Keep.ON_FAILURE, None, BASE, None, 0, Hold.FAILED),
        (Keep.ON_FAILURE, COMPLETED, WORK, None, 2, Hold.LEFT_OUT),
        (Keep.UNTIL_MERGED, COMPLETED, WORK, None, 0, Hold.NOT_MERGED),
        (Keep.UNTIL_MERGED, COMPLETED, WORK, WORK, 0, None),
        (Keep.UNTIL_MERGED, COMPLETED, MORE, WORK, 0, Hold.NOT_MERGED),
        (Keep.UNTIL_MERGED, FAILED, BASE, None, 0, None),
        (Keep.UNTIL_MERGED, FAILED, None, None, 0, None),
        (Keep.UNTIL_MERGED, COMPLETED, WORK, WORK, 1, Hold.LEFT_OUT),
    ],
)
def test_the_rule_of_keep_decides_once_the_owner_is_over(
    keep: Keep,
    last: JobStatus | None,
    tree: str | None,
    landed: str | None,
    left_out: int,
    hold: Hold | None,
) -> None:
    row = workspace(keep, tree=tree, landed=landed, left_out=left_out)

    assert what_keeps(row, has_open_job=False, is_owner_over=True, last_status=last) is hold


@pytest.mark.parametrize("keep", list(Keep))
def test_an_open_job_and_an_owner_that_goes_on_keep_it_under_every_rule(keep: Keep) -> None:
    row = workspace(keep, tree=BASE)

    for is_over in (False, True):
        busy = what_keeps(
            row, has_open_job=True, is_owner_over=is_over, last_status=JobStatus.RUNNING
        )
        assert busy is Hold.OPEN_JOB
    owned = what_keeps(row, has_open_job=False, is_owner_over=False, last_status=COMPLETED)
    assert owned is Hold.OWNER


@pytest.mark.parametrize("keep", list(Keep))
def test_a_removal_that_was_begun_is_finished_under_every_rule(keep: Keep) -> None:
    row = workspace(keep, left_out=3, status=WorkspaceStatus.REMOVING)

    assert what_keeps(row, has_open_job=False, is_owner_over=False, last_status=FAILED) is None


def test_every_hold_has_words_of_its_own() -> None:
    texts = [hold_text(hold, workspace(left_out=2)) for hold in (None, *Hold)]
    texts.append(hold_text(Hold.OWNER, workspace(scope=WorkspaceScope.RUN)))
    texts.append(hold_text(None, workspace(status=WorkspaceStatus.REMOVED)))

    assert len(set(texts)) == len(Hold) + 3
    assert "no snapshot holds 2 files of it" in texts[1 + list(Hold).index(Hold.LEFT_OUT)]
