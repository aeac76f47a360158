"""An override: what somebody says about a schedule, and who."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

import anyio
from msgspec.structs import replace

from nightherd.cli.jobs.command import find_agent
from nightherd.engine.contexts import ThreadFiles, WorkerContext
from nightherd.engine.doctor.record import RepairContext
from nightherd.engine.operations.fork import ForkAt
from nightherd.engine.operations.jobs import cancel_job, retry_job
from nightherd.engine.operations.resume import (
    ResumeOptions,
    continue_session,
    resume_at,
    resume_job,
    resume_session,
    run_branch,
    run_fork,
)
from nightherd.engine.operations.schedules import override_schedule, schedule_request
from nightherd.engine.operations.submit import SubmitRequest, submit
from nightherd.engine.workers.rescue import rescue
from nightherd.errors import ConfigInvalidError, ConfigNotFoundError, RefusedError
from nightherd.files.paths import directory_identity
from nightherd.model.agents.agent import Agent, Fleet
from nightherd.model.change import Refused, ResetAgent
from nightherd.model.ids import JobId, SessionId
from nightherd.model.jobs.job import Job
from nightherd.model.schedules.rule import Schedule
from nightherd.model.schedules.schedule import OverrideSchedule
from nightherd.state.directory import init_state_directory
from nightherd.views.jobs import get_job
from nightherd.wiring.running import open_worker, rescue_terms, rescuer
from nightherd.wiring.stores import load_persistence, open_reader, open_repair, open_threads


@dataclass(frozen=True, slots=True, kw_only=True)
class Override:
    """One of these is said."""

    by: str
    enabled: bool | None = None
    rule: str | None = None
    reset: bool = False


DoneT = TypeVar("DoneT")


class DirectGateway:
    """Opens the memories for each thing that is done. A dedupe key makes one job however often it is used."""

    def __init__(self, state_dir: Path, environ: Mapping[str, str], fleet: Fleet | None) -> None:
        self.state_dir = state_dir
        self.environ = environ
        self._fleet = fleet

    @property
    def fleet(self) -> Fleet:
        """The fleet, which most of this needs."""
        if self._fleet is None:
            raise ConfigNotFoundError("there is no fleet file", hint="nightherd init")
        return self._fleet

    def find_job(self, job_id: JobId) -> Job:
        """The job as it is now."""
        with closing(open_reader(self.state_dir)) as reader:
            return get_job(reader, job_id)

    def submit(self, request: SubmitRequest) -> Job:
        """A new job that waits for a worker."""

        async def work(context: WorkerContext) -> Job:
            return (await submit(request, context)).job

        return self._in_workshop(work)

    def branch(self, request: SubmitRequest) -> Job:
        """A new job in a branch of the session that it would join; it waits for a worker."""

        async def work(context: WorkerContext) -> Job:
            return (await run_branch(request, context)).job

        return self._in_workshop(work)

    def cancel(self, job_id: JobId) -> Job:
        """The job, ended or about to be."""
        return self._on_record(lambda record: _cancel(record, job_id, self.state_dir))

    def retry(self, job_id: JobId, dedupe_key: str | None = None) -> Job:
        """A new job with the same work."""
        fleet = self.fleet

        async def work(context: WorkerContext) -> Job:
            agent = find_agent(fleet, get_job(context.reader, job_id).agent)
            return await retry_job(job_id, agent, context, dedupe_key=dedupe_key, refuses_held=True)

        return self._in_workshop(work)

    def resume(
        self,
        job_id: JobId,
        agent: Agent,
        wish: ResumeOptions,
        dedupe_key: str | None = None,
        *,
        at_checkpoint: int | None = None,
    ) -> Job:
        """The job that goes on, from that checkpoint if one is named, and waits for a worker."""
        fleet = self.fleet

        async def work(context: WorkerContext) -> Job:
            lost = rescuer(context, fleet)
            if at_checkpoint is None:
                return await resume_job(
                    job_id, agent, wish, context, rescue=lost, dedupe_key=dedupe_key
                )
            return await resume_at(
                job_id, at_checkpoint, agent, wish, context, rescue=lost, dedupe_key=dedupe_key
            )

        return self._in_workshop(work)

    def go_on(
        self,
        session_id: SessionId,
        agent: Agent,
        wish: ResumeOptions,
        dedupe_key: str | None = None,
    ) -> Job:
        """A new job in that session; it waits for a worker."""

        async def work(context: WorkerContext) -> Job:
            return await continue_session(session_id, agent, wish, context, dedupe_key=dedupe_key)

        return self._in_workshop(work)

    def fork(
        self,
        session_id: SessionId,
        at: ForkAt | None,
        agent: Agent,
        wish: ResumeOptions,
        dedupe_key: str | None = None,
    ) -> Job:
        """A new job in a branch of that session, there or at its end; it waits for a worker."""

        async def work(context: WorkerContext) -> Job:
            return await run_fork(session_id, at, agent, wish, context, dedupe_key=dedupe_key)

        return self._in_workshop(work)

    def resume_session(
        self,
        session_id: SessionId,
        agent: Agent,
        wish: ResumeOptions,
        dedupe_key: str | None = None,
    ) -> Job:
        """The job that goes on in the session: the one that was cut off in it, else a new one."""
        fleet = self.fleet

        async def work(context: WorkerContext) -> Job:
            lost = rescuer(context, fleet)
            return await resume_session(
                session_id, agent, wish, context, rescue=lost, dedupe_key=dedupe_key
            )

        return self._in_workshop(work)

    def last_job(self, session_id: SessionId) -> Job | None:
        """The session's last job as it is now."""
        with closing(open_reader(self.state_dir)) as reader:
            jobs = reader.jobs_of_session(session_id)
        return jobs[-1] if jobs else None

    def run_schedule(self, agent: Agent, schedule: Schedule, dedupe_key: str | None = None) -> Job:
        """A job of the schedule."""
        request = schedule_request(agent, schedule)
        return self.submit(replace(request, dedupe_key=dedupe_key, refuses_held=True))

    def override(self, agent: Agent, schedule: Schedule, said: Override) -> None:
        """The schedule is so from now on."""
        init_state_directory(self.state_dir)

        async def work(record: RepairContext) -> None:
            change = OverrideSchedule(
                agent=agent.name,
                schedule=schedule.name,
                at=record.clock.now(),
                by=said.by,
                is_declared_enabled=schedule.enabled,
                enabled=said.enabled,
                rule=said.rule,
                reset=said.reset,
            )
            await override_schedule(
                change,
                agent,
                schedule,
                state=record.state,
                reader=record.reader,
                clock=record.clock,
            )

        self._on_record(work)

    def reset_agent(self, name: str) -> None:
        """The agent without its error."""

        async def work(record: RepairContext) -> None:
            (answer,) = await record.state.apply([ResetAgent(agent=name)])
            if isinstance(answer, Refused):
                raise RefusedError(answer.message, hint="nightherd agent list")

        self._on_record(work)

    def _in_workshop(self, work: Callable[[WorkerContext], Awaitable[DoneT]]) -> DoneT:
        async def opened() -> DoneT:
            async with open_worker(self.state_dir, self.fleet, self.environ) as context:
                return await work(context)

        return anyio.run(opened)

    def _on_record(self, work: Callable[[RepairContext], Awaitable[DoneT]]) -> DoneT:
        async def opened() -> DoneT:
            async with open_repair(self.state_dir) as record:
                return await work(record)

        return anyio.run(opened)


async def _cancel(record: RepairContext, job_id: JobId, state_dir: Path) -> Job:
    terms = rescue_terms(directory_identity(state_dir), 0)
    return await cancel_job(
        job_id,
        record,
        _threads(state_dir),
        rescue=lambda: rescue(record, terms, is_wanted=lambda job: job.id == job_id),
    )


def _threads(state_dir: Path) -> ThreadFiles | None:
    """Where what ended while it waited says so, if jobs are written there."""
    if not (state_dir / "threads").is_dir():
        return None
    try:
        return open_threads(state_dir, load_persistence(state_dir))
    except ConfigInvalidError:
        return None  # the job is cancelled all the same; `config check` tells what is wrong
