"""System subtypes: everything a journal says besides what was said and done, each with its schema."""

from __future__ import annotations

from datetime import datetime
from enum import StrEnum
from typing import Any, ClassVar

import msgspec

from nightherd.model.jobs.job import CHILD_WAITS, SuspendReason
from nightherd.model.journal.session_header import SessionHeader
from nightherd.model.journal.settings_ref import SettingsRef
from nightherd.model.usage import Usage


class SystemSubtype(StrEnum):
    """What a system event is about."""

    HEADER = "header"
    EXECUTION_STARTED = "execution_started"
    CONTEXT = "context"
    TORN_TAIL = "torn_tail"
    INIT = "init"
    USER_INPUT = "user_input"
    TOOL_PROGRESS = "tool_progress"
    AUTH_STATUS = "auth_status"
    COMPACT_BOUNDARY = "compact_boundary"
    WARNING = "warning"
    CHECKPOINT = "checkpoint"
    SUSPENDED = "suspended"
    RESUMED = "resumed"
    RECOVERED = "recovered"
    DENIED = "denied"
    REVIEW = "review"
    HOOK = "hook"
    CONTAINER = "container"
    WORKSPACE = "workspace"
    SETUP = "setup"
    SNAPSHOT = "snapshot"
    SUMMARY = "summary"
    COMPLETE = "complete"
    END = "end"
    SESSION_END = "session_end"


TERMINAL_SUBTYPES = frozenset(
    {SystemSubtype.COMPLETE, SystemSubtype.END, SystemSubtype.SESSION_END}
)


