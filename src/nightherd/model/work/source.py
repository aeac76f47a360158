"""WorkSource: where a schedule takes its work from, resolved; and how a source is doing."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from enum import StrEnum
from typing import Any

import msgspec

from nightherd.decoding import convert

GITHUB = "github"
PUBLIC_API = "https://api.github.com"
LOCK_REF = "refs/nightherd/issues"
"""Where the refs are that say who has an issue: beside branches and tags, so that no clone gets them."""


class OnSuccess(StrEnum):
    """What becomes of an issue whose job succeeded."""

    CLOSE = "close"
    KEEP = "keep"
    """It stays open, without the labels of work."""


class WorkSource(msgspec.Struct, frozen=True, kw_only=True):
    """A repository whose labelled issues are work."""

    repo: str
    """`OWNER/NAME`."""
    type: str = GITHUB
    base_url: str = PUBLIC_API
    ready: str = "ready"
    in_progress: str = "agent-working"
    done: str | None = None
    failed: str | None = None
    exclude_labels: tuple[str, ...] = ()
    on_success: OnSuccess = OnSuccess.CLOSE
    cleanup_on_failure: bool = True
    """Whether the issue of a failed job is ready again."""
    cleanup_in_progress: bool = False
    """Whether an issue that nobody works on loses the label of work in progress."""
    max_attempts: int = 3
    lock: bool = True
    """Whether a git ref of the repository tells other fleets that an issue is taken."""
    lock_ref: str = LOCK_REF
    token_env: str = "GITHUB_TOKEN"  # noqa: S105 (the name of a variable)

    @property
    def id(self) -> str:
        """What it is called in rows: the repository, with its server unless that is the public one."""
        server = self.base_url.partition("://")[2].rstrip("/")
        where = "" if self.base_url.rstrip("/") == PUBLIC_API else f"{server}/"
        return f"{self.type}:{where}{self.repo.lower()}"

    def terms(self) -> Mapping[str, Any]:
        """The source as a plain document, for the row of a claim: it is settled as it was claimed."""
        document: dict[str, Any] = msgspec.json.decode(msgspec.json.encode(self))
        return document


def source_of(terms: Mapping[str, Any]) -> WorkSource:
    """Return the source that a document means; keys that are not known are left out."""
    return convert(dict(terms), WorkSource)


class SourceStatus(StrEnum):
    """How a source is doing."""

    OK = "ok"
    LIMITED = "limited"
    """The tracker wants to be left alone until a time."""
    REFUSED = "refused"
    """Its token is missing, was revoked, or lacks a permission."""
    MISSING = "missing"
    """There is no such repository, or the token does not see it."""
    UNAVAILABLE = "unavailable"
    """It cannot be reached, or fails."""


class SourceState(msgspec.Struct, frozen=True, kw_only=True):
    """A source's row, as a process last saw it."""

    id: str
    status: SourceStatus
    checked_at: datetime
    blocked_until: datetime | None = None
    """It is not asked before."""
    error: str | None = None
    failures: int = 0
    """In a row."""
    open_issues: int | None = None
    """Ready issues that were seen last; None when it was never asked."""
