"""Long work on a terminal: one line on standard error that says how far it is, and is gone when it is done."""

from __future__ import annotations

from typing import TextIO

from rich.console import Console
from rich.live import Live
from rich.spinner import Spinner
from rich.text import Text

EVERY = 50
"""Counts between two updates: nobody reads faster, and drawing is not free."""


class Busy:
    """Turns while something is worked through, and says what and how many."""

    def __init__(self, file: TextIO, *, is_colored: bool) -> None:
        console = Console(file=file, force_terminal=True, no_color=not is_colored, highlight=False)
        self._spinner = Spinner("dots", text=Text("looking"), style="status.spinner")
        self._live = Live(self._spinner, console=console, refresh_per_second=12.5, transient=True)
        self._title = ""

    def __enter__(self) -> Busy:
        self._live.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._live.stop()

    def tell(self, title: str, count: int) -> None:
        """`title` is what is worked through, `count` how many of it were so far; 0 says nothing."""
        is_new = title != self._title
        if not is_new and count % EVERY:
            return
        self._title = title
        self._spinner.update(text=Text(f"{title}: {count:,}" if count else title))
        if is_new:
            self._live.refresh()
