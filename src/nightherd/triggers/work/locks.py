"""Locks among fleets: a git ref for each issue that a fleet has. GitHub refuses to create a ref that exists.

The ref points to a tag object whose message names its owner.
"""

from __future__ import annotations

import json
from datetime import UTC, datetime
from urllib.parse import quote, urlencode

from nightherd.errors import WorkSourceError
from nightherd.model.text import neutralise, shorten
from nightherd.model.work.issue import IssueLock, LockAnswer, LockPage
from nightherd.model.work.source import SourceStatus
from nightherd.triggers.work.calls import PAGE, GithubCalls, has_next, read
from nightherd.triggers.work.documents import LockNote, RefDoc, ShaDoc, TagDoc
from nightherd.triggers.work.refusals import refusal

HOLDER_LIMIT = 120


class GithubLocks:
    """The locks of one repository."""

    def __init__(self, calls: GithubCalls) -> None:
        self._calls = calls
        self._source = calls.source
        self._commit: str | None = None

    async def take(self, number: int, lock: str, fleet: str, at: datetime) -> LockAnswer:
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
        made = await self._calls.ask("POST", "/git/tags", "create tags", ok=(201,), body=tag)
        ref = {"ref": self._ref(number), "sha": read(made, ShaDoc).sha}
        created = await self._calls.ask("POST", "/git/refs", "create refs", ok=(201, 422), body=ref)
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
        return LockAnswer(is_ours=False, holder=_name(holder.fleet) or "another fleet")

    async def drop(self, number: int, lock: str) -> bool:
        """Delete the issue's ref if it is this lock's; whether it was."""
        holder = await self._holder(number)
        if holder is None or holder.lock != lock:
            return False
        await self._calls.ask(
            "DELETE", f"/git/{self._ref(number)}", "delete refs", ok=(204, 404, 422)
        )
        return True

    async def find(self, number: int) -> IssueLock | None:
        """Who has an issue; None when nobody has."""
        holder = await self._holder(number)
        return None if holder is None else _lock(number, holder)

    async def list(self, page: int) -> LockPage:
        """The locks of all fleets."""
        prefix = f"{self._source.lock_ref}/"
        matching = prefix.removeprefix("refs/")
        query = urlencode({"per_page": PAGE, "page": page})
        answer = await self._calls.ask(
            "GET", f"/git/matching-refs/{matching}?{query}", "read refs", ok=(200,)
        )
        refs = read(answer, list[RefDoc])
        found = []
        for ref in refs:
            number = ref.ref.removeprefix(prefix)
            if number.isascii() and number.isdigit() and len(number) < 19:
                found.append(_lock(int(number), await self._note_of(ref)))
        return LockPage(locks=tuple(found), has_more=has_next(answer, len(refs)))

    async def _holder(self, number: int) -> LockNote | None:
        """Who has an issue's ref; None without one."""
        path = f"/git/{self._ref(number).replace('refs/', 'ref/', 1)}"
        answer = await self._calls.ask("GET", path, "read refs", ok=(200,), may_be_gone=True)
        return await self._note_of(read(answer, RefDoc)) if answer.status == 200 else None

    async def _note_of(self, ref: RefDoc) -> LockNote:
        if ref.object.type != "tag":
            return LockNote()
        path = f"/git/tags/{quote(ref.object.sha, safe='')}"
        tag = await self._calls.ask("GET", path, "read tags", ok=(200, 404))
        return LockNote() if tag.status == 404 else read(tag, TagDoc).note()

    async def _any_commit(self) -> str:
        """The commit that tag objects point to; which one does not matter."""
        if self._commit is None:
            answer = await self._calls.ask(
                "GET", "/commits?per_page=1", "read commits", ok=(200, 409)
            )
            found = read(answer, list[ShaDoc]) if answer.status == 200 else []
            if not found:
                raise WorkSourceError(
                    f"{self._source.repo} has no commit, so no ref can say who has an issue;"
                    " add a commit, or write 'lock: false'",
                    kind=SourceStatus.REFUSED,
                )
            self._commit = found[0].sha
        return self._commit

    def _ref(self, number: int) -> str:
        return f"{self._source.lock_ref}/{number}"


def _lock(number: int, note: LockNote) -> IssueLock:
    return IssueLock(
        number=number, lock=note.lock, fleet=_name(note.fleet), since=_name(note.since)
    )


def _name(text: str) -> str:
    """What somebody wrote into a tag, on one line and short."""
    return shorten(" ".join(neutralise(text).split()), HOLDER_LIMIT)
