"""The `cli` runtime: runs agents with the user's own `claude`, which is asked once and then listened to."""

from __future__ import annotations

import os
import shutil
from collections.abc import AsyncGenerator, Mapping
from contextlib import aclosing
from datetime import timedelta
from typing import Any

from nightherd.model.journal.event import ErrorEvent
from nightherd.ports import RuntimeRequest
from nightherd.runtimes.claude.control import ControlledClaude
from nightherd.runtimes.claude.gate import Gate
from nightherd.runtimes.claude.mcp import injected_servers
from nightherd.runtimes.claude.opening import Opening
from nightherd.runtimes.claude.options import launch_of, user_message
from nightherd.runtimes.claude.outcome import MISSING_CLI
from nightherd.runtimes.claude.process import ENVIRONMENT, ClaudeProcess
from nightherd.runtimes.claude.runtime import ClaudeRuntime, Conversation
from nightherd.runtimes.keeper.keepers import Keepers
from nightherd.runtimes.mcp.bridge import bridged

PROGRAM = "claude"


class ClaudeCliRuntime(ClaudeRuntime):
    """Implements the `Runtime` port with the `claude` that is found on PATH."""

    name = "cli"

    def _converse(
        self, request: RuntimeRequest, opening: Opening, keepers: Keepers, gate: Gate
    ) -> Conversation:
        program = self._program(request.environment)
        return CliConversation(request, opening, keepers, self._grace, program, gate)

    def _program(self, environment: Mapping[str, str]) -> str | None:
        return shutil.which(PROGRAM, path=environment.get("PATH", os.defpath))


class CliConversation:
    """One `claude` that is asked one thing."""

    def __init__(
        self,
        request: RuntimeRequest,
        opening: Opening,
        keepers: Keepers,
        grace: timedelta,
        program: str | None,
        gate: Gate,
    ) -> None:
        self._request = request
        self._program = program
        self._opening = opening
        self._keepers = keepers
        self._grace = grace
        self._gate = gate
        self.failure: ErrorEvent = MISSING_CLI
        """Why there was no result, once it has ended without one."""
        self.late_result: Mapping[str, Any] | None = None
        """Never any: it is ended, not interrupted."""

    async def heard(self) -> AsyncGenerator[bytes | Mapping[str, Any], None]:
        """Starts it; every line it prints. It has ended, with all it started, when this has."""
        request = self._request
        injected = injected_servers(request.agent, request.injected_servers)
        async with bridged(injected) as entries:
            always = {name: {**entry, "alwaysLoad": True} for name, entry in entries.items()}
            launch = launch_of(
                request,
                self._opening,
                program=self._program,
                more_environment=ENVIRONMENT,
                injected=always,
            )
            process = ClaudeProcess(launch, self._keepers, self._grace)
            claude = ControlledClaude(process, self._gate)
            try:
                await process.start()
                if process.has_started:
                    first = user_message(self._opening.told)
                    async with aclosing(claude.heard(first)) as heard:
                        async for message in heard:
                            yield message
                    if claude.refusal is None:
                        await process.settle()
            finally:
                self._gate.close()
                await process.close()
                self.failure = claude.refusal or process.failure
