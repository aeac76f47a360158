"""Which class runs which runtime, and what has to be installed for it."""

from __future__ import annotations

from importlib.util import find_spec
from typing import TYPE_CHECKING

from nightherd.errors import RefusedError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from datetime import timedelta
    from pathlib import Path

    from nightherd.model.agents.agent import RuntimeName
    from nightherd.ports import Runtime
    from nightherd.runtimes.claude.answer import Price
    from nightherd.runtimes.keeper.keepers import Keepers


EXTRAS = {"native": ("pydantic_ai", "native"), "sdk": ("claude_agent_sdk", "claude")}
"""What a runtime cannot do without, and the extra of this package that brings it."""


PRICES = "genai_prices"
"""Where it is installed, what Claude's answers cost is estimated as they come."""


def has_price(model: str) -> bool:
    """Whether there are published prices of `model`, written as in an agent's `model` key."""
    if find_spec(PRICES) is None:
        return False
    from nightherd.runtimes.prices import is_published

    return is_published(model)


def can_run(name: RuntimeName) -> bool:
    """Whether something here runs `name`."""
    return name.value in RUNTIMES and _missing_extra(name) is None


def _missing_extra(name: RuntimeName) -> str | None:
    package, extra = EXTRAS.get(name.value, (None, None))
    if package is None or find_spec(package) is not None:
        return None
    return extra


def check_runtime(name: RuntimeName) -> None:
    """`RefusedError` when nothing here runs `name`."""
    extra = _missing_extra(name)
    if extra is not None:
        raise RefusedError(
            f"runtime {name.value!r} is not installed",
            hint=f"pip install 'nightherd[{extra}]', or set `runtime: cli` to use your own `claude`",
        )
    if not can_run(name):
        there = " and ".join(repr(known) for known in RUNTIMES)
        raise RefusedError(
            f"runtime {name.value!r} is not available yet; {there} are",
            hint="set `runtime: cli` to use your own `claude`, or `runtime: scripted` and give a `script:`",
        )


class Runtimes:
    """The runtimes of one worker; everything they start is under one of `keepers`."""

    def __init__(self, keepers: Keepers, state_dir: Path, grace: timedelta) -> None:
        self._keepers = keepers
        self._state_dir = state_dir
        self._grace = grace
        self._made: dict[str, Runtime] = {}

    def __call__(self, name: RuntimeName) -> Runtime:
        """The runtime called `name`; `RefusedError` when nothing here runs it."""
        made = self._made.get(name.value)
        if made is None:
            made = runtime_for(name, self._keepers, self._state_dir, self._grace)
            self._made[name.value] = made
        return made

    def is_loaded(self, name: RuntimeName) -> bool:
        """Whether it is had at once: the first of its kind may take seconds to import."""
        return name.value in self._made


def runtime_for(name: RuntimeName, keepers: Keepers, state_dir: Path, grace: timedelta) -> Runtime:
    """The runtime called `name`; everything it starts is under one of `keepers`."""
    check_runtime(name)
    return RUNTIMES[name.value](keepers, state_dir, grace)


def price_estimate() -> Price | None:
    """Return what estimates the cost of Claude's answers; None where the price list is not installed."""
    if find_spec(PRICES) is None:
        return None
    from nightherd.runtimes.prices import estimate

    return estimate


def _cli(keepers: Keepers, state_dir: Path, grace: timedelta) -> Runtime:
    from nightherd.runtimes.claude.answer import no_price
    from nightherd.runtimes.claude.cli import ClaudeCliRuntime

    return ClaudeCliRuntime(
        keepers=keepers,
        grace=grace,
        transcripts=state_dir / "transcripts",
        price=price_estimate() or no_price,
    )


def _sdk(keepers: Keepers, state_dir: Path, grace: timedelta) -> Runtime:
    from nightherd.runtimes.claude.answer import no_price
    from nightherd.runtimes.claude.sdk import ClaudeSdkRuntime

    return ClaudeSdkRuntime(
        keepers=keepers,
        grace=grace,
        transcripts=state_dir / "transcripts",
        price=price_estimate() or no_price,
    )


def _native(keepers: Keepers, state_dir: Path, grace: timedelta) -> Runtime:
    from nightherd.runtimes.native.runtime import NativeRuntime

    return NativeRuntime(keepers=keepers, grace=grace)


def _scripted(keepers: Keepers, state_dir: Path, grace: timedelta) -> Runtime:
    from nightherd.runtimes.scripted.runtime import ScriptedRuntime

    return ScriptedRuntime(keepers=keepers, grace=grace)


RUNTIMES: Mapping[str, Callable[[Keepers, Path, timedelta], Runtime]] = {
    "cli": _cli,
    "native": _native,
    "sdk": _sdk,
    "scripted": _scripted,
}
"""What makes each runtime; one that is not here is not available."""
