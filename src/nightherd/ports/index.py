"""What can be looked up about jobs without reading their journals."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:  # only names: a command that lists jobs must not load what an outline needs
    from collections.abc import Sequence

    from nightherd.model.costs.breakdown import CostQuery, CostTable, FamilyUse
    from nightherd.model.costs.period import Period
    from nightherd.model.ids import JobId
    from nightherd.model.index.outline import Outline
    from nightherd.model.index.search import SearchPage, SearchQuery


class Outlines(Protocol):
    """The outlines of jobs."""

    def outline(self, job_id: JobId) -> Outline:
        """Return the outline of the job's journal as far as it goes now; an empty one without a journal."""


class Searches(Protocol):
    """Full-text search over all jobs."""

    def search(self, query: SearchQuery) -> SearchPage:
        """Return a page of what matches, newest first; `InvalidValueError` for a text without a word."""


class Costs(Protocol):
    """What jobs have used, added up."""

    def costs(self, query: CostQuery) -> CostTable:
        """Return what was used in a period, in groups."""

    def families(self, period: Period) -> Sequence[FamilyUse]:
        """Return what was used in a period, by what limits count it for."""
