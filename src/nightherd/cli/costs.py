"""`nightherd costs`: what jobs used in a period, in groups, and how fast limits are used up."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing

import click

from nightherd.cli.catch_up import catch_up_index
from nightherd.cli.fleet.load import load_fleet_with_notices
from nightherd.cli.invocation import Invocation, agent_filter, json_option
from nightherd.cli.screen.render import Screen, neutralise, table
from nightherd.model.costs.breakdown import CostGroup, CostKey, ModelSource
from nightherd.model.costs.cell import Amounts
from nightherd.model.limits.limits import LimitName, shown
from nightherd.model.text import counted
from nightherd.model.units import MicroUsd, format_usd
from nightherd.views.costs.burn import Burn, Cap
from nightherd.views.costs.costs import (
    GROUPS,
    MOST_GROUPS,
    CostsRequest,
    CostsView,
    costs_document,
    read_zone,
    show_costs,
)
from nightherd.wiring.index import open_costs
from nightherd.wiring.machine import local_zone
from nightherd.wiring.stores import open_reader, system_clock

AMOUNTS = ("COST", "TOKENS", "TURNS", "JOBS")
CAPS = ("LIMIT OF", "LIMIT", "USED", "LEFT", "PER HOUR", "AT THIS RATE")
NOT_GROUPED = "-"


@click.command("costs", epilog="Example: nightherd costs --by agent,model --since 30d")
@click.option(
    "--by",
    metavar="KEYS",
    default=CostKey.DAY.value,
    show_default=True,
    help=f"Keys to group by, with commas: {', '.join(CostKey)}.",
)
@click.option(
    "--since",
    metavar="WHEN",
    help="Time to start at: 7d (days, with today; the default), 24h, a date, or a date and time.",
)
@click.option("--until", metavar="WHEN", help="Time to stop before, as for --since.")
@agent_filter
@click.option("--job", metavar="JOB", help="Show only this job, by its whole id.")
@click.option("--tz", metavar="ZONE", help="Time zone of days and dates; default: this machine's.")
@click.option(
    "--limit",
    type=click.IntRange(1, MOST_GROUPS),
    default=GROUPS,
    show_default=True,
    help="How many groups to name; the others are added up.",
)
@json_option
@click.pass_obj
def costs(
    invocation: Invocation,
    by: str,
    since: str | None,
    until: str | None,
    agent: str | None,
    job: str | None,
    tz: str | None,
    limit: int,
) -> None:
    """Show what jobs have used, and when limits will be reached.

    Counts money, tokens, turns and jobs.

    Rows and "others" always add up to the total.
    """
    screen, now = invocation.screen, system_clock().now()
    request = CostsRequest(by=by, since=since, until=until, agent=agent, job=job, limit=limit)
    zone = read_zone(tz, local_zone())
    state = invocation.state_directory()
    fleet = load_fleet_with_notices(invocation, is_quiet=True)
    catch_up_index(state, screen)
    index = open_costs(state, lambda notice: screen.say(neutralise(notice)))
    with closing(open_reader(state)) as reader:
        view = show_costs(index, reader, fleet, request, zone, now)
    if screen.is_json:
        screen.document("costs", costs_document(view), now)
        return
    _show_groups(view, tz, screen)
    _show_burn(view.burn, tz, screen)


def _show_groups(view: CostsView, zone: str | None, screen: Screen) -> None:
    """The groups and their total as a table."""
    found, keys = view.breakdown, view.query.by
    since, end = (
        screen.time(view.query.period.since, zone),
        screen.time(view.query.period.end, zone),
    )
    screen.show(f"{since} to {end}")
    if not found.rows:
        screen.say("nothing was used")
        return
    heading = (*(key.value.upper() for key in keys), *AMOUNTS)
    rows = [(*_names(group, keys), *_amounts(group.amounts)) for group in found.rows]
    blank = [""] * (len(keys) - 1)
    if found.others is not None:
        rest = counted(found.count - len(found.rows), "other")
        rows.append((rest, *blank, *_amounts(found.others)[:-1], ""))
    rows.append(("total", *blank, *_amounts(found.total)))
    screen.show(table(heading, rows, width=screen.width, style=screen.out))
    if found.pending_jobs:
        screen.say(f"{counted(found.pending_jobs, 'job')} not counted to the end yet")


def _names(group: CostGroup, keys: tuple[CostKey, ...]) -> Iterator[str]:
    for key in keys:
        name: str | None = getattr(group, key.value)
        text = NOT_GROUPED if name is None else neutralise(name)
        is_assumed = key is CostKey.MODEL and group.source is ModelSource.CONFIGURED
        yield f"{text} (configured)" if is_assumed else text


def _amounts(amounts: Amounts) -> tuple[str, str, str, str]:
    cost = _money(amounts.usage.cost_microusd)
    return cost, f"{amounts.tokens:,}", f"{amounts.turns:,}", f"{amounts.jobs:,}"


def _money(amount: MicroUsd) -> str:
    """Money, also a correction below nothing."""
    return format_usd(amount) if amount >= 0 else f"-{format_usd(MicroUsd(-amount))}"


def _show_burn(burn: Burn, zone: str | None, screen: Screen) -> None:
    """The rate, today, and what becomes of the limits."""
    rate = burn.rate(LimitName.SPEND)
    today = _money(burn.today.usage.cost_microusd)
    expected = _money(_in_cents(burn.expected(LimitName.SPEND)))
    screen.show()
    screen.show(
        f"today {today}, {_money(_in_cents(rate.per_hour()))} an hour lately;"
        f" {expected} expected by midnight"
    )
    if burn.caps:
        rows = [_cap_cells(cap, zone, screen) for cap in burn.caps]
        screen.show(table(CAPS, rows, width=screen.width, style=screen.out))


def _in_cents(amount: float) -> MicroUsd:
    """A rate, or what it leads to, in whole cents: more is not known of it."""
    return MicroUsd(round(amount / 10_000) * 10_000)


def _cap_cells(cap: Cap, zone: str | None, screen: Screen) -> tuple[str, ...]:
    limit, coming = cap.limit, cap.forecast
    is_money = limit.name is LimitName.SPEND
    round_off = _in_cents if is_money else round
    hourly = int(round_off(coming.rate.per_hour()))
    if coming.is_reached:
        then = "reached"
    elif coming.reached_at is not None:
        then = f"reached at {screen.time(coming.reached_at, zone)}"
    elif coming.expected is not None:
        then = f"{shown(limit.name, int(round_off(coming.expected)))} when the day ends (UTC)"
    else:
        then = "not reached"
    return (
        f"{limit.scope.value} {limit.owner}".strip(),
        f"{shown(limit.name, limit.maximum)} {limit.name.value}"
        + (" a day" if limit.is_day else ""),
        shown(limit.name, limit.used or 0),
        shown(limit.name, limit.left or 0),
        shown(limit.name, max(hourly, 0)),
        then,
    )
