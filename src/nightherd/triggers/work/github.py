"""GitHub as a tracker: issues, labels and comments over its REST API, and git refs that say who has an issue.

Labels cannot be compared and set, so two fleets could both take an issue. Creating a git ref can: see `locks.py`.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from urllib.parse import quote, urlencode

from nightherd.model.work.issue import Issue, IssueLock, IssuePage, LockAnswer, LockPage
from nightherd.model.work.source import WorkSource
from nightherd.triggers.work.calls import PAGE, GithubCalls, has_next, read
from nightherd.triggers.work.documents import CommentDoc, IssueDoc, UserDoc
from nightherd.triggers.work.http import Exchange
from nightherd.triggers.work.locks import GithubLocks

PAGES_KEPT = 32
"""Pages that are remembered with their ETag, so that an unchanged one costs no request of the rate limit."""
COMMENT_PAGES = 50
PERSON = "User"
"""The type of a person's account."""


class GithubTracker:
    """One repository. `token` is asked for each request, and goes nowhere but into its header."""

    def __init__(
        self, source: WorkSource, token: Callable[[], str], exchange: Exchange | None = None
    ) -> None:
        self._calls = GithubCalls(source, token, exchange)
        self._locks = GithubLocks(self._calls)
        self._pages: dict[str, tuple[str, IssuePage]] = {}
        self._user: tuple[str, int | None] | None = None

    async def list_issues(self, label: str, page: int) -> IssuePage:
        """Open issues with a label, the oldest first, without their texts; a page that has not changed is not sent again."""
        query = {
            "state": "open",
            "labels": label,
            "sort": "created",
            "direction": "asc",
            "per_page": PAGE,
            "page": page,
        }
        path = f"/issues?{urlencode(query)}"
        known = self._pages.get(path)
        headers = {} if known is None else {"if-none-match": known[0]}
        answer = await self._calls.ask(
            "GET", path, "list the issues", ok=(200, 304), headers=headers
        )
        if answer.status == 304 and known is not None:
            return known[1]
        found = read(answer, list[IssueDoc])
        issues = tuple(one.issue(has_body=False) for one in found)
        listed = IssuePage(issues=issues, has_more=has_next(answer, len(found)))
        etag = answer.headers.get("etag", "")
        if etag:
            if len(self._pages) >= PAGES_KEPT:
                self._pages.clear()
            self._pages[path] = (etag, listed)
        return listed

    async def find_issue(self, number: int) -> Issue | None:
        """An issue as it is now; None for one that was deleted or moved to another repository."""
        answer = await self._calls.ask(
            "GET", _issue(number), "read an issue", ok=(200,), may_be_gone=True
        )
        return read(answer, IssueDoc).issue() if answer.status == 200 else None

    async def take_lock(self, number: int, lock: str, fleet: str, at: datetime) -> LockAnswer:
        """Create the issue's ref; the one that is there decides."""
        return await self._locks.take(number, lock, fleet, at)

    async def drop_lock(self, number: int, lock: str) -> bool:
        """Delete the issue's ref if it is this lock's; whether it was."""
        return await self._locks.drop(number, lock)

    async def find_lock(self, number: int) -> IssueLock | None:
        """Who has an issue; None when nobody has."""
        return await self._locks.find(number)

    async def list_locks(self, page: int) -> LockPage:
        """The locks of all fleets."""
        return await self._locks.list(page)

    async def add_label(self, number: int, label: str) -> bool:
        """Add a label, which GitHub makes if there is none of that name; False for an issue that is gone."""
        answer = await self._calls.ask(
            "POST",
            f"{_issue(number)}/labels",
            "label issues",
            ok=(200,),
            may_be_gone=True,
            body={"labels": [label]},
        )
        return answer.status == 200

    async def remove_label(self, number: int, label: str) -> None:
        """Remove a label, if it is there."""
        path = f"{_issue(number)}/labels/{quote(label, safe='')}"
        await self._calls.ask("DELETE", path, "label issues", ok=(200,), may_be_gone=True)

    async def find_comment(self, number: int, marker: str, since: datetime) -> str | None:
        """The id of the token's own comment that begins with the marker."""
        stamp = since.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
        for page in range(1, COMMENT_PAGES + 1):
            query = urlencode({"since": stamp, "per_page": PAGE, "page": page})
            path = f"{_issue(number)}/comments?{query}"
            answer = await self._calls.ask(
                "GET", path, "read comments", ok=(200,), may_be_gone=True
            )
            found = read(answer, list[CommentDoc]) if answer.status == 200 else []
            for one in found:
                if (one.body or "").startswith(marker) and await self._is_own(one):
                    return str(one.id)
            if not has_next(answer, len(found)):
                break
        return None

    async def _is_own(self, comment: CommentDoc) -> bool:
        """Whether the comment is the token's. The token of an app cannot tell: its comments are not a person's."""
        token = self._calls.checked_token()
        if self._user is None or self._user[0] != token:
            answer = await self._calls.ask_server("/user", "read its own user")
            self._user = (token, None if answer is None else read(answer, UserDoc).id)
        own, author = self._user[1], comment.user or UserDoc()
        return author.type != PERSON if own is None else author.id == own

    async def comment(self, number: int, text: str) -> str:
        """Write a comment; its id, empty where the issue takes none any more."""
        path = f"{_issue(number)}/comments"
        answer = await self._calls.ask(
            "POST", path, "comment on issues", ok=(201,), may_be_gone=True, body={"body": text}
        )
        return str(read(answer, CommentDoc).id) if answer.status == 201 else ""

    async def close(self, number: int) -> None:
        """Close an issue as completed."""
        body = {"state": "closed", "state_reason": "completed"}
        await self._calls.ask(
            "PATCH", _issue(number), "close issues", ok=(200,), may_be_gone=True, body=body
        )


def _issue(number: int) -> str:
    return f"/issues/{number}"
