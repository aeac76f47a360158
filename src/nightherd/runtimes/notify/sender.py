"""Sending a notification through a child process, which is killed when it hangs."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Mapping
from contextlib import suppress
from datetime import timedelta
from importlib.util import find_spec
from typing import Any

import anyio
import msgspec
from anyio.abc import Process

from nightherd.model.notifications.retry_after import parse_retry_after
from nightherd.model.notifications.target import secret_parts
from nightherd.model.secrets import knowing
from nightherd.model.units import format_duration
from nightherd.ports import Clock, Outgoing, SendResult

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
    """Sends each message in a process of its own."""

    def __init__(
        self, clock: Clock, environ: Mapping[str, str], *, discord_api: str = DISCORD_API
    ) -> None:
        self._clock = clock
        kept = {name: environ[name] for name in KEPT_VARIABLES if name in environ}
        self._environ = {**kept, "HOME": os.devnull, "NETRC": os.devnull}
        self._discord_api = discord_api

    async def send(self, outgoing: Outgoing) -> SendResult:
        """Send it once; nothing that it started is left when this returns."""
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
            answer = await self._exchange(msgspec.json.encode(request), outgoing.timeout)
        except OSError as error:
            return SendResult(error=f"the process that sends could not be started: {error}")
        if answer is None:
            limit = format_duration(outgoing.timeout)
            return SendResult(error=f"there was no answer within {limit}")
        return self._result(answer, outgoing)

    async def _exchange(self, request: bytes, allowed: timedelta) -> _Answer | None:
        """What the child says; None when it was killed, by itself or here."""
        process = await anyio.open_process(
            [sys.executable, "-I", "-m", CHILD],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env=self._environ,
            start_new_session=True,
        )
        try:
            with anyio.move_on_after((allowed + START).total_seconds()):
                return await _ask(process, request)
            return None
        finally:
            with anyio.CancelScope(shield=True):
                with suppress(ProcessLookupError):
                    os.killpg(process.pid, signal.SIGKILL)
                await process.wait()
                await process.aclose()

    def _result(self, answer: _Answer, outgoing: Outgoing) -> SendResult:
        if answer.ok:
            return SendResult()
        if answer.unusable is not None:
            return SendResult(error=answer.unusable, is_permanent=True)
        if answer.refused is not None:
            hint = "; if you mean it, name the host in allow_hosts"
            is_address = "address" in answer.refused
            return SendResult(error=f"refused {answer.refused}{hint if is_address else ''}")
        if answer.status is not None:
            return self._refused_by_server(answer, answer.status)
        masked = knowing(dict.fromkeys(secret_parts(outgoing.url), "notify"))
        said = answer.warning or "the service did not take it"
        if answer.failure is not None:
            said = f"the request failed: {answer.failure}"
        return SendResult(error=str(masked.mask(said)))

    def _refused_by_server(self, answer: _Answer, status: int) -> SendResult:
        if 300 <= status < 400:
            return SendResult(error=f"the server answered {status}: redirects are not followed")
        return SendResult(
            error=f"the server answered {status}",
            is_permanent=status in PERMANENT,
            retry_after=parse_retry_after(answer.retry_after, self._clock.now()),
        )


async def _ask(process: Process, request: bytes) -> _Answer | None:
    assert process.stdin is not None and process.stdout is not None  # noqa: S101, PT018 (both are pipes)
    try:
        await process.stdin.send(request)
        await process.stdin.aclose()
    except anyio.BrokenResourceError:
        return None
    found = b""
    async for chunk in process.stdout:
        found += chunk
        if len(found) > ANSWER_LIMIT:
            return None
    return _read(found)


def _read(found: bytes) -> _Answer | None:
    try:
        document: Any = msgspec.json.decode(found, type=_Answer)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return None
    return document if isinstance(document, _Answer) else None
