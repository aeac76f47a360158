"""Destinations that the egress proxy refused, as events of the run in which it happened."""

from __future__ import annotations

from collections import deque
from collections.abc import AsyncGenerator, Callable, Iterator
from contextlib import aclosing, suppress

from nightherd.errors import NightherdError
from nightherd.model.journal.event import Event, describe, is_terminal
from nightherd.model.journal.system import Warned
from nightherd.runtimes.container.egress import Refusal

CODE = "egress_refused"


class EgressNotices:
    """What was refused and is not in the journal yet."""

    def __init__(self) -> None:
        self._refused: deque[Refusal] = deque()

    def add(self, refusal: Refusal) -> None:
        """One more. May be called from any thread, and is called before the program inside gets the answer."""
        self._refused.append(refusal)

    async def among(
        self, run: AsyncGenerator[Event, None], late: Callable[[Event], None]
    ) -> AsyncGenerator[Event, None]:
        """The events of the run, each after what was refused before it; `late` gets the rest of a run that is stopped."""
        is_over = False
        try:
            async with aclosing(run) as events:
                async for event in events:
                    for notice in self._drain():
                        yield notice
                    is_over = is_terminal(event)
                    yield event
            if not is_over:
                for notice in self._drain():
                    yield notice
        finally:
            if not is_over:
                with suppress(NightherdError):  # the job is another worker's by now
                    for notice in self._drain():
                        late(notice)

    def texts(self) -> Iterator[str]:
        """What was refused and nobody has heard of, for people."""
        while self._refused:
            refusal = self._refused.popleft()
            yield f"connection to {refusal.destination} refused: {refusal.reason}"

    def _drain(self) -> Iterator[Event]:
        for text in self.texts():
            yield describe(Warned(code=CODE), text)
