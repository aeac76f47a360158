"""`nightherd work locks` and `unlock`: which fleet has which issue, and removing a lock that nobody will."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TypeVar

import anyio
import click

from nightherd.cli.fleet.load import load_fleet_with_notices
from nightherd.cli.invocation import Invocation, json_option
from nightherd.cli.screen.render import neutralise, table
from nightherd.cli.work.work import complete_issues
from nightherd.engine.contexts import FleetContext
from nightherd.engine.operations.work_locks import (
    HeldLock,
    find_lock,
    find_source,
    unlock_issue,
)
from nightherd.engine.operations.work_locks import list_locks as find_locks
from nightherd.errors import UsageError
from nightherd.model.agents.agent import Fleet
from nightherd.views.work.work import every_source, unlocked_row, work_lock_row
from nightherd.wiring.machine import refuse_agents
from nightherd.wiring.running import open_fleet_context
from nightherd.wiring.stores import system_clock

HEADING = ("ISSUE", "FLEET", "SINCE", "HERE")
UNKNOWN = "unknown"
"""Stands for the fleet of a lock that no fleet has made."""

AnswerT = TypeVar("AnswerT")


@click.command("locks", epilog="Example: nightherd work locks --json")
@json_option
@click.pass_obj
def list_locks(invocation: Invocation) -> None:
    """List which fleet has which issue. Asks GitHub for the locks at the sources of this fleet."""
    fleet = load_fleet_with_notices(invocation)
    sources = every_source(fleet.agents.values())
    held = _ask(invocation, fleet, lambda context: find_locks(sources, context))
    screen = invocation.screen
    if screen.is_json:
        rows = [work_lock_row(one.source.id, one.lock, one.item) for one in held]
        screen.document("work_locks", rows, system_clock().now())
        return
    if not held:
        screen.say("no fleet has an issue" if sources else "no schedule takes issues")
        return
    lines = [
        (
            neutralise(one.issue),
            neutralise(one.lock.fleet or UNKNOWN),
            neutralise(one.lock.since or "-"),
            "-" if one.item is None else one.item.status.value,
        )
        for one in held
    ]
    screen.show(table(HEADING, lines, width=screen.width, style=screen.out))


@click.command("unlock", epilog="Example: nightherd work unlock acme/app#7 --yes")
@click.argument("issue", metavar="ISSUE", shell_complete=complete_issues)
@click.option("--yes", is_flag=True, help="Remove it; without, it only says whose lock it is.")
@json_option
@click.pass_obj
def unlock(invocation: Invocation, issue: str, yes: bool) -> None:
    """Remove the lock of a fleet that is gone for good. ISSUE is OWNER/NAME#7.

    The issue is made ready again if it is open and in progress. A fleet that is only switched off would work on it too.
    """
    fleet = load_fleet_with_notices(invocation)
    refuse_agents(invocation.state_directory(), "removing a lock", "starts more jobs")
    source, number = find_source(every_source(fleet.agents.values()), issue)
    held = _ask(invocation, fleet, lambda context: find_lock(source, number, context))
    if not yes:
        raise UsageError(
            f"this would remove the lock of {_owner(held)} at issue {held.issue}",
            hint="add --yes if that fleet is gone for good",
        )
    unlocked = _ask(invocation, fleet, lambda context: unlock_issue(held, context))
    screen = invocation.screen
    if screen.is_json:
        row = unlocked_row(source.id, held.lock, is_ready=unlocked.is_ready)
        screen.document("work_lock", row, system_clock().now())
        return
    screen.show(neutralise(f"the lock of {_owner(held)} at issue {held.issue} is removed"))
    screen.flush()
    if unlocked.is_ready:
        screen.say(neutralise(f"it has the label {source.ready!r} again"))
    else:
        screen.say(neutralise(f"its labels are as they were; {source.ready!r} makes it ready"))


def _owner(held: HeldLock) -> str:
    since = f" (since {held.lock.since})" if held.lock.since else ""
    return f"fleet {held.lock.fleet or UNKNOWN}{since}"


def _ask(
    invocation: Invocation, fleet: Fleet, call: Callable[[FleetContext], Awaitable[AnswerT]]
) -> AnswerT:
    async def main() -> AnswerT:
        state_dir = invocation.state_directory()
        async with open_fleet_context(state_dir, fleet, invocation.environ) as context:
            return await call(context)

    return anyio.run(main)
