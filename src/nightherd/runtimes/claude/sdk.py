"""The `sdk` runtime: runs agents with the Claude Agent SDK, whose `claude` can be interrupted in the middle of a turn."""

from __future__ import annotations

import os
import shutil
from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from contextlib import aclosing, suppress
from datetime import timedelta
from pathlib import Path
from typing import Any, cast

import anyio
import claude_agent_sdk
from claude_agent_sdk import (
    ClaudeAgentOptions,
    ClaudeSDKClient,
    ClaudeSDKError,
    HookContext,
    HookInput,
    HookJSONOutput,
    HookMatcher,
    McpServerConfig,
    SdkMcpTool,
    SessionStore,
    create_sdk_mcp_server,
)

from nightherd.model.agents.mcp import InjectedMcpServerDef, InjectedMcpToolDef
from nightherd.model.journal.event import ErrorEvent
from nightherd.ports import RuntimeRequest
from nightherd.runtimes.claude.gate import HOOK_TIMEOUT_S, Gate
from nightherd.runtimes.claude.launch import Option
from nightherd.runtimes.claude.mcp import injected_servers
from nightherd.runtimes.claude.opening import Opening
from nightherd.runtimes.claude.options import launch_of, user_message
from nightherd.runtimes.claude.outcome import not_answering, unusable
from nightherd.runtimes.claude.process import ENVIRONMENT as CLAUDE_ENVIRONMENT
from nightherd.runtimes.claude.process import ClaudeProcess
from nightherd.runtimes.claude.runtime import ClaudeRuntime, Conversation
from nightherd.runtimes.claude.transcripts.keeping import SECOND_COPY, config_directory
from nightherd.runtimes.claude.transcripts.store import FileSessionStore
from nightherd.runtimes.claude.transport import KeptTransport
from nightherd.runtimes.keeper.keepers import Keepers
from nightherd.runtimes.mcp.injected import call_injected

ENVIRONMENT = {
    "CLAUDE_CODE_ENTRYPOINT": "sdk-py",
    "CLAUDE_AGENT_SDK_VERSION": claude_agent_sdk.__version__,
    **CLAUDE_ENVIRONMENT,
}


class ClaudeSdkRuntime(ClaudeRuntime):
    """Implements the `Runtime` port with the `claude` that comes with the SDK.

    A run that is cancelled is interrupted first: Claude stops its tools and keeps what it had said.
    """

    name = "sdk"

    def _converse(
        self, request: RuntimeRequest, opening: Opening, keepers: Keepers, gate: Gate
    ) -> Conversation:
        store = None
        if self._transcripts is not None:
            store = FileSessionStore(self._transcripts / SECOND_COPY)
        return SdkConversation(request, opening, keepers, self._grace, gate, store)

    def _program(self, environment: Mapping[str, str]) -> str | None:
        return _program(environment)


