"""`nightherd schedule list`, `next`, `history` and `why`: when schedules are due, and what became of their slots."""

from __future__ import annotations

from contextlib import closing
from datetime import datetime, timedelta
from functools import partial

import click

from nightherd.cli.fleet.load import load_fleet_with_notices
from nightherd.cli.invocation import (
    DURATION,
    Command,
    Invocation,
    agent_filter,
    complete_schedules,
    json_option,
    page_option,
)
from nightherd.cli.jobs.list import refresh_lost
from nightherd.cli.lazy import Entry, LazyGroup
from nightherd.cli.next_steps import command_for
from nightherd.cli.screen.render import Screen, neutralise, one_line, status_cell, table
from nightherd.daemon.record import find_daemon
from nightherd.model.agents.agent import Agent
from nightherd.model.jobs.lost import lost_text
from nightherd.model.limits.login import text_of
from nightherd.model.schedules.due import Due, upcoming
from nightherd.model.schedules.jobs import find_schedule
from nightherd.model.schedules.rule import Cron, Schedule, rule_text
from nightherd.model.schedules.schedule import Slot
from nightherd.model.text import time_text
from nightherd.views.jobs.jobs import timestamp
from nightherd.views.schedules.rows import WhyDocument
from nightherd.views.schedules.schedules import (
    ScheduleView,
    list_views,
    schedule_row,
    slot_row,
    view_of,
)
from nightherd.views.schedules.why import why_row
from nightherd.wiring.machine import is_at_work
from nightherd.wiring.stores import open_reader, system_clock


@click.group(
    "schedule",
    cls=LazyGroup,
    entries={
        "list": Entry(
            "nightherd.cli.schedules.list:list_schedules", "List schedules and their status."
        ),
        "next": Entry("nightherd.cli.schedules.list:next_slots", "List what is due next."),
        "run": Entry("nightherd.cli.schedules.actions:run", "Submit a schedule's job now."),
        "enable": Entry("nightherd.cli.schedules.actions:enable", "Enable a schedule."),
        "disable": Entry("nightherd.cli.schedules.actions:disable", "Disable a schedule."),
        "set": Entry("nightherd.cli.schedules.actions:set_rule", "Change a schedule's rule."),
        "reset": Entry("nightherd.cli.schedules.actions:reset", "Undo changes to a schedule."),
        "history": Entry(
            "nightherd.cli.schedules.list:history",
            "List a schedule's latest due times and outcomes.",
        ),
        "why": Entry("nightherd.cli.schedules.list:why", "Explain when a schedule fires."),
    },
    default="list",
    epilog="Example: nightherd schedule next --for 14d",
)
def schedule() -> None:
    """List, show and change schedules. A schedule is named AGENT/NAME."""


@click.command("list", epilog="Example: nightherd schedule list")
@agent_filter
@json_option
@click.pass_obj
def list_schedules(invocation: Invocation, agent: str | None) -> None:
    """List schedules and their status."""
    screen, now = invocation.screen, system_clock().now()
    views = [one for one in _views(invocation, now) if agent in (None, one.agent.name)]
    if screen.is_json:
        screen.document("schedules", [schedule_row(view) for view in views], now)
        return
    if not views:
        screen.say("no schedules" if agent is None else f"{agent} has no schedules")
        return
    heading = ("SCHEDULE", "STATUS", "RULE", "LAST", "NEXT", "ABOUT")
    rows = [_cells(view, screen, now) for view in views]
    screen.show(table(heading, rows, width=screen.width, style=screen.out))
    show_rest(invocation)


@click.command("next", epilog="Example: nightherd schedule next --for 14d")
@click.option(
    "--for",
    "span",
    type=DURATION,
    default="1d",
    metavar="TIME",
    help="How far to look ahead (default: 1d).",
)
@agent_filter
@page_option(100)
@json_option
@click.pass_obj
def next_slots(invocation: Invocation, span: timedelta, agent: str | None, limit: int) -> None:
    """List what is due next."""
    screen, now = invocation.screen, system_clock().now()
    views = [one for one in _views(invocation, now) if agent in (None, one.agent.name)]
    found = _merged(views, now, now + span, limit)
    if screen.is_json:
        rows = [
            {
                "schedule": view.id,
                "due_at": timestamp(due.instant),
                "runs_at": timestamp(due.runs_at),
                "rule": rule_text(view.rule),
            }
            for due, view in found
        ]
        screen.document("upcoming", rows, now)
        return
    if not found:
        screen.say("nothing is due in this period")
        return
    rows_for_people = [
        (screen.time(due.runs_at, zone_of(view)), view.id, rule_text(view.rule))
        for due, view in found
    ]
    screen.show(
        table(("WHEN", "SCHEDULE", "RULE"), rows_for_people, width=screen.width, style=screen.out)
    )
    show_rest(invocation)


