"""Requests about one repository at GitHub: the token, redirects of a renamed repository, and what a 404 is about."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from typing import Any, TypeVar
from urllib.parse import urlsplit

import msgspec

from nightherd.errors import WorkSourceError
from nightherd.model.work.source import SourceStatus, WorkSource
from nightherd.triggers.work.documents import read_document
from nightherd.triggers.work.http import Exchange, HttpAnswer, make_exchange
from nightherd.triggers.work.refusals import REDIRECTS, TOKEN_S, refusal

PAGE = 100
VERSION = "2022-11-28"
GONE = frozenset({404, 410}) | REDIRECTS
"""What GitHub answers about an issue that was moved to another repository or deleted."""
MOVES = 3
"""Redirects of a repository that are followed in one request."""
REPOSITORY = re.compile(r"/repositories/\d+|/repos/[^/?]+/[^/?]+")

DocT = TypeVar("DocT")


class GithubCalls:
    """One repository. `token` is asked for each request, and goes nowhere but into its header."""

    def __init__(
        self, source: WorkSource, token: Callable[[], str], exchange: Exchange | None = None
    ) -> None:
        self.source = source
        self._token = token
        self._exchange = exchange or make_exchange(source.base_url)
        self._server = urlsplit(source.base_url.rstrip("/"))
        self._repo = f"/repos/{source.repo}"
        """Where the repository is now: GitHub redirects from a name that it had before."""

    async def ask(
        self,
        method: str,
        path: str,
        what: str,
        *,
        ok: tuple[int, ...],
        may_be_gone: bool = False,
        body: Mapping[str, Any] | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> HttpAnswer:
        """Send a request about the repository; the answer if its status is one of `ok`, else `WorkSourceError`.

        With `may_be_gone` a redirect, 404 or 410 is an answer too, but only while the repository itself can be seen:
        GitHub answers 404 as well to a token that has lost its rights.
        """
        answer = await self._send(method, self._repo + path, body, headers)
        for _ in range(MOVES):
            if answer.status not in REDIRECTS or not await self._follow():
                break
            answer = await self._send(method, self._repo + path, body, headers)
        if answer.status in ok:
            return answer
        if may_be_gone and answer.status in GONE:
            seen = await self._send("GET", self._repo)
            if seen.status == 200:
                return answer
            raise refusal(seen, self.source, "read the repository")
        raise refusal(answer, self.source, what)

    async def ask_server(self, path: str, what: str) -> HttpAnswer | None:
        """Ask for something that belongs to no repository; None where the token may not."""
        answer = await self._send("GET", path)
        if answer.status == 200:
            return answer
        error = refusal(answer, self.source, what)
        if answer.status in (403, 404) and error.kind != SourceStatus.LIMITED:
            return None
        raise error

    async def _follow(self) -> bool:
        """Use the repository's new address, if it is the repository that has one: an issue may have moved alone."""
        answer = await self._send("GET", self._repo)
        moved = self._moved_to(answer) if answer.status in REDIRECTS else None
        if moved is None or moved == self._repo:
            return False
        self._repo = moved
        return True

    def _moved_to(self, answer: HttpAnswer) -> str | None:
        """The repository's new address on the same server; no other server ever gets the token."""
        location = answer.headers.get("location", "")
        try:
            address = urlsplit(location)
            server = (address.scheme, address.hostname, address.port)
        except ValueError:
            return None
        is_same = server == (self._server.scheme, self._server.hostname, self._server.port)
        if not is_same or "@" in address.netloc:
            return None
        path = address.path
        if not path.startswith(self._server.path):
            return None
        path = path[len(self._server.path) :]
        return path if REPOSITORY.fullmatch(path) else None

    async def _send(
        self,
        method: str,
        path: str,
        body: Mapping[str, Any] | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> HttpAnswer:
        sent = {
            "accept": "application/vnd.github+json",
            "authorization": f"Bearer {self.checked_token()}",
            "user-agent": "nightherd",
            "x-github-api-version": VERSION,
            **(headers or {}),
        }
        data = None
        if body is not None:
            sent["content-type"] = "application/json"
            data = json.dumps(body).encode()
        return await self._exchange(method, path, sent, data)

    def checked_token(self) -> str:
        """Return the token. What could not be a header is refused here, where nothing repeats it."""
        token, name = self._token().strip(), self.source.token_env
        if not token:
            raise WorkSourceError(
                f"the variable {name} has no token for {self.source.repo}",
                kind=SourceStatus.REFUSED,
                wait_s=TOKEN_S,
            )
        if not token.isascii() or not token.isprintable() or " " in token:
            raise WorkSourceError(
                f"what the variable {name} holds cannot be a token",
                kind=SourceStatus.REFUSED,
                wait_s=TOKEN_S,
            )
        return token


def has_next(answer: HttpAnswer, count: int) -> bool:
    """Whether there is another page after this one of `count` entries: GitHub leaves some out of full pages."""
    return count >= PAGE or 'rel="next"' in answer.headers.get("link", "")


def read(answer: HttpAnswer, kind: type[DocT]) -> DocT:
    """Return the document of the answer; `WorkSourceError` when it cannot be read."""
    try:
        return read_document(answer.body, kind)
    except (msgspec.MsgspecError, ValueError, RecursionError) as error:
        raise WorkSourceError(f"GitHub sent an answer that cannot be read: {error}") from error
