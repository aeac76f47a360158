"""What can be looked up about jobs without reading their journals."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:  # only names: a command that lists jobs must not load what an outline needs
    from nightherd.model.ids import JobId
    from nightherd.model.index.outline import Outline


class Outlines(Protocol):
    """The outlines of jobs."""

    def outline(self, job_id: JobId) -> Outline:
        """Return the outline of the job's journal as far as it goes now; an empty one without a journal."""
