"""Change: one state change as a value, and the result of applying it.

A change says what it wants and what it expects to find. `model/decide.py` decides it against the rows as
they are; a store carries the decision out in one transaction. Two words answer: `Applied` or `Refused`.
"""

from __future__ import annotations

from datetime import datetime
from enum import StrEnum

import msgspec

from nightherd.model.access.browser_session import (
    AddBrowserSession,
    BrowserSession,
    EndBrowserSessions,
)
from nightherd.model.access.visit import MarkVisit, Visit
from nightherd.model.agents.state import AgentState
from nightherd.model.chat.changes import ChatChange
from nightherd.model.chat.rows import ChatRow
from nightherd.model.checkpoints.checkpoint import Checkpoint, RemoveCheckpoints
from nightherd.model.ids import WorkerId
from nightherd.model.inbox.changes import (
    AnswerItem,
    AskAboutJob,
    AskPerson,
    ExpireItem,
    WithdrawItem,
)
from nightherd.model.inbox.item import InboxAnswer, InboxItem, InboxTexts
from nightherd.model.inbox.token import AddToken, AnswerLink, MakeLink, RevokeToken, Token
from nightherd.model.jobs.changes import (
    CancelJob,
    ClaimJob,
    CorrectJob,
    FailSuspended,
    FailWaiting,
    LoseExecution,
    RecordContainer,
    RecordRuntimeSession,
    ResumeJob,
    SettleExecution,
    StartExecution,
    SubmitJob,
    SuspendExecution,
)
from nightherd.model.jobs.job import Execution, Job, JobTexts
from nightherd.model.jobs.overrides import AmendJob
from nightherd.model.limits.limits import Hit
from nightherd.model.limits.login import LoginLimit
from nightherd.model.limits.spending import CountUsage, Reservation, Spending
from nightherd.model.notifications.changes import (
    ClaimNotification,
    DeclareTargets,
    FollowLedger,
    QueueNotifications,
    RetryTarget,
    SettleNotification,
)
from nightherd.model.notifications.notification import (
    Notification,
    NotificationTexts,
    NotifyCursor,
    TargetState,
)
from nightherd.model.push.subscription import (
    AddPushSubscription,
    EndPushSubscriptions,
    PushSubscription,
)
from nightherd.model.schedules.schedule import (
    OverrideSchedule,
    PlanSchedule,
    ScheduleOverride,
    ScheduleState,
    Slot,
)
from nightherd.model.sessions.changes import (
    AdoptTurns,
    ExpireSession,
    ForkSession,
    RefreshAdopted,
    RemoveSession,
    RenameSession,
    UseSession,
)
from nightherd.model.sessions.session import Session
from nightherd.model.webhooks import Delivery
from nightherd.model.work.changes import StartWork, WorkChange
from nightherd.model.work.item import WorkItem
from nightherd.model.work.source import SourceState
from nightherd.model.worker import Worker, WorkerStatus
from nightherd.model.workflows.conductor.changes import (
    AdvanceRun,
    CancelRun,
    MergeScratch,
    OverrideWorkflow,
    RaiseRun,
    SendEvent,
    StartRun,
)
from nightherd.model.workflows.rows import (
    PinnedWorkflow,
    WorkflowContext,
    WorkflowEvent,
    WorkflowNode,
    WorkflowNodeTexts,
    WorkflowOverride,
    WorkflowRun,
    WorkflowScratch,
)
from nightherd.model.workflows.run import RunId
from nightherd.model.workspaces.changes import (
    LandWorkspace,
    LeaveWorkspace,
    MoveWorkspace,
    NoteWorkspace,
    RemoveWorkspace,
    UseWorkspace,
)
from nightherd.model.workspaces.workspace import Workspace

