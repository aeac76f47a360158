"""The index: outlines of jobs, search, and what keeps it up to date."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from nightherd.wiring.stores import open_feed, open_journals, system_clock

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from nightherd.index.follower import IndexFollower
    from nightherd.index.indexer import Indexer
    from nightherd.ports import Costs, Outlines, Searches


def open_indexer(state_dir: Path) -> Indexer:
    """What writes the index of `state_dir`. Opens nothing before it is asked for something."""
    from nightherd.index.indexer import Indexer

    return Indexer(state_dir, open_feed(state_dir), open_journals(state_dir))


def open_outlines(state_dir: Path) -> Outlines:
    """The outlines of the jobs in `state_dir`."""
    from nightherd.index.outlines import IndexedOutlines

    return IndexedOutlines(state_dir, open_journals(state_dir), partial(open_indexer, state_dir))


def index_follower(state_dir: Path, report: Callable[[str], None]) -> IndexFollower:
    """What keeps the index of `state_dir` up to date while a process lasts."""
    from nightherd.index.follower import IndexFollower

    return IndexFollower(open_indexer(state_dir), system_clock(), report)


def open_search(state_dir: Path, report: Callable[[str], None]) -> Searches:
    """Search over the jobs in `state_dir`; `report` is called when its index is damaged."""
    from nightherd.index.search import IndexSearch

    return IndexSearch(state_dir, open_journals(state_dir), report)


def open_costs(state_dir: Path, report: Callable[[str], None]) -> Costs:
    """What the jobs in `state_dir` have used; `report` is called when its index is damaged."""
    from nightherd.index.costs import IndexCosts

    return IndexCosts(state_dir, report)


def discard_index(state_dir: Path) -> None:
    """Remove the index of `state_dir`, if there is one: what indexes next makes it again."""
    from nightherd.index import file

    if state_dir.is_dir():
        file.discard_index(state_dir)
