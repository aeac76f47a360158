"""Memory for resuming: every question about rows, the one way they change, and who follows them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

import msgspec

from nightherd.ports.chat_state import ChatReader
from nightherd.ports.push import PushReader
from nightherd.ports.schedules import ScheduleReader
from nightherd.ports.work_state import WorkReader

if TYPE_CHECKING:  # only names: a command that lists jobs must not load what writing them needs
    from collections.abc import Collection, Iterator, Mapping, Sequence
    from datetime import datetime

    from nightherd.model.access.browser_session import BrowserSession
    from nightherd.model.access.visit import Visit
    from nightherd.model.agents.state import AgentState
    from nightherd.model.change import Answer, Change
    from nightherd.model.checkpoints.checkpoint import Checkpoint
    from nightherd.model.ids import JobId, SessionId, WorkerId
    from nightherd.model.inbox.item import (
        InboxAnswer,
        InboxItem,
        InboxQuery,
        InboxTexts,
        ItemId,
        ItemKind,
    )
    from nightherd.model.inbox.token import AnswerLink, Token
    from nightherd.model.jobs.job import Execution, Job, JobQuery, JobStatus, JobTexts
    from nightherd.model.limits.limits import Used
    from nightherd.model.limits.login import LoginLimit
    from nightherd.model.notifications.notification import (
        Notification,
        NotificationId,
        NotificationQuery,
        NotificationTexts,
        TargetState,
    )
    from nightherd.model.sessions.session import Session, SessionKey, SessionQuery
    from nightherd.model.webhooks import Delivery
    from nightherd.model.worker import Worker
    from nightherd.model.workflows.rows import (
        PinnedWorkflow,
        RunQuery,
        WorkflowContext,
        WorkflowEvent,
        WorkflowNode,
        WorkflowNodeTexts,
        WorkflowOverride,
        WorkflowRun,
        WorkflowScratch,
    )
    from nightherd.model.workflows.run import RunId, RunStatus
    from nightherd.model.workspaces.workspace import Workspace, WorkspaceId, WorkspaceQuery


class JobList(Protocol):
    """The questions that lists of jobs and looking one up need. Lists never read texts."""

    def find_job(self, job_id: JobId) -> Job | None: ...
    def find_texts(self, job_id: JobId) -> JobTexts | None: ...
    def list_jobs(self, query: JobQuery) -> Sequence[Job]: ...
    def job_ids(self, prefix: str, limit: int) -> Sequence[JobId]:
        """Ids that begin with `prefix`, newest first, at most `limit`."""

    def jobs_ahead(self, job: Job, limit: int) -> Sequence[Job]:
        """The jobs that were submitted to the job's session before it and have not ended, in order."""

    def spans_of_job(self, job_id: JobId) -> Sequence[tuple[datetime, datetime | None]]:
        """When a job's executions began and ended, first to last."""

    def live_workers(self) -> Sequence[Worker]:
        """Workers that have not ended, by their own account."""

    def find_worker(self, worker_id: str) -> Worker | None:
        """The worker of that id, ended or not."""

    def close(self) -> None: ...


class JobReader(JobList, Protocol):
    """Every question about jobs."""

    def list_executions(self, job_id: JobId) -> Sequence[Execution]:
        """A job's executions, first to last."""

    def list_checkpoints(self, job_id: JobId) -> Sequence[Checkpoint]:
        """A job's checkpoints, first to last."""

    def removed_checkpoints(self, job_id: JobId) -> Sequence[Checkpoint]:
        """Those of a job that were taken away, first to last."""