def show_rest(invocation: Invocation) -> None:
    """Say so when nothing fires schedules at the moment."""
    if find_daemon(invocation.state_directory()) is None:
        invocation.screen.flush()
        invocation.screen.say(
            "no daemon is running, so schedules do not fire; start it: nightherd start"
        )


def _views(invocation: Invocation, now: datetime) -> list[ScheduleView]:
    fleet = load_fleet_with_notices(invocation)
    with closing(open_reader(invocation.state_directory())) as reader:
        views = list_views(reader, fleet, is_at_work, now)
    refresh_lost(invocation, [view.lost_job for view in views if view.lost_job is not None])
    return views


def _merged(
    views: list[ScheduleView], now: datetime, until: datetime, limit: int
) -> list[tuple[Due, ScheduleView]]:
    """The first slots of all schedules together."""
    found: list[tuple[Due, ScheduleView]] = []
    for view in views:
        if view.rule is None or view.next_run_at is None:
            continue
        slots = upcoming(view.id, view.schedule, view.rule, now, until)
        found += [(due, view) for due, _ in zip(slots, range(limit), strict=False)]
    found.sort(key=lambda one: (one[0].runs_at, one[1].id))
    return found[:limit]


def _cells(view: ScheduleView, screen: Screen, now: datetime) -> tuple[str, ...]:
    state = view.state
    about = state.last_error or ""
    if state.is_paused:
        about = f"paused after {state.consecutive_failures} failures: {about}"
    elif view.lost_job is not None:
        about = lost_text(view.lost_job, command_for)
    elif view.limit is not None:
        about = text_of(view.limit, screen.time)
    elif view.held_by:
        about = f"blocked by {view.held_by[0].id}: nightherd schedule why {view.id}"
    elif view.override is not None:
        about = about or f"overridden by {view.override.updated_by}"
    return (
        view.id,
        status_cell(state.status.value if view.lost_job is None else "lost"),
        rule_text(view.rule) or "by hand",
        screen.when(state.last_run_at, now),
        screen.when(view.next_run_at, now),
        one_line(about) or "-",
    )


def schedule_argument(command: Command) -> Command:
    """A schedule: AGENT/NAME."""
    return click.argument("schedule", metavar="AGENT/NAME", shell_complete=complete_schedules)(
        command
    )


def zone_of(view: ScheduleView) -> str | None:
    """Return the time zone of a cron rule; None for other rules, which are shown in local time."""
    return view.rule.timezone if isinstance(view.rule, Cron) else None


def load_view(invocation: Invocation, agent: Agent, schedule: Schedule) -> ScheduleView:
    """The schedule with everything on record about it."""
    with closing(open_reader(invocation.state_directory())) as reader:
        return view_of(reader, agent, schedule, is_at_work, system_clock().now())


def show_schedule(invocation: Invocation, agent: Agent, schedule: Schedule) -> None:
    """Where the schedule stands now."""
    screen, now = invocation.screen, system_clock().now()
    view = load_view(invocation, agent, schedule)
    if screen.is_json:
        screen.document("schedule", schedule_row(view), now)
        return
    rule = rule_text(view.rule) or "by hand"
    next_run = screen.time(view.next_run_at, zone_of(view))
    coming = f", next {next_run}" if view.next_run_at is not None else ""
    screen.show(neutralise(f"{view.id} is {view.state.status.value}: {rule}{coming}"))
    show_rest(invocation)


@click.command("history", epilog="Example: nightherd schedule history hello/nightly")
@schedule_argument
@page_option(20)
@json_option
@click.pass_obj
def history(invocation: Invocation, schedule: str, limit: int) -> None:
    """List a schedule's latest due times and outcomes."""
    fleet = load_fleet_with_notices(invocation)
    agent, declared = find_schedule(fleet.scheduled, schedule)
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
            slot.job_id or slot.run_id or one_line(slot.reason or ""),
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
    agent, chosen = find_schedule(fleet.scheduled, schedule)
    view = load_view(invocation, agent, chosen)
    slots = _slots(invocation, schedule, 1)
    is_kept = find_daemon(invocation.state_directory()) is not None
    screen, now = invocation.screen, system_clock().now()
    show_time = time_text if screen.is_json else partial(screen.time, zone=zone_of(view))
    row = why_row(view, slots, is_kept=is_kept, show_time=show_time, spell=command_for)
    if screen.is_json:
        data: WhyDocument = {"schedule": schedule_row(view), **row}
        screen.document("why", data, now)
        return
    screen.show(neutralise(f"last: {row['last']}"))
    for number, reason in enumerate(row["next"]):
        screen.show(neutralise(f"{'next:' if number == 0 else '     '} {reason}"))


def _slots(invocation: Invocation, schedule: str, limit: int) -> list[Slot]:
    with closing(open_reader(invocation.state_directory())) as reader:
        return list(reader.list_slots(schedule, limit))
