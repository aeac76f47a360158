"""A child process that sends: started with the first request, killed when it hangs, ended with its batch."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Mapping
from contextlib import suppress
from datetime import timedelta
from typing import Any

import anyio
import msgspec
from anyio.abc import Process

from nightherd.decoding import decode_json

START = timedelta(seconds=20)
"""What loading the services may take besides."""
ANSWER_LIMIT = 64 * 1024
KEPT_VARIABLES = (
    "LANG",
    "LC_ALL",
    "TZ",
    "SSL_CERT_FILE",
    "SSL_CERT_DIR",
    "REQUESTS_CA_BUNDLE",
)
"""All that the child sees of the environment: no proxy, no login, no home directory."""


class Answer(msgspec.Struct, frozen=True, kw_only=True):
    """What the child says."""

    ok: bool
    status: int | None = None
    retry_after: str | None = None
    refused: str | None = None
    unusable: str | None = None
    failure: str | None = None
    warning: str | None = None


class ChildProcess:
    """The process of one batch, started when it is needed."""

    def __init__(self, module: str, environ: Mapping[str, str]) -> None:
        self._module = module
        kept = {name: environ[name] for name in KEPT_VARIABLES if name in environ}
        self._environ = {**kept, "HOME": os.devnull, "NETRC": os.devnull}
        self._process: Process | None = None
        self._allow_hosts: tuple[str, ...] = ()

    async def ask(
        self, request: Mapping[str, Any], *, patience: timedelta, allow_hosts: tuple[str, ...]
    ) -> Answer | None:
        """What it says to the request; None when it was killed, by itself or here."""
        if allow_hosts != self._allow_hosts:
            await self.end()  # what it may connect to is fixed for as long as it lives
        process = self._process
        if process is None:
            process = await self._start(allow_hosts)
        whole = {
            **request,
            "allow_hosts": list(allow_hosts),
            "timeout_s": patience.total_seconds(),
        }
        answer = None
        with anyio.move_on_after((patience + START).total_seconds()):
            answer = await _ask(process, msgspec.json.encode(whole) + b"\n")
        if answer is None:
            await self.end()
        return answer

    async def _start(self, allow_hosts: tuple[str, ...]) -> Process:
        self._allow_hosts = allow_hosts
        self._process = await anyio.open_process(
            [sys.executable, "-I", "-m", self._module],
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


async def _ask(process: Process, request: bytes) -> Answer | None:
    assert process.stdin is not None and process.stdout is not None  # noqa: S101, PT018 (both are pipes)
    found = b""
    try:
        await process.stdin.send(request)
        while not found.endswith(b"\n") and len(found) <= ANSWER_LIMIT:
            found += await process.stdout.receive()
    except (anyio.BrokenResourceError, anyio.EndOfStream, anyio.ClosedResourceError):
        return None
    return _read(found)


def _read(found: bytes) -> Answer | None:
    try:
        document: Any = decode_json(found, Answer)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return None
    return document if isinstance(document, Answer) else None
