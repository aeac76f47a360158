"""A bar on a terminal: how far something with a known number of steps has come. Gone when it is done."""

from __future__ import annotations

from typing import TextIO

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn


class Bar:
    """Fills as it is told of steps, and names the last one."""

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

    def tell(self, name: str) -> None:
        """One step more."""
        self._progress.update(self._task, advance=1, description=name)
