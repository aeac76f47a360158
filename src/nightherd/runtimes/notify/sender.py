"""Sending a notification through a child process, which is killed when it hangs."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager, suppress
from datetime import datetime, timedelta
from importlib.util import find_spec
from typing import Any

import anyio
import msgspec
from anyio.abc import Process

from nightherd.model.notifications.retry_after import parse_retry_after
from nightherd.model.notifications.target import secret_parts
from nightherd.model.secrets import knowing
from nightherd.model.units import format_duration
from nightherd.ports import Clock, Outgoing, Send, SendResult

CHILD = "nightherd.runtimes.notify.child"
START = timedelta(seconds=20)
"""What loading Apprise may take besides."""
ANSWER_LIMIT = 64 * 1024
NEEDS = "notifications need the extra: pip install 'nightherd[notify]'"
PERMANENT = frozenset({400, 413, 415, 422})
"""Statuses by which a server refuses the message itself: another time would not help."""
KEPT_VARIABLES = (
    "LANG",
    "LC_ALL",
    "TZ",
    "SSL_CERT_FILE",
    "SSL_CERT_DIR",
    "REQUESTS_CA_BUNDLE",
)
"""All that the child sees of the environment: no proxy, no login, no home directory."""
DISCORD_API = "https://discord.com/api/v10"


def can_send() -> bool:
    """Whether the extra is installed."""
    return find_spec("apprise") is not None


class _Answer(msgspec.Struct, frozen=True, kw_only=True):
    """What the child says."""

    ok: bool
    status: int | None = None
    retry_after: str | None = None
    refused: str | None = None
    unusable: str | None = None
    failure: str | None = None
    warning: str | None = None


class ChildSender:
    """Sends the messages of a batch in one process of their own."""

    def __init__(
        self, clock: Clock, environ: Mapping[str, str], *, discord_api: str = DISCORD_API
    ) -> None:
        self._clock = clock
        kept = {name: environ[name] for name in KEPT_VARIABLES if name in environ}
        self._environ = {**kept, "HOME": os.devnull, "NETRC": os.devnull}
        self._discord_api = discord_api

    @asynccontextmanager
    async def batch(self) -> AsyncIterator[Send]:
        """Open for several messages; the process is started with the first and ended with the batch."""
        child = _Child(self._environ)

        async def send(outgoing: Outgoing) -> SendResult:
            return await self._send(outgoing, child)

        try:
            yield send
        finally:
            await child.end()

    async def _send(self, outgoing: Outgoing, child: _Child) -> SendResult:
        if not can_send():
            return SendResult(error=NEEDS)
        request = {
            "url": outgoing.url,
            "title": outgoing.message.title,
            "text": outgoing.message.text,
            "html": outgoing.message.html,
            "allow_hosts": list(outgoing.allow_hosts),
            "timeout_s": outgoing.timeout.total_seconds(),
            "discord_api": self._discord_api,
        }
        try:
            answer = await child.ask(request, outgoing)
        except OSError as error:
            return SendResult(error=f"the process that sends could not be started: {error}")
        if answer is None:
            limit = format_duration(outgoing.timeout)
            return SendResult(error=f"there was no answer within {limit}")
        return _result(answer, outgoing, self._clock.now())


class _Child:
    """The process of one batch, started when it is needed."""

    def __init__(self, environ: Mapping[str, str]) -> None:
        self._environ = environ
        self._process: Process | None = None
        self._allow_hosts: tuple[str, ...] = ()

    async def ask(self, request: Mapping[str, Any], outgoing: Outgoing) -> _Answer | None:
        """What it says to the request; None when it was killed, by itself or here."""
        if outgoing.allow_hosts != self._allow_hosts:
            await self.end()  # what it may connect to is fixed for as long as it lives
        process = self._process
        if process is None:
            process = await self._start(outgoing.allow_hosts)
        answer = None
        with anyio.move_on_after((outgoing.timeout + START).total_seconds()):
            answer = await _ask(process, msgspec.json.encode(request) + b"\n")
        if answer is None:
            await self.end()
        return answer

    async def _start(self, allow_hosts: tuple[str, ...]) -> Process:
        self._allow_hosts = allow_hosts
        self._process = await anyio.open_process(
            [sys.executable, "-I", "-m", CHILD],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env=self._environ,
            start_new_session=True,
        )
        return self._process

    async def end(self) -> None:
        """Kill it, if there is one."""
        process, self._process = self._process, None
        if process is None:
            return
        with anyio.CancelScope(shield=True):
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            await process.wait()
            await process.aclose()


def _result(answer: _Answer, outgoing: Outgoing, now: datetime) -> SendResult:
    if answer.ok:
        return SendResult()
    if answer.unusable is not None:
        return SendResult(error=answer.unusable, is_permanent=True)
    if answer.refused is not None:
        hint = "; if you mean it, name the host in allow_hosts"
        is_address = "address" in answer.refused
        return SendResult(error=f"refused {answer.refused}{hint if is_address else ''}")
    if answer.status is not None:
        return _refused_by_server(answer, answer.status, now)
    masked = knowing(dict.fromkeys(secret_parts(outgoing.url), "notify"))
    said = answer.warning or "the service did not take it"
    if answer.failure is not None:
        said = f"the request failed: {answer.failure}"
    return SendResult(error=str(masked.mask(said)))


def _refused_by_server(answer: _Answer, status: int, now: datetime) -> SendResult:
    if 300 <= status < 400:
        return SendResult(error=f"the server answered {status}: redirects are not followed")
    return SendResult(
        error=f"the server answered {status}",
        is_permanent=status in PERMANENT,
        retry_after=parse_retry_after(answer.retry_after, now),
    )


async def _ask(process: Process, request: bytes) -> _Answer | None:
    assert process.stdin is not None and process.stdout is not None  # noqa: S101, PT018 (both are pipes)
    found = b""
    try:
        await process.stdin.send(request)
        while not found.endswith(b"\n") and len(found) <= ANSWER_LIMIT:
            found += await process.stdout.receive()
    except (anyio.BrokenResourceError, anyio.EndOfStream, anyio.ClosedResourceError):
        return None
    return _read(found)


def _read(found: bytes) -> _Answer | None:
    try:
        document: Any = msgspec.json.decode(found, type=_Answer)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return None
    return document if isinstance(document, _Answer) else None
