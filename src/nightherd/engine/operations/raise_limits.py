"""Raising limits: of a job that waits at one, or before it comes to that.

A new maximum that has been used up already would let a job do nothing. One that runs is only ever given more:
the worker re-reads them before it suspends the job, and only then.
"""

from __future__ import annotations

from collections.abc import Mapping

from nightherd.engine.contexts import Stores
from nightherd.engine.limits.guard import limits_for
from nightherd.errors import JobNotFoundError, RefusedError
from nightherd.model.agents.agent import Agent
from nightherd.model.change import Answer
from nightherd.model.jobs.job import Job, JobStatus, SuspendReason
from nightherd.model.jobs.options import JobOptions
from nightherd.model.jobs.overrides import AmendJob
from nightherd.model.limits.limits import COUNTED, LimitName, Used, shown
from nightherd.model.limits.spending import used_of
from nightherd.next_step import Action, NextStep
from nightherd.ports import StateReader


async def amend(
    job: Job,
    agent: Agent,
    options: JobOptions,
    context: Stores,
    *,
    prompt: str | None = None,
    key: str | None = None,
) -> Answer:
    """Give a job more that waits for a worker or runs; refused when it does neither any longer.

    A suspended job can also get a new prompt, masked by the caller.
    """
    check_raised(job, agent, options, context.reader)
    given = _new(job, options, context.reader)
    if job.status is JobStatus.RUNNING:
        _check_is_more(job, agent, given, context.reader)
    change = AmendJob(job_id=job.id, limits=given, prompt=prompt, key=key)
    (answer,) = await context.state.apply([change])
    return answer


def _new(job: Job, options: JobOptions, reader: StateReader) -> dict[str, int]:
    """The maxima that the job was not given before."""
    before, given = given_before(job, reader), options.limits or {}
    return {name: most for name, most in given.items() if most != before.get(name)}


def _check_is_more(job: Job, agent: Agent, given: Mapping[str, int], reader: StateReader) -> None:
    texts = reader.find_texts(job.id)
    if texts is None:
        raise JobNotFoundError(f"there is no job {job.id}")
    limits = limits_for(job, texts.overrides, agent)
    for text, maximum in given.items():
        name = LimitName(text)
        now = limits.maximum(name)
        if now is None or maximum < now:
            has = "no limit" if now is None else f"a limit of {shown(name, now)}"
            raise RefusedError(
                f"{text}: job {job.id} runs with {has}; the limit of a running job can only be raised",
                next_step=NextStep(Action.SHOW_JOB, job=job.id),
            )


def check_raised(job: Job, agent: Agent, options: JobOptions, reader: StateReader) -> None:
    """`RefusedError` for a new maximum that does not help: lower than before, used up, or not what stopped the job."""
    if options.limits is None:
        return
    new = _new(job, options, reader)
    _check_stopped_by_own(job, new)
    used = used_in_all(job, reader)
    name = used_up(new, used, job.error_code)
    if name is not None:
        amount, maximum = shown(name, used.amount(name)), shown(name, new[name.value])
        raise RefusedError(
            f"{name.value}: job {job.id} has used {amount} already;"
            f" {maximum} is the new maximum, not an addition to it",
            next_step=NextStep(Action.SHOW_JOB, job=job.id),
        )
    _check_not_lower(job, agent, new, reader)


def _check_stopped_by_own(job: Job, new: Mapping[str, int]) -> None:
    """A budget that other jobs share is not raised for one job: a limit of its own would change nothing."""
    if not new or job.suspend_reason is not SuspendReason.BUDGET:
        return
    raise RefusedError(
        f"job {job.id} was not stopped by a limit of its own, so raising one changes nothing: {job.error}",
        next_step=NextStep(Action.RAISE_SHARED_LIMIT, agent=job.agent, job=job.id),
    )


def _check_not_lower(job: Job, agent: Agent, new: Mapping[str, int], reader: StateReader) -> None:
    texts = reader.find_texts(job.id)
    if texts is None or job.status is JobStatus.RUNNING:
        return  # one that runs is checked where it is given more
    limits = limits_for(job, texts.overrides, agent)
    for text, maximum in new.items():
        name = LimitName(text)
        now = limits.maximum(name)
        if now is not None and maximum < now:
            raise RefusedError(
                f"{text}: {shown(name, maximum)} is less than its limit of {shown(name, now)};"
                " --raise sets a new, higher maximum",
                next_step=NextStep(Action.SHOW_JOB, job=job.id),
            )


def used_up(maxima: Mapping[str, int], used: Used, code: str | None) -> LimitName | None:
    """The first of `maxima` that leaves nothing to continue with, for a job that waits with that code.

    A job may do without further children, unless it waits for one.
    """
    wanted: tuple[LimitName, ...] = (LimitName.SPAWNS,) if code == LimitName.SPAWNS.code else ()
    for name in (*COUNTED, LimitName.DURATION, *wanted):
        maximum = maxima.get(name.value)
        if maximum is not None and used.amount(name) >= maximum:
            return name
    return None


def used_in_all(job: Job, reader: StateReader) -> Used:
    """What the job has used with those below it, and how long it has run."""
    ran = sum(execution.duration_ms or 0 for execution in reader.list_executions(job.id))
    return used_of(job) + reader.used_below(job.id) + Used(duration=ran)


def given_before(job: Job, reader: StateReader) -> Mapping[str, int]:
    """The limits that the job itself was given."""
    texts = reader.find_texts(job.id)
    return (texts.overrides.limits if texts is not None else None) or {}
