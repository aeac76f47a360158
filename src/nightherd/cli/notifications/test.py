"""`nightherd notify test`: whether a target works, now and with its answer."""

from __future__ import annotations

import anyio
import click

from nightherd.cli.fleet.load import load_fleet_with_notices
from nightherd.cli.invocation import Invocation, json_option
from nightherd.engine.operations.notifications import retry_target, send_test_message
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
    environment = {**fleet.environment, **invocation.environ}
    secrets = known_secrets(fleet, environment, invocation.new_state_directory())
    sender = open_sender(invocation.environ)
    anyio.run(send_test_message, target, fleet, sender, environment, secrets, why_not_sent())
    anyio.run(_note_that_it_works, invocation, target)
    screen = invocation.screen
    if screen.is_json:
        data = {"target": target, "sent": True}
        screen.document("notify_test", data, system_clock().now())
        return
    screen.show(f"sent to {target}")


async def _note_that_it_works(invocation: Invocation, target: str) -> None:
    """What waits for a target that was failing is sent now, if the fleet has ever run."""
    state_dir = invocation.new_state_directory()
    if not (state_dir / "nightherd.db").exists():
        return
    clock = system_clock()
    state = open_store(state_dir, clock)
    try:
        await retry_target(target, state, clock)
    finally:
        await state.close()
