"""Sending pushes to devices through a child process, which is killed when it hangs."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from datetime import datetime
from importlib.util import find_spec

from anyio import to_thread

from nightherd.errors import NightherdError, RefusedError
from nightherd.model.push.keys import PushKeys
from nightherd.model.units import format_duration
from nightherd.ports import Clock, OutgoingPush, SendPush, SendResult
from nightherd.runtimes.notify.child_process import Answer, ChildProcess
from nightherd.runtimes.notify.sender import refused_by_server, refused_here

CHILD = "nightherd.runtimes.notify.push_child"
NEEDS = "Web Push needs the extra: pip install 'nightherd[push]'"
GONE = frozenset({404, 410})
"""Statuses by which a push service says that there is no such subscription any more."""
SERVICE = "the push service"
ALLOW_HOSTS = "web.push.allow_hosts"


def can_push() -> bool:
    """Whether the extra is installed."""
    return find_spec("pywebpush") is not None


class ChildPushSender:
    """Sends the pushes of a batch in one process of their own."""

    def __init__(
        self, clock: Clock, environ: Mapping[str, str], keys: Callable[[], PushKeys]
    ) -> None:
        self._clock = clock
        self._environ = environ
        self._keys = keys

    def public_key(self) -> str:
        """Return the key that browsers subscribe with. `NightherdError` where no push can be sent, with the reason."""
        if not can_push():
            raise RefusedError(NEEDS)
        return self._keys().public_key

    @asynccontextmanager
    async def batch(self) -> AsyncIterator[SendPush]:
        """Open for several pushes; the process is started with the first and ended with the batch."""
        child = ChildProcess(CHILD, self._environ)

        async def send(outgoing: OutgoingPush) -> SendResult:
            return await self._send(outgoing, child)

        try:
            yield send
        finally:
            await child.end()

    async def _send(self, outgoing: OutgoingPush, child: ChildProcess) -> SendResult:
        if not can_push():
            return SendResult(error=NEEDS)
        try:
            keys = await to_thread.run_sync(self._keys)
        except NightherdError as error:
            return SendResult(error=error.message)
        request = {
            "endpoint": outgoing.endpoint,
            "keys": {"p256dh": outgoing.p256dh, "auth": outgoing.auth},
            "payload": outgoing.payload,
            "private_key": keys.private_key,
            "contact": outgoing.contact,
            "ttl_s": int(outgoing.ttl.total_seconds()),
            "urgency": "high" if outgoing.is_urgent else "normal",
            "topic": outgoing.topic,
        }
        try:
            answer = await child.ask(
                request, patience=outgoing.timeout, allow_hosts=outgoing.allow_hosts
            )
        except OSError as error:
            return SendResult(error=f"the process that sends could not be started: {error}")
        if answer is None:
            limit = format_duration(outgoing.timeout)
            return SendResult(error=f"there was no answer within {limit}")
        return _result(answer, self._clock.now())


def _result(answer: Answer, now: datetime) -> SendResult:
    if answer.ok:
        return SendResult()
    if answer.unusable is not None:
        return SendResult(error=answer.unusable, is_permanent=True)
    if answer.refused is not None:
        return refused_here(answer.refused, ALLOW_HOSTS)
    if answer.status in GONE:
        error = f"{SERVICE} answered {answer.status}: the subscription is gone"
        return SendResult(error=error, is_permanent=True, is_gone=True)
    if answer.status is not None:
        return refused_by_server(answer, answer.status, now, SERVICE)
    return SendResult(error=f"the request failed: {answer.failure or 'unknown error'}")
