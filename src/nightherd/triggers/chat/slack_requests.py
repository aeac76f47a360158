"""Signed requests, by which Slack reaches a bot over HTTP: each takes effect once, within five minutes."""

from __future__ import annotations

import re
from collections import OrderedDict
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

import anyio
from slack_bolt.request.async_request import AsyncBoltRequest
from slack_bolt.response import BoltResponse

from nightherd.ports.chat import RequestAnswer
from nightherd.triggers.chat.slack_intake import SlackIntake

HEADERS = (
    "content-type",
    "x-slack-request-timestamp",
    "x-slack-retry-num",
    "x-slack-retry-reason",
    "x-slack-signature",
)
"""What Bolt is shown of a request's headers."""
WINDOW_S = 600.0
"""How long signatures are remembered: Bolt takes timestamps of the last and the next five minutes."""
MOST_REMEMBERED = 50_000
REFUSED = RequestAnswer(status=401, text='{"error": "invalid request"}', media_type="application/json")  # fmt: skip

_SIGNATURE = re.compile(r"v0=[0-9a-f]{64}")
_TIMESTAMP = re.compile(r"[0-9]{1,12}")


class SignedRequests:
    """Takes requests while the bot runs, checks their signature with Bolt, and answers a repeated one without effect."""

    def __init__(self) -> None:
        self._intake: SlackIntake | None = None
        self._answered: OrderedDict[str, tuple[float, RequestAnswer | None]] = OrderedDict()

    @contextmanager
    def open_to(self, intake: SlackIntake) -> Iterator[None]:
        """Hand requests to `intake` while the context lasts."""
        self._intake = intake
        try:
            yield
        finally:
            self._intake = None

    async def take(self, headers: Mapping[str, str], body: bytes) -> RequestAnswer:
        """Take a request; status 503 while the bot does not run, so that Slack sends it again."""
        if self._intake is None:
            return RequestAnswer(status=503)
        shown = {name: headers[name] for name in HEADERS if name in headers}
        signature = shown.get("x-slack-signature", "")
        timestamp = shown.get("x-slack-request-timestamp", "")
        if not _SIGNATURE.fullmatch(signature) or not _TIMESTAMP.fullmatch(timestamp):
            return REFUSED
        try:
            request = AsyncBoltRequest(body=body.decode(), headers=dict(shown), mode="http")
        except ValueError:
            return REFUSED
        self._forget()
        if signature in self._answered:
            # A copy: of one that is under way Slack is told to ask again, else what was said before.
            return self._answered[signature][1] or RequestAnswer(status=503)
        return await self._take_first(signature, request)

    async def _take_first(self, signature: str, request: AsyncBoltRequest) -> RequestAnswer:
        assert self._intake is not None  # noqa: S101 (looked at by the caller)
        now = anyio.current_time()
        self._answered[signature] = (now, None)
        answer: RequestAnswer | None = None
        try:
            answer = _answer(await self._intake.take_request(request))
        finally:
            if answer is None or answer.status != 200:
                self._answered.pop(signature, None)
            else:
                self._answered[signature] = (now, answer)
        return answer

    def _forget(self) -> None:
        until = anyio.current_time() - WINDOW_S
        answered = self._answered
        while answered and (
            next(iter(answered.values()))[0] < until or len(answered) > MOST_REMEMBERED
        ):
            answered.popitem(last=False)


def _answer(response: BoltResponse) -> RequestAnswer:
    kind = response.headers.get("content-type", ["text/plain"])[0].partition(";")[0]
    return RequestAnswer(status=response.status, text=response.body or "", media_type=kind)
