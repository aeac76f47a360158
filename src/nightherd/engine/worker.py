"""Worker: claims waiting jobs and runs them, as many at once as may be, until it is told to stop.

It looks after the others too: jobs whose worker is gone are rescued by whoever is there.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import anyio
from anyio.abc import TaskGroup

from nightherd.engine.execution import Stopper, carry_on
from nightherd.engine.oversight import oversee
from nightherd.engine.record import Record
from nightherd.engine.rescue import RescueTerms, rescue
from nightherd.engine.workshop import Workshop
from nightherd.errors import FencedError, NightherdError
from nightherd.model.agent import Fleet
from nightherd.model.change import Applied, ClaimJob
from nightherd.model.event import Event
from nightherd.model.ids import JobId
from nightherd.model.job import ExitReason, Job

IDLE_S = 0.25


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerReports:
    """Whom the worker tells what it does."""

    on_start: Callable[[Job], None]
    on_event: Callable[[Job, Event], None]
    on_end: Callable[[Job], None]
    on_rescue: Callable[[Job], None]
    on_trouble: Callable[[str], None]


class Shift:
    """One worker at work. `drain` lets it finish what it runs, `cancel` ends that as well."""

    def __init__(
        self,
        fleet: Fleet,
        workshop: Workshop,
        record: Record,
        rescue_terms: RescueTerms,
        reports: WorkerReports,
        *,
        rescue_every_s: float,
        leaves_when_idle: bool = False,
    ) -> None:
        self._fleet = fleet
        self._workshop = workshop
        self._record = record
        self._rescue_terms = rescue_terms
        self._reports = reports
        self._rescue_every_s = rescue_every_s
        self._leaves_when_idle = leaves_when_idle
        self._running: dict[JobId, Stopper] = {}
        self._is_draining = False
        self._runnable = {
            agent.name: agent.max_concurrent
            for agent in fleet.agents.values()
            if workshop.can_run(agent.runtime)
        }
        self._repos = {
            agent.name: agent.repo for agent in fleet.agents.values() if agent.repo is not None
        }

    @property
    def is_draining(self) -> bool:
        """Whether it takes no more jobs."""
        return self._is_draining

    def drain(self) -> None:
        """Take no more jobs; leave when those that run have ended."""
        self._is_draining = True

    def cancel(self) -> None:
        """Take no more jobs and end those that run."""
        self.drain()
        for stopper in self._running.values():
            stopper.stop(ExitReason.CANCELLED)

    async def work(self) -> None:
        """Claim and run jobs until drained, idle (when it leaves then), or its lease is lost."""
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(self._oversee)
            tasks.start_soon(self._look_after_others)
            async with anyio.create_task_group() as jobs:
                await self._claim_on(jobs)
            tasks.cancel_scope.cancel()

    async def _claim_on(self, jobs: TaskGroup) -> None:
        while not self._is_draining:
            job = await self._claim()
            if job is not None:
                stopper = self._running[job.id] = Stopper()
                jobs.start_soon(self._run, job, stopper)
                continue
            if self._leaves_when_idle and not self._running and not self._has_work():
                return
            await self._wait_for_work()

    async def _wait_for_work(self) -> None:
        """Until a job waits that could be taken; asking costs a look at an index, not a transaction."""
        while not self._is_draining:
            await anyio.sleep(IDLE_S)
            if self._has_work() or (self._leaves_when_idle and not self._running):
                return

    def _has_work(self) -> bool:
        return self._workshop.reader.has_waiting_job(self._runnable)

    async def _claim(self) -> Job | None:
        if not self._has_work():
            return None
        change = ClaimJob(
            worker=self._workshop.worker,
            at=self._workshop.clock.now(),
            agents=self._runnable,
            repos=self._repos,
            fleet_limit=self._fleet.max_concurrent,
        )
        (answer,) = await self._workshop.state.apply([change])
        return answer.job if isinstance(answer, Applied) else None

    async def _run(self, job: Job, stopper: Stopper) -> None:
        self._reports.on_start(job)
        agent = self._fleet.agents[job.agent]
        try:
            ended = await carry_on(
                job,
                agent,
                self._workshop,
                on_event=lambda event: self._reports.on_event(job, event),
                stopper=stopper,
            )
        except FencedError as error:
            # Another worker has it by now; what this one would still write counts for nobody.
            self._reports.on_trouble(f"{job.id}: {error.message}")
        except NightherdError as error:
            self._reports.on_trouble(f"{job.id}: {error.message}")
        else:
            self._reports.on_end(ended)
        finally:
            self._running.pop(job.id, None)

    async def _oversee(self) -> None:
        await oversee(self._running, self._workshop)
        self._reports.on_trouble("the lease is lost; every job is left to other workers")
        self.drain()

    async def _look_after_others(self) -> None:
        while True:
            try:
                for job in await rescue(self._record, self._rescue_terms):
                    self._reports.on_rescue(job)
            except NightherdError as error:
                self._reports.on_trouble(f"rescue: {error.message}")
            await anyio.sleep(self._rescue_every_s)
