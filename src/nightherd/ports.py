"""THE DOORWAYS: what the engine and the views need from the world, as small protocols.

Reading state is synchronous, writing and running are asynchronous; nothing has both. Adapters implement
these in the ring outside; `wiring.py` chooses them; `nightherd.testing` has a contract suite for each.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:  # only names: a command that lists jobs must not load what writing them needs
    from collections.abc import (
        AsyncGenerator,
        Awaitable,
        Callable,
        Collection,
        Iterable,
        Iterator,
        Mapping,
        Sequence,
    )
    from contextlib import AbstractContextManager
    from datetime import datetime

    from nightherd.model.agent import Agent
    from nightherd.model.agent_state import AgentState
    from nightherd.model.change import Answer, Change
    from nightherd.model.checkpoint import Checkpoint
    from nightherd.model.delivery import Delivery
    from nightherd.model.event import Event
    from nightherd.model.execution import Execution
    from nightherd.model.hook import HttpRequest, ShellCommand
    from nightherd.model.ids import ExecutionId, JobId, SessionId, WorkerId
    from nightherd.model.job import Job, JobQuery, JobStatus, JobTexts
    from nightherd.model.limits import Used
    from nightherd.model.log import LogLine
    from nightherd.model.mcp import InjectedMcpServerDef
    from nightherd.model.schedule import ScheduleOverride, ScheduleState, Slot
    from nightherd.model.session import Session, SessionQuery
    from nightherd.model.suspension import Suspension
    from nightherd.model.trigger_point import TriggerPoint
    from nightherd.model.worker import Worker


class Clock(Protocol):
    """Where time comes from."""

    def now(self) -> datetime:
        """This instant, aware and in UTC."""

    def monotonic(self) -> float:
        """Seconds that only ever grow, for measuring how long something took."""


class Probe(Protocol):
    """Named points where the world may end; production passes one that does nothing."""

    def __call__(self, point: str, /) -> None: ...


def no_probe(point: str) -> None:
    """The probe of production: the world goes on."""


class JobList(Protocol):
    """The questions that lists of jobs and looking one up need. Lists never read texts."""

    def find_job(self, job_id: JobId) -> Job | None: ...
    def find_texts(self, job_id: JobId) -> JobTexts | None: ...
    def list_jobs(self, query: JobQuery) -> Sequence[Job]: ...
    def job_ids(self, prefix: str, limit: int) -> Sequence[JobId]:
        """Ids that begin with `prefix`, newest first, at most `limit`."""

    def close(self) -> None: ...


class JobReader(JobList, Protocol):
    """Every question about jobs."""

    def list_executions(self, job_id: JobId) -> Sequence[Execution]:
        """A job's executions, first to last."""

    def list_checkpoints(self, job_id: JobId) -> Sequence[Checkpoint]:
        """A job's checkpoints, first to last."""


class SessionReader(Protocol):
    """Questions about sessions."""

    def find_session(self, session_id: SessionId) -> Session | None: ...
    def list_sessions(self, query: SessionQuery) -> Sequence[Session]:
        """Sessions newest first; those that were cleaned up are left out."""

    def session_ids(self, prefix: str, limit: int) -> Sequence[SessionId]:
        """Sessions whose id, or whose runtime's id, begins with `prefix`, at most `limit`."""

    def sessions_of_parent(self, session_id: SessionId) -> Sequence[Session]:
        """The sessions forked from this one, first to last."""

    def sessions_to_expire(self, at: datetime, limit: int) -> Sequence[Session]:
        """Sessions that wait and whose time has come by `at`, to the millisecond, the longest unused first."""

    def jobs_of_session(self, session_id: SessionId) -> Sequence[Job]:
        """The session's jobs that ever began, in the order in which they did."""

    def sessions_of_runtime(self, runtime_session_id: str) -> Sequence[Session]:
        """The sessions known to their runtime by this id, newest first."""


