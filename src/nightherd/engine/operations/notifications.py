"""Notifications: send a test message to a target."""

from __future__ import annotations

from collections.abc import Mapping

from nightherd.errors import InvalidValueError, NotFoundError, RefusedError
from nightherd.model.agents.agent import Fleet
from nightherd.model.notifications.changes import RetryTarget
from nightherd.model.notifications.message import Message
from nightherd.model.notifications.routing import with_bots
from nightherd.model.push.subscription import is_device
from nightherd.model.secrets import Secrets
from nightherd.ports import Clock, Outgoing, Sender, StateWriter


async def send_test_message(
    target: str,
    fleet: Fleet,
    sender: Sender,
    environment: Mapping[str, str],
    secrets: Secrets,
    why_not: str | None = None,
) -> None:
    """Send a test message to a target of the fleet. `RefusedError` says why it was not taken.

    `why_not` is the reason why nothing can be sent here at all, if there is one.
    """
    if is_device(target):
        raise RefusedError(f"{target} is a device: its person tests it in the dashboard's settings")
    targets = with_bots(fleet)
    chosen = targets.get(target)
    if chosen is None:
        names = ", ".join(targets) or "none"
        raise NotFoundError(f"the fleet has no notify target {target!r}; it has: {names}")
    if why_not is not None:
        raise RefusedError(why_not)
    try:
        url = chosen.address(environment)
    except InvalidValueError as error:
        raise RefusedError(f"notify target {target!r}: {error.message}", hint=error.hint) from None
    whose = "A nightherd fleet" if fleet.name is None else f"The nightherd fleet {fleet.name}"
    message = Message(
        title="Test of nightherd", text=f"{whose} can reach you here. You need not do anything."
    )
    outgoing = Outgoing(
        url=url, message=message, timeout=chosen.timeout, allow_hosts=chosen.allow_hosts
    )
    async with sender.batch() as send:
        result = await send(outgoing)
    if result.error is not None:
        raise RefusedError(f"{target} did not take the message: {secrets.mask(result.error)}")


async def retry_target(target: str, state: StateWriter, clock: Clock) -> None:
    """Send what waits for a target that was failing, now that it works."""
    await state.apply([RetryTarget(target=target, at=clock.now())])
