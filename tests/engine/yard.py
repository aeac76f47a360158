"""Several workers on one memory state, with everything a rescue needs, and nothing of the machine."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from datetime import timedelta

import anyio
from msgspec.structs import replace

from engine.bench import AGENT, Bench
from nightherd.engine.contexts import WorkerContext
from nightherd.engine.doctor.record import RepairContext
from nightherd.engine.workers.lease import Lease
from nightherd.engine.workers.rescue import RescueTerms
from nightherd.engine.workers.worker import WorkerLoop, WorkerReports
from nightherd.model.agents.agent import Agent, Fleet
from nightherd.model.change import RegisterWorker
from nightherd.model.ids import ExecutionId, JobId, WorkerId
from nightherd.model.jobs.changes import StartExecution
from nightherd.model.jobs.job import Job
from nightherd.model.journal.event import Event
from nightherd.model.worker import Worker, WorkerStatus
from nightherd.ports import Process

BOOT = "this boot"
PATIENCE_S = 90.0


async def until(condition: Callable[[], object]) -> None:
    """Until it is so; fails when it never comes."""
    with anyio.fail_after(PATIENCE_S):
        while not condition():  # noqa: ASYNC110 (what is waited for knows nothing of who waits)
            await anyio.sleep(0.001)


@dataclass
class Yard:
    """A bench, the processes that count as alive, and what was told."""

    bench: Bench = field(default_factory=Bench)
    max_restarts: int = 5
    dead: set[int] = field(default_factory=set)
    unkillable: dict[ExecutionId, str] = field(default_factory=dict)
    killed: list[ExecutionId] = field(default_factory=list)
    started: list[JobId] = field(default_factory=list)
    ended: list[Job] = field(default_factory=list)
    rescued: list[Job] = field(default_factory=list)
    trouble: list[str] = field(default_factory=list)

    @property
    def record(self) -> RepairContext:
        context = self.bench.context
        return RepairContext(
            state=context.state,
            reader=context.reader,
            journals=context.journals,
            clock=context.clock,
            is_alive=self._is_alive,
        )

    @property
    def terms(self) -> RescueTerms:
        return RescueTerms(boot_id=BOOT, max_restarts=self.max_restarts, kill_all_marked=self._kill)

    @property
    def reports(self) -> WorkerReports:
        def nothing(job: Job, event: Event) -> None:
            """Nobody watches."""

        return WorkerReports(
            on_start=lambda job: self.started.append(job.id),
            on_event=nothing,
            on_end=self.ended.append,
            on_rescue=self.rescued.append,
            on_trouble=self.trouble.append,
        )

    def register(
        self, name: str, *, pid: int = 1, deadline: float = 1e9, boot_id: str = BOOT
    ) -> WorkerId:
        """A worker on record."""
        at = self.bench.clock.now()
        worker = Worker(
            id=WorkerId(name),
            status=WorkerStatus.ALIVE,
            host="here",
            pid=pid,
            process_started="1",
            boot_id=boot_id,
            deadline=deadline,
            started_at=at,
            heartbeat_at=at,
        )
        anyio.run(self.bench.store.apply, [RegisterWorker(worker=worker)])
        return worker.id

    def taken(self, worker: WorkerId, prompt: str = "Fix it") -> Job:
        """A job that the worker has taken."""
        job = self.bench.submit(prompt).job
        start = StartExecution(job_id=job.id, worker=worker, at=self.bench.clock.now())
        anyio.run(self.bench.store.apply, [start])
        return self.bench.job(job.id)

    def shift(
        self,
        *agents: Agent,
        fleet_limit: int | None = None,
        leaves_when_idle: bool = True,
        context: WorkerContext | None = None,
    ) -> WorkerLoop:
        """A worker at work for these agents, else for the bench's."""
        known = {agent.name: agent for agent in agents or (self.bench.agent,)}
        return WorkerLoop(
            Fleet(file="yard.yaml", agents=known, max_concurrent=fleet_limit),
            context or self.bench.context,
            self.record,
            self.terms,
            self.reports,
            rescue_every_s=0.01,
            leaves_when_idle=leaves_when_idle,
        )

    def context(self, name: str) -> WorkerContext:
        """The workshop of another worker on the same state."""
        return replace(self.bench.context, worker=WorkerId(name), lease=Lease(deadline=1e9))

    def advance(self, **by: float) -> None:
        self.bench.clock.advance(timedelta(**by))

    def _is_alive(self, process: Process) -> bool:
        return process.pid not in self.dead

    async def _kill(self, executions: Collection[ExecutionId]) -> Mapping[ExecutionId, str]:
        self.killed += executions
        return {one: why for one, why in self.unkillable.items() if one in executions}


def several(count: int, name: str = AGENT.name) -> Agent:
    """An agent of which so many jobs may run at once."""
    return replace(AGENT, name=name, max_concurrent=count)
