"""Given up: jobs that ended without a word, because their workers were lost too often, have hooks all the same.

The worker that gave a job up runs them, beside its other work. They are on record in the job's journal,
after what its workers left there; one that an earlier worker had begun is not begun again.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Mapping

import anyio
from anyio import to_thread
from msgspec.structs import replace

from nightherd.engine.contexts import Stores, WorkerContext
from nightherd.engine.jobs.recorder import Recorder
from nightherd.errors import NightherdError
from nightherd.model.agents.agent import Agent
from nightherd.model.hooks import HookEvent
from nightherd.model.ids import generate_execution_id
from nightherd.model.jobs.job import Job
from nightherd.model.jobs.outcome import CANCELLED, SILENT_END, Outcome, Tally
from nightherd.model.journal.event import ErrorEvent, Event, SystemEvent, is_message, payload_of
from nightherd.model.journal.system import HookRan, SystemSubtype


class AbandonedJobs:
    """The jobs that one worker gave up, and whose hooks are still to be run."""

    def __init__(
        self, agents: Mapping[str, Agent], context: WorkerContext, report: Callable[[str], None]
    ) -> None:
        self._agents = agents
        self._context = context
        self._report = report
        self._waiting: deque[Job] = deque()
        self._more = anyio.Event()
        self.is_busy = False
        """Whether hooks run, or wait for it."""

    def adopt(self, context: WorkerContext) -> None:
        """Hooks that begin from now on are run with this one."""
        self._context = context

    def add(self, job: Job) -> None:
        """Add a job that was given up; one that has not ended is left to its next worker."""
        agent = self._agents.get(job.agent)
        if job.is_terminal and job.epoch > 0 and agent is not None and agent.hooks:
            self._waiting.append(job)
            self.is_busy = True
            self._more.set()

    async def look_after(self) -> None:
        """Run the hooks of the jobs that are added, one job after the other, until cancelled."""
        while True:
            await self._more.wait()
            self._more = anyio.Event()
            while self._waiting:
                job = self._waiting.popleft()
                try:
                    await run_hooks(job, self._agents[job.agent], self._context)
                except NightherdError as error:
                    self._report(f"hooks of {job.id}: {error.message}")
                except Exception as error:  # noqa: BLE001 (an edge: one job takes no other with it)
                    self._report(f"hooks of {job.id}: {type(error).__name__}: {error}")
            self.is_busy = False


async def run_hooks(job: Job, agent: Agent, context: WorkerContext) -> None:
    """Run the hooks of a job that has ended and has no worker."""

    def nobody(event: Event) -> None:
        """It is on record."""

    recorder = Recorder(
        context.secrets,
        nobody,
        is_ours=lambda: context.lease.holds(context.clock.monotonic()),
    )
    execution = generate_execution_id(job.id, job.epoch)
    journal = context.journals.open(job.id, epoch=job.epoch, execution=execution)
    with recorder.into(journal):
        await context.hooks.after(job, agent, context, record=recorder.record, answer=job.summary)


GOES_ON = frozenset({SystemSubtype.SUSPENDED, SystemSubtype.RESUMED})


async def finish_ending(
    job: Job, agent: Agent, recorder: Recorder, context: Stores
) -> Outcome | None:
    """How the job had ended when its worker was lost among its hooks; None when it had not.

    An error is put on record once more, so that the job's end explains itself.
    """
    if job.epoch <= 1 or not agent.hooks:
        return None
    outcome = await to_thread.run_sync(_read_ending, job, context)
    if outcome is not None and outcome.error is not None:
        recorder.record(ErrorEvent(message=outcome.error, code=outcome.error_code))
    return outcome


def ending_of(events: Iterable[Event]) -> Outcome | None:
    """How the events say the job has ended, when hooks of that end had begun and nothing came after.

    The time that the lost execution spent on requests is not in it: the next execution made none.
    """
    tally, begun, ended = Tally(), None, None
    for event in events:
        tally = tally.add(event)
        if is_message(event):
            begun = None
        if isinstance(event, ErrorEvent):
            ended = tally.outcome
        if not isinstance(event, SystemEvent):
            continue
        if event.subtype in GOES_ON:
            begun = None
        elif event.subtype is SystemSubtype.HOOK:
            ran = payload_of(event)
            if isinstance(ran, HookRan) and ran.id:
                begun, ended = ran.event, tally.outcome or ended
    if begun is None or begun == HookEvent.SUSPENDED:
        return None
    if begun == HookEvent.CANCELLED:
        return CANCELLED
    return replace(ended, api_duration_ms=None) if ended is not None else SILENT_END


def _read_ending(job: Job, context: Stores) -> Outcome | None:
    return ending_of(context.journals.read(job.id, load_blobs=False))
