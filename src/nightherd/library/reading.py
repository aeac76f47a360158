"""Reading a state directory, for the functions of the library that need no open fleet."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

from nightherd.ports import StateReader
from nightherd.wiring.files import refresh_stale_mirror
from nightherd.wiring.stores import open_reader


@contextmanager
def reading(state_dir: str | Path) -> Iterator[StateReader]:
    """Read the rows of `state_dir`. Readable files that a killed command left behind are brought up to date."""
    root = Path(state_dir)
    with closing(open_reader(root)) as reader:
        yield reader
    refresh_stale_mirror(root)