class FleetReader(Protocol):
    """Questions about what the fleet is doing."""

    def list_agents(self) -> Sequence[AgentState]:
        """Every agent that ever had a job, by name."""

    def list_schedules(self, agent: str | None = None) -> Sequence[ScheduleState]:
        """The agent's schedules that were ever planned, fired or switched, by name; all agents' without one."""

    def list_overrides(self) -> Sequence[ScheduleOverride]:
        """What somebody set about schedules beside the fleet file, by key."""

    def list_slots(self, schedule_id: str, limit: int) -> Sequence[Slot]:
        """The schedule's slots, newest due first."""

    def list_deliveries(self, endpoint: str, limit: int) -> Sequence[Delivery]:
        """What came in by the endpoint, newest first."""

    def has_waiting_job(self, agents: Collection[str]) -> bool:
        """Whether a job of one of `agents` waits; cheap enough to ask all the time."""

    def count_open_jobs(self) -> Mapping[tuple[str, JobStatus], int]:
        """How many jobs have not ended, by agent and status; what has ended costs nothing."""

    def running_jobs(self, worker: WorkerId) -> Sequence[Job]:
        """The worker's running jobs, first submitted first."""

    def jobs_to_wake(self, at: datetime, limit: int) -> Sequence[JobId]:
        """Suspended jobs whose time has come, the longest waiting first."""

    def jobs_to_cancel(self, worker: WorkerId) -> Sequence[JobId]:
        """The worker's running jobs that somebody wants to end."""

    def live_workers(self) -> Sequence[Worker]:
        """Workers that have not ended, by their own account."""


class SpendingReader(Protocol):
    """Questions about what was used."""

    def jobs_of_parent(self, job_id: JobId) -> Sequence[Job]:
        """The jobs that a job has made, first to last."""

    def spent(self, day: str | None, agent: str | None, schedule: str | None) -> Used:
        """What was used on a day, or ever: by an agent and for a schedule, where they are named."""

    def used_below(self, job_id: JobId) -> Used:
        """What all jobs below a job have used and set aside; `spawns` counts them."""

    def jobs_with_checkpoints(self) -> Sequence[JobId]:
        """Every job that ever had a checkpoint."""


class StateReader(JobReader, SessionReader, FleetReader, SpendingReader, Protocol):
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


@dataclass(frozen=True, slots=True, kw_only=True)
class LedgerEntry:
    """One committed change: its number, and every row it wrote as it was then."""

    change: int
    at: datetime
    kind: str
    rows: Sequence[tuple[str, Mapping[str, Any]]]
    """Table and row image: column names to plain JSON values."""


class ChangeFeed(Protocol):
    """Every committed change in order: what followers of state read."""

    def read(self, *, after: int = 0) -> Iterator[LedgerEntry]:
        """Entries with a number above `after`, as far as the ledger goes now."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BadLine:
    """A line of a journal that is no event: where it is and why it cannot be read. It stays in the file."""

    offset: int
    length: int
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Findings:
    """What reading a whole journal came across. Only `bad_lines` and `missing` mean damage."""

    events: int = 0
    last_seq: int = 0
    epoch: int = 0
    fenced: int = 0
    """Lines of a writer that had lost the job to a later epoch; ignored."""
    repeated: int = 0
    """Lines whose number was taken; their writer saw that and wrote them again under the next one."""
    missing: int = 0
    """Sequence numbers that no readable line has."""
    torn: int = 0
    """Fragments of killed writers, cut out and kept in `torn_tail` events."""
    bad_lines: tuple[BadLine, ...] = ()


class OperatorLog(Protocol):
    """Where what operators may want to know is written down. Never fails, and nothing depends on it."""

    def write(self, line: LogLine) -> None:
        """Add a line, secrets masked."""

    def close(self) -> None: ...


class Mirror(Protocol):
    """The readable files, kept up with state and journals."""

    def start(self) -> None:
        """Follow from now on, in a thread of its own."""

    def stop(self) -> object:
        """Stop following, after everything committed before this call is in the files."""

    def catch_up(self) -> object:
        """Bring the files up to everything committed before this call."""

    def rebuild(self) -> object:
        """Delete the files and make them again."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Process:
    """One process of one boot of one machine, and of no other."""

    host: str
    pid: int
    started: str
    boot_id: str


