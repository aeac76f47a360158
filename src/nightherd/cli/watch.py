"""Watching a job from outside: its events as they are recorded, and the signals that stop it."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Protocol

import anyio
from anyio.abc import TaskStatus

from nightherd.cli.edge import abandon_output
from nightherd.cli.event_text import event_text
from nightherd.cli.lazy import load
from nightherd.cli.render import Screen
from nightherd.engine.stopper import Stopper
from nightherd.errors import InterruptedRunError
from nightherd.model.event import Event, SystemEvent
from nightherd.model.job import ExitReason, Job
from nightherd.model.system import SystemSubtype
from nightherd.runtimes.keeper.ending import stop_processes

WORKER_MARK = "NIGHTHERD_WORKER_PID"
"""In the environment of every process that an agent of this process has started."""

KNOWN = frozenset({SystemSubtype.USER_INPUT, SystemSubtype.END})
"""What the person who runs the job knows, or is told in other words."""


class Progress(Protocol):
    """What shows that the job is alive."""

    def aside(self) -> AbstractContextManager[None]: ...
    def begin(self, job: Job) -> None: ...
    def tell(self, event: Event) -> None: ...


class Watcher:
    """Shows events to a person. A reader that goes away does not stop the job."""

    def __init__(self, screen: Screen, *, is_shown: bool, progress: Progress | None) -> None:
        self._screen = screen
        self._is_shown = is_shown
        self._progress = progress

    def begin(self, job: Job) -> None:
        """Told of the job, before any of its events."""
        if self._progress is not None:
            self._progress.begin(job)

    def __call__(self, event: Event) -> None:
        """Told of each event after it is recorded."""
        if self._progress is not None:
            self._progress.tell(event)
        if not self._is_shown or (isinstance(event, SystemEvent) and event.subtype in KNOWN):
            return
        text = event_text(event, self._screen.out)
        if text is None:
            return
        # What goes into a pipe is not on the terminal that the progress is redrawn on.
        with self._aside() if self._screen.is_terminal else nullcontext():
            try:
                self._screen.show(text)
                self._screen.flush()
            except BrokenPipeError:
                abandon_output()
                self._is_shown = False

    def say(self, text: str) -> None:
        """A line of talk."""
        with self._aside():
            self._screen.say(text)

    def _aside(self) -> AbstractContextManager[None]:
        return self._progress.aside() if self._progress is not None else nullcontext()


@contextmanager
def watching(screen: Screen, agent: str, *, is_shown: bool) -> Iterator[Watcher]:
    """A watcher, with progress when a person sits at a terminal that can show it."""
    if not (is_shown and screen.can_animate):
        yield Watcher(screen, is_shown=is_shown, progress=None)
        return
    spinner = load("nightherd.cli.progress:Spinner")(
        screen.talk, agent, is_colored=screen.err.is_colored
    )
    with spinner:
        yield Watcher(screen, is_shown=is_shown, progress=spinner)


async def stop_on_signals(
    stopper: Stopper,
    say: Callable[[str], None],
    *,
    task_status: TaskStatus[None] = anyio.TASK_STATUS_IGNORED,
) -> None:
    """Ctrl-C and SIGTERM cancel the job and let it settle; the second one leaves at once."""
    with anyio.open_signal_receiver(signal.SIGINT, signal.SIGTERM) as signals:
        task_status.started()
        async for _ in signals:
            if stopper.reason is not None:
                # The record holds everything up to here. What the agent has started would outlive us.
                await stop_processes({WORKER_MARK: str(os.getpid())}, grace_s=0)
                os._exit(InterruptedRunError.exit_code)
            say("stopping; once more to leave at once")
            stopper.stop(ExitReason.CANCELLED)
