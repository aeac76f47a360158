"""The `cli` runtime: runs agents with the user's own `claude`, which is told everything at once and then listened to."""

from __future__ import annotations

import os
import shutil
from collections.abc import AsyncGenerator, Mapping
from contextlib import aclosing
from datetime import timedelta
from typing import Any

from nightherd.model.event import ErrorEvent
from nightherd.ports import RuntimeRequest
from nightherd.runtimes.claude.opening import Opening
from nightherd.runtimes.claude.options import as_line, launch_of, user_message
from nightherd.runtimes.claude.process import ClaudeProcess
from nightherd.runtimes.claude.runtime import ClaudeRuntime, Conversation
from nightherd.runtimes.keeper.keepers import Keepers

PROGRAM = "claude"


class ClaudeCliRuntime(ClaudeRuntime):
    """Implements the `Runtime` port with the `claude` that is found on PATH."""

    name = "cli"

    def _converse(
        self, request: RuntimeRequest, opening: Opening, keepers: Keepers
    ) -> Conversation:
        return CliConversation(request, opening, keepers, self._grace)


class CliConversation:
    """One `claude` that reads a single message."""

    def __init__(
        self, request: RuntimeRequest, opening: Opening, keepers: Keepers, grace: timedelta
    ) -> None:
        program = shutil.which(PROGRAM, path=request.environment.get("PATH", os.defpath))
        self._text = opening.text
        self._process = ClaudeProcess(launch_of(request, opening, program=program), keepers, grace)

    @property
    def failure(self) -> ErrorEvent:
        """Why there was no result, once it has ended without one."""
        return self._process.failure

    async def heard(self) -> AsyncGenerator[bytes | Mapping[str, Any], None]:
        """Starts it; every line it prints. It has ended, with all it started, when this has."""
        try:
            await self._process.start(as_line(user_message(self._text)))
            async with aclosing(self._process.lines()) as lines:
                async for line in lines:
                    yield line
            await self._process.settle()
        finally:
            await self._process.close()