class Journal(Protocol):
    """One job's log, open for appending by one execution."""

    @property
    def last_seq(self) -> int:
        """The sequence number of the last line; 0 when there is none."""

    def append(self, event: Event) -> Event:
        """Stamp `event`, write its line, return it as written. A returned event survives SIGKILL.

        It also counts for every reader from then on: when a later epoch has written already, this raises
        `FencedError` instead, here and on every later call, and readers ignore what was attempted.
        """

    def sync(self) -> None:
        """Everything appended survives a power cut from here on (not with durability `process`)."""

    def close(self) -> None: ...


class Wait(Protocol):
    """How a follower waits for more: `threading.Event().wait` fits."""

    def __call__(self, timeout: float, /) -> bool:
        """Wait at most `timeout` seconds; True means stop following."""


class Tail(Protocol):
    """A place in a journal that moves on with each `poll`."""

    def poll(self) -> Sequence[Event]:
        """The next events there are, at most a block of them; empty when there is nothing new by now."""

    def close(self) -> None: ...


class Journals(Protocol):
    """All journals of a state directory.

    Bodies too large for a line are read when `load_blobs` says so; else the event comes without them.
    """

    def open(self, job_id: JobId, *, epoch: int, execution: ExecutionId) -> Journal:
        """The job's journal, repaired where a killed writer left half a line, ready to append.

        `FencedError` when a later epoch has written already. Earlier epochs are shut out by the first
        line appended, not by opening: read what happened before only after that line is written.
        """

    def read(self, job_id: JobId, *, after: int = 0, load_blobs: bool = True) -> Iterator[Event]:
        """Every event after `after`, in order; nothing when the job has no journal yet."""

    def last(self, job_id: JobId, count: int, *, load_blobs: bool = False) -> Sequence[Event]:
        """The last `count` events, without reading the rest."""

    def follow(
        self, job_id: JobId, *, after: int = 0, wait: Wait, load_blobs: bool = False
    ) -> Iterator[Event]:
        """Every event after `after`, then each new one as it is written, until `wait` says stop.

        The journal need not exist yet. Events come once each and in order, whoever writes them.
        """

    def follower(self, job_id: JobId, *, after: int = 0, load_blobs: bool = False) -> Tail:
        """The same without the waiting, for callers with a loop of their own."""

    def seq_of_message(self, job_id: JobId, message: int) -> int | None:
        """The number of the event that ends message `message`; None when it has not ended, or never began.

        Found without reading the rest. What a killed writer left of a message is no message, and whoever
        records must number them in order: one more than those that have ended.
        """

    def job_ids(self) -> Iterator[JobId]:
        """Every job that has a journal, in no particular order."""

    def examine(self, job_id: JobId) -> Findings:
        """What a reading of the whole journal comes across: lines ignored, lines damaged."""


class FinishedJournals(Protocol):
    """Where records that are over already, and came from elsewhere, are written as whole journals."""

    def write(self, job_id: JobId, events: Iterable[Event]) -> None:
        """The job's journal is exactly `events` once this returns, whatever was there; before that, nothing is.

        The events come numbered and stamped, and are consumed as they are written.
        """

    def sync(self) -> None:
        """Every journal written so far survives a power cut from here on."""


class TranscriptDraft(Protocol):
    """A raw copy being written."""

    @property
    def extends_old(self) -> bool:
        """Whether the copy that is there is the beginning of this one: nothing would be lost."""

    def write(self, block: bytes, /) -> None:
        """The next bytes."""

    def keep(self) -> None:
        """It gets its place, as a whole, when the shelf is synced; without this it is dropped."""


