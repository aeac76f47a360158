"""What jobs use, counted by day as they use it, and never beyond what they may use together."""

from __future__ import annotations

from datetime import datetime

from msgspec.structs import replace

from nightherd.model.change import Answer, Applied, Refused, Row, Why
from nightherd.model.decisions.around import counted, owned, session_of
from nightherd.model.decisions.rows import Rows
from nightherd.model.jobs.job import Job
from nightherd.model.limits.limits import Hit, LimitName, Used, is_met, shown
from nightherd.model.limits.spending import (
    Budget,
    CountUsage,
    Reservation,
    Spending,
    day_of,
    spending_id,
    used_of,
)
from nightherd.model.units import MicroUsd
from nightherd.model.usage import Totals, tokens_in
from nightherd.model.workflows.run import RUN_PREFIX, RunId


def count_usage(change: CountUsage, rows: Rows) -> Answer:
    """The job's row, its session's and the day's, as the record stands; what it asks for is set aside."""
    job = owned(change.job_id, change.epoch, rows)
    if isinstance(job, Refused):
        return job
    after = counted(job, change.total, change.last_seq)
    grown = used_of(after) + minus(used_of(job))
    for budget in change.budgets:
        hit = over_budget(budget, after, grown, change.asked, rows)
        if hit is not None:
            what = f"{hit.name.value}: {shown(hit.name, hit.current)} of {shown(hit.name, hit.maximum)}"
            return Refused(why=Why.OVER_BUDGET, message=what, job=job, hit=hit)
    written: list[Row] = [after, *spent(job, change.total, change.at, rows)]
    session = session_of(job, rows)
    if session is not None and after != job:
        cost = session.cost_microusd + after.cost_microusd - job.cost_microusd
        written.append(
            replace(
                session,
                last_active_at=change.at,
                turn_count=session.turn_count + after.turns - job.turns,
                message_count=session.message_count + after.messages - job.messages,
                cost_microusd=MicroUsd(cost),
            )
        )
    held = rows.get(Reservation, job.id)
    wanted = reservation(job, change.asked)
    if wanted != held and (held is not None or wanted != reservation(job, Used())):
        written.append(wanted)
    return Applied(rows=tuple(written), job=after)


def spent(job: Job, total: Totals, at: datetime, rows: Rows) -> tuple[Row, ...]:
    """The day's rows, grown by what the job's row did not count yet; none when that is nothing.

    First its agent's, then those of other agents whose jobs it works for.
    """
    usage = total.usage
    cost = usage.cost_microusd - job.cost_microusd
    tokens = tokens_in(usage) - job.tokens
    turns = total.turns - job.turns
    if not (cost or tokens or turns):
        return ()
    day = day_of(at)
    (agent, schedule), *others = accounts(job, rows)
    own = _account(day, agent, schedule, rows)
    grown = replace(
        own,
        cost_microusd=MicroUsd(own.cost_microusd + cost),
        tokens=own.tokens + tokens,
        turns=own.turns + turns,
    )
    above = [_account(day, *other, rows) for other in others]
    return (
        grown,
        *(
            replace(
                one,
                below_cost_microusd=MicroUsd(one.below_cost_microusd + cost),
                below_tokens=one.below_tokens + tokens,
                below_turns=one.below_turns + turns,
            )
            for one in above
        ),
    )


def accounts(job: Job, rows: Rows) -> list[tuple[str, str]]:
    """Whose day it is that the job uses, agent and schedule: its own, then of those above it, each agent once.

    Only the first of a family can have a schedule; what its agent does further down counts for it too.
    """
    family = [job]
    while family[-1].parent_job_id is not None:
        above = rows.get(Job, family[-1].parent_job_id)
        if above is None:
            break
        family.append(above)
    first = family[-1]
    agents = dict.fromkeys(one.agent for one in family)
    return [(name, (first.schedule or "") if name == first.agent else "") for name in agents]


def _account(day: str, agent: str, schedule: str, rows: Rows) -> Spending:
    key = spending_id(day, agent, schedule)
    return rows.get(Spending, key) or Spending(id=key, day=day, agent=agent, schedule=schedule)


def used_up(job: Job, total: Totals, at: datetime, rows: Rows) -> tuple[Row, ...]:
    """The rows that change because an execution is over: the day's, and what it had set aside."""
    return (*spent(job, total, at, rows), *released(job, rows))


def released(job: Job, rows: Rows) -> tuple[Row, ...]:
    """What an execution that is over had set aside is given back."""
    held = rows.get(Reservation, job.id)
    nothing = reservation(job, Used())
    return () if held is None or held == nothing else (nothing,)


def reservation(job: Job, asked: Used) -> Reservation:
    """What a job sets aside."""
    return Reservation(
        job_id=job.id,
        agent=job.agent,
        schedule=job.schedule or "",
        cost_microusd=MicroUsd(asked.spend),
        tokens=asked.tokens,
    )


def over_budget(budget: Budget, job: Job, grown: Used, asked: Used, rows: Rows) -> Hit | None:
    """Whether the budget would be gone beyond, others' reservations counted, or is used up."""
    used = used_within(budget, job, grown, rows).amount(budget.name)
    maximum = budget.maximum
    more = 1 if budget.name is LimitName.TURNS else asked.amount(budget.name)
    if not (is_met(used, maximum, has_more=True) or used + more > maximum):
        return None
    is_used_up = budget.name is LimitName.TURNS or used >= maximum
    current = used if is_used_up else used + more
    return Hit(
        name=budget.name,
        scope=budget.scope,
        current=current,
        maximum=maximum,
        outcome=budget.outcome,
        is_day=budget.day is not None,
        is_ahead=not is_used_up,
        owner=budget.root or _named(budget, job),
    )


def _named(budget: Budget, job: Job) -> str | None:
    """Whose limit it is, when it is of an agent that the job works for and is none of."""
    if budget.agent in (None, job.agent):
        return None
    return (
        f"agent {budget.agent}"
        if budget.schedule is None
        else f"schedule {budget.agent}/{budget.schedule}"
    )


def used_within(budget: Budget, job: Job, grown: Used, rows: Rows) -> Used:
    """What has been used of a budget, with what `job` has used now and what others have set aside."""
    if budget.root is not None and budget.root.startswith(RUN_PREFIX):
        return rows.used_in_run(RunId(budget.root), besides=job.id) + used_of(job)
    if budget.root is not None:
        root = rows.get(Job, budget.root)
        above = used_of(root) if root is not None else Used()
        return above + rows.used_below(budget.root, besides=job.id) + used_of(job)
    held = rows.set_aside(besides=job.id, agent=budget.agent, schedule=budget.schedule)
    return rows.spent(budget.day, budget.agent, budget.schedule) + held + grown


def minus(used: Used) -> Used:
    """The same, to be taken away."""
    return Used(spend=-used.spend, turns=-used.turns, tokens=-used.tokens)
