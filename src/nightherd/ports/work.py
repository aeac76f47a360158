"""What a tracker of issues does for work sources."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:  # only names: a command that lists jobs must not load what work sources need
    from nightherd.model.work.issue import Issue, IssueLock, IssuePage, LockAnswer, LockPage
    from nightherd.model.work.source import WorkSource


class WorkTracker(Protocol):
    """One work source at its tracker. Everything raises `WorkSourceError` when it cannot be asked, or refuses.

    Every method may be called again after an answer was lost; all but `comment` then change nothing more.
    """

    async def list_issues(self, label: str, page: int) -> IssuePage:
        """Open issues with a label, the oldest first and without their texts; pages count from 1."""

    async def find_issue(self, number: int) -> Issue | None:
        """An issue as it is now; None for one that is gone."""

    async def take_lock(self, number: int, lock: str, fleet: str, at: datetime) -> LockAnswer:
        """Make an issue this lock's, unless it is another's; exactly one of all that try has it."""

    async def drop_lock(self, number: int, lock: str) -> bool:
        """Free an issue if it is this lock's; whether it was."""

    async def find_lock(self, number: int) -> IssueLock | None:
        """Who has an issue; None when nobody has."""

    async def list_locks(self, page: int) -> LockPage:
        """The locks of all fleets; pages count from 1."""

    async def add_label(self, number: int, label: str) -> bool:
        """Add a label; False for an issue that is gone."""

    async def remove_label(self, number: int, label: str) -> None: ...
    async def find_comment(self, number: int, marker: str, since: datetime) -> str | None:
        """The id of our own comment that begins with the marker and was written since then."""

    async def comment(self, number: int, text: str) -> str:
        """Write a comment; its id."""

    async def close(self, number: int) -> None:
        """Close an issue as completed."""


class OpenTracker(Protocol):
    """Opens the tracker of a source. `token` returns the token; it is called for each request."""

    def __call__(self, source: WorkSource, token: Callable[[], str], /) -> WorkTracker: ...
