"""The `cli` runtime: runs agents with the user's own `claude`, over its control protocol.

Claude's input stays open while it works. It gets the gate first, then the prompt; what it asks the gate comes
among its output, and the answers go into its input. No port, no token, no process of its own.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import AsyncGenerator, Mapping
from contextlib import aclosing
from datetime import timedelta
from typing import Any

import anyio
import msgspec
from anyio import to_thread

from nightherd.model.journal.event import ErrorEvent
from nightherd.ports import RuntimeRequest
from nightherd.runtimes.claude.gate import HOOK_TIMEOUT_S, POLL_S, Gate, GatedCall
from nightherd.runtimes.claude.mcp import injected_servers
from nightherd.runtimes.claude.new_input import NewInputs, user_message
from nightherd.runtimes.claude.opening import Opening
from nightherd.runtimes.claude.options import as_line, launch_of, unapproved
from nightherd.runtimes.claude.outcome import MISSING_CLI, unusable
from nightherd.runtimes.claude.process import ENVIRONMENT, ClaudeProcess, Duty, parsed
from nightherd.runtimes.claude.runtime import ClaudeRuntime, Conversation
from nightherd.runtimes.keeper.keepers import Keepers
from nightherd.runtimes.mcp.bridge import bridged

FIRST_REQUEST = "nightherd-1"
INITIALIZE: Mapping[str, Any] = {
    "type": "control_request",
    "request_id": FIRST_REQUEST,
    "request": {
        "subtype": "initialize",
        "hooks": {
            "PreToolUse": [
                {
                    "matcher": None,
                    "hookCallbackIds": ["gate"],
                    "timeout": HOOK_TIMEOUT_S,
                    "onFailure": "block",
                }
            ]
        },
    },
}


class _Waiting(msgspec.Struct, frozen=True, kw_only=True):
    request: str
    call: GatedCall
    since: float


class ControlledClaude:
    """One `claude` that has been started, is asked one thing, and asks the gate before each call."""

    def __init__(self, process: ClaudeProcess, gate: Gate, duty: Duty) -> None:
        self._process = process
        self._gate = gate
        self._duty = duty
        self._waiting: list[_Waiting] = []
        self._held: Mapping[str, Any] | None = None
        """What it is told when it is known what becomes of a call that waited for a person."""
        self.refusal: ErrorEvent | None = None
        """Why it was not asked, if it was not."""

    async def heard(
        self, first: Mapping[str, Any] | None, inputs: NewInputs
    ) -> AsyncGenerator[bytes | Mapping[str, Any], None]:
        """Ask it `first`; everything it says, but for what is between it and the gate. It is told `inputs` too."""
        lines = self._process.reader()
        await self.write(INITIALIZE)
        while True:
            line: bytes | None = None
            has_to_look = self._waiting or self._gate.expects_deferred
            with anyio.move_on_after(POLL_S if has_to_look else None) as polling:
                line = await lines.next()
            if line is not None:
                message = parsed(line)
                if isinstance(message, bytes):
                    yield message
                elif not await self._is_control(message, first):
                    yield message
                    await inputs.after(message)
                    await self._see(message)
                elif (unannounced := self._gate.read(message)) is not None:
                    yield unannounced
            elif not polling.cancelled_caught:
                return
            if self.refusal is not None:
                return
            await self._answer()

    async def _see(self, message: Mapping[str, Any]) -> None:
        self._duty.see(message)
        if self._duty.is_done:
            await self._process.end_input()

    async def _is_control(
        self, message: Mapping[str, Any], first: Mapping[str, Any] | None
    ) -> bool:
        """Deal with a message of the protocol; whether it was one."""
        match message:
            case {"type": "control_response", "response": {"request_id": str(name)} as response}:
                if name == FIRST_REQUEST:
                    await self._begin(response, first)
            case {
                "type": "control_request",
                "request_id": str(name),
                "request": Mapping() as request,
            }:
                await self._take(name, request)
            case {"type": "control_cancel_request", "request_id": str(name)}:
                self._waiting = [one for one in self._waiting if one.request != name]
            case {"type": "control_request" | "control_response" | "control_cancel_request"}:
                pass
            case _:
                self._gate.read(message)
                return False
        return True

    async def _begin(self, response: Mapping[str, Any], first: Mapping[str, Any] | None) -> None:
        facts = response.get("response")
        applied = facts.get("hooks_applied") if isinstance(facts, Mapping) else None
        if response.get("subtype") != "success" or applied is False:
            reason = response.get("error") or "it does not apply hooks"
            self.refusal = unusable(f"it refused the hook that records its calls ({reason})")
        elif self._gate.expects_deferred or self._gate.is_waiting:
            # Whatever it is told while a call waits for a person makes it forget the call.
            self._held = first
            self._duty.holds_prompt = first is not None
        elif first is not None:
            await self.write(first)

    async def _take(self, name: str, request: Mapping[str, Any]) -> None:
        match request:
            case {"subtype": "hook_callback", "input": Mapping() as hook}:
                call = GatedCall.of(hook)
                self._waiting.append(_Waiting(request=name, call=call, since=anyio.current_time()))
            case {"subtype": "can_use_tool", "tool_name": str(tool)}:
                refused = {"behavior": "deny", "message": unapproved(tool)}
                await self._respond(name, {"subtype": "success", "response": refused})
            case _:
                error = f"nightherd does not answer {request.get('subtype')}"
                await self._respond(name, {"subtype": "error", "error": error})

    async def _answer(self) -> None:
        """Answer the calls that are on record by now, or have waited for too long."""
        await self._gate.answer_deferred(self._process.files)
        if self._held is not None and not (self._gate.expects_deferred or self._gate.is_waiting):
            held, self._held = self._held, None
            self._duty.release_prompt()
            await self.write(held)
        for one in tuple(self._waiting):
            answer = await self._gate.decide(one.call, anyio.current_time() - one.since)
            if answer is not None:
                self._waiting.remove(one)
                await self._respond(one.request, {"subtype": "success", "response": answer})

    async def _respond(self, name: str, response: Mapping[str, Any]) -> None:
        await self.write({"type": "control_response", "response": {"request_id": name, **response}})

    async def write(self, message: Mapping[str, Any]) -> None:
        """It reads `message` next."""
        try:
            await self._process.write(as_line(message))
        except BrokenPipeError:  # it has ended; `settle` says why
            pass


PROGRAM = "claude"


class ClaudeCliRuntime(ClaudeRuntime):
    """Implements the `Runtime` port with the `claude` that is found on PATH."""

    name = "cli"

    def _converse(
        self, request: RuntimeRequest, opening: Opening, keepers: Keepers, gate: Gate
    ) -> Conversation:
        program = self._program(request.environment)
        return CliConversation(request, opening, keepers, self._grace, program, gate)

    def _find_program(self, environment: Mapping[str, str]) -> str | None:
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
        self._duty = Duty()
        self.inputs = NewInputs(request, gate, self._duty, self._tell)
        """What it is told while it is at work."""
        self._claude: ControlledClaude | None = None
        self.failure: ErrorEvent = MISSING_CLI
        """Why there was no result, once it has ended without one."""
        self.late_result: Mapping[str, Any] | None = None
        """Never any: it is ended, not interrupted."""

    async def heard(self) -> AsyncGenerator[bytes | Mapping[str, Any], None]:
        """Starts it; every line it prints. It has ended, with all it started, when this has."""
        request = self._request
        injected = injected_servers(request.agent, request.injected_servers)
        place = self._keepers.place
        listener = None
        if injected and place.is_container:
            # A container that does not answer must not hold up the worker.
            listener = await to_thread.run_sync(place.listen)
        async with bridged(injected, listener=listener) as entries:
            always = {name: {**entry, "alwaysLoad": True} for name, entry in entries.items()}
            launch = launch_of(
                request,
                self._opening,
                program=self._program,
                more_environment=ENVIRONMENT,
                injected=always,
            )
            process = ClaudeProcess(launch, self._keepers, self._grace)
            self._claude = claude = ControlledClaude(process, self._gate, self._duty)
            try:
                await process.start()
                if process.has_started:
                    told = self._opening.prompt_text
                    first = user_message(told) if told else None
                    async with aclosing(claude.heard(first, self.inputs)) as heard:
                        async for message in heard:
                            yield message
                    if claude.refusal is None:
                        await process.settle()
            finally:
                self._gate.close()
                await process.close()
                self.failure = claude.refusal or process.failure

    async def _tell(self, message: Mapping[str, Any]) -> None:
        if self._claude is not None:
            await self._claude.write(message)
