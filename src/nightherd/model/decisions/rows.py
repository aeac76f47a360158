"""Rows: what decisions may ask of the state as it is, inside the transaction that will write."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Protocol, TypeVar

import msgspec

from nightherd.model.chat.conversation import Conversation, ConversationId, MessagingSession
from nightherd.model.chat.message import ChatMessage
from nightherd.model.chat.post import OutboxPost
from nightherd.model.checkpoints.checkpoint import Checkpoint
from nightherd.model.ids import JobId, SessionId
from nightherd.model.inbox.item import InboxAnswer, InboxItem, ItemId
from nightherd.model.jobs.job import Execution, Job
from nightherd.model.limits.limits import Used
from nightherd.model.notifications.notification import Notification, TargetState
from nightherd.model.push.subscription import PushSubscription
from nightherd.model.sessions.session import Session, SessionKey
from nightherd.model.workflows.rows import RunNodes, WorkflowEvent, WorkflowRun
from nightherd.model.workflows.run import RunId

RowT = TypeVar("RowT", bound=msgspec.Struct)


class Rows(Protocol):
    """The rows as they are now."""

    def get(self, kind: type[RowT], key: str) -> RowT | None:
        """The row of that kind with that key."""

    def job_with_dedupe_key(self, key: str) -> Job | None: ...

    def current_session(self, key: SessionKey) -> Session | None:
        """The session of the key with the highest rank that is not over; None for `fresh_per_job`, which shares none."""

    def open_jobs_in(self, session_id: SessionId) -> int:
        """How many jobs of the session have not ended."""

    def jobs_ahead(self, session_id: SessionId, before: int, limit: int) -> Sequence[Job]:
        """The session's jobs with a number below `before` that have not ended, in order, at most `limit`."""

    def oldest_running_job(self, agent: str, *, besides: JobId) -> JobId | None:
        """The agent's running job that was submitted first, leaving out `besides`."""

    def waiting_agents(self) -> Sequence[str]:
        """The agents that have jobs waiting."""

    def next_waiting_job(self, agent: str, at: datetime) -> Job | None:
        """The agent's most important waiting job that may be taken at `at`: the first open one of its session."""

    def oldest_waiting_job(self, agent: str, at: datetime) -> Job | None:
        """The same by age: the agent's waiting job that was submitted first and may be taken at `at`."""

    def count_running(self, agent: str | None = None) -> int:
        """How many jobs run: the agent's, or all."""

    def has_busy_job(self, agent: str, schedule: str, *, besides: JobId) -> bool:
        """Whether the schedule has a job that runs or waits for a worker, leaving out `besides`."""

    def occupying_jobs(self, agent: str, schedule: str, limit: int) -> Sequence[Job]:
        """The schedule's jobs that count as overlapping, oldest first, at most `limit`.

        Those that have not ended, except suspended ones with a session of their own.
        """

    def suspended_jobs(self, agent: str, schedule: str, limit: int) -> Sequence[Job]:
        """The schedule's suspended jobs with a session of their own, oldest first, at most `limit`."""

    def open_children(self, job_id: JobId) -> Sequence[Job]:
        """The jobs that the job has made and that have not ended, first to last."""

    def next_job_number(self) -> int: ...
    def next_session_number(self) -> int: ...
    def next_checkpoint_number(self, job_id: JobId) -> int:
        """One more than the highest number that a checkpoint's row of the job has."""

    def checkpoints_of(self, job_id: JobId) -> Sequence[Checkpoint]:
        """The job's checkpoints that have rows and are not taken away, first to last."""

    def spent(self, day: str | None, agent: str | None, schedule: str | None) -> Used:
        """What was used on a day, or ever: by an agent and for a schedule, where they are named."""

    def set_aside(self, *, besides: JobId, agent: str | None, schedule: str | None) -> Used:
        """What running jobs have set aside, leaving out `besides`."""

    def used_below(self, job_id: JobId, *, besides: JobId) -> Used:
        """What all jobs below a job have used and set aside, leaving out `besides`; `spawns` counts them."""

    def next_item_number(self) -> int: ...
    def pending_items(self, job_id: JobId) -> Sequence[InboxItem]:
        """The inbox items about the job that are open, in the order of asking."""

    def pending_failures(self, agent: str, schedule: str) -> Sequence[InboxItem]:
        """The open items about failed jobs of the schedule, in the order of asking."""

    def answers_of(self, item: ItemId) -> Sequence[InboxAnswer]:
        """What was answered to an item, first to last."""

    def next_notification_number(self) -> int: ...
    def notify_targets(self) -> Sequence[TargetState]:
        """Every target that was ever declared."""

    def due_notifications(self, target: str, at: datetime, limit: int) -> Sequence[Notification]:
        """What is to be sent to the target by `at`, in order."""

    def active_push_subscriptions(self) -> Sequence[PushSubscription]:
        """Every device that takes pushes, the first subscribed first."""

    def next_conversation_number(self) -> int: ...
    def next_chat_message_number(self) -> int: ...
    def next_chat_turn_number(self) -> int: ...
    def next_post_number(self) -> int: ...
    def waiting_chat_messages(self, id: ConversationId, limit: int) -> Sequence[ChatMessage]:
        """The messages of a conversation that no turn has yet, in order, at most `limit`."""

    def active_messaging_session(
        self, conversation: Conversation, user_id: str
    ) -> MessagingSession | None:
        """A person's active session with the agent in the place of the conversation."""

    def active_messaging_sessions(self, id: ConversationId) -> Sequence[MessagingSession]:
        """Those who take part in a conversation."""

    def first_open_post(self, id: ConversationId) -> OutboxPost | None:
        """What is to be sent next in a conversation."""

    def next_workspace_number(self) -> int: ...
    def open_jobs_in_workspace(self, workspace_id: str) -> Sequence[Job]:
        """The jobs that have not ended and work, or worked last, in the workspace."""

    def run_nodes(self, run_id: RunId) -> RunNodes:
        """Every node of the run."""

    def run_with_dedupe_key(self, key: str) -> WorkflowRun | None: ...

    def open_runs_of_key(self, key: str, limit: int) -> Sequence[WorkflowRun]:
        """The runs of a concurrency key that run or are paused, oldest first, at most `limit`."""

    def open_runs_of_schedule(
        self, workflow: str, schedule: str, limit: int
    ) -> Sequence[WorkflowRun]:
        """The runs of a workflow's schedule that have not ended, oldest first, at most `limit`."""

    def queued_runs_of_key(self, key: str, limit: int) -> Sequence[WorkflowRun]:
        """The runs of a concurrency key that are queued, oldest first, at most `limit`."""

    def waiting_jobs_in_run(self, run_id: RunId, at: datetime, limit: int) -> Sequence[Job]:
        """The jobs of the run, and of runs below it, that wait and may be taken at `at`, first to last."""

    def events_of_run(self, run_id: RunId) -> Sequence[WorkflowEvent]:
        """Every event that was sent to the run, first to last."""

    def executions_of(self, job_id: JobId) -> Sequence[Execution]:
        """Every execution of the job, first to last."""

    def used_in_run(self, run_id: RunId, *, besides: JobId) -> Used:
        """What all jobs of the run, of runs below it and of jobs below those have used and set aside, leaving out `besides`."""

    def next_run_number(self) -> int: ...

    def unsent_notifications(self, target: str) -> Sequence[Notification]:
        """Everything that is still to be sent to the target, due or not."""
