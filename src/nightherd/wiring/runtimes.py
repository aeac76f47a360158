"""The registry of runtimes: what each can do, what makes it, and whether it is installed."""

from __future__ import annotations

from datetime import timedelta
from functools import cache, partial
from importlib.util import find_spec
from typing import TYPE_CHECKING

from nightherd.errors import RefusedError
from nightherd.model.agents.runtime import KnownRuntimes
from nightherd.runtimes.claude.capabilities import CLI, SDK
from nightherd.runtimes.command.capabilities import COMMAND
from nightherd.runtimes.native.capabilities import NATIVE
from nightherd.runtimes.registration import ENTRY_POINTS, RegisteredRuntime, RuntimeContext
from nightherd.runtimes.scripted.capabilities import SCRIPTED

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from importlib.metadata import EntryPoint
    from pathlib import Path

    from nightherd.model.agents.runtime import RuntimeCapabilities, RuntimeName
    from nightherd.model.hooks import ShellCommand
    from nightherd.ports import HookCall, HookResult, Runtime
    from nightherd.runtimes.claude.answer import Price
    from nightherd.runtimes.claude.installation import InstalledClaude
    from nightherd.runtimes.container.containers import Containers
    from nightherd.runtimes.keeper.keepers import Keepers

DOCKER = "aiodocker"
LONGEST_GRACE_S = 3.0
"""How long a process in a container may take to end before it is killed."""
PRICES = "genai_prices"
"""Where it is installed, what Claude's answers cost is estimated as they come."""


def has_price(model: str) -> bool:
    """Whether there are published prices of `model`, written as in an agent's `model` key."""
    if find_spec(PRICES) is None:
        return False
    from nightherd.runtimes.prices import is_published

    return is_published(model)


def find_capabilities(name: str) -> RuntimeCapabilities | None:
    """Return what the runtime called `name` can do; None when there is none that agents can name.

    Loads no vendor's package.
    """
    registered = None if name in BUILT_IN else find_registered(name)
    return None if registered is None else registered.capabilities


def find_registered(name: str) -> RegisteredRuntime | None:
    """Return the runtime called `name`: one of ours, built-in ones too, else one that another package registers.

    Entry points are scanned only for names that are not ours: a scan takes about 50 ms.
    """
    own = RUNTIMES.get(name) or BUILT_IN.get(name)
    if own is not None:
        return own
    try:
        return _load_entry_point(name)
    except LookupError:
        return None


def _entry_points() -> Iterable[EntryPoint]:
    from importlib.metadata import entry_points

    return entry_points(group=ENTRY_POINTS)


@cache
def _load_entry_point(name: str) -> RegisteredRuntime:
    """Load the runtime that another package registers; `LookupError`, which is not cached, when none does."""
    points = [point for point in _entry_points() if point.name == name]
    if not points:
        raise LookupError(name)
    if len(points) > 1:
        modules = " and ".join(point.module for point in points)
        raise RefusedError(f"two packages register runtime {name!r}: {modules}")
    (point,) = points
    try:
        registered = point.load()
    except Exception as error:
        raise RefusedError(
            f"runtime {name!r} cannot be loaded from {point.value}: {type(error).__name__}: {error}"
        ) from error
    if not isinstance(registered, RegisteredRuntime) or registered.capabilities.name != name:
        raise RefusedError(f"{point.value} is not a RegisteredRuntime named {name!r}")
    return registered


def forget_entry_points() -> None:
    """Load runtimes of other packages again, for tests that install and remove them."""
    _load_entry_point.cache_clear()


def runtime_names() -> Sequence[str]:
    """Return the names of all runtimes that agents can name, ours first."""
    others = {point.name for point in _entry_points()} - RUNTIMES.keys() - BUILT_IN.keys()
    return [*RUNTIMES, *sorted(others)]


KNOWN_RUNTIMES = KnownRuntimes(find=find_capabilities, names=runtime_names)
"""What a fleet is loaded with."""


def keeps_claude_transcripts(name: str) -> bool:
    """Return whether the runtime called `name` resumes from transcripts of Claude Code."""
    try:
        capabilities = find_capabilities(name)
    except RefusedError:
        return False
    return capabilities is not None and capabilities.can_resume(CLI.name)


def can_run(name: RuntimeName) -> bool:
    """Return whether the runtime called `name` exists and is installed."""
    registered = find_registered(name)
    return registered is not None and _is_installed(registered.capabilities)


def _is_installed(capabilities: RuntimeCapabilities) -> bool:
    return capabilities.package is None or find_spec(capabilities.package) is not None


def check_runtime(name: RuntimeName) -> None:
    """Raise `RefusedError` when the runtime called `name` is not installed."""
    capabilities = BUILT_IN[name].capabilities if name in BUILT_IN else KNOWN_RUNTIMES.get(name)
    if _is_installed(capabilities):
        return
    extra = capabilities.extra
    what = capabilities.package if extra is None else f"'nightherd[{extra}]'"
    raise RefusedError(
        f"runtime {name!r} is not installed",
        hint=f"pip install {what}, or set `runtime: cli` to use your own `claude`",
    )


