"""Bringing the index up to date before a command asks it something."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

from nightherd.cli.screen.render import Screen, neutralise
from nightherd.errors import StateError
from nightherd.model.text import counted
from nightherd.wiring.index import open_indexer

SAID_EVERY = 500
"""Jobs between two lines about how far indexing is."""


def catch_up_index(state: Path, screen: Screen) -> int:
    """Index what is new; return how many jobs that was. Where it cannot be written, what there is has to do."""

    def report(count: int) -> None:
        if count % SAID_EVERY == 0:
            screen.say(f"indexed {counted(count, 'job')} so far")

    if not state.is_dir():
        return 0
    with closing(open_indexer(state)) as indexer:
        try:
            return indexer.catch_up(report)
        except StateError as error:
            screen.say(f"the index is not up to date: {error.message}")
            return 0
        finally:
            for notice in indexer.notices:
                screen.say(neutralise(notice))
