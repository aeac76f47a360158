"""Schedules as the engine keeps them: both spellings of a rule become one."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta

from nightherd.config.resolve_hooks import json_inputs
from nightherd.config.resolve_limits import limit_hooks, resolve_limits
from nightherd.config.resolve_session import resolve_session
from nightherd.config.schema.schedule import Schedule as ScheduleSchema
from nightherd.model.schedule_rule import UTC_NAME, CatchUp, Cron, Interval, Rule, Schedule


def resolve_schedules(schedules: Mapping[str, ScheduleSchema] | None) -> dict[str, Schedule]:
    """The schedules of an agent, by name in their order."""
    resolved = [resolve_schedule(key, one) for key, one in (schedules or {}).items()]
    return {schedule.name: schedule for schedule in resolved}


def resolve_schedule(key: str, schedule: ScheduleSchema) -> Schedule:
    """One schedule; what it does not say has its default here."""
    timezone = schedule.timezone or UTC_NAME
    return Schedule(
        name=schedule.name or key,
        rule=resolve_rule(schedule, timezone),
        timezone=timezone,
        prompt=schedule.prompt,
        inputs=json_inputs(schedule.inputs or {}),
        enabled=schedule.enabled,
        jitter=schedule.jitter or timedelta(),
        max_overlap=1 if schedule.max_overlap is None else schedule.max_overlap,
        max_suspended=3 if schedule.max_suspended is None else schedule.max_suspended,
        catch_up=CatchUp(schedule.catch_up or "none"),
        pause_after=5 if schedule.pause_after is None else schedule.pause_after,
        job_timeout=schedule.job_timeout,
        session=None if schedule.session is None else resolve_session(schedule.session),
        resume_session=schedule.resume_session,
        limits=resolve_limits(schedule.limits),
        hooks=limit_hooks(schedule.limits, owner=f"schedules.{key}.limits"),
        output_to_file=bool(schedule.output_to_file),
    )


def resolve_rule(schedule: ScheduleSchema, timezone: str) -> Rule | None:
    """When it is due; None for one that something else than time makes due."""
    trigger = schedule.trigger
    kind = schedule.type if trigger is None else trigger.type
    every = schedule.interval if trigger is None else trigger.every
    cron = schedule.cron if trigger is None else trigger.expression
    if kind in ("webhook", "chat"):
        return None
    if every is not None:
        return Interval(every=every)
    return Cron(expression=cron or "", timezone=timezone)
