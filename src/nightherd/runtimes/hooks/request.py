"""A hook's request: signed as Standard Webhooks have it, each try limited in time, failures tried again.

What a receiver refuses for good (most of 4xx, a redirect) is not sent again; what may pass (no answer,
429, 5xx) is, after a pause that doubles. Every try carries the same `webhook-id`.
"""

from __future__ import annotations

import http.client
import ssl
from collections.abc import Mapping
from urllib.parse import SplitResult, urlsplit

import anyio
import msgspec
from anyio import to_thread
from msgspec.structs import replace

from nightherd.model.hooks import HttpRequest
from nightherd.model.units import format_duration
from nightherd.model.webhooks import sign_standard
from nightherd.ports import Clock, HookCall, HookResult

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
            success=False, error=f"the variable {request.secret_env} holds no secret to sign with"
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
        "content-type": "application/json",
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