class SessionReader(Protocol):
    """Questions about sessions."""

    def find_session(self, session_id: SessionId) -> Session | None: ...
    def list_sessions(self, query: SessionQuery) -> Sequence[Session]:
        """Sessions newest first; those that were cleaned up are left out."""

    def session_ids(self, prefix: str, limit: int) -> Sequence[SessionId]:
        """Sessions whose id, or whose runtime's id, begins with `prefix`, newest first, at most `limit`."""

    def sessions_of_parent(self, session_id: SessionId) -> Sequence[Session]:
        """The sessions forked from this one, first to last."""

    def current_session(self, key: SessionKey) -> Session | None:
        """The session that a job with this key joins; None for `fresh_per_job`, or when none is open."""

    def sessions_to_expire(self, at: datetime, limit: int) -> Sequence[Session]:
        """Sessions that wait and whose time has come by `at`, to the millisecond, the longest unused first."""

    def persistent_session(self, agent: str) -> Session | None:
        """The open persistent session of the agent, of any schedule, that became the current one last."""

    def session_job_ids(self, session_id: SessionId) -> Sequence[JobId]:
        """All jobs of the session, those that never began too, in the order in which they were submitted."""

    def jobs_of_session(self, session_id: SessionId) -> Sequence[Job]:
        """The session's jobs that ever began, in the order in which they did."""

    def sessions_of_runtime(self, runtime_session_id: str) -> Sequence[Session]:
        """The sessions known to their runtime by this id, newest first."""


class FleetReader(ScheduleReader, Protocol):
    """Questions about what the fleet is doing."""

    def list_agents(self) -> Sequence[AgentState]:
        """Every agent that ever had a job, by name."""

    def find_agent(self, name: str) -> AgentState | None: ...
    def list_login_limits(self, at: datetime) -> Sequence[LoginLimit]:
        """The limits of logins that stop jobs from starting at `at`, by id."""

    def list_deliveries(self, endpoint: str, limit: int) -> Sequence[Delivery]:
        """What came in by the endpoint, newest first."""

    def has_waiting_job(self, agents: Collection[str]) -> bool:
        """Whether a job of one of `agents` waits for a worker; cheap enough to ask all the time.

        One that waits for a suspended job of its session does not count: no worker can do anything about it.
        """

    def count_open_jobs(self) -> Mapping[tuple[str, JobStatus], int]:
        """How many jobs have not ended, by agent and status; what has ended costs nothing."""

    def jobs_to_wake(self, at: datetime, limit: int) -> Sequence[JobId]:
        """Suspended jobs whose time has come, the longest waiting first."""

    def jobs_to_cancel(self, worker: WorkerId) -> Sequence[JobId]:
        """The worker's running jobs that were cancelled."""


class SpendingReader(Protocol):
    """Questions about what was used."""

    def jobs_of_parent(self, job_id: JobId) -> Sequence[Job]:
        """The jobs that a job has made, first to last."""

    def jobs_below(self, job_id: JobId) -> Sequence[Job]:
        """All jobs below a job, at any level, first to last."""

    def spent(self, day: str | None, agent: str | None, schedule: str | None) -> Used:
        """What was used on a day, or ever: by an agent and for a schedule, where they are named."""

    def spent_by_agent(self, day: str) -> Mapping[str, Used]:
        """What was used on a day by every agent that used anything."""

    def used_below(self, job_id: JobId) -> Used:
        """What all jobs below a job have used and set aside; `spawns` counts them."""

    def jobs_with_checkpoints(self) -> Sequence[JobId]:
        """Every job that has a checkpoint now."""


