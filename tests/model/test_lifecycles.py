"""Lifecycles: closed tables, and no walk through them ends anywhere else (INV-TERMINAL)."""

from __future__ import annotations

from enum import StrEnum

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nightherd.errors import TransitionError
from nightherd.model.agents.state import AGENT_LIFECYCLE, AgentStatus
from nightherd.model.chat.message import (
    MESSAGE_LIFECYCLE,
    TURN_LIFECYCLE,
    MessageStatus,
    TurnStatus,
)
from nightherd.model.chat.post import POST_LIFECYCLE, PostStatus
from nightherd.model.inbox.item import ITEM_LIFECYCLE, ItemStatus
from nightherd.model.jobs.job import (
    EXECUTION_LIFECYCLE,
    JOB_LIFECYCLE,
    STATUS_OF_EXIT,
    ExecutionStatus,
    ExitReason,
    JobStatus,
)
from nightherd.model.lifecycle import Lifecycle
from nightherd.model.push.subscription import PUSH_LIFECYCLE, PushStatus
from nightherd.model.schedules.schedule import SCHEDULE_LIFECYCLE, ScheduleStatus
from nightherd.model.sessions.session import (
    SESSION_LIFECYCLE,
    SessionMode,
    SessionStatus,
    status_between_jobs,
)
from nightherd.model.work.item import WORK_LIFECYCLE, WorkStatus
from nightherd.model.worker import WORKER_LIFECYCLE, WorkerStatus
from nightherd.model.workflows.node import NODE_LIFECYCLE, NodeStatus
from nightherd.model.workflows.run import RUN_LIFECYCLE, RunStatus
from nightherd.model.workspaces.workspace import WORKSPACE_LIFECYCLE, WorkspaceStatus

LIFECYCLES: list[tuple[Lifecycle[StrEnum], type[StrEnum]]] = [
    (JOB_LIFECYCLE, JobStatus),  # type: ignore[list-item]  # each table has its own statuses
    (SESSION_LIFECYCLE, SessionStatus),  # type: ignore[list-item]
    (EXECUTION_LIFECYCLE, ExecutionStatus),  # type: ignore[list-item]
    (SCHEDULE_LIFECYCLE, ScheduleStatus),  # type: ignore[list-item]
    (WORKER_LIFECYCLE, WorkerStatus),  # type: ignore[list-item]
    (AGENT_LIFECYCLE, AgentStatus),  # type: ignore[list-item]
    (ITEM_LIFECYCLE, ItemStatus),
    (WORKSPACE_LIFECYCLE, WorkspaceStatus),  # type: ignore[list-item]
    (RUN_LIFECYCLE, RunStatus),  # type: ignore[list-item]
    (PUSH_LIFECYCLE, PushStatus),  # type: ignore[list-item]
    (NODE_LIFECYCLE, NodeStatus),  # type: ignore[list-item]
    (MESSAGE_LIFECYCLE, MessageStatus),  # type: ignore[list-item]
    (TURN_LIFECYCLE, TurnStatus),  # type: ignore[list-item]
    (POST_LIFECYCLE, PostStatus),  # type: ignore[list-item]
    (WORK_LIFECYCLE, WorkStatus),  # type: ignore[list-item]
]
every_lifecycle = pytest.mark.parametrize(
    ("lifecycle", "statuses"), LIFECYCLES, ids=[lifecycle.noun for lifecycle, _ in LIFECYCLES]
)


@every_lifecycle
def test_the_table_has_every_status_and_no_other(
    lifecycle: Lifecycle[StrEnum], statuses: type[StrEnum]
) -> None:
    assert set(lifecycle.steps) == set(statuses)
    for current, targets in lifecycle.steps.items():
        assert targets <= set(statuses)
        assert current not in targets


@every_lifecycle
def test_every_status_is_reached_from_the_first(
    lifecycle: Lifecycle[StrEnum], statuses: type[StrEnum]
) -> None:
    reached = {next(iter(statuses))}
    while more := {target for status in reached for target in lifecycle.steps[status]} - reached:
        reached |= more

    assert reached == set(statuses)


@every_lifecycle
@given(data=st.data())
def test_no_sequence_of_wishes_leaves_the_table(
    lifecycle: Lifecycle[StrEnum], statuses: type[StrEnum], data: st.DataObject
) -> None:
    current = data.draw(st.sampled_from(statuses))
    for wish in data.draw(st.lists(st.sampled_from(statuses), max_size=20)):
        was_terminal = current in lifecycle.terminal
        if wish in lifecycle.steps[current]:
            assert lifecycle.allows(current, wish)
            assert not was_terminal
            current = lifecycle.check(current, wish)
            assert current is wish
        else:
            assert not lifecycle.allows(current, wish)
            with pytest.raises(TransitionError) as refusal:
                lifecycle.check(current, wish)
            assert (refusal.value.current, refusal.value.target) == (current, wish)


@pytest.mark.parametrize(
    ("lifecycle", "terminal"),
    [
        (JOB_LIFECYCLE, {JobStatus.COMPLETED, JobStatus.FAILED, JobStatus.CANCELLED}),
        (SESSION_LIFECYCLE, {SessionStatus.COMPLETED, SessionStatus.EXPIRED}),
        (EXECUTION_LIFECYCLE, {ExecutionStatus.FINISHED, ExecutionStatus.LOST}),
        (WORKER_LIFECYCLE, {WorkerStatus.LEFT, WorkerStatus.LOST}),
        (SCHEDULE_LIFECYCLE, set()),
        (AGENT_LIFECYCLE, set()),
        (ITEM_LIFECYCLE, set(ItemStatus) - {ItemStatus.PENDING}),
        (WORKSPACE_LIFECYCLE, set()),
        (MESSAGE_LIFECYCLE, {MessageStatus.TAKEN, MessageStatus.DROPPED}),
        (TURN_LIFECYCLE, {TurnStatus.ANSWERED, TurnStatus.FAILED, TurnStatus.CANCELLED}),
        (POST_LIFECYCLE, {PostStatus.FAILED, PostStatus.DROPPED}),
        (WORK_LIFECYCLE, set()),
    ],
    ids=[
        "job",
        "session",
        "execution",
        "worker",
        "schedule",
        "agent",
        "item",
        "workspace",
        "message",
        "turn",
        "post",
        "work",
    ],
)
def test_these_statuses_are_final(lifecycle: Lifecycle[StrEnum], terminal: set[StrEnum]) -> None:
    assert lifecycle.terminal == terminal


def test_a_cancelled_job_never_becomes_completed() -> None:
    with pytest.raises(TransitionError, match="a job that is cancelled cannot become completed"):
        JOB_LIFECYCLE.check(JobStatus.CANCELLED, JobStatus.COMPLETED)


def test_every_exit_reason_has_a_final_status_that_a_running_job_can_reach() -> None:
    assert set(STATUS_OF_EXIT) == set(ExitReason)
    for status in STATUS_OF_EXIT.values():
        assert status in JOB_LIFECYCLE.terminal
        assert JOB_LIFECYCLE.allows(JobStatus.RUNNING, status)


def test_every_session_mode_has_a_rest_that_an_active_session_can_reach() -> None:
    for mode in SessionMode:
        assert SESSION_LIFECYCLE.allows(SessionStatus.ACTIVE, status_between_jobs(mode))
    assert status_between_jobs(SessionMode.FRESH_PER_JOB) in SESSION_LIFECYCLE.terminal
