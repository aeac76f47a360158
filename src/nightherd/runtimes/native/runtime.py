"""The `native` runtime: our own turn loop, for any model that pydantic-ai knows.

A turn is one answer and its calls. Everything is on record before it has an effect, and the loop says where
it is (`RuntimeRequest.at`) and asks before it spends (`RuntimeRequest.may_spend`). Calls that only look are made
beside each other; of all others the result of one is on record before the next begins.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Iterable
from contextlib import aclosing
from datetime import timedelta

import anyio
from anyio import to_thread
from pydantic_ai.messages import ModelMessagesTypeAdapter
from pydantic_ai.models import Model

from nightherd.host.system import SystemClock
from nightherd.model.checkpoints.checkpoint import TriggerPoint
from nightherd.model.journal.event import ErrorEvent, Event, is_terminal
from nightherd.ports import Clock, RuntimeRequest
from nightherd.runtimes.keeper.keepers import Keepers
from nightherd.runtimes.mcp.client import McpClient
from nightherd.runtimes.mcp.link import Surroundings
from nightherd.runtimes.native.failure import MODEL_ERRORS, error_event
from nightherd.runtimes.native.price import know_prices
from nightherd.runtimes.native.provider import model_of
from nightherd.runtimes.native.run import Run
from nightherd.runtimes.native.script_model import ScriptModel
from nightherd.runtimes.native.together import Processes
from nightherd.runtimes.native.toolset import Toolset, offer, offer_found
from nightherd.runtimes.tools.tool import Tool
from nightherd.runtimes.tools.toolbox import standard_tools, tools_for

GRACE = timedelta(seconds=2)
PATIENCE = timedelta(minutes=10)
"""How long a model may say nothing."""


class NativeRuntime:
    """Implements the `Runtime` port.

    Nothing is done ahead of the reader: a call is made when the event after it is asked for. Before the last
    event is given out, and when the iteration is closed or cancelled, every process of the run has ended.
    """

    def __init__(
        self,
        *,
        model: Model | None = None,
        tools: Iterable[Tool] | None = None,
        keepers: Keepers | None = None,
        clock: Clock | None = None,
        grace: timedelta = GRACE,
        patience: timedelta = PATIENCE,
    ) -> None:
        # Built on first use, which takes a while: here nothing else waits.
        ModelMessagesTypeAdapter.dump_json([])
        know_prices()
        self._model = model
        self._tools = tuple(standard_tools() if tools is None else tools)
        self._keepers = keepers if keepers is not None else Keepers()
        self._clock: Clock = clock if clock is not None else SystemClock()
        self._grace = grace
        self._patience = patience

    async def execute(self, request: RuntimeRequest) -> AsyncGenerator[Event, None]:
        """The events of the run; the last is `system/complete` or an error."""
        keepers = self._keepers.branch()
        processes = Processes(request, keepers, self._grace)
        try:
            async with aclosing(self._run(request, processes)) as events:
                async for event in events:
                    if isinstance(event, ErrorEvent):
                        await request.at(TriggerPoint.ON_ERROR)
                    if is_terminal(event):
                        await processes.stop()
                    yield event
        except anyio.get_cancelled_exc_class():
            with anyio.CancelScope(shield=True):
                await request.at(TriggerPoint.ON_CANCEL)
            raise
        finally:
            await processes.stop()
            self._keepers.discard(keepers)

    async def _run(
        self, request: RuntimeRequest, processes: Processes
    ) -> AsyncGenerator[Event, None]:
        turn = request.job_turns + 1
        directory = request.agent.working_directory
        if not await anyio.Path(directory).is_dir():
            message = f"there is no directory {directory} to run in"
            yield ErrorEvent(message=message, code="working_directory", turn=turn)
            return
        try:
            model = await self._model_for(request)
        except MODEL_ERRORS as error:
            yield error_event(
                error, turn=turn, at=self._clock.now(), secrets=request.known_secrets()
            )
            return
        servers = self._servers(request, processes)
        try:
            tools = [
                *offer(tools_for(request.agent, self._tools)),
                *offer_found(await servers.list_tools(), servers.call),
            ]
            async with model:
                run = Run(
                    request=request,
                    model=model,
                    toolset=Toolset(request, tools, processes.keepers.place),
                    processes=processes,
                    take_warnings=servers.take_warnings,
                    clock=self._clock,
                    patience=self._patience,
                )
                async with aclosing(run.events()) as events:
                    async for event in events:
                        yield event
        finally:
            await servers.close()

    def _servers(self, request: RuntimeRequest, processes: Processes) -> McpClient:
        """The MCP servers of the run; those that are processes are under a keeper like everything else."""
        agent = request.agent
        processes.may_exist = bool(agent.mcp_servers)
        return McpClient(
            agent.mcp_servers,
            request.injected_servers,
            Surroundings(
                directory=agent.working_directory,
                environment=request.environment,
                execution=request.execution,
                keepers=processes.keepers,
                marks=processes.marks,
                grace=processes.grace,
            ),
        )

    async def _model_for(self, request: RuntimeRequest) -> Model:
        if self._model is not None:
            return self._model
        if request.agent.script is not None:
            return ScriptModel(request.agent.script, request)
        # In a thread: the first time its provider is imported.
        # The model is asked from here, with a key that the container does not get.
        environment = request.environment if request.outside is None else request.outside
        return await to_thread.run_sync(model_of, request.agent, environment)
