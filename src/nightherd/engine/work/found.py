"""What looking for an issue came to: one that is ready for its job, or none, and why."""

from __future__ import annotations

import msgspec

from nightherd.model.work.issue import Issue
from nightherd.model.work.item import WorkItem
from nightherd.model.work.source import WorkSource


class FoundIssue(msgspec.Struct, frozen=True, kw_only=True):
    """An issue that is this fleet's and waits for its job."""

    item: WorkItem
    issue: Issue
    source: WorkSource


class NoIssue(msgspec.Struct, frozen=True, kw_only=True):
    """Nothing to work on."""

    reason: str
    is_error: bool = False
    """Whether the tracker could not be asked."""


class BusyIssue(msgspec.Struct, frozen=True, kw_only=True):
    """Another process claims an issue for the same schedule: look again soon."""

    by: str


Found = FoundIssue | NoIssue