Row = (
    Job
    | JobTexts
    | Execution
    | Session
    | Worker
    | AgentState
    | ScheduleState
    | ScheduleOverride
    | Delivery
    | Slot
    | Checkpoint
    | Spending
    | Reservation
    | LoginLimit
    | InboxItem
    | InboxTexts
    | InboxAnswer
    | Token
    | AnswerLink
    | BrowserSession
    | Visit
    | NotifyCursor
    | TargetState
    | Notification
    | NotificationTexts
    | PushSubscription
    | Workspace
    | PinnedWorkflow
    | WorkflowRun
    | WorkflowContext
    | WorkflowScratch
    | WorkflowNode
    | WorkflowNodeTexts
    | WorkflowEvent
    | WorkflowOverride
    | ChatRow
    | WorkItem
    | SourceState
)
"""One row of state. Every field is a column; the first is the key."""


class RegisterWorker(msgspec.Struct, frozen=True, kw_only=True):
    """A worker begins, with its first lease."""

    worker: Worker


class ExtendLease(msgspec.Struct, frozen=True, kw_only=True):
    """The worker is alive until `deadline`."""

    worker_id: WorkerId
    deadline: float
    at: datetime


class EndWorker(msgspec.Struct, frozen=True, kw_only=True):
    """The worker left, or was found gone."""

    worker_id: WorkerId
    status: WorkerStatus
    at: datetime


class ResetAgent(msgspec.Struct, frozen=True, kw_only=True):
    """Forget the agent's error."""

    agent: str


class FireSlot(msgspec.Struct, frozen=True, kw_only=True):
    """A due instant gets its one outcome: `job`, or skipped with the slot's reason.

    With `max_overlap` jobs of the schedule there already it is skipped too, or refused when it `waits`; so it
    is with `max_suspended` suspended ones, and where its session is held by a job that waits for a person.
    `override` is the rule of the override that the slot is an instant of; with another it is refused.
    """

    slot: Slot
    agent: str
    schedule: str
    next_run_at: datetime | None
    next_due_at: datetime | None = None
    job: SubmitJob | None = None
    run: StartRun | None = None
    """What a schedule of a workflow starts."""
    override: str | None = None
    max_overlap: int | None = None
    max_suspended: int | None = None
    waits: bool = False
    stopped_by: tuple[str, ...] = ()
    """The limits of the agent's login because of which it is skipped too."""
    is_error: bool = False
    """It is skipped because something is wrong with the schedule; `last_error` says so."""
    work: StartWork | None = None
    """The issue that its job works on, taken before."""
    needs_work: bool = False
    """Refuse it where it would make a job (`Why.NO_WORK`): what the job works on is to be found first."""


class RecordDelivery(msgspec.Struct, frozen=True, kw_only=True):
    """A message came in by a webhook and gets its one outcome: `job`, `runs`, or ignored for the delivery's reason."""

    delivery: Delivery
    job: SubmitJob | None = None
    runs: tuple[StartRun, ...] = ()
    """What it starts of workflows. One that is dropped or switched off takes no other with it."""


class SaveCheckpoint(msgspec.Struct, frozen=True, kw_only=True):
    """Put a bookmark at a place of the job's record. Its number and key are given by the store."""

    epoch: int
    checkpoint: Checkpoint
    is_synced: bool = True
    """Whether it survives a power cut once it is acknowledged; the journal it points into may not."""


class AdoptRows(msgspec.Struct, frozen=True, kw_only=True):
    """Take over rows that something else made. Those whose key is known already are left as they are."""

    rows: tuple[Row, ...]
    source: str


