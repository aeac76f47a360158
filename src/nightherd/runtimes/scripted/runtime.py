"""The scripted runtime: plays the turns of an agent's script, with real tools in a real directory.

No key, no network, and the same turns every time. The place in the script is the number of turns already
in the session, so a resumed job continues where the record ends, and the next job of a shared session
where the last one ended.
"""

from __future__ import annotations

import os
from collections.abc import AsyncGenerator, Iterable, Iterator
from datetime import timedelta
from functools import cached_property
from pathlib import Path

import anyio
import msgspec
from msgspec.structs import replace

from nightherd.errors import InvalidValueError
from nightherd.model.agents.script import ends_job
from nightherd.model.checkpoints.checkpoint import TriggerPoint
from nightherd.model.children import TOOL
from nightherd.model.inbox.review import Proceed, Refuse, Replied, Verdict, Wait
from nightherd.model.jobs.repeat import IDEMPOTENT, INTERRUPTED_CALL, Declared
from nightherd.model.journal.event import (
    ErrorEvent,
    Event,
    SystemEvent,
    ToolResultEvent,
    ToolUseEvent,
    describe,
)
from nightherd.model.journal.system import Complete, Denied, Init
from nightherd.model.permissions.permission import Permissions, is_offered, permissions_of
from nightherd.ports import RuntimeRequest
from nightherd.runtimes.keeper.attendant import EXECUTION_MARK, execution_mark, stop_processes
from nightherd.runtimes.keeper.keepers import Keepers
from nightherd.runtimes.mcp.client import McpClient
from nightherd.runtimes.mcp.link import Surroundings
from nightherd.runtimes.protection import permissions_for
from nightherd.runtimes.real_path import real_path_at
from nightherd.runtimes.review import changed_by_person, review_call
from nightherd.runtimes.scripted.turn import (
    SCRIPT_FINISHED,
    PlannedTurn,
    failing_turn,
    plan_turn,
    stream_answer,
)
from nightherd.runtimes.tools.tool import Tool, ToolContext, ToolOutcome, failed
from nightherd.runtimes.tools.toolbox import standard_tools, tools_for

NAME = "scripted"
GRACE = timedelta(seconds=2)

END_TURN = "end_turn"
"""Stop reason when the script was played to its end."""


class ScriptedRuntime:
    """Implements the `Runtime` port.

    Every process runs under one of `keepers`: heartbeats sent to them are what commands live on.
    Nothing is done ahead of the reader: a call is made when the event after it is asked for. Before the
    last event is given out, and when the iteration is closed or cancelled, every process of the run ends.
    """

    def __init__(
        self,
        *,
        tools: Iterable[Tool] | None = None,
        grace: timedelta = GRACE,
        keepers: Keepers | None = None,
    ) -> None:
        offered = standard_tools() if tools is None else tools
        self._tools = {tool.name: tool for tool in offered}
        self._grace = grace
        self._keepers = keepers if keepers is not None else Keepers()

    async def execute(self, request: RuntimeRequest) -> AsyncGenerator[Event, None]:
        """The events of the run; the last is `system/complete` or an error."""
        keepers = self._keepers.branch()
        run = _Run(request, self._tools, self._grace, keepers)
        end: Event = describe(Complete(stop_reason=SCRIPT_FINISHED))
        try:
            yield run.begin()
            for turn in run.turns():
                for result in run.not_repeated(turn):
                    yield result
                if not run.is_on_record(turn):
                    # Also where a script that never waits can be cancelled.
                    await anyio.sleep(turn.pause.total_seconds())
                    await request.at(TriggerPoint.PRE_TURN)
                    if await request.may_spend(turn.cost_microusd, turn.tokens) is not None:
                        return  # the caller that refused knows why
                    await stream_answer(turn, request.stream)
                    for line in turn.lines:
                        yield line
                    await request.at(TriggerPoint.POST_LLM)
                if turn.call is not None:
                    verdict = await run.verdict(turn.call)
                    if isinstance(verdict, Wait):
                        return  # the job waits for a person, and the call is made then
                    if isinstance(verdict, Refuse):
                        yield denial(turn.call, verdict.reason)
                    yield await run.call(turn.call, verdict)
                    for warning in run.warnings():
                        yield warning
                    await request.at(TriggerPoint.POST_TOOLS)
                    if run.killed is not None:
                        end = run.killed
                        break
                if turn.failure is not None:
                    end = turn.failure
                    break
                end = describe(Complete(stop_reason=END_TURN))
            await run.stop_processes()
            yield end
        finally:
            await run.stop_processes()
            self._keepers.discard(keepers)


