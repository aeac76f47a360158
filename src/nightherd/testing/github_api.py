"""GitHub's REST API for issues, comments, labels and git refs, on the loopback interface.

For tests of work sources, also of your own fleets: write `base_url: <url>` into the `work_source`. It listens on 127.0.0.1 only
and calls no other host. It has one repository, kept in memory; `api.repository` may be read and changed at any time.

It behaves as GitHub does where work sources rely on it: lists are paged and have an ETag, an unchanged list is a 304 that
costs nothing of the rate limit, a pull request is an issue too, a ref that exists is refused with 422. `api.fail` makes
requests fail as GitHub makes them fail.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Mapping
from email.utils import format_datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Self
from urllib.parse import parse_qs, urlsplit

import msgspec

from nightherd.host.system import SystemClock
from nightherd.ports import Clock
from nightherd.testing.github_repository import GithubRepository, Reply

TOKEN = "ghp_loopback"  # noqa: S105 (it opens nothing)


class GithubRequest(msgspec.Struct, frozen=True, kw_only=True):
    """One request."""

    method: str
    path: str
    query: Mapping[str, str]
    headers: Mapping[str, str]
    """By lower-case name."""
    body: Any

    @property
    def line(self) -> str:
        """Method and path."""
        return f"{self.method} {self.path}"


class Failing(msgspec.Struct, frozen=True, kw_only=True):
    """How requests fail: with a status, or by a connection that is cut. `times` counts down; None is for good."""

    matching: str
    """What the line of the request contains."""
    reply: Reply | None
    """None cuts the connection."""
    is_done: bool
    """Whether what was asked is done all the same."""
    times: int | None


class GithubApi:
    """A server that runs while its context lasts."""

    def __init__(
        self,
        repo: str = "acme/app",
        *,
        token: str = TOKEN,
        clock: Clock | None = None,
        prefix: str = "",
    ) -> None:
        self._clock = clock or SystemClock()
        self._prefix = prefix
        self.repository = GithubRepository(repo, self._clock)
        self.token = token
        self._asked: list[GithubRequest] = []
        self._failing: list[Failing] = []
        self._lock = threading.Condition()
        self._server = _Server(("127.0.0.1", 0), _Handler)
        self._server.api = self
        self._thread = threading.Thread(
            target=self._server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True
        )

    @property
    def url(self) -> str:
        """What a work source takes as `base_url`; with the prefix, such as `/api/v3` of a GitHub Enterprise server."""
        return f"http://127.0.0.1:{self._server.server_address[1]}{self._prefix}"

    @property
    def date(self) -> str:
        """What time it is here, as headers have it."""
        return format_datetime(self._clock.now(), usegmt=True)

    @property
    def asked(self) -> list[GithubRequest]:
        """Every request so far."""
        with self._lock:
            return list(self._asked)

    def lines(self, matching: str = "") -> list[str]:
        """The requests so far whose line contains `matching`."""
        return [one.line for one in self.asked if matching in one.line]

    def wait_until_asked(self, matching: str, count: int = 1, timeout_s: float = 60.0) -> bool:
        """Whether so many such requests have come, waiting for them if need be."""

        def has_come() -> bool:
            return sum(matching in one.line for one in self._asked) >= count

        with self._lock:
            return self._lock.wait_for(has_come, timeout_s)

    def fail(
        self,
        matching: str = "",
        status: int | None = 503,
        *,
        message: str = "Service unavailable",
        headers: Mapping[str, str] | None = None,
        times: int | None = 1,
        is_done: bool = False,
    ) -> None:
        """Make requests fail whose line contains `matching`. `status` None cuts the connection instead of answering."""
        reply = None if status is None else Reply(status, {"message": message}, dict(headers or {}))
        failing = Failing(matching=matching, reply=reply, is_done=is_done, times=times)
        with self._lock:
            self._failing.append(failing)

    def limit_primary(self, reset_in_s: int = 60, *, times: int | None = None) -> None:
        """The token has used up its hour."""
        headers = {
            "x-ratelimit-limit": "5000",
            "x-ratelimit-remaining": "0",
            "x-ratelimit-reset": str(int(self._clock.now().timestamp()) + reset_in_s),
        }
        message = "API rate limit exceeded for user ID 1."
        self.fail("", 403, message=message, headers=headers, times=times)

    def limit_secondary(self, retry_after_s: int | None = None, *, times: int | None = 1) -> None:
        """Too much in a short time."""
        headers = {} if retry_after_s is None else {"retry-after": str(retry_after_s)}
        message = "You have exceeded a secondary rate limit. Please wait a few minutes."
        self.fail("", 403, message=message, headers=headers, times=times)

    def work(self) -> None:
        """Let everything succeed from now on."""
        with self._lock:
            self._failing.clear()

    def answer(self, asked: GithubRequest) -> Reply | None:
        """Note the request and return the reply; None to cut the connection."""
        with self._lock:
            self._asked.append(asked)
            self._lock.notify_all()
            failing = self._next_failure(asked)
            if failing is not None and not failing.is_done:
                return failing.reply
            if asked.headers.get("authorization") != f"Bearer {self.token}":
                return Reply(401, {"message": "Bad credentials"})
            reply = self._reply(asked)
            if failing is not None:
                return failing.reply
            etag = reply.headers.get("etag")
            if etag is not None and asked.headers.get("if-none-match") == etag:
                return Reply(304, None, {"etag": etag})
            return reply

    def _reply(self, asked: GithubRequest) -> Reply:
        if not asked.path.startswith(self._prefix):
            return Reply(404, {"message": "Not Found"})
        path = asked.path[len(self._prefix) :]
        reply = self.repository.answer(asked.method, path, asked.query, asked.body)
        location = reply.headers.get("location", "")
        if location.startswith("/"):
            reply.headers["location"] = self.url + location
        return reply

    def _next_failure(self, asked: GithubRequest) -> Failing | None:
        for place, one in enumerate(self._failing):
            if one.matching not in asked.line:
                continue
            if one.times is not None:
                left = one.times - 1
                again = msgspec.structs.replace(one, times=left)
                self._failing[place : place + 1] = [again] if left else []
            return one
        return None

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    block_on_close = False
    api: GithubApi

    def handle_error(self, request: object, client_address: object) -> None:
        """A client that was killed in the middle is what some tests are about: no word of it."""


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: _Server

    def do_GET(self) -> None:
        self._serve()

    def do_POST(self) -> None:
        self._serve()

    def do_PATCH(self) -> None:
        self._serve()

    def do_DELETE(self) -> None:
        self._serve()

    def _serve(self) -> None:
        data = self.rfile.read(int(self.headers.get("content-length", "0")))
        address = urlsplit(self.path)
        asked = GithubRequest(
            method=self.command,
            path=address.path,
            query={name: values[0] for name, values in parse_qs(address.query).items()},
            headers={name.lower(): value for name, value in self.headers.items()},
            body=json.loads(data) if data else None,
        )
        reply = self.server.api.answer(asked)
        if reply is None:
            self.close_connection = True
            return
        body = b"" if reply.body is None else json.dumps(reply.body).encode()
        self.send_response_only(reply.status)
        self.send_header("date", self.server.api.date)
        self.send_header("content-type", "application/json; charset=utf-8")
        for name, value in reply.headers.items():
            self.send_header(name, value)
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:
        """Tests read `asked`, not a log."""
