"""What a schedule means for its jobs: the request it makes of its agent, and the agent as they have it."""

from __future__ import annotations

from collections.abc import Mapping

from msgspec.structs import replace

from nightherd.errors import InvalidValueError, NotFoundError
from nightherd.model.agents.agent import Agent
from nightherd.model.jobs.job import Job, JobStatus
from nightherd.model.schedules.rule import Schedule
from nightherd.model.sessions.order import suspended_text
from nightherd.model.sessions.session import SessionKey, SessionMode, SessionTerms
from nightherd.model.text import ShowTime, render, time_text
from nightherd.model.units import shortest
from nightherd.next_step import Action, NextStep, SpellStep


def session_terms(agent: Agent, schedule: Schedule) -> SessionTerms | None:
    """The terms of the schedule's own sessions; None when its jobs share the agent's."""
    if schedule.session is not None:
        return schedule.session
    if schedule.resume_session is None or schedule.resume_session == agent.session.is_shared:
        return None
    mode = SessionMode.PERSISTENT if schedule.resume_session else SessionMode.FRESH_PER_JOB
    return replace(agent.session, mode=mode)


def session_key(agent: Agent, schedule: Schedule) -> SessionKey:
    """What the sessions of the schedule's jobs belong to."""
    terms = session_terms(agent, schedule)
    mode = (terms or agent.session).mode
    return SessionKey(
        agent=agent.name,
        mode=mode,
        channel_id=channel_of(schedule) if mode is SessionMode.PER_CHANNEL else None,
        # Only a schedule with session settings of its own has a session of its own.
        schedule=schedule.name if terms is not None else None,
    )


def channel_of(schedule: Schedule) -> str:
    """The channel of the schedule's jobs: an agent that keeps a session for each channel keeps one for each."""
    return f"schedule/{schedule.name}"


def for_schedule(agent: Agent, name: str | None) -> Agent:
    """The agent as a job of that schedule has it; as it is for a job of none, or of one that is gone."""
    schedule = agent.schedules.get(name) if name is not None else None
    if schedule is None:
        return agent
    terms = session_terms(agent, schedule) or agent.session
    own = schedule.session
    turns = agent.max_turns if schedule.limits.turns is None else None
    return replace(
        agent,
        session=terms,
        workspace=schedule.workspace or agent.workspace,
        working_directory=schedule.working_directory or agent.working_directory,
        job_timeout=shortest(agent.job_timeout, schedule.job_timeout, terms.job_timeout),
        model=(own.model if own is not None else None) or agent.model,
        max_turns=(own.max_turns if own is not None else None) or turns,
        limits=replace(schedule.limits.over(agent.limits), per_day=agent.limits.per_day),
        hooks=(*agent.hooks, *schedule.hooks),
        approvals=(*agent.approvals, *schedule.approvals),
    )


def prompt_text(agent: Agent, schedule: Schedule, values: Mapping[str, str]) -> str:
    """What a job of the schedule is asked, or `InvalidValueError` when nothing says what."""
    template = schedule.prompt if schedule.prompt is not None else agent.default_prompt
    if template is None or not template.strip():
        raise InvalidValueError(
            f"schedule {schedule.name!r} has no 'prompt', and its agent no 'default_prompt'"
        )
    return render(template, values)


def find_schedule(agents: Mapping[str, Agent], reference: str) -> tuple[Agent, Schedule]:
    """The schedule that `AGENT/NAME` means."""
    agent_name, slash, name = reference.partition("/")
    if not slash or not name:
        raise InvalidValueError(
            f"{reference!r} is not a schedule; write AGENT/NAME",
            next_step=NextStep(Action.LIST_SCHEDULES),
        )
    agent = agents.get(agent_name)
    schedule = agent.schedules.get(name) if agent is not None else None
    if agent is None or schedule is None:
        what = f"agent {agent_name!r}" if agent is None else f"schedule {reference!r}"
        raise NotFoundError(f"the fleet has no {what}", next_step=NextStep(Action.LIST_SCHEDULES))
    return agent, schedule


def open_text(job: Job, show_time: ShowTime = time_text, spell: SpellStep | None = None) -> str:
    """Name a job that has not ended, with what to do about it when it will not resume by itself."""
    if job.status is not JobStatus.SUSPENDED:
        return job.id
    return f"{job.id} {suspended_text(job, show_time, spell)}"
