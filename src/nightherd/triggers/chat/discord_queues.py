"""ChannelQueues: what happens in one channel is done in its order, channels beside each other."""

from __future__ import annotations

from collections import deque
from collections.abc import Awaitable, Callable

from anyio.abc import TaskGroup

Act = Callable[[], Awaitable[None]]


class ChannelQueues:
    """A queue for each channel in which something waits. Cancelling the task group drops them."""

    def __init__(self, tasks: TaskGroup) -> None:
        self._tasks = tasks
        self._queues: dict[int, deque[Act]] = {}

    def put(self, channel_id: int, act: Act) -> None:
        """Do something after everything that was put for the channel before."""
        queue = self._queues.get(channel_id)
        if queue is not None:
            queue.append(act)
            return
        self._queues[channel_id] = deque((act,))
        self._tasks.start_soon(self._work, channel_id)

    async def _work(self, channel_id: int) -> None:
        queue = self._queues[channel_id]
        while queue:
            await queue.popleft()()
        del self._queues[channel_id]