class Payload(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What a system event of one subtype carries in `extra`."""

    subtype: ClassVar[SystemSubtype]


class Header(Payload, frozen=True, kw_only=True, omit_defaults=True):
    """The whole job, on a journal's first line, so that a journal alone explains itself."""

    subtype: ClassVar[SystemSubtype] = SystemSubtype.HEADER
    id: str
    agent: str
    trigger_type: str
    created_at: datetime
    session_id: str | None = None
    trigger_id: str | None = None
    schedule: str | None = None
    forked_from: str | None = None
    resumed_from: str | None = None
    parent_job_id: str | None = None
    workflow_run_id: str | None = None
    node_id: str | None = None
    priority: int = 0
    dedupe_key: str | None = None
    inputs: dict[str, Any] | None = None
    session: SessionHeader | None = None
    nightherd_version: str | None = None


class ExecutionStarted(Payload, frozen=True, kw_only=True, omit_defaults=True):
    """A new owner takes over; lines of lower epochs after this one do not count."""

    subtype: ClassVar[SystemSubtype] = SystemSubtype.EXECUTION_STARTED
    worker: str
    continues_after: int = 0
    settings: SettingsRef | None = None
    """What it was set to do its work with; None where that is not on record."""


class Context(Payload, frozen=True, kw_only=True, omit_defaults=True):
    """A constant of the conversation (instructions, tools, settings), written once and named by hash."""

    subtype: ClassVar[SystemSubtype] = SystemSubtype.CONTEXT
    hash: str
    kind: str
    body: Any = None


class TornTail(Payload, frozen=True, kw_only=True, omit_defaults=True):
    """Bytes of an unfinished line that a killed writer left, cut off and kept here."""

    subtype: ClassVar[SystemSubtype] = SystemSubtype.TORN_TAIL
    offset: int
    fragment: bytes


class Init(Payload, frozen=True, kw_only=True, omit_defaults=True):
    """The runtime has started and says who it is."""

    subtype: ClassVar[SystemSubtype] = SystemSubtype.INIT
    runtime: str
    runtime_session_id: str | None = None
    model: str | None = None
    working_directory: str | None = None
    tools: list[str] | None = None


class UserInput(Payload, frozen=True, kw_only=True, omit_defaults=True):
    """What the agent was asked; the text is the event's content."""

    subtype: ClassVar[SystemSubtype] = SystemSubtype.USER_INPUT
    by: str | None = None
    """`hand` when the prompt was given outside nightherd, in the runtime itself; its answers are marked too."""
    messages: tuple[str, ...] = ()
    """Ids of the chat messages that were said while the agent was at work on the prompt; empty for a prompt."""


class ToolProgress(Payload, frozen=True, kw_only=True, omit_defaults=True):
    """A long-running tool is still at it."""

    subtype: ClassVar[SystemSubtype] = SystemSubtype.TOOL_PROGRESS
    tool_use_id: str | None = None
    elapsed_ms: int | None = None
    task_id: str | None = None
    """The background task that the call has started, when it begins and when it ends."""
    task: str | None = None
    """What the background task does, when it begins."""


class AuthStatus(Payload, frozen=True, kw_only=True, omit_defaults=True):
    """The runtime's standing with its provider changed."""

    subtype: ClassVar[SystemSubtype] = SystemSubtype.AUTH_STATUS
    is_authenticated: bool | None = None
    """None while the login continues: whether it succeeds is not known yet."""


class CompactBoundary(Payload, frozen=True, kw_only=True, omit_defaults=True):
    """The runtime compacted what it sends; the journal keeps everything."""

    subtype: ClassVar[SystemSubtype] = SystemSubtype.COMPACT_BOUNDARY
    trigger: str | None = None
    tokens_before: int | None = None
    messages_preserved: int | None = None


class Warned(Payload, frozen=True, kw_only=True, omit_defaults=True):
    """Something was not as expected and the run went on; the content says what."""

    subtype: ClassVar[SystemSubtype] = SystemSubtype.WARNING
    code: str
    raw: Any = None


class CheckpointSaved(Payload, frozen=True, kw_only=True, omit_defaults=True):
    """A checkpoint: where in the record, and what had been used by then. What it may use is in its row's header."""

    subtype: ClassVar[SystemSubtype] = SystemSubtype.CHECKPOINT
    number: int
    trigger: str
    seq: int = 0
    """The line it points at; 0 in a line of an older nightherd, which said the rest in a row."""
    turn: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    cache_creation_input_tokens: int = 0
    cache_read_input_tokens: int = 0
    cost_microusd: int = 0
    duration_ms: int = 0


class Suspension(Payload, frozen=True, kw_only=True, omit_defaults=True):
    """Why a job waits. What it has done stays done. In the journal the event's content is `message`."""

    subtype: ClassVar[SystemSubtype] = SystemSubtype.SUSPENDED
    reason: SuspendReason
    message: str = ""
    code: str | None = None
    """What exactly was met: `spend_exceeded`, `rate_limited` ..."""
    current_value: float | None = None
    current_max: float | None = None
    until: datetime | None = None
    """When the job resumes by itself; None when a person has to resume it."""
    owner: str | None = None
    """Whose limit was met, when that is something above the job: the id of a job, or an agent or a schedule."""
    is_ahead: bool = False
    """Whether `current_value` is what the next turn could bring it to."""
    is_named: bool = False
    """Whether `until` is the provider's own time and not the end of one of our pauses."""
    limit: str | None = None
    """The provider's name of the usage limit that was hit."""
    login_limit: str | None = None
    """The id of the login's limit that was hit (model/limits/login.py), where it stops other jobs too."""
    is_below: bool = False
    """Whether a job below met the limit: once that one is over, this one resumes by itself."""

    @property
    def ends_with_children(self) -> bool:
        """Whether there is nothing to wait for once no job below it is open."""
        return self.is_below or self.code == CHILD_WAITS


class Resumed(Payload, frozen=True, kw_only=True, omit_defaults=True):
    """The job continues after waiting or an interruption."""

    subtype: ClassVar[SystemSubtype] = SystemSubtype.RESUMED
    reason: str
    after_seq: int = 0


class Recovered(Payload, frozen=True, kw_only=True, omit_defaults=True):
    """An execution was lost and the job was taken over from its record."""

    subtype: ClassVar[SystemSubtype] = SystemSubtype.RECOVERED
    lost_execution: str
    reason: str


class Denied(Payload, frozen=True, kw_only=True, omit_defaults=True):
    """A tool call was not allowed."""

    subtype: ClassVar[SystemSubtype] = SystemSubtype.DENIED
    tool_name: str
    reason: str
    tool_use_id: str | None = None


class Reviewed(Payload, frozen=True, kw_only=True, omit_defaults=True):
    """A call that a person decides about: it waits, or it is decided and about to run or to be refused.

    A call that is on record as `approved` may have run: it is never run again.
    """

    subtype: ClassVar[SystemSubtype] = SystemSubtype.REVIEW
    tool_use_id: str
    item: str
    """The id of the inbox item."""
    status: str
    """`pending`, `approved`, `rejected`, `answered` or `expired`."""
    hash: str = ""
    """Of the call as it was shown."""
    by: str | None = None
    via: str | None = None
    input: dict[str, Any] | None = None
    """The arguments it runs with, where the person changed them."""


class HookRan(Payload, frozen=True, kw_only=True, omit_defaults=True):
    """A hook begins (`success` is not known yet), or has ended with what outcome."""

    subtype: ClassVar[SystemSubtype] = SystemSubtype.HOOK
    name: str
    event: str
    success: bool | None = None
    id: str = ""
    """Its place in the agent's settings, as in `after_run[0]`."""
    duration_ms: int | None = None
    output: str | None = None
    error: str | None = None
    """Why it did not succeed."""
    is_interrupted: bool = False
    """Whether it was cut off with its worker: how far it came is unknown."""
    job_id: str | None = None
    """The job it made, if it submits another agent."""


class WorkspaceUsed(Payload, frozen=True, kw_only=True, omit_defaults=True):
    """The execution works in this workspace; the content says how it was made or found."""

    subtype: ClassVar[SystemSubtype] = SystemSubtype.WORKSPACE
    id: str
    mode: str
    directory: str
    """Where the agent works."""
    origin: str
    """`base`, `snapshot`, `copy`, `empty`: made from that; `kept`: it was there."""
    branch: str | None = None
    base: str | None = None
    base_commit: str | None = None
    from_job: str | None = None
    """With `origin: snapshot`: the job whose files it begins with, and where in its record."""
    from_seq: int | None = None


class SetupStep(Payload, frozen=True, kw_only=True, omit_defaults=True):
    """A setup command of the workspace runs, or is left out; the content says which and why."""

    subtype: ClassVar[SystemSubtype] = SystemSubtype.SETUP
    number: int
    """Its place in the list of commands, from 0."""
    is_copied: bool = False
    """Whether what it makes was copied from an earlier workspace."""


class ContainerStarted(Payload, frozen=True, kw_only=True, omit_defaults=True):
    """The container that what follows runs in."""

    subtype: ClassVar[SystemSubtype] = SystemSubtype.CONTAINER
    container_id: str
    image: str
    image_id: str
    is_reused: bool = False
    """Whether an earlier job of the session ran in it."""


class SnapshotTaken(Payload, frozen=True, kw_only=True, omit_defaults=True):
    """What the files of the workspace were here. Only written when they differ from the snapshot before."""

    subtype: ClassVar[SystemSubtype] = SystemSubtype.SNAPSHOT
    workspace: str
    tree: str
    """The git tree in nightherd's own store of snapshots."""
    at: str
    """`start` of an execution, after a `turn`, or at its `end`."""
    head: str | None = None
    """The commit that the branch of a worktree was at."""
    changed: int = 0
    """How many paths differ from the snapshot before."""
    left_out: list[str] = []
    """Some of the paths that it does not hold."""
    left_out_count: int = 0


class Summary(Payload, frozen=True, kw_only=True, omit_defaults=True):
    """The content stands for all messages up to `covers_message` when the next request is built."""

    subtype: ClassVar[SystemSubtype] = SystemSubtype.SUMMARY
    covers_message: int
    """The number of the last message it stands for, in the whole conversation."""
    tokens_before: int | None = None
    tokens_after: int | None = None
    """How large the conversation is estimated to be with the summary in place of them."""
    written_by: str | None = None
    """What wrote it: the model's name, or `digest` for one that no model was needed for."""


class Complete(Payload, frozen=True, kw_only=True, omit_defaults=True):
    """The runtime is done. `summary` only when it is not simply the last answer."""

    subtype: ClassVar[SystemSubtype] = SystemSubtype.COMPLETE
    summary: str | None = None
    usage: Usage | None = None
    stop_reason: str | None = None
    model_usage: dict[str, Usage] | None = None
    """The same usage by model, where the runtime says so."""
    api_duration_ms: int | None = None
    """How long the provider took to answer, all requests together, where the runtime says so."""


class End(Payload, frozen=True, kw_only=True, omit_defaults=True):
    """The job has ended: the last line of its last execution."""

    subtype: ClassVar[SystemSubtype] = SystemSubtype.END
    status: str
    exit_reason: str


class SessionEnd(Payload, frozen=True, kw_only=True, omit_defaults=True):
    """The runtime closed its session."""

    subtype: ClassVar[SystemSubtype] = SystemSubtype.SESSION_END


PAYLOADS: dict[SystemSubtype, type[Payload]] = {
    payload.subtype: payload
    for payload in (
        Header, ExecutionStarted, Context, TornTail, Init, UserInput, ToolProgress, AuthStatus,
        CompactBoundary, Warned, CheckpointSaved, Suspension, Resumed, Recovered, Denied, Reviewed, HookRan,
        WorkspaceUsed, ContainerStarted, SetupStep, SnapshotTaken, Summary, Complete, End, SessionEnd,
    )
}  # fmt: skip
"""The schema of each subtype."""
