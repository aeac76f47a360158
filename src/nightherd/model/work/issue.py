"""Issue: work as a tracker describes it, and which issues may be taken."""

from __future__ import annotations

import msgspec

from nightherd.model.work.source import WorkSource


class Issue(msgspec.Struct, frozen=True, kw_only=True):
    """An issue as it was seen. Its texts are other people's."""

    number: int
    title: str
    body: str = ""
    labels: tuple[str, ...] = ()
    author: str = ""
    is_open: bool = True
    is_pull_request: bool = False
    is_locked: bool = False
    """Whether it takes no comments."""


class IssuePage(msgspec.Struct, frozen=True, kw_only=True):
    """Some issues, the oldest first, without their texts."""

    issues: tuple[Issue, ...]
    has_more: bool = False


class LockAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """Whether an issue is this claim's among all fleets, and whose it is else."""

    is_ours: bool
    holder: str = ""


class IssueLock(msgspec.Struct, frozen=True, kw_only=True):
    """Who has an issue among all fleets, as its lock says."""

    number: int
    lock: str = ""
    """The claim; empty for a ref that no fleet has made."""
    fleet: str = ""
    since: str = ""


class LockPage(msgspec.Struct, frozen=True, kw_only=True):
    """Some locks."""

    locks: tuple[IssueLock, ...]
    has_more: bool = False


def has_label(issue: Issue, label: str) -> bool:
    """Whether the issue has the label; trackers ignore case."""
    return label.casefold() in {one.casefold() for one in issue.labels}


def why_not_taken(issue: Issue, source: WorkSource) -> str | None:
    """Why an issue is not work now; None when it is."""
    labels = {label.casefold() for label in issue.labels}
    if issue.is_pull_request:
        return "it is a pull request"
    if not issue.is_open:
        return "it is closed"
    if source.ready.casefold() not in labels:
        return f"it has no label {source.ready!r}"
    if source.in_progress.casefold() in labels:
        return f"it has the label {source.in_progress!r}"
    excluded = [label for label in source.exclude_labels if label.casefold() in labels]
    return f"it has the label {excluded[0]!r}" if excluded else None
