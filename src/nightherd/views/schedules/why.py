"""Why a schedule fires or does not: what decided its last slot, and what decides the next."""

from __future__ import annotations

from collections.abc import Sequence

from nightherd.model.jobs.lost import lost_text
from nightherd.model.limits.login import text_of as limit_text
from nightherd.model.schedules.jobs import open_text, session_key
from nightherd.model.schedules.rule import CatchUp, Cron, rule_text
from nightherd.model.schedules.schedule import ScheduleStatus, Slot
from nightherd.model.sessions.session import SessionMode
from nightherd.model.text import ShowTime, time_text
from nightherd.model.units import format_duration, rough_duration
from nightherd.next_step import SpellStep
from nightherd.views.schedules.rows import PlaceRow, ScheduleDocument, WhyRow
from nightherd.views.schedules.schedules import ScheduleView, schedule_row, slot_row, workflow_of


def why_row(
    view: ScheduleView,
    slots: Sequence[Slot],
    *,
    is_kept: bool,
    show_time: ShowTime = time_text,
    spell: SpellStep | None = None,
) -> WhyRow:
    """What decided the last firing and what decides the next; `slots` has the schedule's last slot, if there was one."""
    return {
        "last_slot": slot_row(slots[0]) if slots else None,
        "last": why_last(slots, show_time),
        "next": why_next(view, is_kept=is_kept, show_time=show_time, spell=spell),
    }


def schedule_document(
    view: ScheduleView, slots: Sequence[Slot], origin: PlaceRow | None, *, is_kept: bool
) -> ScheduleDocument:
    """One schedule with where it is declared and why it fires when it does."""
    schedule = view.schedule
    return {
        **schedule_row(view),
        "timezone": view.rule.timezone if isinstance(view.rule, Cron) else None,
        "declared_enabled": schedule.enabled,
        "prompt": None if workflow_of(view) else (schedule.prompt or view.agent.default_prompt),
        "workflow": workflow_of(view),
        "origin": origin,
        "why": why_row(view, slots, is_kept=is_kept),
    }


def why_last(slots: Sequence[Slot], show_time: ShowTime = time_text) -> str:
    """What decided the last firing, by the slots of a schedule, the last one first."""
    if not slots:
        return "it has never been due while a daemon ran"
    slot = slots[0]
    due = f"the slot of {show_time(slot.due_at)}"
    late = slot.decided_at - slot.due_at
    when = f", decided {rough_duration(late)} after it was due" if late.total_seconds() >= 1 else ""
    made = slot.job_id or slot.run_id
    if made is not None:
        return f"{due} became {made}{when}"
    return f"{due} was skipped{when}: {slot.reason}"


def _overlap(view: ScheduleView, show_time: ShowTime, spell: SpellStep | None) -> list[str]:
    """What keeps a slot that is due from becoming a job."""
    most = view.schedule.max_overlap
    if view.held_by:
        becomes = "waits" if view.schedule.catch_up is CatchUp.ALL else "is skipped"
        return [
            *(f"it is blocked: {open_text(job, show_time, spell)}" for job in view.held_by),
            f"until then every slot {becomes} ({_limit_text(view)})",
        ]
    lost = [] if view.lost_job is None else [lost_text(view.lost_job, spell)]
    if view.state.status is not ScheduleStatus.RUNNING and not lost:
        return []
    have = "has" if most == 1 else "have"
    return [*lost, f"unless {most} of its jobs {have} not ended by then (max_overlap)"]


def _rate_limit(view: ScheduleView, show_time: ShowTime) -> list[str]:
    """The limit of the login that keeps a slot that is due from becoming a job."""
    if view.limit is None:
        return []
    becomes = "waits" if view.schedule.catch_up is CatchUp.ALL else "is skipped"
    return [f"its login is {limit_text(view.limit, show_time)}: every slot until then {becomes}"]


def _limit_text(view: ScheduleView) -> str:
    """Which rule keeps slots from becoming jobs while `held_by` are suspended."""
    schedule = view.schedule
    if session_key(view.agent, schedule).mode is SessionMode.FRESH_PER_JOB:
        return f"max_suspended: {schedule.max_suspended}"
    if all(job.schedule == schedule.name for job in view.held_by):
        return f"max_overlap: {schedule.max_overlap}"
    return "jobs of one session run one after the other"


def why_next(
    view: ScheduleView,
    *,
    is_kept: bool,
    show_time: ShowTime = time_text,
    spell: SpellStep | None = None,
) -> list[str]:
    """What decides the next firing, the reason that counts first; `is_kept` while something fires slots."""
    said, state = view.override, view.state
    who = "" if said is None else f" by {said.updated_by} at {show_time(said.updated_at)}"
    reasons: list[str] = []
    if state.is_paused:
        reasons.append(
            f"it paused itself after {state.consecutive_failures} failures in a row"
            f" (pause_after: {state.pause_after}); schedule enable restarts it"
        )
    if not view.is_enabled:
        by_override = said is not None and said.enabled is False
        reasons.append(
            f"it was disabled{who}" if by_override else "the fleet file says enabled: false"
        )
    elif said is not None and said.enabled is True and not view.schedule.enabled:
        reasons.append(f"it was enabled{who}; the fleet file says enabled: false")
    if view.rule is None:
        reasons.append("it has no time rule; only schedule run starts it")
    else:
        source = f"set{who}" if said is not None and said.schedule is not None else "declared"
        reasons.append(f"its rule is {rule_text(view.rule)}, {source}")
    work = view.schedule.work
    if work is not None:
        reasons.append(f"it takes one issue of {work.repo} with the label {work.ready!r} each time")
    if view.next_run_at is not None:
        jitter = f", jitter of up to {format_duration(view.schedule.jitter)} included"
        spread = jitter if view.schedule.jitter else ""
        reasons.append(f"so it fires at {show_time(view.next_run_at)}{spread}")
        reasons += _rate_limit(view, show_time)
        reasons += _overlap(view, show_time, spell)
    if not is_kept:
        reasons.append("no daemon is running, so schedules do not fire")
    return reasons
