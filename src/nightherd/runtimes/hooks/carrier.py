"""What carries hooks out on this machine."""

from __future__ import annotations

import json
import os
import signal
import subprocess
from collections.abc import Mapping
from datetime import timedelta
from pathlib import Path
from typing import Any

from anyio import to_thread

from nightherd.errors import FencedError
from nightherd.files.paths import follow
from nightherd.model.agents.agent import Agent
from nightherd.model.hooks import HttpRequest, ShellCommand
from nightherd.model.units import format_duration
from nightherd.ports import Clock, HookCall, HookResult
from nightherd.runtimes.hooks.request import FIRST_PAUSE_S, send
from nightherd.runtimes.keeper.attendant import Ending, KilledBy
from nightherd.runtimes.keeper.keepers import Keepers
from nightherd.runtimes.keeper.process import finish, kept_process
from nightherd.runtimes.tools.output import BoundedOutput

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


OUTPUT_LIMIT = 8 * 1024
"""Bytes of its output that are kept."""
GRACE = timedelta(seconds=2)
SHELL = "/bin/sh"


async def run_command(command: ShellCommand, call: HookCall, keepers: Keepers) -> HookResult:
    """Run the command to its end or its timeout. Success is exit code 0."""
    output = BoundedOutput(OUTPUT_LIMIT, call.secrets)
    marks = {"NIGHTHERD_JOB": call.job_id, "NIGHTHERD_HOOK_EVENT": call.event}
    try:
        async with kept_process(
            [SHELL, "-c", command.command],
            cwd=call.working_directory,
            env=call.environment,
            execution=call.execution,
            marks=marks,
            stdin=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            grace=GRACE,
            keepers=keepers,
        ) as process:
            ending = await finish(
                process, output.add, command.timeout, body=call.body, is_alone=True
            )
    except (OSError, ValueError) as error:
        return HookResult(success=False, error=f"the command could not be started: {error}")
    text = output.text()
    if ending is None:
        limit = format_duration(command.timeout)
        return HookResult(success=False, output=text, error=f"it ran longer than {limit}")
    if ending.killed_by is KilledBy.LEASE:
        raise FencedError("the hook was stopped because the worker's lease had run out")
    if ending.returncode == 0 and ending.killed_by is KilledBy.NONE:
        return HookResult(success=True, output=text)
    return HookResult(success=False, output=text, error=_explain(ending))


def _explain(ending: Ending) -> str:
    code = ending.returncode
    if ending.killed_by is KilledBy.KEEPER_GONE or code is None:
        return "the process that guards the command died"
    if code < 0:
        known = {one.value: one.name for one in signal.Signals}
        return f"ended by {known.get(-code, f'signal {-code}')}"
    return f"exit code {code}"
