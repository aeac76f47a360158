"""Tool: one thing an agent may do, what it is told about where it does it, and how it answers."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from nightherd.model.event import FullOutput
from nightherd.model.secret import NO_SECRETS, Secrets
from nightherd.model.spawn import SpawnCall, SpawnResult
from nightherd.ports.runtime import no_children
from nightherd.runtimes.keeper.keepers import Keepers

if TYPE_CHECKING:
    from nightherd.ports.runtime import KeepOutput


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolContext:
    """Where and for whom a call runs."""

    working_directory: Path
    tool_use_id: str
    more_directories: tuple[Path, ...] = ()
    """Where else files may be read and changed."""
    marks: Mapping[str, str] = field(default_factory=dict)
    """Variables every process of the run carries, by which its processes are found again."""
    environment: Mapping[str, str] = field(default_factory=dict)
    """The whole environment of processes the tool starts; the marks are added to it."""
    grace: timedelta = timedelta(seconds=2)
    """How long a process that is told to stop may take before it is killed."""
    keepers: Keepers = field(default_factory=Keepers)
    """The run's: what a call leaves in the background goes on until they are stopped."""
    keep_output: KeepOutput | None = None
    """Stores an output of which the result has only the ends; None where nothing can be stored."""
    secrets: Secrets = NO_SECRETS
    """Masked in an output before it is cut."""
    spawn: Callable[[SpawnCall], Awaitable[SpawnResult]] = no_children
    """Has another agent do a part of the work."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolOutcome:
    """What a call came to. A failure has an `error`, and may have a `result` as far as it got."""

    result: str | None = None
    success: bool = True
    error: str | None = None
    full_output: FullOutput | None = None
    """Where all of an output is of which `result` has only the ends."""
    is_killed: bool = False
    """Whether something outside the run killed it (SIGKILL), so that it ended before it was done."""


def failed(error: str, result: str | None = None, *, is_killed: bool = False) -> ToolOutcome:
    """The outcome of a call that did not do what it was asked, and why."""
    return ToolOutcome(result=result, success=False, error=error, is_killed=is_killed)


class Tool(Protocol):
    """One thing an agent may do."""

    @property
    def name(self) -> str:
        """What agents call it."""

    @property
    def starts_processes(self) -> bool:
        """Whether something it started may still run when the call has been answered."""

    @property
    def is_read_only(self) -> bool:
        """Whether a call only looks: it may be made beside others, and again when it was cut off."""

    async def run(self, input: Mapping[str, Any], context: ToolContext) -> ToolOutcome:
        """Do it. What goes wrong is an outcome; cancelling stops everything the call started."""
