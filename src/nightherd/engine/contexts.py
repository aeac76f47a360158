"""Contexts: the ports that the engine works with, bound once by the wiring.

A function takes the smallest context that has what it uses.
"""

from __future__ import annotations

import operator
from collections.abc import Awaitable, Callable, Collection, Mapping
from typing import Any, Protocol

import msgspec
from anyio import to_thread

from nightherd.engine.workers.lease import Lease
from nightherd.model.agents.agent import Agent, Fleet
from nightherd.model.agents.runtime import RuntimeName
from nightherd.model.checkpoints.persistence import DEFAULT as DEFAULT_PERSISTENCE
from nightherd.model.checkpoints.persistence import Persistence
from nightherd.model.ids import ExecutionId, RandomText, WorkerId
from nightherd.model.jobs.job import Job
from nightherd.model.jobs.outcome import Outcome
from nightherd.model.jobs.retry import PATIENT, RetryPolicy
from nightherd.model.journal.event import Event
from nightherd.model.journal.settings_ref import SettingsRef
from nightherd.model.limits.limits import NO_LIMITS, Limits
from nightherd.model.limits.spending import Prices
from nightherd.model.log import LogLine
from nightherd.model.permissions.protected import ProtectedPaths
from nightherd.model.secrets import Secrets, secrets_of
from nightherd.model.workflows.definition import WorkflowDefinition
from nightherd.model.workflows.rows import PinnedWorkflow
from nightherd.ports import (
    Clock,
    CommandContainer,
    FinishedJournals,
    HookCarrier,
    Journal,
    Journals,
    NoTranscripts,
    NoWorkspaces,
    OperatorLog,
    Runtime,
    SetupCache,
    StateReader,
    StateWriter,
    Transcripts,
    WorkspaceFiles,
)
from nightherd.ports.outgoing_files import OutgoingFiles
from nightherd.ports.work import OpenTracker
from nightherd.views.workflows.gate_artifact import Artifacts

EndExecutions = Callable[[Collection[ExecutionId]], Awaitable[Mapping[ExecutionId, str]]]
"""Ends what executions left running and sees it gone; answers with what could not be ended, and why."""


async def nothing_to_end(executions: Collection[ExecutionId]) -> Mapping[ExecutionId, str]:
    """Take executions for ended."""
    return {}


class AfterJob(Protocol):
    """What is done between the last word of a runtime and the settling of its job."""

    async def after(
        self,
        job: Job,
        agent: Agent,
        context: FleetContext,
        *,
        record: Callable[[Event], Event],
        answer: str | None = None,
        container: CommandContainer | None = None,
    ) -> Outcome | None:
        """`job` stands as it will be settled; another outcome when it is not to be that one."""


class NothingAfter:
    """No hooks at all."""

    async def after(
        self,
        job: Job,
        agent: Agent,
        context: FleetContext,
        *,
        record: Callable[[Event], Event],
        answer: str | None = None,
        container: CommandContainer | None = None,
    ) -> Outcome | None:
        """Nothing is done, and the outcome stays."""
        return None


class NoLog:
    """Nothing is written down."""

    def write(self, line: LogLine) -> None:
        """It is forgotten."""

    def know(self, secrets: Secrets) -> None:
        """Nothing needs masking."""

    def close(self) -> None:
        """Nothing to give back."""


async def sync_in_thread(journal: Journal) -> None:
    """The disk takes its time, and serves many jobs that end together at once."""
    await to_thread.run_sync(journal.sync)


class ThreadFiles(Protocol):
    """Where a job is written as one document, for people and other tools."""

    def write(self, job_id: str, document: Mapping[str, Any], /) -> object:
        """Replace what is there."""


def declare_to_nobody(agents: Mapping[str, str | None]) -> None:
    """Do nothing: the fleet has no readable files."""


NO_SECRETS = Secrets({}, None)

SignOn = Callable[[], Awaitable[tuple[WorkerId, Lease]]]


class Stores(msgspec.Struct, frozen=True, kw_only=True):
    """Where records are read and written."""

    state: StateWriter
    reader: StateReader
    journals: Journals
    clock: Clock
    secrets: Secrets = NO_SECRETS
    """What must not be written."""
    transcripts: Transcripts = msgspec.field(default_factory=NoTranscripts)
    """What runtimes keep of their conversations themselves."""
    finished: FinishedJournals | None = None
    """Where records that are over are written; None where nothing comes from elsewhere."""
    threads: ThreadFiles | None = None
    """Where jobs are written as one document each; None for nowhere."""
    log: OperatorLog = msgspec.field(default_factory=NoLog)
    """Where operators read what happened to which agent and job."""
    version: str = ""
    """The version of nightherd that writes."""


