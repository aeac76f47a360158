"""Senders that keep what they are given instead of sending it, and answer as they are told."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

from nightherd.ports import Outgoing, OutgoingPush, Send, SendPush, SendResult


def taken(outgoing: Outgoing) -> SendResult:
    """Every message is taken."""
    return SendResult()


class RecordingSender:
    """Keeps every message in order; `answer` says what becomes of each."""

    def __init__(self, answer: Callable[[Outgoing], SendResult] = taken) -> None:
        self.outgoing: list[Outgoing] = []
        self.answer = answer

    @asynccontextmanager
    async def batch(self) -> AsyncIterator[Send]:
        """Nothing to open."""
        yield self.send

    async def send(self, outgoing: Outgoing) -> SendResult:
        """Keep it."""
        self.outgoing.append(outgoing)
        return self.answer(outgoing)

    @property
    def titles(self) -> list[str]:
        """The titles of what was sent, in order."""
        return [one.message.title for one in self.outgoing]


class RecordingPushSender:
    """Keeps every push in order; `answer` says what becomes of each."""

    def __init__(self, key: str = "key") -> None:
        self.key = key
        self.outgoing: list[OutgoingPush] = []
        self.answer: Callable[[OutgoingPush], SendResult] = lambda _: SendResult()

    def public_key(self) -> str:
        """Return the key that browsers subscribe with."""
        return self.key

    @asynccontextmanager
    async def batch(self) -> AsyncIterator[SendPush]:
        """Nothing to open."""
        yield self.send

    async def send(self, outgoing: OutgoingPush) -> SendResult:
        """Keep it."""
        self.outgoing.append(outgoing)
        return self.answer(outgoing)