class SdkConversation:
    """One client of the SDK, from its connection to its end."""

    def __init__(
        self,
        request: RuntimeRequest,
        opening: Opening,
        keepers: Keepers,
        grace: timedelta,
        gate: Gate,
        store: SessionStore | None = None,
    ) -> None:
        self._gate = gate
        self._text = opening.told
        self._grace_s = grace.total_seconds()
        launch = launch_of(
            request,
            opening,
            program=_program(request.environment),
            more_options=() if store is None else (Option("session-mirror"),),
            more_environment=ENVIRONMENT,
            injected=in_process(request),
        )
        self._process = ClaudeProcess(launch, keepers, grace)
        self._transport = KeptTransport(self._process, gate, end_s=self._grace_s)
        options = sdk_options(request, store, gate)
        self._client = ClaudeSDKClient(options, transport=self._transport)
        self._is_over = False
        self._refusal: ErrorEvent | None = None

    @property
    def failure(self) -> ErrorEvent:
        """Why there was no result, once it has ended without one."""
        return self._refusal or self._process.failure

    @property
    def late_result(self) -> Mapping[str, Any] | None:
        """What it came to when it was stopped, if it had the time to say so."""
        return self._transport.last_result

    async def heard(self) -> AsyncGenerator[bytes | Mapping[str, Any], None]:
        """Connects and asks; everything it says. It has ended, with all it started, when this has."""
        try:
            await self._ask()
            if self._process.has_started and self._refusal is None:
                async with aclosing(self._transport.heard()) as heard:
                    async for message in heard:
                        yield message
                await self._process.settle()
            self._is_over = True
        finally:
            self._gate.close()
            with anyio.CancelScope(shield=True):
                if not self._is_over:
                    await self._interrupt()
                self._transport.stop_listening()
                await self._client.disconnect()
                await self._transport.close()

    async def _ask(self) -> None:
        """Have it started and asked. A process that ends before that says why like any other."""
        with anyio.CancelScope() as asking:
            # The SDK would go on waiting for the answer of a process that is gone.
            self._transport.on_end = asking.cancel
            try:
                await self._client.connect()
                await self._client.query(_once(user_message(self._text)))
            except ClaudeSDKError as error:
                if self._transport.is_ready():  # it runs, and may not be used
                    self._refusal = unusable(error)
            except Exception as error:  # noqa: BLE001 the SDK has no better class for an answer that did not come
                self._refusal = not_answering(error)

    async def _interrupt(self) -> None:
        """Have it stop what it is doing and keep what it said; not for longer than the grace."""
        self._transport.stop_listening()
        with anyio.move_on_after(self._grace_s), suppress(Exception):
            await self._client.interrupt()
            await self._transport.owes_nothing.wait()


def sdk_options(
    request: RuntimeRequest, store: SessionStore | None, gate: Gate
) -> ClaudeAgentOptions:
    """What the SDK itself has to know; what `claude` has to know is in its launch."""
    environment = request.environment
    return ClaudeAgentOptions(
        cwd=request.agent.working_directory,
        env={**environment, "CLAUDE_CONFIG_DIR": str(config_directory(environment))},
        session_store=store,
        mcp_servers=in_process_servers(request),
        # What waits for the end of a turn is lost when the worker is killed in the middle of it.
        session_store_flush="eager",
        hooks={"PreToolUse": [_gate_hook(gate)]},
    )


def _gate_hook(gate: Gate) -> HookMatcher:
    """The gate before every call. Claude does not run a tool when the gate fails or is gone."""

    async def ask(hook: HookInput, _call: str | None, _context: HookContext) -> HookJSONOutput:
        return cast("HookJSONOutput", await gate.ask(cast("Mapping[str, Any]", hook)))

    return HookMatcher(hooks=[ask], timeout=HOOK_TIMEOUT_S, on_failure="block")


def in_process(request: RuntimeRequest) -> dict[str, dict[str, Any]]:
    """How `claude` reaches the injected servers: through the SDK."""
    servers = injected_servers(request.agent, request.injected_servers)
    return {
        server.name: {"type": "sdk", "name": server.name, "alwaysLoad": True} for server in servers
    }


def in_process_servers(request: RuntimeRequest) -> dict[str, McpServerConfig]:
    """The injected servers as the SDK serves them."""
    return {
        server.name: create_sdk_mcp_server(
            server.name, tools=[_sdk_tool(server, tool) for tool in server.tools]
        )
        for server in injected_servers(request.agent, request.injected_servers)
    }


def _sdk_tool(server: InjectedMcpServerDef, tool: InjectedMcpToolDef) -> SdkMcpTool[Any]:
    async def handle(input: dict[str, Any]) -> dict[str, Any]:
        answer = await call_injected(server, tool.name, input)
        return {
            "content": [{"type": "text", "text": answer.text}],
            "is_error": answer.is_error,
        }

    return SdkMcpTool(
        name=tool.name,
        description=tool.description,
        input_schema=tool.whole_schema,
        handler=handle,
    )


def _program(environment: Mapping[str, str]) -> str | None:
    """The one that comes with the SDK, else the one on PATH."""
    bundled = Path(claude_agent_sdk.__file__).parent / "_bundled" / "claude"
    if bundled.is_file():
        return str(bundled)
    return shutil.which("claude", path=environment.get("PATH", os.defpath))


async def _once(message: Mapping[str, Any]) -> AsyncIterator[dict[str, Any]]:
    yield dict(message)
