"""Tool: one thing an agent may do, the context it runs in, and its result."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import msgspec

from nightherd.errors import InvalidValueError
from nightherd.model.children import SpawnCall, SpawnResult
from nightherd.model.journal.event import FullOutput
from nightherd.model.secrets import NO_SECRETS, Secrets
from nightherd.ports.runtime import no_children
from nightherd.runtimes.keeper.keepers import Keepers

if TYPE_CHECKING:
    from nightherd.ports.runtime import KeepOutput


class ToolContext(msgspec.Struct, frozen=True, kw_only=True):
    """Where and for whom a call runs."""

    working_directory: Path
    tool_use_id: str
    more_directories: tuple[Path, ...] = ()
    """Where else files may be read and changed."""
    marks: Mapping[str, str] = msgspec.field(default_factory=dict)
    """Variables every process of the run carries, by which its processes are found again."""
    environment: Mapping[str, str] = msgspec.field(default_factory=dict)
    """The whole environment of processes the tool starts; the marks are added to it."""
    grace: timedelta = timedelta(seconds=2)
    """How long a process may take to stop before it is killed."""
    keepers: Keepers = msgspec.field(default_factory=Keepers)
    """The run's: what a call leaves in the background continues until they are stopped."""
    keep_output: KeepOutput | None = None
    """Stores an output of which the result has only the ends; None where nothing can be stored."""
    secrets: Secrets = NO_SECRETS
    """Masked in an output before it is cut."""
    spawn: Callable[[SpawnCall], Awaitable[SpawnResult]] = no_children
    """Has another agent do a part of the work."""


class ToolOutcome(msgspec.Struct, frozen=True, kw_only=True):
    """The result of a call. A failure has an `error`, and may have a `result` as far as it got."""

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


class Arguments:
    """A call's input. Each question gives a value of the right type or raises `InvalidValueError`."""

    def __init__(self, tool: str, input: Mapping[str, Any], allowed: tuple[str, ...]) -> None:
        self._tool = tool
        self._input = input
        unknown = sorted(str(name) for name in input if name not in allowed)
        if unknown:
            raise InvalidValueError(
                f"{tool} has no input {unknown[0]!r}; its inputs are {', '.join(allowed)}"
            )

    def text(self, name: str) -> str:
        """A text that has to be given; it may be empty."""
        value = self._input.get(name)
        if not isinstance(value, str):
            raise self._wrong(name, "a text")
        return value

    def text_or(self, name: str, otherwise: str) -> str:
        """A text, or `otherwise` when absent."""
        return otherwise if self._input.get(name) is None else self.text(name)

    def flag(self, name: str) -> bool:
        """True or false; false when absent."""
        value = self._input.get(name, False)
        if not isinstance(value, bool):
            raise self._wrong(name, "true or false")
        return value

    def count(self, name: str) -> int | None:
        """A whole number from 1, or None when absent."""
        value = self._input.get(name)
        if value is None:
            return None
        if isinstance(value, bool) or not isinstance(value, int) or value < 1:
            raise self._wrong(name, "a whole number from 1")
        return value

    def _wrong(self, name: str, wanted: str) -> InvalidValueError:
        if name not in self._input:
            return InvalidValueError(f"{self._tool} needs the input {name!r}: {wanted}")
        given = type(self._input[name]).__name__
        return InvalidValueError(f"{self._tool}: {name!r} must be {wanted}, not {given}")
