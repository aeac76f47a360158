"""A worker for a caller that waits for a run: it takes jobs until the caller has what it waited for."""

from __future__ import annotations

from collections.abc import Callable

from msgspec.structs import replace

from nightherd.engine.contexts import WorkerContext
from nightherd.engine.workers.worker import WorkerLoop, WorkerReports
from nightherd.model.ids import JobId
from nightherd.model.jobs.job import Job
from nightherd.model.workflows.command import COMMANDS_AGENT

MakeLoop = Callable[[WorkerContext, WorkerReports], WorkerLoop]


class RunWorker:
    """Takes jobs until it is stopped, also after its lease was lost. It may take jobs of other runs too."""

    def __init__(
        self,
        make_loop: MakeLoop,
        context: WorkerContext,
        reports: WorkerReports,
        *,
        finishes_commands: bool = True,
    ) -> None:
        """`finishes_commands`: commands that run here when it is stopped are finished first; nobody could continue one."""
        self._make_loop = make_loop
        self._context = context
        self._reports = reports
        self._finishes_commands = finishes_commands
        self._commands: set[JobId] = set()
        """Commands that run here."""
        self._is_stopped = False
        self._loop = self._made()

    async def work(self) -> None:
        """Work until stopped; a process that was frozen for longer than its lease signs on again."""
        while True:
            await self._loop.work()
            if self._is_stopped or self._context.sign_on is None:
                return
            worker, lease = await self._context.sign_on()
            self._context = replace(self._context, worker=worker, lease=lease)
            self._loop = self._made()

    def stop(self) -> None:
        """Take no more jobs and leave those that run here to other workers."""
        self._is_stopped = True
        self._loop.drain()
        self._loop.wake()
        self._leave()

    def _leave(self) -> None:
        if self._is_stopped and not (self._finishes_commands and self._commands):
            self._loop.hand_over()

    def _made(self) -> WorkerLoop:
        self._commands.clear()
        own = replace(self._reports, on_start=self._on_start, on_end=self._on_end)
        return self._make_loop(self._context, own)

    def _on_start(self, job: Job) -> None:
        if job.agent == COMMANDS_AGENT:
            self._commands.add(job.id)
        self._reports.on_start(job)

    def _on_end(self, job: Job) -> None:
        self._commands.discard(job.id)
        self._leave()
        self._reports.on_end(job)