class InboxReader(Protocol):
    """Questions about what waits for people."""

    def find_item(self, item_id: ItemId) -> InboxItem | None: ...
    def find_item_texts(self, item_id: ItemId) -> InboxTexts | None: ...
    def list_items(self, query: InboxQuery) -> Sequence[InboxItem]:
        """A page of items, newest first. Lists never read texts."""

    def item_ids(self, prefix: str, limit: int) -> Sequence[ItemId]:
        """Ids that begin with `prefix`, newest first, at most `limit`."""

    def items_of_job(self, job_id: JobId) -> Sequence[InboxItem]:
        """All items about a job, in the order of asking."""

    def list_answers(self, item_id: ItemId) -> Sequence[InboxAnswer]:
        """What was answered to an item, first to last."""

    def items_to_expire(self, at: datetime, limit: int) -> Sequence[InboxItem]:
        """Items whose time has passed by `at`, the longest first."""

    def count_pending_items(self) -> Mapping[ItemKind, int]:
        """How many items wait, by kind; kinds of which none waits are left out."""

    def jobs_without_item(self, limit: int) -> Sequence[JobId]:
        """Jobs that wait for a person, or are among the last 1,000 that failed, and about which nobody is asked."""

    def oldest_pending_item(self) -> InboxItem | None:
        """The item that has waited longest, or None when nothing waits."""

    def find_token(self, hash: str) -> Token | None:
        """The token with that hash that is accepted."""

    def list_tokens(self) -> Sequence[Token]:
        """Every token that was ever added, by name."""

    def find_link(self, hash: str) -> AnswerLink | None:
        """The answer link with that hash."""

    def find_browser_session(self, hash: str) -> BrowserSession | None:
        """The browser session whose cookie has that hash, also an ended one."""

    def browser_sessions_of(self, person: str) -> Sequence[BrowserSession]:
        """The sessions of a person that are not ended, the oldest first."""


class VisitReader(Protocol):
    """Questions about visits, and about what ended since one; parts of other jobs or runs are left out."""

    def find_visit(self, person: str) -> Visit | None: ...
    def count_ended_jobs(self, since: datetime) -> Mapping[JobStatus, int]:
        """How many jobs ended at `since` or later, by how."""

    def ended_jobs(self, status: JobStatus, since: datetime, limit: int) -> Sequence[Job]:
        """The jobs that ended so at `since` or later, the last first, at most `limit`."""

    def count_ended_runs(self, since: datetime) -> Mapping[RunStatus, int]:
        """How many runs ended at `since` or later, by how."""

    def ended_runs(self, status: RunStatus, since: datetime, limit: int) -> Sequence[WorkflowRun]:
        """The runs that ended so at `since` or later, the last first, at most `limit`."""


class NotificationReader(Protocol):
    """Questions about what people are told."""

    def find_notification(self, notification_id: NotificationId) -> Notification | None: ...
    def find_notification_texts(
        self, notification_id: NotificationId
    ) -> NotificationTexts | None: ...
    def list_notifications(self, query: NotificationQuery) -> Sequence[Notification]:
        """A page of notifications, newest first. Lists never read texts."""

    def list_notify_targets(self) -> Sequence[TargetState]:
        """Every target that was ever declared, by name."""

    def due_notify_targets(self, at: datetime) -> Sequence[str]:
        """Targets for which something is to be sent by `at` and which are not left alone then."""

    def count_open_notifications(self, at: datetime) -> Mapping[str, int]:
        """How many notifications are to be sent by `at`, by target."""

    def notified_change(self, cursor: str = "ledger") -> int | None:
        """The change of the ledger up to which notifications were made; None before the first."""


class WorkspaceReader(Protocol):
    """Questions about where jobs work."""

    def find_workspace(self, workspace_id: str) -> Workspace | None: ...
    def list_workspaces(self, query: WorkspaceQuery) -> Sequence[Workspace]:
        """A page of workspaces, newest first."""

    def workspace_ids(self, prefix: str, limit: int) -> Sequence[WorkspaceId]:
        """Ids that begin with `prefix`, newest first, at most `limit`."""

    def jobs_of_workspace(self, workspace_id: str, limit: int) -> Sequence[Job]:
        """The jobs that worked in a workspace, newest first, at most `limit`."""

    def open_jobs_in_workspace(self, workspace_id: str) -> Sequence[Job]:
        """The jobs in a workspace that have not ended, in the order of submission."""


