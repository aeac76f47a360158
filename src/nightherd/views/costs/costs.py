"""Costs as every surface shows them: what was used in a period, in groups, and how fast limits are used up."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, tzinfo
from typing import TYPE_CHECKING, TypedDict
from zoneinfo import ZoneInfo

import msgspec

from nightherd.errors import InvalidValueError
from nightherd.model.costs.breakdown import (
    Breakdown,
    CostGroup,
    CostKey,
    CostQuery,
    ModelSource,
    break_down,
    read_keys,
)
from nightherd.model.costs.cell import Amounts
from nightherd.model.costs.period import days_of, read_period
from nightherd.model.units import to_usd
from nightherd.views.costs.burn import Burn, BurnDocument, burn_document, show_burn
from nightherd.views.jobs.jobs import timestamp

if TYPE_CHECKING:
    from nightherd.model.agents.agent import Agent, Fleet
    from nightherd.ports import Costs, StateReader

GROUPS = 100
"""How many groups are named unless a number is asked for."""
MOST_GROUPS = 1_000


class CostsRequest(msgspec.Struct, frozen=True, kw_only=True):
    """What is asked for, as it was written."""

    by: str = CostKey.DAY.value
    since: str | None = None
    until: str | None = None
    agent: str | None = None
    job: str | None = None
    limit: int = GROUPS


class Zone(msgspec.Struct, frozen=True, kw_only=True):
    """A time zone and its name."""

    name: str
    info: tzinfo


class CostsView(msgspec.Struct, frozen=True, kw_only=True):
    """Costs in groups, and the burn."""

    query: CostQuery
    zone: Zone
    breakdown: Breakdown
    burn: Burn


def read_zone(name: str | None, local: tuple[str, tzinfo]) -> Zone:
    """Return the time zone of that name, the machine's without one; `InvalidValueError` for one that is not known."""
    if name is None:
        return Zone(name=local[0], info=local[1])
    try:
        return Zone(name=name, info=ZoneInfo(name))
    except (KeyError, ValueError, OSError) as error:
        raise InvalidValueError(
            f"{name[:40]!r} is not a time zone; write UTC or Europe/Berlin"
        ) from error


def show_costs(
    costs: Costs,
    reader: StateReader,
    fleet: Fleet,
    request: CostsRequest,
    zone: Zone,
    now: datetime,
) -> CostsView:
    """Return what was used in the period; `InvalidValueError` for a request that cannot be understood."""
    by = read_keys(request.by)
    period = read_period(request.since, request.until, now, zone.info)
    days = days_of(period, zone.info) if CostKey.DAY in by else ()
    query = CostQuery(period=period, by=by, days=days, agent=request.agent, job=request.job)
    found = break_down(
        costs.costs(query), by, lambda name: _model_of(fleet.agents, name), request.limit
    )
    burn = show_burn(costs, reader, fleet, request.agent, zone.info, now)
    return CostsView(query=query, zone=zone, breakdown=found, burn=burn)


def _model_of(agents: Mapping[str, Agent], name: str) -> str | None:
    agent = agents.get(name)
    return None if agent is None else agent.model


class AmountsRow(TypedDict):
    """Money, tokens and turns."""

    cost_usd: float
    tokens: int
    input_tokens: int
    output_tokens: int
    cache_creation_input_tokens: int
    cache_read_input_tokens: int
    turns: int


class CostTotalRow(AmountsRow):
    """What was used, and by how many jobs."""

    jobs: int


class CostRow(CostTotalRow):
    """What one group of jobs used. What is not grouped by is null."""

    day: str | None
    agent: str | None
    model: str | None
    model_source: ModelSource | None
    schedule: str | None
    workflow: str | None


class OtherCostsRow(AmountsRow):
    """What the groups that are no rows used together."""

    groups: int


class CostsDocument(TypedDict):
    """What was used in a period, in groups."""

    by: list[CostKey]
    since: str
    until: str
    timezone: str
    agent: str | None
    job: str | None
    total: CostTotalRow
    rows: list[CostRow]
    groups: int
    others: OtherCostsRow | None
    pending_jobs: int | None
    burn: BurnDocument


def costs_document(view: CostsView) -> CostsDocument:
    """Return the costs as plain data."""
    query, found = view.query, view.breakdown
    others: OtherCostsRow | None = None
    if found.others is not None:
        others = {**amounts_row(found.others), "groups": found.count - len(found.rows)}
    return {
        "by": list(query.by),
        "since": timestamp(query.period.since),
        "until": timestamp(query.period.end),
        "timezone": view.zone.name,
        "agent": query.agent,
        "job": query.job,
        "total": total_row(found.total),
        "rows": [_cost_row(group) for group in found.rows],
        "groups": found.count,
        "others": others,
        "pending_jobs": found.pending_jobs,
        "burn": burn_document(view.burn),
    }


def amounts_row(amounts: Amounts) -> AmountsRow:
    """Return money, tokens and turns as plain data."""
    usage = amounts.usage
    return {
        "cost_usd": to_usd(usage.cost_microusd),
        "tokens": amounts.tokens,
        "input_tokens": usage.input_tokens,
        "output_tokens": usage.output_tokens,
        "cache_creation_input_tokens": usage.cache_creation_input_tokens,
        "cache_read_input_tokens": usage.cache_read_input_tokens,
        "turns": amounts.turns,
    }


def total_row(amounts: Amounts) -> CostTotalRow:
    """Return what was used, and by how many jobs, as plain data."""
    return {**amounts_row(amounts), "jobs": amounts.jobs}


def _cost_row(group: CostGroup) -> CostRow:
    return {
        "day": group.day,
        "agent": group.agent,
        "model": group.model,
        "model_source": group.source,
        "schedule": group.schedule,
        "workflow": group.workflow,
        **total_row(group.amounts),
    }
