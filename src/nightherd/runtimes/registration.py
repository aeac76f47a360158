"""How a runtime is registered: what it can do, and the function that makes it.

A package outside nightherd names a `RegisteredRuntime` by an entry point of the group `nightherd.runtimes`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from nightherd.model.agents.runtime import RuntimeCapabilities

if TYPE_CHECKING:
    from collections.abc import Callable
    from datetime import timedelta
    from pathlib import Path

    from nightherd.ports import Runtime
    from nightherd.runtimes.claude.installation import InstalledClaude
    from nightherd.runtimes.keeper.keepers import Keepers

ENTRY_POINTS = "nightherd.runtimes"
"""The group of entry points in which other packages register runtimes, by name."""


class RuntimeContext(msgspec.Struct, frozen=True, kw_only=True):
    """What a runtime gets from the worker that it belongs to."""

    keepers: Keepers
    """Starts processes that end with the worker; a runtime starts none by any other way."""
    state_dir: Path
    grace: timedelta
    """How long what is cancelled may take to end before it is killed."""
    claude: InstalledClaude | None = None
    """The `claude` at the place where keepers start it, when that is a container."""


class RegisteredRuntime(msgspec.Struct, frozen=True, kw_only=True):
    """A runtime that agents can name. Importing the module that holds it must be cheap."""

    capabilities: RuntimeCapabilities
    make: Callable[[RuntimeContext], Runtime]
    """Called once in each worker that runs such an agent; imports the vendor's package."""
