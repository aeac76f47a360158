"""Limits as data: what may be used, has been, and is left; and the rate limits of logins, with the agents they stop."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any, TypedDict

import msgspec
from msgspec.structs import replace

from nightherd.model.agents.agent import Agent, Fleet
from nightherd.model.checkpoints.checkpoint import Checkpoint
from nightherd.model.ids import JobId
from nightherd.model.jobs.lost import ObservedJob
from nightherd.model.limits.limits import (
    BOUNDLESS,
    COUNTED,
    LimitName,
    Limits,
    Scope,
    Used,
    limits_document,
    number,
)
from nightherd.model.limits.login import limits_that_stop, stopping
from nightherd.model.limits.spending import day_of, used_of
from nightherd.model.units import ONE_MS
from nightherd.ports import StateReader
from nightherd.views.jobs.jobs import timestamp

if TYPE_CHECKING:
    from nightherd.model.limits.login import LoginLimit


class LimitView(msgspec.Struct, frozen=True, kw_only=True):
    """One limit: whose, of what, how much, and what is used of it; None where that is asked of a job."""

    scope: Scope
    name: LimitName
    maximum: int
    owner: str = ""
    is_day: bool = False
    used: int | None = None
    outcome: str = "suspend"

    @property
    def left(self) -> int | None:
        """What is left of it."""
        return None if self.used is None else max(0, self.maximum - self.used)


def limits_of_job(
    job: ObservedJob,
    last: Checkpoint | None,
    below: Used,
    *,
    given: Mapping[str, Any] | None = None,
    declared: Limits | None = None,
) -> list[LimitView]:
    """The job's limits, as its last checkpoint has them, and what it has used with the jobs it made.

    One that has none yet will have those that are `declared` for it, when it begins with what is declared now.
    What it was `given` itself counts before a checkpoint says so; what it has used is on its row at the end of
    an execution at the latest, and in its checkpoints before.
    """
    ran = 0 if job.worked is None else job.worked // ONE_MS
    used = used_of(job) + below
    header: Mapping[str, Any] = {}
    if last is not None:
        used = _most(used_of(job), _used_at(last)) + below + Used(duration=ran)
        header = last.header
    elif declared is not None and not job.is_terminal:
        header = _header_of(declared)
    limits = {**(header.get("limits") or {}), **(given or {})}
    bounding = {name: most for name, most in limits.items() if int(most) < BOUNDLESS}
    kept = {**header, "limits": bounding}
    return _kept_limits(kept, job.id, used, unknown=frozenset({LimitName.DEPTH}))


def _header_of(limits: Limits) -> dict[str, Any]:
    kept = limits_document(limits)
    return {
        "limits": kept,
        "on_reached": {name: limits.outcome(LimitName(name)).value for name in kept},
    }


def _most(one: Used, other: Used) -> Used:
    """Of what adds up, the more of the two."""
    return Used(
        spend=max(one.spend, other.spend),
        turns=max(one.turns, other.turns),
        tokens=max(one.tokens, other.tokens),
    )


def limits_at(checkpoint: Checkpoint) -> list[LimitView]:
    """The job's limits there, and what it had used itself."""
    unknown = frozenset({LimitName.DEPTH, LimitName.SPAWNS})
    return _kept_limits(checkpoint.header, checkpoint.job_id, _used_at(checkpoint), unknown=unknown)


def _used_at(checkpoint: Checkpoint) -> Used:
    return Used(
        spend=checkpoint.cost_microusd,
        turns=checkpoint.turn,
        tokens=checkpoint.tokens,
        duration=checkpoint.duration_ms,
    )


def _kept_limits(
    header: Mapping[str, Any], job_id: JobId, used: Used, *, unknown: frozenset[LimitName]
) -> list[LimitView]:
    kept: Mapping[str, Any] = header.get("limits") or {}
    answers: Mapping[str, str] = header.get("on_reached") or {}
    return [
        LimitView(
            scope=Scope.JOB,
            name=name,
            maximum=int(kept[name.value]),
            owner=job_id,
            used=None if name in unknown else used.amount(name),
            outcome=answers.get(name.value, "suspend"),
        )
        for name in LimitName
        if kept.get(name.value) is not None
    ]


