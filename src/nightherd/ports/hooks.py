"""What carries out a hook."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol

import msgspec

from nightherd.model.secrets import NO_SECRETS, Secrets

if TYPE_CHECKING:  # only names: a command that lists jobs must not load what writing them needs
    from collections.abc import Mapping, Sequence

    from nightherd.model.agents.agent import Agent
    from nightherd.model.hooks import HttpRequest, ShellCommand
    from nightherd.model.ids import ExecutionId, JobId, SessionId
    from nightherd.model.permissions.protected import ProtectedPaths


@dataclass(frozen=True, slots=True, kw_only=True)
class CommandContainer:
    """The container that a command runs in: that of the agent whose files it works on, which may have written it."""

    agent: Agent
    session_id: SessionId | None = None
    protected: ProtectedPaths | None = None
    workspace: str | None = None
    """As in `RuntimeRequest`, and so is the next."""
    borrowed: Sequence[str] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class HookCall:
    """What carrying a hook out needs besides the hook itself."""

    id: str
    """The same for the same hook and the same end of a job, however often it is sent."""
    execution: ExecutionId
    event: str
    job_id: JobId
    body: bytes
    """The job's context as JSON, or what the hook sends instead."""
    content_type: str = "application/json"
    working_directory: str
    environment: Mapping[str, str]
    secrets: Secrets = field(default=NO_SECRETS, repr=False)
    """Masked in what the hook answers, before that is cut."""
    container: CommandContainer | None = None
    """Where a command runs; None for this machine."""


class HookResult(msgspec.Struct, frozen=True, kw_only=True):
    """The result of a hook."""

    success: bool
    output: str = ""
    error: str | None = None
    job_id: JobId | None = None
    """The job it made, if it makes one."""
    notices: tuple[str, ...] = ()
    """What belongs into the journal besides: hosts that its container was refused."""


class HookCarrier(Protocol):
    """Carries out hooks that leave the process. Failures are results; `FencedError` when the lease is over."""

    async def run_command(self, command: ShellCommand, call: HookCall) -> HookResult:
        """Run a command to its end or its timeout; nothing it started is left when it returns."""

    async def send(self, request: HttpRequest, call: HookCall) -> HookResult:
        """Send a request, again after a failure that may pass, until it is taken or given up."""

    async def read_metadata(self, agent: Agent) -> Mapping[str, Any]:
        """What the agent's metadata file says now; empty when there is none, or nothing usable in it."""
