"""`nightherd schedule history` and `why`: what became of a schedule's slots, and what decides the next."""

from __future__ import annotations

from contextlib import closing
from functools import partial

import click

from nightherd.cli.fleet.load import load_fleet_with_notices
from nightherd.cli.invocation import Invocation
from nightherd.cli.options import json_option
from nightherd.cli.schedules.list import load_view, schedule_argument, zone_of
from nightherd.cli.screen.render import table
from nightherd.cli.screen.text import neutralise, one_line
from nightherd.daemon.record import find_daemon
from nightherd.model.schedules.jobs import find_schedule
from nightherd.model.schedules.schedule import Slot
from nightherd.model.text import time_text
from nightherd.views.schedules import schedule_row, slot_row, why_last, why_next
from nightherd.wiring.stores import open_reader, system_clock

MOST = 1_000


@click.command("history", epilog="Example: nightherd schedule history hello/nightly")
@schedule_argument
@click.option(
    "--limit",
    type=click.IntRange(1, MOST),
    default=20,
    help="Largest number to show (default: 20).",
)
@json_option
@click.pass_obj
def history(invocation: Invocation, schedule: str, limit: int) -> None:
    """List a schedule's latest due times and outcomes."""
    fleet = load_fleet_with_notices(invocation)
    agent, declared = find_schedule(fleet.agents, schedule)
    slots = _slots(invocation, schedule, limit)
    screen, now = invocation.screen, system_clock().now()
    if screen.is_json:
        screen.document("slots", [slot_row(slot) for slot in slots], now)
        return
    if not slots:
        screen.say("it has not been due yet")
        return
    zone = zone_of(load_view(invocation, agent, declared))
    rows = [
        (
            screen.time(slot.due_at, zone),
            slot.outcome.value,
            slot.job_id or one_line(slot.reason or ""),
        )
        for slot in slots
    ]
    screen.show(table(("DUE", "OUTCOME", "WHAT"), rows, width=screen.width, style=screen.out))


@click.command("why", epilog="Example: nightherd schedule why hello/nightly")
@schedule_argument
@json_option
@click.pass_obj
def why(invocation: Invocation, schedule: str) -> None:
    """Explain when a schedule fires. Says what decided its last due time and what decides the next."""
    fleet = load_fleet_with_notices(invocation)
    agent, chosen = find_schedule(fleet.agents, schedule)
    view = load_view(invocation, agent, chosen)
    slots = _slots(invocation, schedule, 1)
    is_kept = find_daemon(invocation.state_directory()) is not None
    screen, now = invocation.screen, system_clock().now()
    show_time = time_text if screen.is_json else partial(screen.time, zone=zone_of(view))
    last = why_last(slots, show_time)
    coming = why_next(view, is_kept=is_kept, show_time=show_time)
    if screen.is_json:
        data = {
            "schedule": schedule_row(view),
            "last_slot": slot_row(slots[0]) if slots else None,
            "last": last,
            "next": coming,
        }
        screen.document("why", data, now)
        return
    screen.show(neutralise(f"last: {last}"))
    for number, reason in enumerate(coming):
        screen.show(neutralise(f"{'next:' if number == 0 else '     '} {reason}"))


def _slots(invocation: Invocation, schedule: str, limit: int) -> list[Slot]:
    with closing(open_reader(invocation.state_directory())) as reader:
        return list(reader.list_slots(schedule, limit))