class FleetContext(Stores, frozen=True, kw_only=True):
    """What submitting jobs and keeping them to the fleet's rules needs besides."""

    environment: Mapping[str, str]
    """The environment of the agents' processes."""
    random_text: RandomText
    can_run: Callable[[RuntimeName], bool]
    """Whether there is a runtime by that name here."""
    agents: Mapping[str, Agent] = msgspec.field(default_factory=dict)
    """Those that jobs may have others do work by."""
    withheld: frozenset[str] = frozenset()
    """Agents that are declared and that no person has accepted yet."""
    workflows: Mapping[str, WorkflowDefinition] = msgspec.field(default_factory=dict)
    withheld_workflows: frozenset[str] = frozenset()
    """Workflows that are declared and that no person has accepted yet."""
    home: str = ""
    """The directory of the fleet file."""
    pinned: dict[str, PinnedWorkflow] = msgspec.field(default_factory=dict)
    """Pinned workflows that were read, by hash; they never change."""
    commands_agent: Agent | None = None
    """The built-in agent that runs the commands of workflows; nobody can name it."""
    is_same_directory: Callable[[str, str], bool] = operator.eq
    """Whether two working directories are the same where agents run."""
    directory: str = ""
    """The identity of the state directory, which distinguishes its processes from those of a copy."""
    end_executions: EndExecutions = nothing_to_end
    """Ends what executions left running."""
    fleet_limit: int | None = None
    """How many jobs may run at once, all agents together."""
    budget: Limits = NO_LIMITS
    """What all jobs together may use, ever and in a day."""
    prices: Prices = msgspec.field(default_factory=dict)
    """What models cost, as the fleet file declares it."""
    has_price: Callable[[str], bool] = lambda model: True
    """Whether there are published prices of a model, named as in an agent's `model` key; slow the first time."""
    retry: RetryPolicy = PATIENT
    """What is done about failures that may pass."""
    persistence: Persistence = DEFAULT_PERSISTENCE
    """When bookmarks are put, and how state is written for others to read."""
    artifacts: Artifacts | None = None
    """Reads and replaces what gates of workflows show; None where no files can be read."""
    protected: ProtectedPaths | None = None
    """The same of the fleet at hand."""
    hooks: AfterJob = msgspec.field(default_factory=NothingAfter)
    open_tracker: OpenTracker | None = None
    """Opens the trackers of work sources; None where none can be asked."""
    fleet_name: str = ""
    """What other fleets read about who has an issue."""


class WorkerContext(FleetContext, frozen=True, kw_only=True):
    """What a worker needs to execute jobs."""

    runtimes: Callable[[RuntimeName], Runtime]
    worker: WorkerId
    lease: Lease
    """What says that the worker is alive; lost, its jobs are no longer its own."""
    find_secrets: Callable[[Fleet, Mapping[str, str]], Secrets] = secrets_of
    """Finds the secrets of a changed fleet and its environment."""
    protect: Callable[[Fleet], ProtectedPaths] | None = None
    """Says what the agents of a fleet may not change with file tools."""
    declare: Callable[[Mapping[str, str | None]], None] = declare_to_nobody
    """Called with the agents of the fleet, for status displays; may take a moment."""
    run_job: Callable[..., Awaitable[Job]] | None = None
    """Takes a job that waits, runs it and settles it, as `engine.jobs.runner.run_job` does."""
    is_loaded: Callable[[RuntimeName], bool] = lambda name: True
    """Whether `runtimes` gives that runtime at once; else what it is made of may take seconds to import."""
    sync: Callable[[Journal], Awaitable[None]] = sync_in_thread
    """Brings a journal to the disk without holding anybody up."""
    open_workspaces: Callable[[], WorkspaceFiles] = NoWorkspaces
    """Returns what makes and snapshots the directories that jobs work in; most jobs need none."""
    open_setup_cache: Callable[[], SetupCache] | None = None
    """Returns what remembers the setup commands of workspaces; None where none can be run."""
    commands: HookCarrier | None = None
    """Runs setup commands; None where none can be run."""
    outgoing_files: OutgoingFiles | None = None
    """Keeps files that agents send into conversations; None where they can send none."""
    chat_directory: str | None = None
    """Where files on their way to and from people are kept, by its real path."""
    settings_in: Callable[[Agent], Mapping[str, str]] = lambda agent: {}
    """Returns fingerprints of Claude's settings files in an agent's directory, by name."""
    settings_stored: dict[str, SettingsRef] = msgspec.field(default_factory=dict)
    """Settings of executions that this worker has stored, by their hash."""
    shared_noticed: set[str] = msgspec.field(default_factory=set)
    """Agents about whose shared directory this worker has warned."""
    sign_on: SignOn | None = None
    """Registers this process as a new worker with a lease of its own, after its lease was lost."""

    async def runtime(self, name: RuntimeName) -> Runtime:
        """The runtime called `name`. In a thread where it has to be imported first: heartbeats must continue."""
        if self.is_loaded(name):
            return self.runtimes(name)
        return await to_thread.run_sync(self.runtimes, name)
