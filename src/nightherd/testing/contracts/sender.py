"""What every sender of notifications must do: one check per promise, for any `Sender` and an address that it reaches."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from datetime import timedelta

import msgspec

from nightherd.model.notifications.message import Message
from nightherd.ports import Outgoing, Sender


class OpenSender(msgspec.Struct, frozen=True, kw_only=True):
    """A sender, an address that takes messages, and how to make it take none."""

    sender: Sender
    url: str
    refuse: Callable[[], None]
    """From now on the address takes nothing."""
    count: Callable[[], int]
    """How many messages the address has been given."""

    def outgoing(self) -> Outgoing:
        """A message to it."""
        message = Message(title="Hello", text="What happened.")
        return Outgoing(
            url=self.url,
            message=message,
            timeout=timedelta(seconds=60),
            allow_hosts=("127.0.0.1",),
        )


Check = Callable[[OpenSender], Awaitable[None]]


async def check_message_that_is_taken_has_no_error(place: OpenSender) -> None:
    async with place.sender.batch() as send:
        results = [await send(place.outgoing()) for _ in range(2)]

    assert [result.error for result in results] == [None, None]
    assert place.count() == 2


async def check_message_that_is_not_taken_is_a_result_without_the_address(
    place: OpenSender,
) -> None:
    place.refuse()

    async with place.sender.batch() as send:
        result = await send(place.outgoing())

    assert result.error
    assert place.url not in result.error
    assert place.count() == 1, "one attempt is one message"


async def check_address_is_not_shown(place: OpenSender) -> None:
    assert place.url not in repr(place.outgoing())


SENDER_CHECKS: tuple[Check, ...] = (
    check_message_that_is_taken_has_no_error,
    check_message_that_is_not_taken_is_a_result_without_the_address,
    check_address_is_not_shown,
)
