"""Jobs that wait for an agent which the fleet file does not have any more, as a check of the doctor."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from contextlib import AbstractContextManager

from nightherd.engine.doctor.doctor import Check
from nightherd.errors import NightherdError
from nightherd.model.agents.state import stands_for_workflow
from nightherd.model.doctor import Finding, Level
from nightherd.model.jobs.job import Job, JobQuery, JobStatus
from nightherd.model.workflows.rows import phase_of
from nightherd.next_step import Action, NextStep
from nightherd.ports import StateReader

NAME = "agents"
OpenReader = Callable[[], AbstractContextManager[StateReader]]


def undeclared_check(open_reader: OpenReader, agents: Collection[str]) -> Check:
    """The check of waiting jobs without an agent. Rows that cannot be read are left to the other checks."""
    return Check(NAME, "agents of waiting jobs", lambda: _examine(open_reader, agents))


def _examine(open_reader: OpenReader, agents: Collection[str]) -> list[Finding]:
    try:
        with open_reader() as reader:
            return list(waiting_without_agent(reader, agents))
    except NightherdError:
        return []


def waiting_without_agent(reader: StateReader, agents: Collection[str]) -> Iterator[Finding]:
    """Report each agent that is not in the fleet file and has jobs which wait for a worker."""
    for (name, status), count in sorted(reader.count_open_jobs().items()):
        if status is not JobStatus.PENDING or name in agents or stands_for_workflow(name):
            continue
        newest = reader.list_jobs(JobQuery(agent=name, status=status, limit=1))
        if newest:
            yield _finding(newest[0], count)


def _finding(job: Job, count: int) -> Finding:
    more = f", and {count - 1} more" if count > 1 else ""
    phase = phase_of(job)
    is_phase = phase is not None and job.workflow_run_id is not None
    part = f" (phase {phase} of run {job.workflow_run_id})" if is_phase else ""
    step = (
        NextStep(Action.CANCEL_RUN, run=job.workflow_run_id)
        if is_phase
        else NextStep(Action.CANCEL_JOB, job=job.id)
    )
    return Finding(
        check=NAME,
        level=Level.WARNING,
        message=f"the fleet file has no agent {job.agent!r}, and {job.id}{part} waits for it{more}",
        job_id=job.id,
        remedy="declare the agent again, or cancel what waits",
        next_step=step,
    )
