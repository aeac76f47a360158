"""Long work on a terminal: one line on standard error that says how far it is, and is gone when it is done."""

from __future__ import annotations

from typing import TextIO

from rich.console import Console
from rich.status import Status

EVERY = 50
"""Counts between two updates: nobody reads faster, and drawing is not free."""


class Busy:
    """Turns while something is worked through, and says what and how many."""

    def __init__(self, file: TextIO, *, is_colored: bool) -> None:
        console = Console(file=file, force_terminal=True, no_color=not is_colored, highlight=False)
        self._status = Status("looking", console=console)

    def __enter__(self) -> Busy:
        self._status.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._status.stop()

    def tell(self, title: str, count: int) -> None:
        """`title` is what is worked through, `count` how many of it were so far; 0 says nothing."""
        if count % EVERY > 1:
            return
        told = f"{title}: {count:,}" if count else title
        # Square brackets would be read as markup.
        self._status.update(told.replace("[", "\\["))
