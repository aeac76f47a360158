"""Schedules and agents: what firing a slot, planning and overriding a schedule and resetting an agent do."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec.structs import replace

from nightherd.model.agents.state import AgentState, with_status
from nightherd.model.change import Answer, Applied, FireSlot, Refused, ResetAgent, Why
from nightherd.model.decisions.rows import Rows
from nightherd.model.ids import JobId
from nightherd.model.jobs import decisions as jobs
from nightherd.model.jobs.changes import SubmitJob
from nightherd.model.jobs.job import Job
from nightherd.model.limits.login import LoginLimit, text_of
from nightherd.model.limits.login_decisions import limit_in_the_way, login_in
from nightherd.model.schedules.jobs import open_text
from nightherd.model.schedules.schedule import (
    OverrideSchedule,
    PlanSchedule,
    ScheduleOverride,
    ScheduleState,
    ScheduleStatus,
    Slot,
    SlotOutcome,
    may_fire,
    schedule_id,
    switched_off,
)
from nightherd.model.sessions.order import advice_on_suspended, held_text
from nightherd.model.sessions.order_decisions import holder_of
from nightherd.model.work.decisions import started, with_work
from nightherd.model.workflows.conductor import decisions as runs
from nightherd.model.workflows.conductor.changes import StartRun
from nightherd.model.workflows.run import RunStatus

NOBODY = JobId("")
NAMED = 3
MOST_RUNS = 100
"""How many of the jobs that a slot would overlap its reason names."""


def submit(change: SubmitJob, rows: Rows) -> Answer:
    """A new job; when it is a schedule's, that one runs from now on."""
    answer = with_work(jobs.submit(change, rows), change, rows)
    if isinstance(answer, Applied) and change.login is not None:
        answer = _with_login(answer, change.job.agent, change.login, rows)
    if isinstance(answer, Refused) or change.job.schedule is None:
        return answer
    state = rows.get(ScheduleState, schedule_id(change.job.agent, change.job.schedule))
    if state is None or state.status is not ScheduleStatus.IDLE:
        return answer
    running = replace(state, status=ScheduleStatus.RUNNING)
    return replace(answer, rows=(*answer.rows, running))


def fire(change: FireSlot, rows: Rows) -> Answer:
    """The slot and its outcome in one: exactly one process wins a due instant (INV-ONCE)."""
    slot = change.slot
    if rows.get(Slot, slot.id) is not None:
        return Refused(why=Why.DUPLICATE, message=f"slot {slot.id} has its outcome already")
    state = _state(change.agent, change.schedule, rows)
    if state.status is ScheduleStatus.DISABLED:
        return Refused(why=Why.STATUS, message=f"schedule {state.id} is disabled")
    if _rule_set(state.id, rows) != change.override:
        return Refused(why=Why.STALE, message=f"schedule {state.id} has another rule by now")
    planned = replace(state, next_run_at=change.next_run_at, next_due_at=change.next_due_at)
    if change.run is not None:
        return _start_run(change, change.run, planned, rows)
    if change.job is None:
        if change.is_error:
            planned = replace(planned, last_error=slot.reason)
        return _skipped(slot, slot.reason, planned)
    limit = limit_in_the_way(change.stopped_by, slot.decided_at, rows)
    if limit is not None and limit.until > slot.decided_at:
        if change.waits:
            return Refused(why=Why.FULL, message=text_of(limit))
        return _skipped_by(limit, change, planned, rows)
    reason = _why_not_now(change, change.job, rows)
    if reason is not None and change.waits:
        return Refused(why=Why.FULL, message=reason)
    if reason is not None:
        return _skipped(slot, reason, planned)
    return _start_job(change, change.job, planned, rows)


def _start_job(change: FireSlot, job: SubmitJob, planned: ScheduleState, rows: Rows) -> Answer:
    """The slot with its job, and with the issue that the job works on."""
    slot = change.slot
    if change.needs_work:
        return Refused(why=Why.NO_WORK, message=f"{slot.id} needs an issue to work on")
    submitted = jobs.submit(job, rows)
    if isinstance(submitted, Refused) or submitted.job is None:
        return submitted
    fired = replace(slot, outcome=SlotOutcome.JOB, job_id=submitted.job.id, reason=None)
    running = replace(planned, status=ScheduleStatus.RUNNING)
    written = (*submitted.rows, fired, running)
    if change.work is None:
        return Applied(rows=written, job=submitted.job)
    item = started(change.work, submitted.job, slot.decided_at, rows)
    if isinstance(item, Refused):
        return replace(item, why=Why.NO_WORK)
    return Applied(rows=(*written, item), job=submitted.job)


def _start_run(change: FireSlot, start: StartRun, planned: ScheduleState, rows: Rows) -> Answer:
    """The slot with the run that it starts; skipped where that may not be started now."""
    slot, run = change.slot, start.run
    there = rows.open_runs_of_schedule(run.workflow_name, change.schedule, MOST_RUNS)
    busy = [one for one in there if one.status is not RunStatus.PAUSED]
    waiting = [one for one in there if one.status is RunStatus.PAUSED]
    if change.max_overlap is not None and len(busy) >= change.max_overlap:
        return _skipped(slot, f"overlap: run {busy[0].id} has not ended yet", planned)
    if change.max_suspended is not None and len(waiting) >= change.max_suspended:
        reason = f"max_suspended: {len(waiting)} runs are paused, {waiting[0].id} first"
        return _skipped(slot, reason, planned)
    begun = runs.start(start, rows)
    if isinstance(begun, Refused):
        return begun if begun.why is Why.ID_TAKEN else _skipped(slot, begun.message, planned)
    fired = replace(slot, outcome=SlotOutcome.RUN, run_id=run.id, reason=None)
    running = replace(planned, status=ScheduleStatus.RUNNING)
    return replace(begun, rows=(*begun.rows, fired, running))