Change = (
    SubmitJob
    | StartExecution
    | RecordRuntimeSession
    | RecordContainer
    | SettleExecution
    | SuspendExecution
    | ResumeJob
    | FailSuspended
    | FailWaiting
    | AmendJob
    | ForkSession
    | UseSession
    | RenameSession
    | ExpireSession
    | RemoveSession
    | LoseExecution
    | ClaimJob
    | CancelJob
    | RegisterWorker
    | ExtendLease
    | EndWorker
    | ResetAgent
    | FireSlot
    | RecordDelivery
    | PlanSchedule
    | OverrideSchedule
    | SaveCheckpoint
    | RemoveCheckpoints
    | CountUsage
    | CorrectJob
    | AdoptRows
    | RefreshAdopted
    | AdoptTurns
    | AskPerson
    | AskAboutJob
    | AnswerItem
    | ExpireItem
    | WithdrawItem
    | AddToken
    | RevokeToken
    | MakeLink
    | AddBrowserSession
    | EndBrowserSessions
    | MarkVisit
    | DeclareTargets
    | FollowLedger
    | QueueNotifications
    | ClaimNotification
    | SettleNotification
    | RetryTarget
    | AddPushSubscription
    | EndPushSubscriptions
    | UseWorkspace
    | LeaveWorkspace
    | MoveWorkspace
    | NoteWorkspace
    | LandWorkspace
    | RemoveWorkspace
    | StartRun
    | AdvanceRun
    | CancelRun
    | SendEvent
    | MergeScratch
    | RaiseRun
    | OverrideWorkflow
    | ChatChange
    | WorkChange
)


class Why(StrEnum):
    """Why a change was refused."""

    MISSING = "missing"
    """There is no such row."""
    ID_TAKEN = "id_taken"
    """Another row has this id already; make a new one and try again."""
    DUPLICATE = "duplicate"
    """It is there already: a job with this dedupe key (`job` is it), a slot that was decided."""
    STATUS = "status"
    """The lifecycle has no such step from where it stands."""
    CANCELLED = "cancelled"
    """The job was cancelled: its journal has to say so before its row does."""
    FENCED = "fenced"
    """A later epoch owns the job."""
    SESSION_BUSY = "session_busy"
    """Another job is active in the session, or was submitted to it before and has not ended."""
    SESSION_HELD = "session_held"
    """A suspended job of the session waits for a person; `job` is it."""
    SESSION_OVER = "session_over"
    """The session is expired or was cleaned up, or is one job's own and that job has ended."""
    TOO_EARLY = "too_early"
    """What it waits for has not come yet."""
    STALE = "stale"
    """What it was worked out from is not so any more; look again."""
    FULL = "full"
    """As many jobs run as may run at once."""
    RATE_LIMITED = "rate_limited"
    """A limit of the job's login lasts."""
    NO_WORK = "no_work"
    """An issue has to be found first."""
    NOTHING = "nothing"
    """There is no job that may be taken now."""
    TOO_LARGE = "too_large"
    """A bounded row would not be."""
    DECIDED = "decided"
    """The inbox item is not open any more: somebody answered it, it expired, or what it was about ended."""
    NOT_ALLOWED = "not_allowed"
    """Whoever answers is not one of those who may."""
    SWITCHED_OFF = "switched_off"
    """A person has switched the workflow off."""
    WORKSPACE_BUSY = "workspace_busy"
    """A job that has not ended works in the workspace."""
    OVER_BUDGET = "over_budget"
    """What jobs may use together is used up; `hit` says what and how much."""


class Applied(msgspec.Struct, frozen=True, kw_only=True):
    """It happened, in one transaction; `rows` are the rows as they are now, `job` the job it is about."""

    rows: tuple[Row, ...]
    job: Job | None = None
    texts: JobTexts | None = None
    """The job's texts, where it was taken: the worker needs them next."""
    deleted: tuple[ScheduleOverride | WorkflowOverride, ...] = ()
    """Rows that are gone now, without what they said. Only overrides are ever deleted."""
    run_id: RunId | None = None
    """The workflow run it is about."""
    then: tuple[Change, ...] = ()
    """What follows from it: decided on the rows as they are then, in the same transaction."""


class Refused(msgspec.Struct, frozen=True, kw_only=True):
    """Nothing changed: what was found instead."""

    why: Why
    message: str
    job: Job | None = None
    hit: Hit | None = None
    run_id: RunId | None = None


Answer = Applied | Refused
