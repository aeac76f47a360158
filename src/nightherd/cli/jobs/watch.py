"""Watching a job from outside: its events as they are recorded, and the signals that stop it."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, closing, contextmanager, nullcontext
from typing import Protocol

import anyio
from anyio.abc import TaskStatus

from nightherd.cli.edge import abandon_output
from nightherd.cli.jobs.event_text import StreamedText, event_text
from nightherd.cli.screen.render import Screen
from nightherd.engine.jobs.oversight import Stopper
from nightherd.errors import InterruptedRunError
from nightherd.model.ids import JobId
from nightherd.model.jobs.job import ExitReason, Job
from nightherd.model.journal.event import Event, SystemEvent
from nightherd.model.journal.live_text import TextDelta, is_about_answer
from nightherd.model.journal.system import SystemSubtype
from nightherd.ports import Journals
from nightherd.wiring.machine import stop_processes

WORKER_MARK = "NIGHTHERD_WORKER_PID"
"""In the environment of every process that an agent of this process has started."""

KNOWN = frozenset({SystemSubtype.USER_INPUT, SystemSubtype.END})
"""Events that are not shown: the person who runs the job knows them, or another line says the same."""


LOOK_S = 0.05
"""Between two looks at the text of an answer that is coming in."""


class Progress(Protocol):
    """What shows that the job is alive."""

    def aside(self) -> AbstractContextManager[None]: ...
    def begin(self, job: Job) -> None: ...
    def update(self, event: Event) -> None: ...


class Watcher:
    """Shows events to a person. A reader that goes away does not stop the job."""

    def __init__(self, screen: Screen, *, is_shown: bool, progress: Progress | None) -> None:
        self._screen = screen
        self._is_shown = is_shown
        self._progress = progress
        self._streamed = StreamedText(screen)
        self._answered = 0
        self._is_aside = False
        self._aside_until = ExitStack()

    def begin(self, job: Job) -> None:
        """Take the job, before any of its events."""
        if self._progress is not None:
            self._progress.begin(job)

    def __call__(self, event: Event) -> None:
        """Show an event after it is recorded."""
        if self._progress is not None:
            self._progress.update(event)
        if is_about_answer(event):
            self._answered = event.seq
        if not self._is_shown or (isinstance(event, SystemEvent) and event.subtype in KNOWN):
            return
        if event_text(event, self._screen.out) is None and not self._streamed.is_in_line:
            return  # nothing to see: the progress may stay
        # What goes into a pipe is not on the terminal that the progress is redrawn on.
        with self._aside() if self._screen.is_terminal else nullcontext():
            self._write(lambda: self._streamed.event(event))

    def text(self, delta: TextDelta) -> None:
        """Show a piece of an answer, unless its event was shown."""
        if not self._is_shown or delta.after < self._answered:
            return
        with self._aside():
            self._write(lambda: self._streamed.piece(delta))

    def say(self, text: str) -> None:
        """A line of talk."""
        with self._aside():
            if self._is_shown:
                self._write(self._streamed.end_line)
            self._screen.say(text)

    def _write(self, write: Callable[[], None]) -> None:
        try:
            write()
        except BrokenPipeError:
            abandon_output()
            self._is_shown = False

    @contextmanager
    def _aside(self) -> Iterator[None]:
        """Keep the progress out of the way, also after this while a line of the answer is not ended."""
        if self._progress is not None and not self._is_aside:
            self._is_aside = True
            self._aside_until.enter_context(self._progress.aside())
        try:
            yield
        finally:
            if not self._streamed.is_in_line:
                self._is_aside = False
                self._aside_until.close()


@contextmanager
def watching(screen: Screen, agent: str, *, is_shown: bool) -> Iterator[Watcher]:
    """A watcher, with progress when a person sits at a terminal that can show it."""
    if not (is_shown and screen.can_animate):
        yield Watcher(screen, is_shown=is_shown, progress=None)
        return
    from nightherd.cli.screen.progress import Spinner  # a pipe does not load rich

    spinner = Spinner(screen.talk, agent, is_colored=screen.err.is_colored)
    with spinner:
        yield Watcher(screen, is_shown=is_shown, progress=spinner)


async def show_text(watcher: Watcher, job_id: JobId, journals: Journals) -> None:
    """Show the text of answers as it comes, whichever worker runs the job. A pipe gets answers when they are whole."""
    with closing(journals.text_follower(job_id)) as text:
        while True:
            for delta in text.poll():
                watcher.text(delta)
            await anyio.sleep(LOOK_S)


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
            say("stopping; press again to exit at once")
            stopper.stop(ExitReason.CANCELLED)