def _why_not_now(change: FireSlot, job: SubmitJob, rows: Rows) -> str | None:
    """Why the slot makes no job although it is due; None when it does."""
    most, most_suspended = change.max_overlap, change.max_suspended
    if most is not None:
        there = rows.occupying_jobs(change.agent, change.schedule, most)
        if len(there) >= most:
            return f"overlap: {_counted(len(there))} not ended yet: {_named(there)}"
    if most_suspended is not None:
        there = rows.suspended_jobs(change.agent, change.schedule, most_suspended)
        if len(there) >= most_suspended:
            are = "a job is" if len(there) == 1 else f"{len(there)} jobs are"
            return f"max_suspended: {are} suspended: {_named(there)}"
    session = jobs.session_to_join(job, rows)
    holder = holder_of(session, rows) if session is not None else None
    return None if holder is None else f"{held_text(holder)}: {advice_on_suspended(holder).text()}"


def plan(change: PlanSchedule, rows: Rows) -> Answer:
    """The schedule as it is declared and overridden, with its next slot; nothing when it is so already."""
    key = schedule_id(change.agent, change.schedule)
    known = rows.get(ScheduleState, key)
    state = known or ScheduleState(id=key, agent=change.agent, name=change.schedule)
    if _rule_set(key, rows) != change.override or state.next_due_at != change.replaces:
        return Refused(why=Why.STALE, message=f"schedule {key} has moved on")
    said = rows.get(ScheduleOverride, key)
    is_enabled = may_fire(change.enabled, said)
    planned = replace(
        state,
        rule=change.rule,
        pause_after=change.pause_after,
        next_due_at=change.next_due_at,
        next_run_at=change.next_run_at,
    )
    if is_enabled and not planned.is_paused:
        planned = _switched_on(planned, rows)
    else:
        planned = switched_off(planned)
    return Applied(rows=() if planned == known else (planned,))


def override(change: OverrideSchedule, rows: Rows) -> Answer:
    """The override as it is from now on, and the schedule with it; its next slot is planned again.

    A reset deletes the override. Its last image says nothing, which is all that an older reader of the ledger sees.
    """
    key = schedule_id(change.agent, change.schedule)
    known = rows.get(ScheduleOverride, key)
    said = known or ScheduleOverride(id=key, updated_at=change.at)
    said = replace(said, updated_at=change.at, updated_by=change.by)
    if change.reset:
        said = replace(said, enabled=None, schedule=None)
    else:
        said = replace(
            said,
            enabled=said.enabled if change.enabled is None else change.enabled,
            schedule=said.schedule if change.rule is None else change.rule,
        )
    is_nothing = said.enabled is None and said.schedule is None
    kept = () if is_nothing else (said,)
    deleted = (said,) if is_nothing and known is not None else ()
    state = _state(change.agent, change.schedule, rows)
    if change.enabled is True or change.reset:
        state = replace(state, consecutive_failures=0)
    is_enabled = may_fire(change.is_declared_enabled, said)
    if not is_enabled or state.is_paused:
        return Applied(rows=(*kept, switched_off(state)), deleted=deleted)
    is_other = change.rule is not None or change.reset
    if is_other or state.status is ScheduleStatus.DISABLED:
        state = replace(state, next_run_at=None, next_due_at=None)
    return Applied(rows=(*kept, _switched_on(state, rows)), deleted=deleted)


def reset_agent(change: ResetAgent, rows: Rows) -> Answer:
    """The agent without its error."""
    state = rows.get(AgentState, change.agent)
    if state is None:
        return Refused(why=Why.MISSING, message=f"agent {change.agent} has no state yet")
    return Applied(rows=(with_status(replace(state, error_message=None)),))


def _skipped_by(limit: LoginLimit, change: FireSlot, planned: ScheduleState, rows: Rows) -> Applied:
    """The slot, skipped because of a limit of the agent's login; the agent's row says which login that is."""
    skipped = _skipped(change.slot, text_of(limit), planned)
    return _with_login(skipped, change.agent, login_in(change.stopped_by), rows)


def _with_login(answer: Applied, agent: str, login: str | None, rows: Rows) -> Applied:
    """The answer, with the agent's row if that does not name the login yet."""
    state = rows.get(AgentState, agent) or AgentState(name=agent)
    if state.login == login:
        return answer
    return replace(answer, rows=(*answer.rows, replace(state, login=login)))


def _skipped(slot: Slot, reason: str | None, planned: ScheduleState) -> Applied:
    skipped = replace(slot, outcome=SlotOutcome.SKIPPED, job_id=None, reason=reason)
    return Applied(rows=(skipped, planned))


def _switched_on(state: ScheduleState, rows: Rows) -> ScheduleState:
    is_busy = rows.has_busy_job(state.agent, state.name, besides=NOBODY)
    return replace(state, status=ScheduleStatus.RUNNING if is_busy else ScheduleStatus.IDLE)


def _rule_set(key: str, rows: Rows) -> str | None:
    said = rows.get(ScheduleOverride, key)
    return None if said is None else said.schedule


def _named(there: Sequence[Job]) -> str:
    """The jobs by what can be done about them."""
    return "; ".join(open_text(job) for job in there[:NAMED])


def _counted(count: int) -> str:
    return "a job has" if count == 1 else f"{count} jobs have"


def _state(agent: str, schedule: str, rows: Rows) -> ScheduleState:
    key = schedule_id(agent, schedule)
    return rows.get(ScheduleState, key) or ScheduleState(id=key, agent=agent, name=schedule)
