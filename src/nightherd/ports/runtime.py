"""What executes an agent: what it is asked, what it may ask back, and the events it gives."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

import msgspec

from nightherd.model.children import SpawnResult
from nightherd.model.inbox.review import Proceed, Refuse
from nightherd.model.secrets import secrets_of_agents

if TYPE_CHECKING:  # only names: a command that lists jobs must not load what writing them needs
    from collections.abc import AsyncGenerator, Awaitable, Callable, Iterator, Mapping, Sequence

    from nightherd.model.agents.agent import Agent
    from nightherd.model.agents.mcp import InjectedMcpServerDef
    from nightherd.model.checkpoints.checkpoint import TriggerPoint
    from nightherd.model.children import SpawnCall
    from nightherd.model.ids import ExecutionId, JobId, SessionId
    from nightherd.model.inbox.review import ProposedCall, Verdict
    from nightherd.model.journal.event import Event, FullOutput
    from nightherd.model.limits.limits import Shortfall
    from nightherd.model.limits.spending import Prices
    from nightherd.model.permissions.protected import ProtectedPaths
    from nightherd.model.secrets import Secrets

    KeepOutput = Callable[[Iterator[str], int], Awaitable[FullOutput]]


def no_history() -> Iterator[Event]:
    """Return no earlier events."""
    return iter(())


async def nothing_at(point: TriggerPoint) -> None:
    """Ignore where the run is."""


async def no_children(call: SpawnCall) -> SpawnResult:
    """Refuse to start child jobs."""
    return SpawnResult(success=False, error="no jobs can be made from here")


async def nobody_to_ask(call: ProposedCall) -> Verdict:
    """Refuse every call that needs a person."""
    if call.is_allowed:
        return Proceed()
    return Refuse(reason="it needs a person's approval, and nobody can be asked from here")


class NewInput(msgspec.Struct, frozen=True, kw_only=True):
    """What a person said to an agent that is at work. It is on record."""

    uuid: str
    """Names it in the record; a runtime gives it the same name in its own conversation."""
    text: str


async def no_input() -> Sequence[NewInput]:
    """Have nothing more to say."""
    return ()


def ignore_event(event: Event) -> None:
    """Ignore an event."""


async def no_limit(microusd: int | None, tokens: int) -> Shortfall | None:
    """Set no limit."""
    return None


class TextStream(Protocol):
    """Takes an answer of the agent itself as it comes in; the events record it when it is whole."""

    def begin(self) -> None:
        """An answer begins. What was taken before and is in no event will not come."""

    def add(self, block: int, text: str) -> None:
        """More of text block `block` has come."""


class NoTextStream:
    """Ignore streamed text."""

    def begin(self) -> None:
        """Ignored."""

    def add(self, block: int, text: str) -> None:
        """Ignored."""


class RuntimeFork(msgspec.Struct, frozen=True, kw_only=True):
    """The conversation that a run begins with a branch of; the original is not touched."""

    runtime_session_id: str
    at_uuid: str | None = None
    """The last message of the original that belongs to the branch, by the runtime's own name; None for all."""


class RuntimeRequest(msgspec.Struct, frozen=True, kw_only=True):
    """What a runtime needs to execute one agent for one job."""

    job_id: JobId
    execution: ExecutionId
    session_id: SessionId | None = None
    """The session that the job belongs to."""
    agent: Agent
    prompt: str
    session_turns: int = 0
    """Turns already in the session, by earlier jobs and earlier executions of this one."""
    job_turns: int = 0
    """Of these, the turns of this job; the next turn of the job is one more."""
    runtime_session_id: str | None = None
    values: Mapping[str, str] = msgspec.field(default_factory=dict)
    """Run-time values for templates: repo and inputs."""
    inputs: Mapping[str, Any] = msgspec.field(default_factory=dict)
    """The inputs of the job, as they were given."""
    environment: Mapping[str, str] = msgspec.field(default_factory=dict)
    """The whole environment of processes the agent starts."""
    outside: Mapping[str, str] | None = None
    """The environment outside of the agent's container, for a runtime that asks its model itself; None without a container."""
    fork: RuntimeFork | None = None
    """Set when the session begins with this run as a branch of another one."""
    is_continued: bool = False
    """Whether an earlier run of this job has begun: the session may know the prompt already."""
    follow_up: str | None = None
    """The prompt that the job was resumed with, as long as no answer to it is recorded."""
    history: Callable[[], Iterator[Event]] = no_history
    """Everything said in the session so far, first to last: earlier jobs, earlier runs of this one, and what
    it is asked now (`prompt` or `follow_up`), which is on record before the run begins."""
    injected_servers: Sequence[InjectedMcpServerDef] = ()
    """Tools that the caller gives to this run alone."""
    at: Callable[[TriggerPoint], Awaitable[None]] = nothing_at
    """Called with where the run is; the run continues when it returns."""
    may_spend: Callable[[int | None, int], Awaitable[Shortfall | None]] = no_limit
    """Asked before a model is: the worst case in micro-dollars (None when the model's price is unknown) and
    tokens. None when the turn may begin, else why not and how much is left."""
    secrets: Secrets | None = None
    """What must not be written, nor sent to a model; None for what the environment says."""
    prices: Prices = msgspec.field(default_factory=dict)
    """What models cost by the fleet file; it wins over published prices."""
    late: Callable[[Event], None] = ignore_event
    """Called, before the iteration is closed, with what becomes known only when the run is stopped: its cost."""
    repeat: frozenset[str] = frozenset()
    """Calls of the last answer on record that were cut off with an earlier run and are to be made again, by id."""
    spend_left: int | None = None
    """Micro-dollars left for the job, for a runtime that cannot ask before it spends; None for no end."""
    turns_left: int | None = None
    """Turns left for the job, likewise: the runtime stops by itself there, however late it is heard."""
    protected: ProtectedPaths | None = None
    """What the agent may not change with file tools, whatever it is allowed; None where no fleet is known."""
    workspace: str | None = None
    """The workspace that the working directory is in, or is itself; None for the agent's own directory."""
    borrowed: Sequence[str] = ()
    """Directories outside of the working directory that are only read there: objects of the user's repository, files of people.

    In a container they are read-only, also those that are among the agent's `add_dirs`.
    """
    keep_output: KeepOutput | None = None
    """Stores an output that is too long for a result; takes its pieces and how many bytes it lacks."""
    spawn: Callable[[SpawnCall], Awaitable[SpawnResult]] = no_children
    """Has another agent do a part of the work, and comes back when that is done."""
    review: Callable[[ProposedCall], Awaitable[Verdict]] = nobody_to_ask
    """Asks a person about a call that is on record. On `Wait` the run ends without a terminal event."""
    take_input: Callable[[], Awaitable[Sequence[NewInput]]] = no_input
    """What was said to the agent since this was last called. A runtime that can give it to an agent at work asks
    when the result of a call is on record; what it is given the agent gets, in this run or a later one of the job."""
    stream: TextStream = msgspec.field(default_factory=NoTextStream)
    """Takes the text of answers while they come in."""

    def known_secrets(self) -> Secrets:
        """Return what must not be written; without `secrets`, what the agent and the environment hold."""
        if self.secrets is not None:
            return self.secrets
        return secrets_of_agents([self.agent], self.environment)


class Runtime(Protocol):
    """What executes an agent."""

    def execute(self, request: RuntimeRequest) -> AsyncGenerator[Event, None]:
        """The events of the run, in order, each yielded before what it announces is done.

        Ends after a terminal event. Cancelling the iteration stops the agent and everything it started.
        """
