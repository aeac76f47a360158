"""Given up: jobs that ended without a word, because their workers were lost too often, have hooks all the same.

Whoever gave a job up runs them, beside everything else it does. They are on record in the job's journal,
after what its workers left there; one that an earlier worker had begun is not begun again.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping

import anyio

from nightherd.engine.recorder import Recorder
from nightherd.engine.workshop import Workshop
from nightherd.errors import NightherdError
from nightherd.model.agent import Agent
from nightherd.model.event import Event
from nightherd.model.ids import generate_execution_id
from nightherd.model.job import Job


class GivenUp:
    """The jobs that one worker gave up, and whose hooks are still to be run."""

    def __init__(
        self, agents: Mapping[str, Agent], workshop: Workshop, tell: Callable[[str], None]
    ) -> None:
        self._agents = agents
        self._workshop = workshop
        self._tell = tell
        self._waiting: deque[Job] = deque()
        self._more = anyio.Event()
        self.is_busy = False
        """Whether hooks run, or wait for it."""

    def adopt(self, workshop: Workshop) -> None:
        """Hooks that begin from now on are run with this one."""
        self._workshop = workshop

    def add(self, job: Job) -> None:
        """`job` was given up, if it has ended; others are somebody's to go on with."""
        agent = self._agents.get(job.agent)
        if job.is_terminal and job.epoch > 0 and agent is not None and agent.hooks:
            self._waiting.append(job)
            self.is_busy = True
            self._more.set()

    async def look_after(self) -> None:
        """Run the hooks of whatever is added, one job after the other, for ever."""
        while True:
            await self._more.wait()
            self._more = anyio.Event()
            while self._waiting:
                job = self._waiting.popleft()
                try:
                    await run_hooks(job, self._agents[job.agent], self._workshop)
                except NightherdError as error:
                    self._tell(f"hooks of {job.id}: {error.message}")
                except Exception as error:  # noqa: BLE001 (an edge: one job takes no other with it)
                    self._tell(f"hooks of {job.id}: {type(error).__name__}: {error}")
            self.is_busy = False


async def run_hooks(job: Job, agent: Agent, workshop: Workshop) -> None:
    """Run the hooks of a job that has ended and is nobody's any more."""

    def nobody(event: Event) -> None:
        """It is on record."""

    recorder = Recorder(
        workshop.secrets,
        nobody,
        is_ours=lambda: workshop.lease.holds(workshop.clock.monotonic()),
    )
    execution = generate_execution_id(job.id, job.epoch)
    journal = workshop.journals.open(job.id, epoch=job.epoch, execution=execution)
    with recorder.into(journal):
        await workshop.hooks.after(job, agent, workshop, record=recorder.record, answer=job.summary)