def denial(use: ToolUseEvent, reason: str) -> SystemEvent:
    """The event that says that a call was not allowed, and why."""
    denied = Denied(tool_name=use.tool_name, reason=reason, tool_use_id=use.tool_use_id)
    return describe(denied, reason, turn=use.turn)


TOOL_KILLED = "tool_killed"


class _Run:
    """One execution: what it plays, and the processes it has started."""

    def __init__(
        self,
        request: RuntimeRequest,
        tools: dict[str, Tool],
        grace: timedelta,
        keepers: Keepers,
    ) -> None:
        self._keepers = keepers
        self._request = request
        self._tools = {tool.name: tool for tool in tools_for(request.agent, tools.values())}
        self._grace = grace
        self._marks = {
            EXECUTION_MARK: execution_mark(request.execution, keepers.directory),
            # With it a run finds its own processes only.
            "NIGHTHERD_WORKER_PID": str(os.getpid()),
        }
        self._has_processes = False
        self.killed: ErrorEvent | None = None
        """Set when a tool was killed from outside. A model decides what that means; a script cannot."""
        self._to_repeat = request.repeat
        self._declared = Declared(request.agent, real_path_at(keepers.place))
        injected = tuple(request.injected_servers)
        self._servers = McpClient(
            request.agent.mcp_servers,
            injected,
            Surroundings(
                directory=request.agent.working_directory,
                environment=request.environment,
                execution=request.execution,
                keepers=keepers,
                marks=self._marks,
                grace=grace,
            ),
        )

    @cached_property
    def _permissions(self) -> Permissions:
        """What the agent may do. It looks at the disk, so it is made when a tool is first called."""
        return permissions_for(self._request, self._keepers.place)

    def begin(self) -> SystemEvent:
        """Who this is. A session that begins here is named after its job, also when the job is resumed."""
        request = self._request
        permissions = permissions_of(request.agent)
        return describe(
            Init(
                runtime=NAME,
                runtime_session_id=request.runtime_session_id or f"{NAME}-{request.job_id}",
                working_directory=request.agent.working_directory,
                tools=[name for name in self._tools if is_offered(permissions, name)],
            )
        )

    def turns(self) -> Iterator[PlannedTurn]:
        """The turns that are left, each planned when its time comes; one that cannot be played fails."""
        request, agent = self._request, self._request.agent
        number = request.job_turns + 1
        if agent.script is None:
            yield failing_turn(number, "no_script", f"agent {agent.name} has no script")
            return
        if not os.path.isdir(agent.working_directory):  # noqa: PTH112 - per job; a Path costs more than the call
            message = f"there is no directory {agent.working_directory}"
            yield failing_turn(number, "working_directory", message)
            return
        if request.job_turns and ends_job(agent.script.turn(request.session_turns - 1)):
            return  # an earlier execution was killed right before it could say so
        for played, steps in enumerate(agent.script.turns_from(request.session_turns)):
            number = request.job_turns + played + 1
            place = str(request.session_turns + played + 1)
            values = {**request.values, "prompt": request.prompt, "turn": place}
            # The same on every try, so that a call cut off by a crash is answered by its repetition.
            call_id = f"toolu_{request.job_id}_{number}"
            try:
                plan = plan_turn(steps, number=number, tool_use_id=call_id, values=values)
            except InvalidValueError as error:
                yield failing_turn(number, "template", error.message)
            else:
                yield self._marked(plan)
            if ends_job(steps):
                return

    def is_on_record(self, turn: PlannedTurn) -> bool:
        """Whether all of the turn has been said, and only its call is to be made again."""
        return turn.call is not None and turn.call.tool_use_id in self._request.repeat

    def not_repeated(self, turn: PlannedTurn) -> Iterator[ToolResultEvent]:
        """Calls to be made again that the script does not have any more, answered as interrupted."""
        known = (turn.call.tool_use_id or "") if turn.call is not None else ""
        for call in sorted(self._to_repeat - {known}):
            yield ToolResultEvent(
                tool_use_id=call, success=False, error=INTERRUPTED_CALL, index=0, end=True
            )
        self._to_repeat = frozenset()

    def _marked(self, turn: PlannedTurn) -> PlannedTurn:
        """The turn with its call marked as one that may be made again, where it is one."""
        call = turn.call
        if call is None or not self._is_repeatable(call):
            return turn
        extra = {**(call.extra or {}), IDEMPOTENT: True}
        return replace(turn, call=msgspec.structs.replace(call, extra=extra))

    def _is_repeatable(self, call: ToolUseEvent) -> bool:
        tool = self._tools.get(call.tool_name)
        # A call has one child, however often it is made.
        if tool is not None and (tool.is_read_only or tool.name == TOOL):
            return True
        is_given = self._servers.is_repeatable(call.tool_name)
        return is_given or self._declared.covers(call.tool_name, call.input)

    async def verdict(self, use: ToolUseEvent) -> Verdict:
        """Whether the call is made: the agent's permissions decide, or a person."""
        if use.tool_name not in self._tools and not self._servers.has(use.tool_name):
            return Proceed()
        return await review_call(
            self._request,
            self._permissions,
            use.tool_name,
            use.input or {},
            use.tool_use_id or "",
            self._keepers.place,
        )

    async def call(self, use: ToolUseEvent, verdict: Verdict) -> ToolResultEvent:
        """Make the call unless it is refused; the result of one that is not, or cannot be, made says why."""
        match verdict:
            case Refuse(reason=reason):
                outcome = failed(reason)
            case Replied(text=text):
                outcome = ToolOutcome(result=text)
            case Proceed(input=input) if input is not None:
                outcome = changed_by_person(
                    await self._run_tool(msgspec.structs.replace(use, input=dict(input))), input
                )
            case _:
                outcome = await self._run_tool(use)
        if outcome.is_killed:
            message = f"{use.tool_name} was killed before it was done: {outcome.error}"
            self.killed = ErrorEvent(message=message, code=TOOL_KILLED, turn=use.turn)
        return ToolResultEvent(
            tool_use_id=use.tool_use_id,
            result=outcome.result,
            success=outcome.success,
            error=outcome.error,
            full_output=outcome.full_output,
            turn=use.turn,
            index=0,
            end=True,
        )

    async def _run_tool(self, use: ToolUseEvent) -> ToolOutcome:
        tool = self._tools.get(use.tool_name)
        if self._servers.has(use.tool_name):
            return await self._servers.call(use.tool_name, use.input or {})
        if tool is None:
            return failed(f"there is no tool {use.tool_name}; there are {', '.join(self._tools)}")
        self._has_processes = self._has_processes or tool.starts_processes
        context = ToolContext(
            working_directory=Path(self._request.agent.working_directory),
            tool_use_id=use.tool_use_id or "",
            marks=self._marks,
            environment=self._request.environment,
            grace=self._grace,
            keepers=self._keepers,
            # Where its files are was part of the question whether the call may be made.
            more_directories=(Path("/"),),
            keep_output=self._request.keep_output,
            secrets=self._request.known_secrets(),
            spawn=self._request.spawn,
        )
        return await tool.run(use.input, context)

    def warnings(self) -> list[SystemEvent]:
        """What has to be said about MCP servers since the last call."""
        return self._servers.take_warnings()

    async def stop_processes(self) -> None:
        """End what tools have left running; nothing to do when no tool started anything."""
        await self._servers.close()
        if self._has_processes:
            await self._keepers.stop(self._grace)
            # A tool that is not ours may have started something without a keeper.
            await stop_processes(self._marks, grace_s=self._grace.total_seconds())
            self._has_processes = False