class Runtimes:
    """The runtimes of one worker; everything they start is under one of `keepers`."""

    def __init__(
        self, keepers: Keepers, state_dir: Path, grace: timedelta, environ: Mapping[str, str]
    ) -> None:
        self._keepers = keepers
        self._state_dir = state_dir
        self._grace = grace
        self._environ = environ
        self._made: dict[str, Runtime] = {}
        self._containers: Containers | None = None

    def __call__(self, name: RuntimeName) -> Runtime:
        """The runtime called `name`; `RefusedError` when nothing here runs it."""
        made = self._made.get(name)
        if made is None:
            from nightherd.runtimes.placed import PlacedRuntime

            here = runtime_for(name, self._keepers, self._state_dir, self._grace)
            made = self._made[name] = PlacedRuntime(here, partial(self._contained, name))
        return made

    def _contained(self, name: RuntimeName) -> Runtime:
        """The runtime called `name` with its processes in containers."""
        from nightherd.runtimes.container.runtime import ContainerRuntime

        # Everything in a container has ended 5 s after a cancel, whatever the fleet allows outside.
        grace = min(self._grace, timedelta(seconds=LONGEST_GRACE_S))

        def make(keepers: Keepers, claude: InstalledClaude | None) -> Runtime:
            return runtime_for(name, keepers, self._state_dir, grace, claude)

        return ContainerRuntime(self.containers, make, self._state_dir, grace)

    async def run_command_inside(self, command: ShellCommand, call: HookCall) -> HookResult:
        """Run a command in the container that the call names."""
        from nightherd.runtimes.container.commands import run_command_inside

        return await run_command_inside(
            self.containers, self._state_dir, self._grace, command, call
        )

    @property
    def containers(self) -> Containers:
        """The containers of this worker."""
        if self._containers is None:
            self._containers = open_containers(self._state_dir, self._keepers, self._environ)
        return self._containers

    async def close(self) -> None:
        """Close the connections to container engines."""
        if self._containers is not None:
            await self._containers.close()

    def is_loaded(self, name: RuntimeName) -> bool:
        """Whether it is had at once: the first of its kind may take seconds to import."""
        return name in self._made


def open_containers(state_dir: Path, keepers: Keepers, environ: Mapping[str, str]) -> Containers:
    """Return what makes and removes containers; `RefusedError` where that is not installed."""
    if find_spec(DOCKER) is None:
        raise RefusedError("containers are not installed", hint="pip install 'nightherd[docker]'")
    from nightherd.files.paths import directory_identity
    from nightherd.runtimes.container.containers import Containers
    from nightherd.runtimes.container.sockets import find_socket

    return Containers(
        root=state_dir.absolute() / "containers",
        fleet=directory_identity(state_dir),
        keepers=keepers,
        find_socket=partial(find_socket, environ=environ),
    )


def runtime_for(
    name: RuntimeName,
    keepers: Keepers,
    state_dir: Path,
    grace: timedelta,
    claude: InstalledClaude | None = None,
) -> Runtime:
    """The runtime called `name`; everything it starts is under one of `keepers`."""
    check_runtime(name)
    registered = find_registered(name)
    if registered is None:
        raise RefusedError(f"runtime {name!r} is not installed")
    return registered.make(
        RuntimeContext(keepers=keepers, state_dir=state_dir, grace=grace, claude=claude)
    )


def price_estimate() -> Price | None:
    """Return what estimates the cost of Claude's answers; None where the price list is not installed."""
    if find_spec(PRICES) is None:
        return None
    from nightherd.runtimes.prices import estimate

    return estimate


def _cli(context: RuntimeContext) -> Runtime:
    from nightherd.runtimes.claude.answer import no_price
    from nightherd.runtimes.claude.cli import ClaudeCliRuntime

    return ClaudeCliRuntime(
        keepers=context.keepers,
        grace=context.grace,
        transcripts=context.state_dir / "transcripts",
        price=price_estimate() or no_price,
        installed=context.claude,
    )


def _sdk(context: RuntimeContext) -> Runtime:
    from nightherd.runtimes.claude.answer import no_price
    from nightherd.runtimes.claude.sdk import ClaudeSdkRuntime

    return ClaudeSdkRuntime(
        keepers=context.keepers,
        grace=context.grace,
        transcripts=context.state_dir / "transcripts",
        price=price_estimate() or no_price,
        installed=context.claude,
    )


def _native(context: RuntimeContext) -> Runtime:
    from nightherd.runtimes.native.runtime import NativeRuntime

    return NativeRuntime(keepers=context.keepers, grace=context.grace)


def _scripted(context: RuntimeContext) -> Runtime:
    from nightherd.runtimes.scripted.runtime import ScriptedRuntime

    return ScriptedRuntime(keepers=context.keepers, grace=context.grace)


def _command(context: RuntimeContext) -> Runtime:
    from nightherd.runtimes.command.runtime import CommandRuntime

    return CommandRuntime(keepers=context.keepers, grace=context.grace)


RUNTIMES: dict[str, RegisteredRuntime] = {
    runtime.capabilities.name: runtime
    for runtime in (
        RegisteredRuntime(capabilities=SDK, make=_sdk),
        RegisteredRuntime(capabilities=CLI, make=_cli),
        RegisteredRuntime(capabilities=NATIVE, make=_native),
        RegisteredRuntime(capabilities=SCRIPTED, make=_scripted),
    )
}
"""The runtimes of this package, one line each."""

BUILT_IN: dict[str, RegisteredRuntime] = {
    COMMAND.name: RegisteredRuntime(capabilities=COMMAND, make=_command),
}
"""Runtimes that only nightherd itself uses. No agent can name one: its prompt would be a command of the shell."""
