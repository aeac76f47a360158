"""What jobs use, counted by day as they use it, and never beyond what they may use together."""

from __future__ import annotations

from datetime import datetime

from nightherd.model.change import Answer, Applied, Refused, Row, Why
from nightherd.model.decisions.around import counted, owned, session_of
from nightherd.model.decisions.rows import Rows
from nightherd.model.job import Job
from nightherd.model.limits import Hit, LimitName, Used, is_met, shown
from nightherd.model.money import MicroUsd
from nightherd.model.replace import replace
from nightherd.model.spending import (
    Budget,
    CountUsage,
    Reservation,
    Spending,
    day_of,
    spending_id,
    used_of,
)
from nightherd.model.usage import Totals


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
    """The day's row, grown by what the job's row did not count yet; none when that is nothing."""
    usage = total.usage
    cost = usage.cost_microusd - job.cost_microusd
    tokens = usage.input_tokens + usage.output_tokens - job.input_tokens - job.output_tokens
    turns = total.turns - job.turns
    if not (cost or tokens or turns):
        return ()
    day, schedule = day_of(at), job.schedule or ""
    key = spending_id(day, job.agent, schedule)
    known = rows.get(Spending, key) or Spending(id=key, day=day, agent=job.agent, schedule=schedule)
    grown = replace(
        known,
        cost_microusd=MicroUsd(known.cost_microusd + cost),
        tokens=known.tokens + tokens,
        turns=known.turns + turns,
    )
    return (grown,)


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
        owner=budget.root,
    )


def used_within(budget: Budget, job: Job, grown: Used, rows: Rows) -> Used:
    """What has been used of a budget, with what `job` has used now and what others have set aside."""
    if budget.root is not None:
        root = rows.get(Job, budget.root)
        above = used_of(root) if root is not None else Used()
        return above + rows.used_below(budget.root, besides=job.id) + used_of(job)
    held = rows.set_aside(besides=job.id, agent=budget.agent, schedule=budget.schedule)
    return rows.spent(budget.day, budget.agent, budget.schedule) + held + grown


def minus(used: Used) -> Used:
    """The same, to be taken away."""
    return Used(spend=-used.spend, turns=-used.turns, tokens=-used.tokens)
