"""A workshop on memory stores with a played runtime: what the engine's tests run in."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

import anyio
from msgspec.structs import replace

from nightherd.engine.contexts import WorkerContext
from nightherd.engine.jobs.oversight import Stopper
from nightherd.engine.jobs.recorder import OnEvent
from nightherd.engine.jobs.runner import run_job
from nightherd.engine.operations.new_job import JobDraft, Submitted, record_job
from nightherd.engine.operations.schedules import DueSlot
from nightherd.engine.workers.lease import Lease
from nightherd.model.agents.agent import Agent
from nightherd.model.change import FireSlot
from nightherd.model.ids import JobId, WorkerId
from nightherd.model.jobs.changes import LoseExecution
from nightherd.model.jobs.job import ExitReason, Job
from nightherd.model.journal.event import Event
from nightherd.model.journal.recollection import recollect
from nightherd.model.schedules.rule import Schedule
from nightherd.model.schedules.schedule import Slot, SlotOutcome
from nightherd.model.secrets import find_secrets
from nightherd.model.sessions.session import SessionMode, SessionTerms
from nightherd.ports import Journals
from nightherd.runtimes.scripted.capabilities import SCRIPTED
from nightherd.testing.determinism import CountingText, FakeClock
from nightherd.testing.memory_journals import MemoryJournals
from nightherd.testing.memory_state import MemoryStore
from nightherd.testing.runtime import PlayedRuntime
from nightherd.testing.state_values import BEGINNING

AGENT = Agent(
    name="coder",
    runtime=SCRIPTED,
    working_directory="/srv/repo",
    default_prompt="Look after ${repo}, issue ${inputs.issue}",
    repo="owner/project",
)


def no_one(event: Event) -> None:
    """Nobody is told."""


@dataclass
class Bench:
    """Submits and executes, synchronously, what a test asks for."""

    runtime: PlayedRuntime = field(default_factory=PlayedRuntime)
    agent: Agent = AGENT
    environment: Mapping[str, str] = field(default_factory=dict)
    random_text: Callable[[int], str] = field(default_factory=CountingText)
    clock: FakeClock = field(default_factory=FakeClock)
    store: MemoryStore = field(default_factory=MemoryStore)
    journals: Journals | None = None

    def __post_init__(self) -> None:
        self.lease = Lease(deadline=1e9)
        self.reader = self.store.reader()
        self.context = WorkerContext(
            state=self.store,
            reader=self.reader,
            journals=self.journals or MemoryJournals(clock=self.clock),
            runtimes=lambda name: self.runtime,
            can_run=lambda name: True,
            clock=self.clock,
            random_text=self.random_text,
            worker=WorkerId("worker-aaaaaaaa"),
            lease=self.lease,
            environment=self.environment,
            secrets=find_secrets(self.environment),
            version="9.9.9",
        )

    def submit(self, prompt: str | None = "Fix it", **more: Any) -> Submitted:
        return anyio.run(
            record_job, JobDraft(agent=self.agent, prompt=prompt, **more), self.context
        )

    def execute(
        self,
        job_id: JobId,
        on_event: OnEvent = no_one,
        stop_when: Callable[[Event | None], bool] = lambda event: False,
    ) -> Job:
        """Run the job; it is cancelled when `stop_when` says so, asked once before it begins (None)."""

        async def run() -> Job:
            stopper = Stopper()

            def tell(event: Event | None) -> None:
                if event is not None:
                    on_event(event)
                if stop_when(event):
                    stopper.stop(ExitReason.CANCELLED)

            tell(None)
            return await run_job(job_id, self.agent, self.context, on_event=tell, stopper=stopper)

        return anyio.run(run)

    def run(self, prompt: str | None = "Fix it", on_event: OnEvent = no_one, **more: Any) -> Job:
        return self.execute(self.submit(prompt, **more).job.id, on_event)

    def lose(self, job_id: JobId) -> None:
        """Its worker is found dead, and the job waits for the next one."""
        job = self.job(job_id)
        known = recollect(self.context.journals.read(job_id))
        lost = LoseExecution(
            job_id=job_id,
            epoch=job.epoch,
            at=self.clock.now(),
            reason="its worker is gone",
            max_restarts=5,
            last_seq=known.last_seq,
            total=known.tally.totals,
            own=known.own,
        )
        anyio.run(self.store.apply, [lost])

    def journal(self, job_id: JobId) -> list[Event]:
        return list(self.context.journals.read(job_id))

    def job(self, job_id: JobId) -> Job:
        job = self.reader.find_job(job_id)
        assert job is not None
        return job


def due_slot(agent: Agent, schedule: Schedule) -> DueSlot:
    """A slot that is to make a job."""
    slot = Slot(
        id="slot",
        schedule_id=f"{agent.name}/{schedule.name}",
        due_at=BEGINNING,
        outcome=SlotOutcome.SKIPPED,
        decided_at=BEGINNING,
    )
    change = FireSlot(slot=slot, agent=agent.name, schedule=schedule.name, next_run_at=None)
    return DueSlot(agent=agent, schedule=schedule, change=change, makes_job=True)


def persistent() -> Agent:
    """An agent whose jobs share one session."""
    return replace(AGENT, session=SessionTerms(mode=SessionMode.PERSISTENT))


def hurried(limit: timedelta) -> Agent:
    """An agent whose jobs may not take longer than `limit`."""
    return replace(AGENT, job_timeout=limit)
