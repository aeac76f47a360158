"""The gateway that needs nobody: everything is done on the state directory, here and now."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import TypeVar

import anyio

from nightherd.cli.errand import find_agent
from nightherd.cli.overriding import Override
from nightherd.engine.again import retry_job
from nightherd.engine.cancelling import cancel_job
from nightherd.engine.forking import ForkAt
from nightherd.engine.record import Record
from nightherd.engine.rescue import rescue
from nightherd.engine.resume_at import resume_at
from nightherd.engine.resuming import Wish, go_on_in, resume_job, run_branch, run_fork
from nightherd.engine.schedule_jobs import schedule_request
from nightherd.engine.schedule_override import override_schedule
from nightherd.engine.session_resume import resume_session
from nightherd.engine.submit import SubmitRequest, submit
from nightherd.engine.workshop import ThreadFiles, Workshop
from nightherd.errors import (
    ConfigInvalidError,
    ConfigNotFoundError,
    RefusedError,
)
from nightherd.files.identity import directory_identity
from nightherd.model.agent import Agent, Fleet
from nightherd.model.change import Refused, ResetAgent
from nightherd.model.ids import JobId, SessionId
from nightherd.model.job import Job
from nightherd.model.schedule_change import OverrideSchedule
from nightherd.model.schedule_rule import Schedule
from nightherd.state.directory import init_state_directory
from nightherd.views.jobs import get_job
from nightherd.wiring.memories import load_persistence, open_reader, open_record, open_threads
from nightherd.wiring.workshops import open_workshop, rescue_terms, rescuer

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

        async def work(workshop: Workshop) -> Job:
            return (await submit(request, workshop)).job

        return self._in_workshop(work)

    def branch(self, request: SubmitRequest) -> Job:
        """A new job in a branch of the session that it would join; it waits for a worker."""

        async def work(workshop: Workshop) -> Job:
            return (await run_branch(request, workshop)).job

        return self._in_workshop(work)

    def cancel(self, job_id: JobId) -> Job:
        """The job, ended or about to be."""
        return self._on_record(lambda record: _cancel(record, job_id, self.state_dir))

    def retry(self, job_id: JobId, dedupe_key: str | None = None) -> Job:
        """A new job with the same work."""
        fleet = self.fleet

        async def work(workshop: Workshop) -> Job:
            agent = find_agent(fleet, get_job(workshop.reader, job_id).agent)
            return await retry_job(
                job_id, agent, workshop, dedupe_key=dedupe_key, refuses_held=True
            )

        return self._in_workshop(work)

    def resume(
        self,
        job_id: JobId,
        agent: Agent,
        wish: Wish,
        dedupe_key: str | None = None,
        *,
        at_checkpoint: int | None = None,
    ) -> Job:
        """The job that goes on, from that checkpoint if one is named, and waits for a worker."""
        fleet = self.fleet

        async def work(workshop: Workshop) -> Job:
            lost = rescuer(workshop, fleet)
            if at_checkpoint is None:
                return await resume_job(
                    job_id, agent, wish, workshop, rescue=lost, dedupe_key=dedupe_key
                )
            return await resume_at(
                job_id, at_checkpoint, agent, wish, workshop, rescue=lost, dedupe_key=dedupe_key
            )

        return self._in_workshop(work)

    def go_on(
        self, session_id: SessionId, agent: Agent, wish: Wish, dedupe_key: str | None = None
    ) -> Job:
        """A new job in that session; it waits for a worker."""

        async def work(workshop: Workshop) -> Job:
            return await go_on_in(session_id, agent, wish, workshop, dedupe_key=dedupe_key)

        return self._in_workshop(work)

    def fork(
        self,
        session_id: SessionId,
        at: ForkAt | None,
        agent: Agent,
        wish: Wish,
        dedupe_key: str | None = None,
    ) -> Job:
        """A new job in a branch of that session, there or at its end; it waits for a worker."""

        async def work(workshop: Workshop) -> Job:
            return await run_fork(session_id, at, agent, wish, workshop, dedupe_key=dedupe_key)

        return self._in_workshop(work)

    def resume_session(
        self, session_id: SessionId, agent: Agent, wish: Wish, dedupe_key: str | None = None
    ) -> Job:
        """The job that goes on in the session: the one that was cut off in it, else a new one."""
        fleet = self.fleet

        async def work(workshop: Workshop) -> Job:
            lost = rescuer(workshop, fleet)
            return await resume_session(
                session_id, agent, wish, workshop, rescue=lost, dedupe_key=dedupe_key
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

        async def work(record: Record) -> None:
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

        async def work(record: Record) -> None:
            (answer,) = await record.state.apply([ResetAgent(agent=name)])
            if isinstance(answer, Refused):
                raise RefusedError(answer.message, hint="nightherd agent list")

        self._on_record(work)

    def _in_workshop(self, work: Callable[[Workshop], Awaitable[DoneT]]) -> DoneT:
        async def opened() -> DoneT:
            async with open_workshop(self.state_dir, self.fleet, self.environ) as workshop:
                return await work(workshop)

        return anyio.run(opened)

    def _on_record(self, work: Callable[[Record], Awaitable[DoneT]]) -> DoneT:
        async def opened() -> DoneT:
            async with open_record(self.state_dir) as record:
                return await work(record)

        return anyio.run(opened)


async def _cancel(record: Record, job_id: JobId, state_dir: Path) -> Job:
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