def limits_of_agent(
    agent: Agent, limits: Limits, reader: StateReader, now: datetime
) -> Iterator[LimitView]:
    """What one job of the agent may use, and what all of them may in a day; each schedule's day too."""
    yield from _each(Scope.JOB, agent.name, limits)
    today = day_of(now)
    used = reader.spent(today, agent.name, None)
    yield from _day(Scope.AGENT, agent.name, agent.limits, used)
    for schedule in agent.schedules.values():
        owner = f"{agent.name}/{schedule.name}"
        outcomes = {**agent.limits.outcomes, **schedule.limits.outcomes}
        own = replace(schedule.limits, outcomes=outcomes)
        yield from _each(Scope.JOB, owner, own)
        spent = reader.spent(today, agent.name, schedule.name)
        yield from _day(Scope.SCHEDULE, owner, own, spent)


def limits_of_fleet(fleet: Fleet, reader: StateReader, now: datetime) -> Iterator[LimitView]:
    """What all jobs together may use, ever and today."""
    ever = reader.spent(None, None, None)
    for name in COUNTED:
        maximum = fleet.limits.maximum(name)
        if maximum is not None:
            yield LimitView(
                scope=Scope.FLEET,
                name=name,
                maximum=maximum,
                used=ever.amount(name),
                outcome=fleet.limits.outcome(name).value,
            )
    spent = reader.spent(day_of(now), None, None)
    yield from _day(Scope.FLEET, "", fleet.limits, spent)


def _each(scope: Scope, owner: str, limits: Limits) -> Iterator[LimitView]:
    for name in LimitName:
        maximum = limits.maximum(name)
        if maximum is not None:
            outcome = limits.outcome(name).value
            yield LimitView(scope=scope, name=name, maximum=maximum, owner=owner, outcome=outcome)


def _day(scope: Scope, owner: str, limits: Limits, used: Used) -> Iterator[LimitView]:
    for name in COUNTED:
        maximum = limits.per_day.maximum(name)
        if maximum is not None:
            yield LimitView(
                scope=scope,
                name=name,
                maximum=maximum,
                owner=owner,
                is_day=True,
                used=used.amount(name),
                outcome=limits.outcome(name).value,
            )


class LimitRow(TypedDict):
    """A limit for programs: dollars, seconds or counts."""

    scope: Scope
    owner: str | None
    limit: LimitName
    per_day: bool
    maximum: float
    used: float | None
    left: float | None
    on_reached: str


def limit_row(one: LimitView) -> LimitRow:
    """A limit for programs: dollars, seconds or counts."""
    return {
        "scope": one.scope,
        "owner": one.owner or None,
        "limit": one.name,
        "per_day": one.is_day,
        "maximum": number(one.name, one.maximum),
        "used": None if one.used is None else number(one.name, one.used),
        "left": None if one.left is None else number(one.name, one.left),
        "on_reached": one.outcome,
    }


def current_limits(reader: StateReader, now: datetime) -> Sequence[LoginLimit]:
    """Return the limits that last now, by id."""
    return [limit for limit in reader.list_login_limits(now) if limit.until > now]


def limits_of_agents(
    reader: StateReader, agents: Iterable[Agent], now: datetime
) -> Mapping[str, LoginLimit]:
    """Return the limit that stops each agent's jobs now, by agent; an agent's login is that of its latest job."""
    current = {one.id: one for one in current_limits(reader, now)}
    if not current:
        return {}
    logins = {state.name: state.login for state in reader.list_agents()}
    found = {
        agent.name: stopping(map(current.get, limits_that_stop(agent, logins.get(agent.name))), now)
        for agent in agents
    }
    return {name: limit for name, limit in found.items() if limit is not None}


class LoginLimitRow(TypedDict):
    """A rate limit of a login, and the agents that it stops."""

    login: str
    limit: str | None
    until: str
    job_id: str | None
    agents: list[str]


def login_limit_row(limit: LoginLimit, stopped: Mapping[str, LoginLimit]) -> LoginLimitRow:
    """Show a limit with the agents that it stops."""
    return {
        "login": limit.id,
        "limit": limit.name,
        "until": timestamp(limit.until),
        "job_id": limit.job_id,
        "agents": sorted(name for name, one in stopped.items() if one.id == limit.id),
    }
