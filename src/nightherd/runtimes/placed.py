"""A runtime on this machine, or in a container: as each agent says."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable

from nightherd.model.journal.event import Event
from nightherd.ports import Runtime, RuntimeRequest


class PlacedRuntime:
    """Implements the `Runtime` port. The container's side is loaded when the first agent needs it."""

    def __init__(self, here: Runtime, make_contained: Callable[[], Runtime]) -> None:
        self._here = here
        self._make_contained = make_contained
        self._contained: Runtime | None = None

    def execute(self, request: RuntimeRequest) -> AsyncGenerator[Event, None]:
        """The events of the run."""
        if request.agent.container is None:
            return self._here.execute(request)
        if self._contained is None:
            self._contained = self._make_contained()
        return self._contained.execute(request)
