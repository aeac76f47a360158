"""A runtime that plays what it is given, and remembers what it was asked."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Sequence

import anyio

from nightherd.model.journal.event import AssistantEvent, Event, describe
from nightherd.model.journal.system import Complete
from nightherd.ports import RuntimeRequest

ANSWER: tuple[Event, ...] = (
    AssistantEvent(content="done", turn=1, index=0, end=True),
    describe(Complete(stop_reason="end_turn")),
)
"""The shortest run that succeeds."""


class PlayedRuntime:
    """Yields `events`, then raises `error`, or waits until it is cancelled if it is endless. `before_each` may look around."""

    def __init__(
        self,
        events: Sequence[Event] = ANSWER,
        *,
        error: Exception | None = None,
        is_endless: bool = False,
        before_each: Callable[[Event], None] | None = None,
    ) -> None:
        self.requests: list[RuntimeRequest] = []
        self.was_closed = False
        self._events = tuple(events)
        self._error = error
        self._is_endless = is_endless
        self._before_each = before_each

    async def execute(self, request: RuntimeRequest) -> AsyncGenerator[Event, None]:
        """Play."""
        self.requests.append(request)
        try:
            for event in self._events:
                if self._before_each is not None:
                    self._before_each(event)
                yield event
            if self._error is not None:
                raise self._error
            if self._is_endless:
                await anyio.sleep_forever()
        finally:
            self.was_closed = True
