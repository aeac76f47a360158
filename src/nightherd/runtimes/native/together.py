"""Together: calls of one answer that only look are made at the same time, all others in their order.

What changes something may depend on what was done before it, and what is looked at may be what was changed:
only calls that stand next to each other are made beside each other.
"""

from __future__ import annotations

import os
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterator, Sequence
from datetime import timedelta
from itertools import groupby

import anyio
from pydantic_ai.messages import ToolCallPart

from nightherd.ports import RuntimeRequest
from nightherd.runtimes.keeper.attendant import EXECUTION_MARK, execution_mark, stop_processes
from nightherd.runtimes.keeper.keepers import Keepers
from nightherd.runtimes.native.toolset import Answered

AT_ONCE = 10
"""How many calls are under way at the same time."""

Answering = Callable[[ToolCallPart], Awaitable[Answered]]


def batches(
    calls: Sequence[ToolCallPart], is_read_only: Callable[[ToolCallPart], bool]
) -> Iterator[list[ToolCallPart]]:
    """The calls in their order, those together that are made at the same time."""
    for only_look, group in groupby(calls, is_read_only):
        if only_look:
            yield list(group)
        else:
            yield from ([call] for call in group)


async def as_they_come(
    calls: Sequence[ToolCallPart], answer: Answering
) -> AsyncGenerator[tuple[ToolCallPart, Answered], None]:
    """The result of each call, as soon as that is known. One that raises ends the others, and is raised.

    Closing the iteration cancels what is under way.
    """
    if len(calls) == 1:
        yield calls[0], await answer(calls[0])
        return
    failure: Exception | None = None
    send, receive = anyio.create_memory_object_stream[tuple[ToolCallPart, Answered | Exception]](
        len(calls)
    )
    room = anyio.Semaphore(AT_ONCE)

    async def make(call: ToolCallPart) -> None:
        async with room:
            try:
                said: Answered | Exception = await answer(call)
            except Exception as error:  # noqa: BLE001 (handed over: the reader raises it)
                said = error
        send.send_nowait((call, said))

    with send, receive:
        async with anyio.create_task_group() as tasks:
            for call in calls:
                tasks.start_soon(make, call)
            for _ in calls:
                call, said = await receive.receive()
                if isinstance(said, Exception):
                    failure = said
                    break
                try:
                    yield call, said
                except GeneratorExit:  # it must not pass through the group, which would wrap it
                    break
            tasks.cancel_scope.cancel()
    if failure is not None:
        raise failure


class Processes:
    """Those of one run: by their keepers, and by the marks in their environment."""

    def __init__(self, request: RuntimeRequest, keepers: Keepers, grace: timedelta) -> None:
        self.keepers = keepers
        self.grace = grace
        self.marks = {
            EXECUTION_MARK: execution_mark(request.execution, keepers.directory),
            # With it a run finds its own processes only.
            "NIGHTHERD_WORKER_PID": str(os.getpid()),
        }
        self.may_exist = False
        """Whether a tool was called that may have left something running."""

    async def stop(self) -> None:
        """End what is still running; nothing to do when nothing was started."""
        if self.may_exist:
            await self.keepers.stop(self.grace)
            # A tool that is not ours may have started something without a keeper.
            await stop_processes(self.marks, grace_s=self.grace.total_seconds())
            self.may_exist = False
