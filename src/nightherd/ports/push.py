"""What carries pushes to devices, and questions about those devices."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from datetime import timedelta
from typing import TYPE_CHECKING, Protocol

from nightherd.ports.notifications import SendResult

if TYPE_CHECKING:  # only names: a command that lists jobs must not load what sending needs
    from collections.abc import Sequence
    from contextlib import AbstractAsyncContextManager

    from nightherd.model.push.subscription import PushSubscription


class PushReader(Protocol):
    """Questions about devices that take pushes."""

    def find_push_subscription(self, push_id: str) -> PushSubscription | None: ...
    def active_push_subscriptions(self) -> Sequence[PushSubscription]:
        """Every device that takes pushes, the first subscribed first."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OutgoingPush:
    """One push on its way to one device."""

    endpoint: str = field(repr=False)
    """Where to: a secret."""
    p256dh: str = field(repr=False)
    """The public key of the browser: the payload is encrypted for it."""
    auth: str = field(repr=False)
    """The authentication secret of the browser."""
    payload: str
    topic: str | None
    """A later push of the same topic replaces one that was not delivered yet."""
    ttl: timedelta
    """How long the push service keeps it for a device that is not there."""
    is_urgent: bool
    contact: str
    """Whom the push service may write to about this fleet's pushes."""
    timeout: timedelta
    allow_hosts: tuple[str, ...] = ()
    """Hosts that may be reached although their address is private."""


SendPush = Callable[[OutgoingPush], Awaitable[SendResult]]
"""Sends one push, once."""


class PushSender(Protocol):
    """Sends pushes. Failures are results; each returns within its push's timeout and some seconds."""

    def public_key(self) -> str:
        """Return the key that browsers subscribe with, made when it is first asked for.

        `NightherdError` where no push can be sent, with the reason.
        """

    def batch(self) -> AbstractAsyncContextManager[SendPush]:
        """Open what sends several pushes, one after another; nothing that it started is left afterwards."""
