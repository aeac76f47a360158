"""Progress on a terminal: one line on standard error that is gone when the work is done."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TextIO

from rich.console import Console
from rich.live import Live
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn
from rich.spinner import Spinner as RichSpinner
from rich.status import Status
from rich.text import Text

from nightherd.model.jobs.job import Job
from nightherd.model.jobs.outcome import Tally
from nightherd.model.journal.event import AssistantEvent, Event, ToolResultEvent, ToolUseEvent
from nightherd.model.units import MicroUsd, format_usd


class Spinner:
    """Turns while the job runs, and says which turn it is in and what it has cost."""

    def __init__(self, file: TextIO, agent: str, *, is_colored: bool) -> None:
        console = Console(file=file, force_terminal=True, no_color=not is_colored, highlight=False)
        self._tally = Tally()
        self._before = 0
        self._agent = agent
        self._turn = 1
        self._doing = "starting"
        self._status = Status(self._line(), console=console)

    def __enter__(self) -> Spinner:
        self._status.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._status.stop()

    @contextmanager
    def aside(self) -> Iterator[None]:
        """Out of the way while something else is written to the same terminal."""
        self._status.stop()
        try:
            yield
        finally:
            self._status.start()

    def begin(self, job: Job) -> None:
        """Which job it is; what it has done and cost before counts too."""
        self._before, self._turn = job.cost_microusd, job.turns + 1
        self._status.update(self._line())

    def update(self, event: Event) -> None:
        """Take note of an event."""
        self._tally = self._tally.add(event)
        self._turn = max(self._turn, event.turn or 0)
        match event:
            case ToolUseEvent(tool_name=name):
                self._doing = name
            case AssistantEvent() | ToolResultEvent():
                self._doing = "thinking"
            case _:
                pass
        self._status.update(self._line())

    def _line(self) -> str:
        cost = format_usd(MicroUsd(self._before + self._tally.usage.cost_microusd))
        # Square brackets would be read as markup, and names come from files.
        return f"{self._agent}: turn {self._turn}, {self._doing}, {cost}".replace("[", "\\[")


class Bar:
    """A bar that advances with each step and names the last one."""

    def __init__(self, file: TextIO, total: int, *, is_colored: bool) -> None:
        console = Console(file=file, force_terminal=True, no_color=not is_colored, highlight=False)
        self._progress = Progress(
            BarColumn(),
            MofNCompleteColumn(),
            TextColumn("{task.description}", markup=False),
            console=console,
            transient=True,
        )
        self._task = self._progress.add_task("", total=total)

    def __enter__(self) -> Bar:
        self._progress.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._progress.stop()

    def update(self, name: str) -> None:
        """One step more."""
        self._progress.update(self._task, advance=1, description=name)


EVERY = 50
"""Counts between two updates: people do not read faster, and drawing costs time."""


class Busy:
    """Turns while something is worked through, and says what and how many."""

    def __init__(self, file: TextIO, *, is_colored: bool) -> None:
        console = Console(file=file, force_terminal=True, no_color=not is_colored, highlight=False)
        self._spinner = RichSpinner("dots", text=Text("looking"), style="status.spinner")
        self._live = Live(self._spinner, console=console, refresh_per_second=12.5, transient=True)
        self._title = ""

    def __enter__(self) -> Busy:
        self._live.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._live.stop()

    def update(self, title: str, count: int) -> None:
        """`title` is what is worked through, `count` how many of it were so far; 0 says nothing."""
        is_new = title != self._title
        if not is_new and count % EVERY:
            return
        self._title = title
        self._spinner.update(text=Text(f"{title}: {count:,}" if count else title))
        if is_new:
            self._live.refresh()