class TranscriptShelf(Protocol):
    """Raw copies of the transcripts that runtimes keep themselves, by name."""

    def is_current(self, name: str, *, size: int, modified_ns: int) -> bool:
        """Whether the copy was marked for a source of this size and time."""

    def draft(self, name: str) -> AbstractContextManager[TranscriptDraft]:
        """A new copy to be written; dropped at the end of the block unless it was kept."""

    def sync(self) -> None:
        """Every copy kept so far is in its place, and survives a power cut, from here on."""

    def mark(self, name: str, *, modified_ns: int) -> None:
        """The copy, and what was recorded from it, is as the source was at this time."""


def no_history() -> Iterator[Event]:
    """Nothing was said before."""
    return iter(())


async def nothing_at(point: TriggerPoint) -> None:
    """Nobody wants to know where the run is."""


async def no_limit(microusd: int, tokens: int) -> Suspension | None:
    """As much as it likes."""
    return None


@dataclass(frozen=True, slots=True, kw_only=True)
class RuntimeFork:
    """The conversation that a run begins with a branch of; the original is not touched."""

    runtime_session_id: str
    at_uuid: str | None = None
    """The last message of the original that belongs to the branch, by the runtime's own name; None for all."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RuntimeRequest:
    """What a runtime needs to execute one agent for one job."""

    job_id: JobId
    execution: ExecutionId
    agent: Agent
    prompt: str
    session_turns: int = 0
    """Turns already in the session, by earlier jobs and earlier executions of this one."""
    job_turns: int = 0
    """Of these, the turns of this job; the next turn of the job is one more."""
    runtime_session_id: str | None = None
    values: Mapping[str, str] = field(default_factory=dict)
    """Run-time values for templates: repo and inputs."""
    environment: Mapping[str, str] = field(default_factory=dict)
    """The whole environment of processes the agent starts."""
    fork: RuntimeFork | None = None
    """Set when the session begins with this run as a branch of another one."""
    is_continued: bool = False
    """Whether an earlier run of this job has begun: the session may know the prompt already."""
    follow_up: str | None = None
    """What the job was told when it was resumed, as long as no answer to it is on record."""
    history: Callable[[], Iterator[Event]] = no_history
    """Everything said in the session so far, first to last: earlier jobs, earlier runs of this one, and what
    it is asked now (`prompt` or `follow_up`), which is on record before the run begins."""
    injected_servers: Sequence[InjectedMcpServerDef] = ()
    """Tools that whoever started the job gives to this run alone."""
    at: Callable[[TriggerPoint], Awaitable[None]] = nothing_at
    """Told where the run is, and done with it before the run goes on."""
    may_spend: Callable[[int, int], Awaitable[Suspension | None]] = no_limit
    """Asked before a model is: worst case in micro-dollars and tokens; why not, or None when it may."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HookCall:
    """What carrying a hook out needs besides the hook itself."""

    id: str
    """The same for the same hook and the same end of a job, however often it is sent."""
    execution: ExecutionId
    event: str
    job_id: JobId
    body: bytes
    """The job's context as JSON."""
    working_directory: str
    environment: Mapping[str, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class HookResult:
    """What a hook came to."""

    success: bool
    output: str = ""
    error: str | None = None
    job_id: JobId | None = None
    """The job it made, if it makes one."""


class HookCarrier(Protocol):
    """Carries out hooks that leave the process. Failures are results; `FencedError` when the lease is over."""

    async def run_command(self, command: ShellCommand, call: HookCall) -> HookResult:
        """Run a command to its end or its timeout; nothing it started is left when it returns."""

    async def send(self, request: HttpRequest, call: HookCall) -> HookResult:
        """Send a request, again after a failure that may pass, until it is taken or given up."""

    async def read_metadata(self, agent: Agent) -> Mapping[str, Any]:
        """What the agent's metadata file says now; empty when there is none, or nothing usable in it."""


class Runtime(Protocol):
    """What executes an agent."""

    def execute(self, request: RuntimeRequest) -> AsyncGenerator[Event, None]:
        """The events of the run, in order, each yielded before what it announces is done.

        Ends after a terminal event. Cancelling the iteration stops the agent and everything it started.
        """
