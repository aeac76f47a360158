"""`nightherd notify test`: whether a target works, now and with its answer."""

from __future__ import annotations

import anyio
import click

from nightherd.cli.fleet.load import load_fleet_with_notices
from nightherd.cli.invocation import Invocation, json_option
from nightherd.errors import InvalidValueError, NotFoundError, RefusedError
from nightherd.model.notifications.changes import RetryTarget
from nightherd.model.notifications.message import Message
from nightherd.model.notifications.routing import with_bots
from nightherd.model.notifications.target import NotifyTarget
from nightherd.ports import Outgoing, SendResult
from nightherd.wiring.notifications import open_sender, why_not_sent
from nightherd.wiring.stores import known_secrets, open_store, system_clock


@click.command("test", epilog="Example: nightherd notify test phone")
@click.argument("target", metavar="TARGET")
@json_option
@click.pass_obj
def test(invocation: Invocation, target: str) -> None:
    """Send a test message to a target. Says why it was not taken.

    If a target that was failing takes it, what waits for the target is sent at once.
    """
    fleet = load_fleet_with_notices(invocation)
    targets = with_bots(fleet)
    chosen = targets.get(target)
    if chosen is None:
        names = ", ".join(targets) or "none"
        raise NotFoundError(f"the fleet has no notify target {target!r}; it has: {names}")
    missing = why_not_sent()
    if missing is not None:
        raise RefusedError(missing)
    environment = {**fleet.environment, **invocation.environ}
    try:
        url = chosen.address(environment)
    except InvalidValueError as error:
        raise RefusedError(f"notify target {target!r}: {error.message}", hint=error.hint) from None
    result = anyio.run(_send, invocation, chosen, url, fleet.name)
    secrets = known_secrets(fleet, environment, invocation.new_state_directory())
    error_text = None if result.error is None else str(secrets.mask(result.error))
    screen = invocation.screen
    if error_text is not None:
        raise RefusedError(f"{target} did not take the message: {error_text}")
    anyio.run(_note_that_it_works, invocation, target)
    if screen.is_json:
        data = {"target": target, "sent": True}
        screen.document("notify_test", data, system_clock().now())
        return
    screen.show(f"sent to {target}")


async def _send(
    invocation: Invocation, target: NotifyTarget, url: str, fleet: str | None
) -> SendResult:
    whose = "A nightherd fleet" if fleet is None else f"The nightherd fleet {fleet}"
    message = Message(
        title="Test of nightherd", text=f"{whose} can reach you here. You need not do anything."
    )
    outgoing = Outgoing(
        url=url, message=message, timeout=target.timeout, allow_hosts=target.allow_hosts
    )
    async with open_sender(invocation.environ).batch() as send:
        return await send(outgoing)


async def _note_that_it_works(invocation: Invocation, target: str) -> None:
    """What waits for a target that was failing is sent now, if the fleet has ever run."""
    state_dir = invocation.new_state_directory()
    if not (state_dir / "nightherd.db").exists():
        return
    clock = system_clock()
    state = open_store(state_dir, clock)
    try:
        await state.apply([RetryTarget(target=target, at=clock.now())])
    finally:
        await state.close()
