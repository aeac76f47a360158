"""Sending a notification through a child process, which is killed when it hangs."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from datetime import datetime
from importlib.util import find_spec

from nightherd.model.notifications.retry_after import parse_retry_after
from nightherd.model.notifications.target import secret_parts
from nightherd.model.secrets import knowing
from nightherd.model.units import format_duration
from nightherd.ports import Clock, Outgoing, Send, SendResult
from nightherd.runtimes.notify.child_process import Answer, ChildProcess

CHILD = "nightherd.runtimes.notify.child"
NEEDS = "notifications need the extra: pip install 'nightherd[notify]'"
PERMANENT = frozenset({400, 413, 415, 422})
"""Statuses by which a server refuses the message itself: another time would not help."""
DISCORD_API = "https://discord.com/api/v10"


def can_send() -> bool:
    """Whether the extra is installed."""
    return find_spec("apprise") is not None


class ChildSender:
    """Sends the messages of a batch in one process of their own."""

    def __init__(
        self, clock: Clock, environ: Mapping[str, str], *, discord_api: str = DISCORD_API
    ) -> None:
        self._clock = clock
        self._environ = environ
        self._discord_api = discord_api

    @asynccontextmanager
    async def batch(self) -> AsyncIterator[Send]:
        """Open for several messages; the process is started with the first and ended with the batch."""
        child = ChildProcess(CHILD, self._environ)

        async def send(outgoing: Outgoing) -> SendResult:
            return await self._send(outgoing, child)

        try:
            yield send
        finally:
            await child.end()

    async def _send(self, outgoing: Outgoing, child: ChildProcess) -> SendResult:
        if not can_send():
            return SendResult(error=NEEDS)
        request = {
            "url": outgoing.url,
            "title": outgoing.message.title,
            "text": outgoing.message.text,
            "html": outgoing.message.html,
            "discord_api": self._discord_api,
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
        return _result(answer, outgoing, self._clock.now())


def _result(answer: Answer, outgoing: Outgoing, now: datetime) -> SendResult:
    if answer.ok:
        return SendResult()
    if answer.unusable is not None:
        return SendResult(error=answer.unusable, is_permanent=True)
    if answer.refused is not None:
        return refused_here(answer.refused, "allow_hosts")
    if answer.status is not None:
        return refused_by_server(answer, answer.status, now)
    masked = knowing(dict.fromkeys(secret_parts(outgoing.url), "notify"))
    said = answer.warning or "the service did not take it"
    if answer.failure is not None:
        said = f"the request failed: {answer.failure}"
    return SendResult(error=str(masked.mask(said)))


def refused_here(what: str, key: str) -> SendResult:
    """What the guard did not let the child do; `key` names the hosts that it may reach."""
    hint = f"; if you mean it, name the host in {key}"
    return SendResult(error=f"refused {what}{hint if 'address' in what else ''}")


def refused_by_server(
    answer: Answer, status: int, now: datetime, who: str = "the server"
) -> SendResult:
    """What a server answered instead of taking the message."""
    if 300 <= status < 400:
        return SendResult(error=f"{who} answered {status}: redirects are not followed")
    return SendResult(
        error=f"{who} answered {status}",
        is_permanent=status in PERMANENT,
        retry_after=parse_retry_after(answer.retry_after, now),
    )
