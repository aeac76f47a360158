"""Running hooks on this machine: commands under a keeper, and signed webhook requests that are retried."""

from __future__ import annotations

import http.client
import json
import ssl
import subprocess
from collections.abc import Awaitable, Callable, Mapping
from datetime import timedelta
from pathlib import Path
from typing import Any
from urllib.parse import SplitResult, urlsplit

import anyio
import msgspec
from anyio import to_thread
from msgspec.structs import replace

from nightherd.errors import FencedError
from nightherd.files.paths import follow
from nightherd.files.regular import open_regular
from nightherd.model.agents.agent import Agent
from nightherd.model.hooks import HttpRequest, ShellCommand
from nightherd.model.units import format_duration
from nightherd.model.webhooks import sign_standard
from nightherd.ports import Clock, HookCall, HookResult
from nightherd.runtimes.keeper.attendant import KilledBy, returncode_text
from nightherd.runtimes.keeper.keepers import Keepers
from nightherd.runtimes.keeper.process import finish, kept_process
from nightherd.runtimes.tools.output import BoundedOutput

ANSWER_LIMIT = 2_048
READ_LIMIT = 4 * ANSWER_LIMIT
"""Bytes of an answer that are read, and of these kept: a secret at the cut is there to its end, and masked."""
FIRST_PAUSE_S = 1.0
PASSING = frozenset({408, 425, 429})
"""Refusals that are worth another try."""


class _Answer(msgspec.Struct, frozen=True, kw_only=True):
    """What came of one try: a status and the beginning of a body, or why there is none."""

    status: int | None
    text: str

    @property
    def may_pass(self) -> bool:
        return self.status is None or self.status >= 500 or self.status in PASSING


async def send(
    request: HttpRequest,
    call: HookCall,
    clock: Clock,
    *,
    first_pause_s: float = FIRST_PAUSE_S,
) -> HookResult:
    """Send the context until it is taken (2xx), refused for good, or tried often enough."""
    address = urlsplit(request.url)
    if address.scheme not in ("http", "https") or not address.hostname:
        return HookResult(success=False, error=f"{request.url!r} is not an address to send to")
    secret = call.environment.get(request.secret_env) if request.secret_env else None
    if request.secret_env and not secret:
        return HookResult(
            success=False, error=f"the variable {request.secret_env} has no secret to sign with"
        )
    pause, attempt = first_pause_s, 1
    while True:
        headers = _headers(request, call, secret, int(clock.now().timestamp()))
        answer = await _try(request, address, headers, call.body)
        answer = replace(answer, text=str(call.secrets.mask(answer.text))[:ANSWER_LIMIT])
        if answer.status is not None and 200 <= answer.status < 300:
            return HookResult(success=True, output=answer.text)
        if not answer.may_pass or attempt >= request.attempts:
            break
        await anyio.sleep(pause)
        pause, attempt = pause * 2, attempt + 1
    tries = "" if attempt == 1 else f", after {attempt} tries"
    said = answer.text if answer.status is None else f"the answer was {answer.status}"
    kept = "" if answer.status is None else answer.text
    return HookResult(success=False, output=kept, error=said + tries)


def _headers(
    request: HttpRequest, call: HookCall, secret: str | None, timestamp: int
) -> dict[str, str]:
    headers = {
        "content-type": call.content_type,
        "user-agent": "nightherd",
        "webhook-id": call.id,
        "webhook-timestamp": str(timestamp),
    }
    if secret:
        headers["webhook-signature"] = sign_standard(secret, call.id, timestamp, call.body)
    given = {name.lower(): value for name, value in request.headers.items()}
    return {**headers, **given}


async def _try(
    request: HttpRequest, address: SplitResult, headers: Mapping[str, str], body: bytes
) -> _Answer:
    allowed = request.timeout.total_seconds()
    try:
        with anyio.fail_after(allowed):
            # Left behind when its time is up: its own socket's timeout ends the thread soon after.
            return await to_thread.run_sync(
                _exchange, request.method, address, headers, body, allowed, abandon_on_cancel=True
            )
    except TimeoutError:
        limit = format_duration(request.timeout)
        return _Answer(status=None, text=f"there was no answer within {limit}")
    except (OSError, http.client.HTTPException, ValueError) as error:
        return _Answer(status=None, text=f"{type(error).__name__}: {error}")


