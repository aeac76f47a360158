"""Breakdown: costs in groups, the highest first, that always add up to the total."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from enum import StrEnum

import msgspec
from msgspec.structs import replace

from nightherd.errors import InvalidValueError
from nightherd.model.costs.cell import NOTHING, Amounts
from nightherd.model.costs.period import Day, Period


class CostKey(StrEnum):
    """What costs are grouped by."""

    DAY = "day"
    AGENT = "agent"
    MODEL = "model"
    SCHEDULE = "schedule"
    """Of the first job of a family: what child jobs use counts for the schedule that started it."""
    WORKFLOW = "workflow"
    """Of the run that a job, or the first of its family, is a phase of."""


class ModelSource(StrEnum):
    """How the model is known."""

    RECORDED = "recorded"
    """The runtime said so."""
    CONFIGURED = "configured"
    """Nothing on record says so: it is the agent's model as it is configured now."""
    UNKNOWN = "unknown"


class CostQuery(msgspec.Struct, frozen=True, kw_only=True):
    """Which costs are asked for, and in which groups."""

    period: Period
    by: tuple[CostKey, ...] = ()
    days: tuple[Day, ...] = ()
    """The days of the period, where it is asked for days."""
    agent: str | None = None
    job: str | None = None
    """The whole id of the one job that is asked about."""


class CostGroup(msgspec.Struct, frozen=True, kw_only=True):
    """What was used by jobs that have these in common; None for what is not asked for, and for what there is none of."""

    day: str | None = None
    agent: str | None = None
    model: str | None = None
    schedule: str | None = None
    workflow: str | None = None
    source: ModelSource | None = None
    amounts: Amounts = NOTHING


class CostTable(msgspec.Struct, frozen=True, kw_only=True):
    """All groups as they are on record. Where no model is on record, a group has the agent's name in place of it."""

    groups: Sequence[CostGroup] = ()
    jobs: int = 0
    """How many jobs they are of, each counted once."""
    pending_jobs: int | None = None
    """How many jobs have something that is not counted yet; None while nothing can be known."""


class FamilyUse(msgspec.Struct, frozen=True, kw_only=True):
    """What jobs of one agent used that work for the same agents and the same schedule."""

    agent: str
    above: tuple[str, ...] = ()
    """The other agents whose jobs these jobs work for."""
    schedule: str | None = None
    amounts: Amounts = NOTHING


class Breakdown(msgspec.Struct, frozen=True, kw_only=True):
    """The groups with the highest cost, what the others come to, and the total of all."""

    rows: tuple[CostGroup, ...]
    total: Amounts
    count: int
    """How many groups there are."""
    others: Amounts | None = None
    """What the groups that are no rows come to; None when there are none. Its number of jobs means nothing."""
    pending_jobs: int | None = None


Key = tuple[str | None, ...]


def read_keys(text: str) -> tuple[CostKey, ...]:
    """Return what to group by, as in `agent,model`; `InvalidValueError` for a word that is none of them, or twice."""
    keys: list[CostKey] = []
    for word in text.split(","):
        try:
            key = CostKey(word.strip().lower())
        except ValueError:
            raise InvalidValueError(
                f"{word.strip()[:40]!r}: costs are grouped by {', '.join(CostKey)}"
            ) from None
        if key in keys:
            raise InvalidValueError(f"{key.value!r} is there twice")
        keys.append(key)
    return tuple(keys)


def break_down(
    table: CostTable,
    by: Sequence[CostKey],
    configured: Callable[[str], str | None],
    limit: int,
) -> Breakdown:
    """Return the `limit` groups with the highest cost, and the sum of the others.

    `configured` gives the model of an agent as it is configured now.
    """
    groups = list(_merged(_named(table.groups, by, configured)))
    total = sum((one.amounts for one in groups), NOTHING)
    groups = [one for one in groups if not one.amounts.is_nothing]
    groups.sort(key=_rank)
    rows, rest = groups[:limit], groups[limit:]
    if CostKey.DAY in by:
        rows.sort(key=lambda one: one.day or "", reverse=True)  # keeps the order within a day
    return Breakdown(
        rows=tuple(rows),
        total=replace(total, jobs=table.jobs),
        count=len(groups),
        others=sum((one.amounts for one in rest), NOTHING) if rest else None,
        pending_jobs=table.pending_jobs,
    )


def _named(
    groups: Iterable[CostGroup], by: Sequence[CostKey], configured: Callable[[str], str | None]
) -> Iterable[CostGroup]:
    """The groups with the names of their models; an agent's name goes where it was only for that."""
    for group in groups:
        if CostKey.MODEL not in by:
            yield group
            continue
        model, source = group.model, ModelSource.RECORDED
        if model is None:
            model = configured(group.agent or "")
            source = ModelSource.UNKNOWN if model is None else ModelSource.CONFIGURED
        agent = group.agent if CostKey.AGENT in by else None
        yield replace(group, agent=agent, model=model, source=source)


def _merged(groups: Iterable[CostGroup]) -> Iterable[CostGroup]:
    """The groups, those with the same keys as one. Jobs are of one agent, so none is counted twice."""
    found: dict[Key, CostGroup] = {}
    for group in groups:
        key = (*_key(group), group.source)
        known = found.get(key)
        before = NOTHING if known is None else known.amounts
        found[key] = replace(group, amounts=before + group.amounts)
    return found.values()


def _key(group: CostGroup) -> Key:
    return (group.day, group.agent, group.model, group.schedule, group.workflow)


def _rank(group: CostGroup) -> tuple[int, int, int, tuple[str, ...]]:
    amounts = group.amounts
    names = tuple(part or "" for part in (*_key(group), group.source))
    return -amounts.usage.cost_microusd, -amounts.tokens, -amounts.turns, names
