"""The `sdk` runtime: runs agents with the Claude Agent SDK, whose `claude` can be interrupted in the middle of a turn.

The process is under our keeper. What it and the SDK say to each other to get along (control requests and answers,
copies of the transcript) is the SDK's. The conversation itself is ours, message by message as it is, so that both
runtimes record the same.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Mapping
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
    CLIConnectionError,
    HookContext,
    HookInput,
    HookJSONOutput,
    HookMatcher,
    McpServerConfig,
    PermissionResultDeny,
    SdkMcpTool,
    SessionStore,
    ToolPermissionContext,
    Transport,
    create_sdk_mcp_server,
)

from nightherd.model.agents.mcp import InjectedMcpServerDef, InjectedMcpToolDef
from nightherd.model.journal.event import ErrorEvent
from nightherd.ports import RuntimeRequest
from nightherd.runtimes.claude.gate import HOOK_TIMEOUT_S, POLL_S, Gate
from nightherd.runtimes.claude.launch import Option
from nightherd.runtimes.claude.mcp import injected_servers
from nightherd.runtimes.claude.new_input import NewInputs, user_message
from nightherd.runtimes.claude.opening import Opening
from nightherd.runtimes.claude.options import launch_of, unapproved
from nightherd.runtimes.claude.outcome import not_answering, unusable
from nightherd.runtimes.claude.process import ENVIRONMENT as CLAUDE_ENVIRONMENT
from nightherd.runtimes.claude.process import ClaudeProcess, Duty, parsed
from nightherd.runtimes.claude.runtime import ClaudeRuntime, Conversation
from nightherd.runtimes.claude.transcripts.keeping import SECOND_COPY
from nightherd.runtimes.claude.transcripts.places import config_directory
from nightherd.runtimes.claude.transcripts.store import FileSessionStore
from nightherd.runtimes.keeper.keepers import Keepers
from nightherd.runtimes.mcp.injected import call_injected

PROTOCOL = frozenset(
    {"control_request", "control_response", "control_cancel_request", "transcript_mirror"}
)
"""Types of messages that are for the SDK."""
WAITING = 1_000
"""Messages that may wait to be recorded before `claude` has to wait."""


class KeptTransport(Transport):
    """One process; `heard` is what it says to us. It gets no more input once it owes nothing more."""

    def __init__(self, process: ClaudeProcess, gate: Gate, *, end_s: float) -> None:
        self._process = process
        self._gate = gate
        self._end_s = end_s
        self._put, self._get = anyio.create_memory_object_stream[bytes | Mapping[str, Any]](WAITING)
        self.duty = Duty()
        self._is_deaf = False
        self._has_ended = False
        self.on_end: Callable[[], object] = lambda: None
        """Called when it has let go of its output."""
        self.owes_nothing = anyio.Event()
        self.last_result: Mapping[str, Any] | None = None
        """The last it gave, also after the run stopped listening."""

    async def heard(self) -> AsyncGenerator[bytes | Mapping[str, Any], None]:
        """Everything it says that is not for the SDK, until it has let go of its output."""
        while True:
            message: bytes | Mapping[str, Any] | None = None
            with anyio.move_on_after(POLL_S if self._gate.expects_deferred else None):
                try:
                    message = await self._get.receive()
                except anyio.EndOfStream:
                    return
            if message is not None:
                yield message
            await self._gate.answer_deferred(self._process.files)

    def stop_listening(self) -> None:
        """Discard further output, so that the process does not block on it."""
        self._is_deaf = True
        self._get.close()

    async def connect(self) -> None:
        """Start the process; `CLIConnectionError` when it cannot be."""
        await self._process.start()
        if not self._process.has_started:
            raise CLIConnectionError(self._process.failure.message)

    async def write(self, data: str) -> None:
        """The process reads `data` next."""
        try:
            await self._process.write(data.encode())
        except BrokenPipeError as error:
            raise CLIConnectionError(f"claude is not listening: {error}") from error

    def read_messages(self) -> AsyncIterator[dict[str, Any]]:
        """What it says to the SDK."""
        return self._read()

    async def end_input(self) -> None:
        """Close its input."""
        await self._process.end_input()

    def is_ready(self) -> bool:
        """Whether it can be talked to."""
        return self._process.has_started and not self._has_ended

    async def close(self) -> None:
        """The process, which has a moment to end by itself, has ended with everything it started."""
        await self._process.end_input()
        with anyio.move_on_after(self._end_s):
            async with aclosing(self._process.lines()) as rest:
                async for _ in rest:
                    pass
        await self._process.close()
        self._put.close()

    async def _read(self) -> AsyncGenerator[dict[str, Any], None]:
        try:
            async with aclosing(self._process.lines()) as lines:
                async for line in lines:
                    message = parsed(line)
                    if isinstance(message, dict):
                        unannounced = self._gate.read(message)
                        if unannounced is not None:
                            await self._hand_over(unannounced)
                    if isinstance(message, dict) and message.get("type") in PROTOCOL:
                        yield message
                    else:
                        await self._hand_over(message)
        finally:
            self._put.close()
            self._has_ended = True
            self.owes_nothing.set()
            self.on_end()

    async def _hand_over(self, message: bytes | Mapping[str, Any]) -> None:
        if not self._is_deaf:
            try:
                await self._put.send(message)
            except anyio.BrokenResourceError:  # the run has stopped listening
                self._is_deaf = True
        if isinstance(message, Mapping):
            if message.get("type") == "result":
                self.last_result = message
            self.duty.see(message)
            await self.end_if_done()

    async def end_if_done(self) -> None:
        """Close its input once it owes nothing more."""
        if self.duty.is_done:
            self.owes_nothing.set()
            await self._process.end_input()


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
        program = self._program(request.environment)
        return SdkConversation(request, opening, keepers, self._grace, program, gate, store)

    def _find_program(self, environment: Mapping[str, str]) -> str | None:
        """The one that comes with the SDK, else the one on PATH."""
        bundled = Path(claude_agent_sdk.__file__).parent / "_bundled" / "claude"
        if bundled.is_file():
            return str(bundled)
        return shutil.which("claude", path=environment.get("PATH", os.defpath))


class SdkConversation:
    """One client of the SDK, from its connection to its end."""

    def __init__(
        self,
        request: RuntimeRequest,
        opening: Opening,
        keepers: Keepers,
        grace: timedelta,
        program: str | None,
        gate: Gate,
        store: SessionStore | None = None,
    ) -> None:
        self._gate = gate
        self._text = opening.prompt_text
        self._grace_s = grace.total_seconds()
        launch = launch_of(
            request,
            opening,
            program=program,
            more_options=() if store is None else (Option("session-mirror"),),
            more_environment=ENVIRONMENT,
            injected=in_process(request),
        )
        self._process = ClaudeProcess(launch, keepers, grace)
        self._transport = KeptTransport(self._process, gate, end_s=self._grace_s)
        options = sdk_options(request, store, gate)
        self._client = ClaudeSDKClient(options, transport=self._transport)
        self.inputs = NewInputs(request, gate, self._transport.duty, self._write)
        """What it is told while it is at work."""
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
                        await self.inputs.after(message)
                        await self._transport.end_if_done()
                        await self._tell()
                await self._process.settle()
            self._is_over = True
        finally:
            with anyio.CancelScope(shield=True):
                if self.inputs.has_unread:
                    # Interrupted, or refused a call, it would go on with what it has not read yet.
                    await self._process.close()
                self._gate.close()
                is_stopped = self._is_over or self.inputs.has_unread
                if not is_stopped and not self._gate.is_waiting:
                    await self._interrupt()
                self._transport.stop_listening()
                await self._client.disconnect()
                await self._transport.close()

    async def _ask(self) -> None:
        """Have it started and asked. A process that ends before that says why like any other."""
        with anyio.CancelScope() as asking:
            # The SDK would continue waiting for the answer of a process that is gone.
            self._transport.on_end = asking.cancel
            try:
                await self._client.connect()
                if self._text:
                    self._transport.duty.holds_prompt = True
                    await self._tell()
            except ClaudeSDKError as error:
                if self._transport.is_ready():  # it runs, and may not be used
                    self._refusal = unusable(error)
            except Exception as error:  # noqa: BLE001 the SDK has no better class for an answer that did not come
                self._refusal = not_answering(error)

    async def _tell(self) -> None:
        """Tell it what it is to do. Whatever it is told while a call waits for a person makes it forget the call."""
        duty = self._transport.duty
        if duty.holds_prompt and not (self._gate.expects_deferred or self._gate.is_waiting):
            duty.release_prompt()
            await self._write(user_message(self._text))

    async def _write(self, message: Mapping[str, Any]) -> None:
        with suppress(CLIConnectionError):  # it has ended; `settle` finds out why
            await self._client.query(_once(message))

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
        can_use_tool=_refuse if request.agent.questions else None,
    )


async def _refuse(
    tool: str, _input: dict[str, Any], _context: ToolPermissionContext
) -> PermissionResultDeny:
    return PermissionResultDeny(message=unapproved(tool))


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


async def _once(message: Mapping[str, Any]) -> AsyncIterator[dict[str, Any]]:
    yield dict(message)
