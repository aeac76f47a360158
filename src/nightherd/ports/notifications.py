"""What carries notifications out of the house."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from datetime import timedelta
from typing import TYPE_CHECKING, Protocol

import msgspec

if TYPE_CHECKING:  # only names: a command that lists jobs must not load what sending needs
    from contextlib import AbstractAsyncContextManager

    from nightherd.model.notifications.message import Message


@dataclass(frozen=True, slots=True, kw_only=True)
class Outgoing:
    """One message on its way to one address."""

    url: str = field(repr=False)
    """Where to: a secret."""
    message: Message
    timeout: timedelta
    allow_hosts: tuple[str, ...] = ()
    """Hosts that may be reached although their address is private."""


class SendResult(msgspec.Struct, frozen=True, kw_only=True):
    """What came of one attempt."""

    error: str | None = None
    """Why it was not taken, without anything secret; None when it was."""
    is_permanent: bool = False
    """Whether the same message would be refused again."""
    retry_after: timedelta | None = None
    """How long the server wants to be left alone, where it says so."""
    is_gone: bool = False
    """Whether the address does not exist any more."""


Send = Callable[[Outgoing], Awaitable[SendResult]]
"""Sends one message, once."""


class Sender(Protocol):
    """Sends messages. Failures are results; each returns within its message's timeout and some seconds."""

    def batch(self) -> AbstractAsyncContextManager[Send]:
        """Open what sends several messages, one after another; nothing that it started is left afterwards."""
