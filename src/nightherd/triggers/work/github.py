"""GitHub as a tracker: issues, labels and comments over its REST API, and git refs that say who has an issue.

Labels cannot be compared and set, so two fleets could both take an issue. Creating a git ref can: GitHub refuses to
create one that exists. The ref points to a tag object whose message names its owner.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import Any, TypeVar
from urllib.parse import quote, urlencode

import msgspec

from nightherd.errors import WorkSourceError
from nightherd.model.text import shorten
from nightherd.model.work.issue import Issue, IssuePage, LockAnswer
from nightherd.model.work.source import SourceStatus, WorkSource
from nightherd.triggers.work.documents import (
    CommentDoc,
    IssueDoc,
    LockNote,
    RefDoc,
    ShaDoc,
    TagDoc,
    read_document,
)
from nightherd.triggers.work.http import Exchange, HttpAnswer, make_exchange
from nightherd.triggers.work.refusals import refusal

PAGE = 100
PAGES_KEPT = 32
"""Pages that are remembered with their ETag, so that an unchanged one costs no request of the rate limit."""
COMMENT_PAGES = 50
VERSION = "2022-11-28"
HOLDER_LIMIT = 120

DocT = TypeVar("DocT")


class GithubTracker:
    """One repository. `token` is asked for each request, and goes nowhere but into its header."""

    def __init__(
        self, source: WorkSource, token: Callable[[], str], exchange: Exchange | None = None
    ) -> None:
        self._source = source
        self._token = token
        self._exchange = exchange or make_exchange(source.base_url)
        self._repo = f"/repos/{source.repo}"
        self._pages: dict[str, tuple[str, IssuePage]] = {}
        self._commit: str | None = None

    async def list_issues(self, label: str, page: int) -> IssuePage:
        """Open issues with a label, the oldest first; a page that has not changed is not sent again."""
        query = {
            "state": "open",
            "labels": label,
            "sort": "created",
            "direction": "asc",
            "per_page": PAGE,
            "page": page,
        }
        path = f"{self._repo}/issues?{urlencode(query)}"
        known = self._pages.get(path)
        headers = {} if known is None else {"if-none-match": known[0]}
        answer = await self._ask("GET", path, "list the issues", ok=(200, 304), headers=headers)
        if answer.status == 304 and known is not None:
            return known[1]
        found = _read(answer, list[IssueDoc])
        issues = tuple(one.issue() for one in found)
        listed = IssuePage(issues=issues, has_more=len(found) >= PAGE)
        etag = answer.headers.get("etag", "")
        if etag:
            if len(self._pages) >= PAGES_KEPT:
                self._pages.clear()
            self._pages[path] = (etag, listed)
        return listed

    async def find_issue(self, number: int) -> Issue | None:
        """An issue as it is now; None for one that was deleted or moved to another repository."""
        answer = await self._ask(
            "GET", self._issue(number), "read an issue", ok=(200, 301, 404, 410)
        )
        return _read(answer, IssueDoc).issue() if answer.status == 200 else None

    async def take_lock(self, number: int, lock: str, fleet: str, at: datetime) -> LockAnswer:
        """Create the issue's ref; the one that is there decides."""
        note = json.dumps({"lock": lock, "fleet": fleet, "since": at.isoformat()})
        tag = {
            "tag": f"nightherd-issue-{number}",
            "message": note,
            "object": await self._any_commit(),
            "type": "commit",
            "tagger": {
                "name": "nightherd",
                "email": "nightherd@users.noreply.github.com",
                "date": at.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
            },
        }
        made = await self._ask("POST", f"{self._repo}/git/tags", "create tags", ok=(201,), body=tag)
        ref = {"ref": self._ref(number), "sha": _read(made, ShaDoc).sha}
        created = await self._ask(
            "POST", f"{self._repo}/git/refs", "create refs", ok=(201, 422), body=ref
        )
        if created.status == 201:
            return LockAnswer(is_ours=True)
        holder = await self._holder(number)
        if holder is None and b"already exists" in created.body:
            return LockAnswer(is_ours=False, holder="another fleet")  # which has just freed it
        if holder is None:
            # Neither made nor there: the name or the object was refused.
            raise refusal(created, self._source, f"create {self._ref(number)}")
        if holder.lock == lock:
            return LockAnswer(is_ours=True)
        who = holder.fleet or "another fleet"
        return LockAnswer(is_ours=False, holder=shorten(who, HOLDER_LIMIT))

    async def drop_lock(self, number: int, lock: str) -> None:
        """Delete the issue's ref if it is this lock's."""
        holder = await self._holder(number)
        if holder is None or holder.lock != lock:
            return
        path = f"{self._repo}/git/{self._ref(number)}"
        await self._ask("DELETE", path, "delete refs", ok=(204, 404, 422))

    async def has_lock(self, number: int) -> bool:
        """Whether the issue has a ref."""
        return await self._holder(number) is not None

    async def _holder(self, number: int) -> LockNote | None:
        """Who has an issue's ref; None without one."""
        path = f"{self._repo}/git/{self._ref(number).replace('refs/', 'ref/', 1)}"
        answer = await self._ask("GET", path, "read refs", ok=(200, 404))
        if answer.status == 404:
            return None
        target = _read(answer, RefDoc).object
        if target.type != "tag":
            return LockNote()
        path = f"{self._repo}/git/tags/{quote(target.sha, safe='')}"
        tag = await self._ask("GET", path, "read tags", ok=(200, 404))
        return LockNote() if tag.status == 404 else _read(tag, TagDoc).note()

    async def _any_commit(self) -> str:
        """The commit that tag objects point to; which one does not matter."""
        if self._commit is None:
            path = f"{self._repo}/commits?per_page=1"
            answer = await self._ask("GET", path, "read commits", ok=(200, 409))
            found = _read(answer, list[ShaDoc]) if answer.status == 200 else []
            if not found:
                raise WorkSourceError(
                    f"{self._source.repo} has no commit, so no ref can say who has an issue;"
                    " add a commit, or write 'lock: false'",
                    kind=SourceStatus.REFUSED,
                )
            self._commit = found[0].sha
        return self._commit

    async def add_label(self, number: int, label: str) -> None:
        """Add a label; one that the repository does not have is made by GitHub."""
        path = f"{self._issue(number)}/labels"
        await self._ask(
            "POST", path, "label issues", ok=(200, 301, 404, 410), body={"labels": [label]}
        )

    async def remove_label(self, number: int, label: str) -> None:
        """Remove a label, if it is there."""
        path = f"{self._issue(number)}/labels/{quote(label, safe='')}"
        await self._ask("DELETE", path, "label issues", ok=(200, 301, 404, 410))

    async def find_comment(self, number: int, marker: str, since: datetime) -> str | None:
        """The id of the comment with the marker."""
        stamp = since.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
        for page in range(1, COMMENT_PAGES + 1):
            query = urlencode({"since": stamp, "per_page": PAGE, "page": page})
            path = f"{self._issue(number)}/comments?{query}"
            answer = await self._ask("GET", path, "read comments", ok=(200, 301, 404, 410))
            found = _read(answer, list[CommentDoc]) if answer.status == 200 else []
            ours = next((one for one in found if marker in (one.body or "")), None)
            if ours is not None:
                return str(ours.id)
            if len(found) < PAGE:
                break
        return None

    async def comment(self, number: int, text: str) -> str:
        """Write a comment; its id, empty where the issue takes none any more."""
        path = f"{self._issue(number)}/comments"
        answer = await self._ask(
            "POST", path, "comment on issues", ok=(201, 301, 404, 410), body={"body": text}
        )
        return str(_read(answer, CommentDoc).id) if answer.status == 201 else ""

    async def close(self, number: int) -> None:
        """Close an issue as completed."""
        body = {"state": "closed", "state_reason": "completed"}
        await self._ask(
            "PATCH", self._issue(number), "close issues", ok=(200, 301, 404, 410), body=body
        )

    def _issue(self, number: int) -> str:
        return f"{self._repo}/issues/{number}"

    def _ref(self, number: int) -> str:
        return f"{self._source.lock_ref}/{number}"

    async def _ask(
        self,
        method: str,
        path: str,
        what: str,
        *,
        ok: tuple[int, ...],
        body: Mapping[str, Any] | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> HttpAnswer:
        """Send a request; the answer if its status is one of `ok`, else `WorkSourceError`."""
        sent = {
            "accept": "application/vnd.github+json",
            "authorization": f"Bearer {self._checked_token()}",
            "user-agent": "nightherd",
            "x-github-api-version": VERSION,
            **(headers or {}),
        }
        data = None
        if body is not None:
            sent["content-type"] = "application/json"
            data = json.dumps(body).encode()
        answer = await self._exchange(method, path, sent, data)
        if answer.status in ok:
            return answer
        raise refusal(answer, self._source, what)

    def _checked_token(self) -> str:
        """The token. What could not be a header is refused here, where nothing repeats it."""
        token, name = self._token().strip(), self._source.token_env
        if not token:
            raise WorkSourceError(
                f"the variable {name} has no token for {self._source.repo}",
                kind=SourceStatus.REFUSED,
            )
        if not token.isascii() or not token.isprintable() or " " in token:
            raise WorkSourceError(
                f"what the variable {name} holds cannot be a token", kind=SourceStatus.REFUSED
            )
        return token


def _read(answer: HttpAnswer, kind: type[DocT]) -> DocT:
    try:
        return read_document(answer.body, kind)
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        raise WorkSourceError(f"GitHub sent an answer that cannot be read: {error}") from error