def _exchange(
    method: str, address: SplitResult, headers: Mapping[str, str], body: bytes, timeout_s: float
) -> _Answer:
    host = address.hostname or ""
    connection: http.client.HTTPConnection
    if address.scheme == "https":
        context = ssl.create_default_context()
        connection = http.client.HTTPSConnection(
            host, address.port, timeout=timeout_s, context=context
        )
    else:
        connection = http.client.HTTPConnection(host, address.port, timeout=timeout_s)
    target = address.path or "/"
    try:
        query = f"?{address.query}" if address.query else ""
        connection.request(method, target + query, body=body, headers=dict(headers))
        answer = connection.getresponse()
        return _Answer(status=answer.status, text=answer.read(READ_LIMIT).decode(errors="replace"))
    finally:
        connection.close()


METADATA_LIMIT = 1024 * 1024


RunCommand = Callable[[ShellCommand, HookCall], Awaitable[HookResult]]


class LocalHookCarrier:
    """Commands under `keepers`, requests over HTTP, metadata from the agent's working directory."""

    def __init__(
        self,
        *,
        keepers: Keepers,
        clock: Clock,
        first_pause_s: float = FIRST_PAUSE_S,
        run_inside: RunCommand | None = None,
    ) -> None:
        """`run_inside` runs the commands of agents with a container; without it, those fail."""
        self._keepers = keepers
        self._run_inside = run_inside
        self._clock = clock
        self._first_pause_s = first_pause_s

    async def run_command(self, command: ShellCommand, call: HookCall) -> HookResult:
        """Run a command to its end or its timeout: in the container that the call names, or on this machine."""
        if call.container is None:
            return await run_command(command, call, self._keepers)
        if self._run_inside is None:
            return HookResult(success=False, error="it needs a container, and there is none here")
        return await self._run_inside(command, call)

    async def send(self, request: HttpRequest, call: HookCall) -> HookResult:
        """Send a request until it is taken or given up."""
        return await send(request, call, self._clock, first_pause_s=self._first_pause_s)

    async def read_metadata(self, agent: Agent) -> Mapping[str, Any]:
        """The agent's metadata file, when it is a JSON object of reasonable size inside its directory."""
        if agent.metadata_file is None:
            return {}
        return await to_thread.run_sync(_read, agent.working_directory, agent.metadata_file)


def _read(directory: str, name: str) -> Mapping[str, Any]:
    try:
        root = follow(Path(directory))
        path = follow(root / name)
        if not path.is_relative_to(root):
            return {}
        with open_regular(path, follows_links=False) as file:
            data = file.read(METADATA_LIMIT + 1)
        found = json.loads(data) if len(data) <= METADATA_LIMIT else None
    except (
        OSError,
        ValueError,
        RuntimeError,
    ):  # also for links that lead in circles, and deep nests
        # The agent writes this file, or does not; nothing in it is worth failing a job for.
        return {}
    return found if isinstance(found, dict) else {}


OUTPUT_LIMIT = 8 * 1024
"""Bytes of its output that are kept."""
GRACE = timedelta(seconds=2)
SHELL = "/bin/sh"


async def run_command(command: ShellCommand, call: HookCall, keepers: Keepers) -> HookResult:
    """Run the command to its end or its timeout. Success is exit code 0."""
    output = BoundedOutput(OUTPUT_LIMIT, call.secrets)
    marks = {"NIGHTHERD_JOB": call.job_id, "NIGHTHERD_HOOK_EVENT": call.event}
    try:
        async with kept_process(
            [SHELL, "-c", command.command],
            cwd=call.working_directory,
            env=call.environment,
            execution=call.execution,
            marks=marks,
            stdin=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            grace=GRACE,
            keepers=keepers,
        ) as process:
            ending = await finish(
                process, output.add, command.timeout, body=call.body, is_alone=True
            )
    except (OSError, ValueError) as error:
        return HookResult(success=False, error=f"the command could not be started: {error}")
    text = output.text()
    if ending is None:
        limit = format_duration(command.timeout)
        return HookResult(success=False, output=text, error=f"it ran longer than {limit}")
    if ending.killed_by is KilledBy.LEASE:
        raise FencedError("the hook was stopped because the worker's lease had run out")
    if ending.returncode == 0 and ending.killed_by is KilledBy.NONE:
        return HookResult(success=True, output=text)
    if ending.killed_by is KilledBy.KEEPER_GONE or ending.returncode is None:
        reason = "the process that guards the command died"
    else:
        reason = returncode_text(ending.returncode)
    return HookResult(success=False, output=text, error=reason)
