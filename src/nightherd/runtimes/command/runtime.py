"""The command runtime: a job is one command, recorded as one call before it starts.

A command that was cut off may have done anything. What follows is the spec's to say: run it again, fail, or ask
a person. A command whose result is on record is not run again.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping
from contextlib import suppress
from datetime import timedelta
from pathlib import Path
from typing import Any

import anyio
from msgspec.structs import replace

from nightherd.errors import InvalidValueError, NightherdError
from nightherd.model.inbox.review import Proceed, ProposedCall, Refuse, Verdict, Wait
from nightherd.model.jobs.repeat import is_interrupted_call
from nightherd.model.journal.event import (
    ErrorEvent,
    Event,
    SystemEvent,
    ToolResultEvent,
    ToolUseEvent,
    describe,
)
from nightherd.model.journal.system import Complete, Denied, Init
from nightherd.model.workflows.command import (
    INTERRUPTED,
    KILLED,
    NOT_RUN_AGAIN,
    CommandSpec,
    check_values,
    exit_stop_reason,
)
from nightherd.model.workflows.definition import OnInterrupt
from nightherd.ports import RuntimeRequest
from nightherd.runtimes.command.capabilities import COMMAND
from nightherd.runtimes.command.output import CommandOutput, standard_output
from nightherd.runtimes.command.past import NOT_STARTED, Past, call_id, read_past
from nightherd.runtimes.command.process import EXIT_CODE, TOOLS, CommandProcess, not_started
from nightherd.runtimes.keeper.keepers import Keepers
from nightherd.runtimes.tools.tool import ToolContext

GRACE = timedelta(seconds=2)
REJECTED = "rejected"
"""In `extra` of the result of a call that a person does not want made."""
UNKNOWN_PROGRESS = "the command was interrupted, and nobody knows how far it came"
RUN_AGAIN = "interrupted, nobody knows how far it came; run it again?"
"""What a person is asked."""


class CommandRuntime:
    """Implements the `Runtime` port for jobs whose inputs hold a `CommandSpec`.

    The call is yielded before the process starts, which is when the event after it is asked for. When the last
    event is given out, or the iteration is closed or cancelled, nothing that the command started runs any more.
    """

    def __init__(self, *, keepers: Keepers | None = None, grace: timedelta = GRACE) -> None:
        self._keepers = keepers if keepers is not None else Keepers()
        self._grace = grace

    async def execute(self, request: RuntimeRequest) -> AsyncGenerator[Event, None]:
        """The events of the run; the last is `system/complete` or an error, unless a person is waited for."""
        yield _begin(request)
        try:
            spec = CommandSpec.from_inputs(request.inputs)
        except InvalidValueError as error:
            yield ErrorEvent(message=error.message, code="invalid_command")
            return
        past = Past()
        if request.is_continued:
            past = read_past(request.history(), request.job_id, request.repeat)
        if past.ended is not None:  # the run was lost between the result and its end
            yield _end_of(past.ended, spec)
            return
        if past.is_interrupted and spec.on_interrupt is OnInterrupt.FAIL:
            yield ErrorEvent(message=UNKNOWN_PROGRESS, code=INTERRUPTED)
            return
        use = past.waiting
        if use is None:
            use = _new_call(past, request, spec)
            call = use.tool_use_id or ""
            try:
                yield use
            except GeneratorExit:  # it stops here: the next run need not ask anybody
                _tell_late(request, not_started(call))
                raise
        call = use.tool_use_id or ""
        if past.is_interrupted and spec.on_interrupt is OnInterrupt.ASK:
            verdict = await request.review(_proposed(use))
            if isinstance(verdict, Wait):
                return  # the job waits for a person, and the call is made then
            if not isinstance(verdict, Proceed):
                denied, refused = _refusal(use, verdict)
                yield denied
                yield refused
                yield _end_of(refused, spec)
                return
            try:
                spec = _changed(spec, verdict.input)
            except InvalidValueError as error:
                yield not_started(call, error.message)
                yield ErrorEvent(message=error.message, code="invalid_command")
                return
        result = await self._run(request, spec, call)
        yield result
        yield _end_of(result, spec)

    async def _run(self, request: RuntimeRequest, spec: CommandSpec, call: str) -> ToolResultEvent:
        keepers = self._keepers.branch()
        context = ToolContext(
            working_directory=Path(request.agent.working_directory),
            tool_use_id=call,
            keep_output=request.keep_output,
            secrets=request.known_secrets(),
        )
        try:
            with CommandOutput(context) as output:
                process = CommandProcess(request, spec, output, keepers, self._grace)
                try:
                    return await process.run(call)
                except anyio.get_cancelled_exc_class():
                    _tell_late(request, process.stopped(call))
                    raise
        finally:
            self._keepers.discard(keepers)


def _begin(request: RuntimeRequest) -> SystemEvent:
    return describe(
        Init(
            runtime=COMMAND.name,
            working_directory=request.agent.working_directory,
            tools=list(TOOLS.values()),
        )
    )


def _new_call(past: Past, request: RuntimeRequest, spec: CommandSpec) -> ToolUseEvent:
    # Without the number of a turn: no model takes part, and limits of turns are not about commands.
    return ToolUseEvent(
        tool_name=TOOLS[spec.language],
        tool_use_id=call_id(request.job_id, past.calls + 1),
        input={"command": spec.command},
        index=0,
        end=True,
    )


def _proposed(use: ToolUseEvent) -> ProposedCall:
    return ProposedCall(
        tool_use_id=use.tool_use_id or "", tool=use.tool_name, input=use.input, note=RUN_AGAIN
    )


def _refusal(use: ToolUseEvent, verdict: Verdict) -> tuple[SystemEvent, ToolResultEvent]:
    """What is recorded of a command that a person does not want run again: the job fails."""
    reason = verdict.reason if isinstance(verdict, Refuse) else "it was not approved"
    denied = Denied(tool_name=use.tool_name, reason=reason, tool_use_id=use.tool_use_id)
    message = f"{UNKNOWN_PROGRESS}; it was not run again: {reason}"
    result = ToolResultEvent(
        tool_use_id=use.tool_use_id,
        success=False,
        error=message,
        index=0,
        end=True,
        extra={REJECTED: True},
    )
    return describe(denied, reason), result


def _changed(spec: CommandSpec, input: Mapping[str, Any] | None) -> CommandSpec:
    """The spec with the text that a person wants run instead."""
    if input is None:
        return spec
    text = input.get("command")
    if not isinstance(text, str) or not text.strip() or set(input) != {"command"}:
        raise InvalidValueError(
            "the changed arguments have to be a text `command` and nothing else"
        )
    changed: CommandSpec = replace(spec, command=text)
    check_values(changed)
    return changed


def _end_of(result: ToolResultEvent, spec: CommandSpec) -> SystemEvent | ErrorEvent:
    """The terminal event that follows from the result, whichever run recorded that."""
    extra = result.extra or {}
    error = result.error or "the command failed"
    if NOT_STARTED in extra:
        facts = extra[NOT_STARTED]
        recoverable = {"recoverable": True} if facts.get("recoverable") else None
        return ErrorEvent(message=error, code=facts.get("code", "start_failed"), extra=recoverable)
    if REJECTED in extra:
        return ErrorEvent(message=error, code=NOT_RUN_AGAIN)
    if is_interrupted_call(result.error):
        # The next run of the job does what `on_interrupt` says.
        return ErrorEvent(message=error, code=KILLED, extra={"recoverable": True})
    exit_code = extra.get(EXIT_CODE)
    stop_reason = exit_stop_reason(exit_code) if isinstance(exit_code, int) else None
    if exit_code == 0 or (spec.is_condition and stop_reason is not None):
        return describe(Complete(summary=standard_output(result), stop_reason=stop_reason))
    return ErrorEvent(message=error, code="command_failed", extra={"stop_reason": stop_reason})


def _tell_late(request: RuntimeRequest, result: ToolResultEvent) -> None:
    with suppress(NightherdError):  # the job is another worker's by now
        request.late(result)