class RunReader(Protocol):
    """Questions about workflow runs."""

    def find_run(self, run_id: RunId) -> WorkflowRun | None: ...
    def list_runs(self, query: RunQuery) -> Sequence[WorkflowRun]:
        """A page of runs, newest first."""

    def run_ids(self, prefix: str, limit: int) -> Sequence[RunId]:
        """Ids that begin with `prefix`, at most `limit`."""

    def runs_of_parent(self, run_id: RunId) -> Sequence[WorkflowRun]:
        """The runs that a run has started, first to last."""

    def find_pinned(self, hash: str) -> PinnedWorkflow | None: ...
    def find_run_context(self, run_id: RunId) -> WorkflowContext | None: ...
    def find_run_scratch(self, run_id: RunId) -> WorkflowScratch | None: ...
    def find_node(self, node_id: str) -> WorkflowNode | None: ...
    def find_node_texts(self, node_id: str) -> WorkflowNodeTexts | None: ...
    def nodes_of_run(self, run_id: RunId) -> Sequence[WorkflowNode]:
        """Every node of the run, in the order of beginning."""

    def jobs_of_run(self, run_id: RunId) -> Sequence[Job]:
        """The jobs that are phases of the run, first to last."""

    def items_of_run(self, run_id: RunId) -> Sequence[InboxItem]:
        """What people were asked by the run, in the order of asking."""

    def events_of_run(self, run_id: RunId) -> Sequence[WorkflowEvent]:
        """The events that were sent to the run, first to last."""

    def runs_to_advance(self, at: datetime, limit: int) -> Sequence[RunId]:
        """Runs with a wait or a timeout that is over by `at`, at most `limit`."""

    def list_workflow_overrides(self) -> Sequence[WorkflowOverride]:
        """Every workflow that a person has switched off or on."""

    def count_open_runs(self) -> Mapping[tuple[str, RunStatus], int]:
        """How many runs of each workflow have not ended, by status."""

    def used_in_run(self, run_id: RunId) -> Used:
        """What all jobs of the run, and below it, have used and set aside."""


class StateReader(
    JobReader,
    SessionReader,
    FleetReader,
    SpendingReader,
    InboxReader,
    VisitReader,
    NotificationReader,
    PushReader,
    ChatReader,
    WorkspaceReader,
    RunReader,
    WorkReader,
    Protocol,
):
    """Every question about state, answered from one consistent store."""

    def close(self) -> None: ...


class StateWriter(Protocol):
    """The one way state changes."""

    async def apply(self, changes: Sequence[Change]) -> Sequence[Answer]:
        """Carry out `changes` in order, each whole or not at all, one answer each.

        When it returns, what it answers is durable: killing any process loses none of it (INV-DURABLE).
        """

    def take_notices(self) -> Sequence[str]:
        """What an operator should hear of since the last call, each once."""

    async def close(self) -> None: ...


class LedgerEntry(msgspec.Struct, frozen=True, kw_only=True):
    """One committed change: its number, and every row it wrote as it was then."""

    change: int
    at: datetime
    kind: str
    rows: Sequence[tuple[str, msgspec.Raw]]
    """Table and row image: an object in JSON, column names to plain values."""
    deleted: Sequence[tuple[str, msgspec.Raw]] = ()
    """The same for the rows that the change deleted, by which their keys are known."""


class ChangeFeed(Protocol):
    """Every committed change in order: what followers of state read."""

    def read(self, *, after: int = 0) -> Iterator[LedgerEntry]:
        """Entries with a number above `after`, as far as the ledger goes now."""


class Mirror(Protocol):
    """The readable files, kept up with state and journals."""

    def start(self) -> None:
        """Follow from now on, in a thread of its own."""

    def stop(self) -> object:
        """Stop following, after everything committed before this call is in the files."""

    def declare(self, agents: Mapping[str, str | None]) -> None:
        """From now on these are the declared agents, each with the reason why it may not run."""

    def catch_up(self) -> object:
        """Bring the files up to everything committed before this call."""

    def rebuild(self) -> object:
        """Delete the files and make them again."""

    @property
    def unwritten(self) -> Mapping[str, str]:
        """Files that are behind, and why; empty when all is well."""
