"""What carries hooks out on this machine."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from anyio import to_thread

from nightherd.files.path_safety import follow
from nightherd.model.agent import Agent
from nightherd.model.hook import HttpRequest, ShellCommand
from nightherd.ports import Clock, HookCall, HookResult
from nightherd.runtimes.hooks.command import run_command
from nightherd.runtimes.hooks.request import FIRST_PAUSE_S, send
from nightherd.runtimes.keeper.keepers import Keepers

METADATA_LIMIT = 1024 * 1024


class LocalHookCarrier:
    """Commands under `keepers`, requests over HTTP, metadata from the agent's working directory."""

    def __init__(
        self, *, keepers: Keepers, clock: Clock, first_pause_s: float = FIRST_PAUSE_S
    ) -> None:
        self._keepers = keepers
        self._clock = clock
        self._first_pause_s = first_pause_s

    async def run_command(self, command: ShellCommand, call: HookCall) -> HookResult:
        """Run a command to its end or its timeout."""
        return await run_command(command, call, self._keepers)

    async def send(self, request: HttpRequest, call: HookCall) -> HookResult:
        """Send a request until it is taken or given up."""
        return await send(request, call, self._clock, first_pause_s=self._first_pause_s)

    async def read_metadata(self, agent: Agent) -> Mapping[str, Any]:
        """The agent's metadata file, when it is a JSON object of reasonable size inside its directory."""
        if agent.metadata_file is None:
            return {}
        return await to_thread.run_sync(_read, agent.working_directory, agent.metadata_file)


def _read(directory: str, name: str) -> Mapping[str, Any]:
    try:
        root = follow(Path(directory))
        path = follow(root / name)
        if not path.is_relative_to(root):
            return {}
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        with os.fdopen(descriptor, "rb") as file:
            data = file.read(METADATA_LIMIT + 1)
        found = json.loads(data) if len(data) <= METADATA_LIMIT else None
    except (
        OSError,
        ValueError,
        RuntimeError,
    ):  # also for links that lead in circles, and deep nests
        # The agent writes this file, or does not; nothing in it is worth failing a job for.
        return {}
    return found if isinstance(found, dict) else {}
