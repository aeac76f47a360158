"""Agents: which one does the work that a request asks for, and clearing the error of one."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping

import msgspec

from nightherd.engine.contexts import FleetContext, Stores
from nightherd.engine.operations.requests import (
    NewJobRequest,
    ResetAgent,
    Resume,
    ResumeSession,
    Retry,
    RunSchedule,
    Submit,
)
from nightherd.errors import AgentNotFoundError, RefusedError
from nightherd.model import change as changes
from nightherd.model.agents.agent import Agent, get_agent
from nightherd.model.change import Refused
from nightherd.model.ids import JobId
from nightherd.model.jobs.job import Job
from nightherd.model.sessions.session import Session
from nightherd.model.workflows.command import COMMANDS_AGENT
from nightherd.model.workflows.rows import phase_of
from nightherd.next_step import Action, NextStep
from nightherd.ports import StateReader
from nightherd.views.jobs.jobs import get_job
from nightherd.views.sessions.sessions import get_session


class Agents(msgspec.Struct, frozen=True, kw_only=True):
    """The agents of a fleet, and how to find the one that a request means."""

    agents: Mapping[str, Agent]
    withheld: Collection[str]
    """Agents that no person has accepted yet."""
    is_same_directory: Callable[[str, str], bool]
    keeps_transcripts: Callable[[str], bool]
    """Whether a runtime, by its name, resumes from transcripts of Claude."""

    def find(self, request: NewJobRequest, reader: StateReader) -> Agent:
        """Return the agent that does the work; `AgentNotFoundError` without one, `RefusedError` for a withheld one."""
        match request:
            case Submit(agent=name) | RunSchedule(agent=name):
                return self.get(name)
            case Retry(job_id=job_id):
                return self.get(check_no_phase(get_job(reader, job_id)).agent)
            case Resume(job_id=job_id):
                return self.of_job(job_id, reader)
            case ResumeSession(session_id=session_id, agent=named):
                return self.of_session(get_session(reader, session_id), named)

    def get(self, name: str) -> Agent:
        """Return the agent of that name."""
        return get_agent(self.agents, name, self.withheld)

    def of_job(self, job_id: JobId, reader: StateReader) -> Agent:
        """Return the job's own agent; for an imported job, the one that continues its session."""
        job = get_job(reader, job_id)
        if job.agent == COMMANDS_AGENT:
            raise RefusedError(
                f"job {job.id} is a command of run {job.workflow_run_id}",
                next_step=NextStep(Action.RESUME_RUN, run=job.workflow_run_id),
            )
        if job.session_id is None or job.agent in self.agents:
            return self.get(job.agent)
        return self.of_session(get_session(reader, job.session_id))

    def of_session(self, session: Session, named: str | None = None) -> Agent:
        """Return the session's own agent. For a session of no agent of the fleet, the one that was `named`, else the
        only one that is run by Claude in its directory.

        `AgentNotFoundError` when there is none, or more than one; `RefusedError` when the named one does not fit.
        """
        own = self.agents.get(session.agent)
        if own is not None and named in (None, own.name):
            return own
        if named is not None:
            chosen = self.get(named)
            self._check(session, chosen, own)
            return chosen
        if not self.keeps_transcripts(session.runtime_type) or session.agent in self.withheld:
            return self.get(session.agent)
        fitting = [agent for agent in self.agents.values() if self._fits(session, agent)]
        if len(fitting) == 1:
            return fitting[0]
        whose = f"session {session.id} is of no agent of the fleet"
        if fitting:
            names = ", ".join(repr(agent.name) for agent in fitting)
            raise AgentNotFoundError(
                f"{whose}; {names} can continue it",
                next_step=NextStep(
                    Action.RESUME_SESSION_AS, session=session.id, agent=fitting[0].name
                ),
            )
        raise AgentNotFoundError(
            f"{whose}, and none that is run by Claude works in {session.working_directory}",
            hint="declare one with that working_directory and `runtime: sdk` or `cli`",
        )

    def _check(self, session: Session, agent: Agent, own: Agent | None) -> None:
        if own is not None:
            raise RefusedError(
                f"session {session.id} belongs to agent {own.name!r}, not to {agent.name!r}"
            )
        is_claude = self.keeps_transcripts(session.runtime_type) and session.runtime_session_id
        if is_claude and not self._fits(session, agent):
            raise RefusedError(
                f"session {session.id} is Claude's, in {session.working_directory}; agent {agent.name!r} is run by "
                f"{agent.runtime.name} in {agent.working_directory}",
                hint="name an agent that is run by Claude in that directory",
            )

    def _fits(self, session: Session, agent: Agent) -> bool:
        """Whether Claude, run for the agent, finds the session: it looks only where it works."""
        return agent.runtime.can_resume(session.runtime_type) and self.is_same_directory(
            agent.working_directory, session.agent_directory
        )


def check_no_phase(job: Job) -> Job:
    """Return the job; `RefusedError` for a phase of a run, which only its run can do again."""
    if job.node_id is not None:
        raise RefusedError(
            f"job {job.id} is phase {phase_of(job)} of run {job.workflow_run_id};"
            " a new job would not be part of the run",
            next_step=NextStep(Action.RETRY_RUN, run=job.workflow_run_id),
        )
    return job


def agents_of(context: FleetContext) -> Agents:
    """Return the agents that requests may name."""
    return Agents(
        agents=context.agents,
        withheld=context.withheld,
        is_same_directory=context.is_same_directory,
        keeps_transcripts=context.transcripts.covers,
    )


async def reset_agent(request: ResetAgent, stores: Stores) -> None:
    """Forget the error of the agent; `RefusedError` for one that never had a job."""
    (answer,) = await stores.state.apply([changes.ResetAgent(agent=request.agent)])
    if isinstance(answer, Refused):
        raise RefusedError(answer.message, next_step=NextStep(Action.LIST_AGENTS))
