"""Worker: claims pending jobs and runs them, as many at once as allowed, until it is stopped.

It looks after the others too: it rescues jobs whose worker is gone.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from datetime import timedelta
from functools import partial

import anyio
import msgspec
from anyio.abc import TaskGroup
from msgspec.structs import replace

from nightherd.engine.contexts import WorkerContext
from nightherd.engine.doctor.record import RepairContext
from nightherd.engine.inbox.expiry import expire_items
from nightherd.engine.inbox.missing import add_missing_items
from nightherd.engine.jobs.abandoned import AbandonedJobs
from nightherd.engine.jobs.operator_log import log_rescue, log_trouble
from nightherd.engine.jobs.oversight import Stopper, oversee
from nightherd.engine.jobs.runner import run_taken_job
from nightherd.engine.limits.answers import Answers
from nightherd.engine.limits.logins import free_agents
from nightherd.engine.sessions.cleanup import expire_sessions
from nightherd.engine.workers.changed_fleet import for_fleet
from nightherd.engine.workers.claimable import all_agents, logins_of, repos_of, runnable
from nightherd.engine.workers.clock_watch import wake_jobs
from nightherd.engine.workers.lease import Beats
from nightherd.engine.workers.rescue import RescueTerms, rescue, resumes_of
from nightherd.engine.workflows.timers import advance_due_runs
from nightherd.errors import NightherdError, StateError
from nightherd.model.agents.agent import Fleet
from nightherd.model.change import Applied
from nightherd.model.ids import JobId
from nightherd.model.jobs.changes import ClaimJob
from nightherd.model.jobs.job import ExitReason, Job
from nightherd.model.jobs.retry import Backoff
from nightherd.model.journal.event import Event
from nightherd.model.limits.login import STAGGER
from nightherd.model.workflows.run import RunId

IDLE_S = 0.25
"""How late a job may be taken that another process has submitted."""
WAKE_S = 1.0
"""How late a job that waits for a time may continue."""
EXPIRE_S = 30.0
"""How late a session that has expired may say so in its row."""
ANSWERS_S = 30.0
"""How late an answer may count whose worker was killed before it did."""
MOST_AT_ONCE = 16
"""Jobs claimed in one transaction while there are plenty."""


class WorkerReports(msgspec.Struct, frozen=True, kw_only=True):
    """Called with what the worker does."""

    on_start: Callable[[Job], None]
    on_event: Callable[[Job, Event], None]
    on_end: Callable[[Job], None]
    on_rescue: Callable[[Job], None]
    on_trouble: Callable[[str], None]


class WorkerLoop:
    """One worker at work. `drain` lets it finish what it runs, `cancel` ends that as well."""

    def __init__(
        self,
        fleet: Fleet,
        context: WorkerContext,
        record: RepairContext,
        rescue_terms: RescueTerms,
        reports: WorkerReports,
        *,
        rescue_every_s: float,
        leaves_when_idle: bool = False,
        beats: Beats | None = None,
    ) -> None:
        self._fleet = fleet
        self._run_id: RunId | None = None
        self._agents = dict(fleet.agents)
        self._context = context
        self._record = record
        self._rescue_terms = rescue_terms
        self._reports = replace(reports, on_trouble=log_trouble(context, reports.on_trouble))
        self._rescue = one_at_a_time(self._rescue_lost)
        self._abandoned = AbandonedJobs(self._agents, context, self._reports.on_trouble)
        self._answers = Answers()
        self._rescue_every_s = rescue_every_s
        self._leaves_when_idle = leaves_when_idle
        self._beats = beats if beats is not None else Beats()
        self._running: dict[JobId, Stopper] = {}
        self._is_draining = self._is_cancelling = False
        self._is_claiming = False
        self._at_once = 1
        self._last_trouble = ""
        self._backoff = Backoff()
        self._freed = anyio.Event()
        self._runnable: dict[str, int] = {}
        self._repos: dict[str, str] = {}
        self._stopped_by: dict[str, tuple[str, ...]] = {}
        self._know(fleet)

    def adopt(self, fleet: Fleet) -> None:
        """From now on jobs of these agents are taken, and lost ones rescued as these say.

        Those that run continue as they began.
        """
        self._context = for_fleet(self._context, fleet, self._fleet)
        self._rescue_terms = replace(
            self._rescue_terms, max_restarts=fleet.max_restarts, resumes=resumes_of(fleet)
        )
        self._abandoned.adopt(self._context)
        self._know(fleet)
        self.wake()

    def take_only(self, run_id: RunId) -> None:
        """From now on take jobs of this workflow run, and of runs below it, and no others."""
        self._run_id = run_id

    def wake(self) -> None:
        """Look for work now."""
        self._freed.set()

    @property
    def fleet(self) -> Fleet:
        """The fleet it works for now."""
        return self._fleet

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
        self._is_cancelling = True
        for stopper in self._running.values():
            stopper.stop(ExitReason.CANCELLED)

    def hand_over(self) -> None:
        """Take no more jobs and give those that run back: they wait for another worker, which continues them."""
        self.drain()
        for stopper in self._running.values():
            stopper.hand_over()
        self.wake()

    async def work(self) -> None:
        """Claim and run jobs until drained, idle (when it leaves then), or its lease is lost."""
        await self._see_to(add_missing_items)  # jobs that an older version left waiting
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(self._ask_again)
            tasks.start_soon(self._oversee)
            tasks.start_soon(self._repeat, self._rescue, self._rescue_every_s)
            tasks.start_soon(self._repeat, self._wake_due, WAKE_S)
            tasks.start_soon(self._repeat, partial(self._see_to, expire_sessions), EXPIRE_S)
            tasks.start_soon(self._obey_answers)
            tasks.start_soon(self._abandoned.look_after)
            async with anyio.create_task_group() as jobs:
                await self._claim_on(jobs)
            tasks.cancel_scope.cancel()

    def _know(self, fleet: Fleet) -> None:
        self._fleet = fleet
        # An agent that is gone may still have a job here that was just taken.
        known = all_agents(fleet, self._context)
        self._agents.update(known)
        self._runnable = runnable(known, self._context)
        self._repos = repos_of(fleet)
        self._stopped_by = logins_of(fleet, self._context)

    async def _claim_on(self, jobs: TaskGroup) -> None:
        while not self._is_draining:
            claimed = await self._claim()
            for job, taken in claimed:
                jobs.start_soon(self._run, job, taken, self._running[job.id])
            if claimed:
                continue
            if self._leaves_when_idle and await self._is_idle():
                return
            await self._wait_for_work()

    async def _wait_for_work(self) -> None:
        """Until a job of ours has ended, which may make room, or it is time to ask again."""
        await self._freed.wait()
        self._freed = anyio.Event()

    async def _ask_again(self) -> None:
        """Others submit jobs too. A task of its own: to cut the waiting short at every look would cost more."""
        while True:
            await self._beats.wait(IDLE_S)
            self._freed.set()

    async def _is_idle(self) -> bool:
        """Whether there is nothing left to do, jobs of lost workers and jobs that are due included."""
        if self._running or self._has_work(within=STAGGER):
            return False
        await self._rescue()
        await self._wake_due()
        await self._see_to(self._answers.obey)
        return not (self._abandoned.is_busy or self._has_work(within=STAGGER))

    def _has_work(self, within: timedelta = timedelta()) -> bool:
        """Whether a job waits that could be ours, now or after so long: a look at an index, no transaction."""
        try:
            reader = self._context.reader
            if not reader.has_waiting_job(self._runnable):
                return False
            at = self._context.clock.now() + within
            limits = reader.list_login_limits(at) if self._stopped_by else ()
            return not limits or reader.has_waiting_job(
                free_agents(self._runnable, self._stopped_by, limits, at)
            )
        except NightherdError as error:
            self._report_trouble(error.message)
            return True

    async def _claim(self) -> list[tuple[Job, Applied]]:
        """The jobs that are ours from now on, with what taking them told; more at once while there are plenty."""
        if self._backoff.is_held(self._context.clock.monotonic()) or not self._has_work():
            return []
        change = ClaimJob(
            worker=self._context.worker,
            at=self._context.clock.now(),
            agents=self._runnable,
            repos=self._repos,
            fleet_limit=self._fleet.max_concurrent,
            stopped_by=self._stopped_by,
            run_id=self._run_id,
        )
        self._is_claiming = True
        try:
            answers = await self._context.state.apply([change] * self._at_once)
            found = [
                (answer.job, answer)
                for answer in answers
                if isinstance(answer, Applied) and answer.job is not None
            ]
            for job, _ in found:
                self._running[job.id] = self._make_stopper()
        except NightherdError as error:
            # A full disk, say. What was claimed all the same is found as an orphan.
            self._report_trouble(error.message)
            return []
        finally:
            self._is_claiming = False
        plenty = len(found) == self._at_once
        self._at_once = min(2 * self._at_once, MOST_AT_ONCE) if plenty else 1
        return found

    def _make_stopper(self) -> Stopper:
        stopper = Stopper()
        if self._is_cancelling:
            stopper.stop(ExitReason.CANCELLED)
        if not self._context.lease.holds(self._context.clock.monotonic()):
            stopper.abandon()
        return stopper

    async def _run(self, job: Job, taken: Applied, stopper: Stopper) -> None:
        self._reports.on_start(job)
        agent = self._agents[job.agent]
        try:
            ended = await run_taken_job(
                job,
                agent,
                self._context,
                on_event=lambda event: self._reports.on_event(job, event),
                stopper=stopper,
                taken=taken,
            )
        except NightherdError as error:
            # Fenced: another worker has it by now. Anything else: it is an orphan, to be rescued.
            self._report_trouble(f"{job.id}: {error.message}")
            if isinstance(error, StateError) and error.can_pass:
                # With a full disk, say, each job that is taken would be given back at once.
                self._backoff.hold(error.message, self._context.clock.monotonic())
        except Exception as error:  # noqa: BLE001 (an edge: one job takes no other with it)
            self._report_trouble(f"{job.id}: {type(error).__name__}: {error}")
        else:
            self._backoff.reset()
            self._reports.on_end(ended)
        finally:
            self._running.pop(job.id, None)
            self._freed.set()

    async def _oversee(self) -> None:
        await oversee(self._running, self._context, wait=self._beats.wait)
        self._report_trouble("the lease is lost; every job is left to other workers")
        self.drain()

    async def _repeat(self, duty: Callable[[], Awaitable[None]], every_s: float) -> None:
        while True:
            await duty()
            await self._beats.wait(every_s)

    async def _wake_due(self) -> None:
        """Jobs that wait for a time, or for an answer that is overdue, wait for a worker when it has come."""
        try:
            for duty in (wake_jobs, expire_items, advance_due_runs):
                if await duty(self._context):
                    self._freed.set()
        except NightherdError as error:
            self._report_trouble(error.message)

    async def _see_to(self, duty: Callable[[WorkerContext], Awaitable[object]]) -> None:
        """Do the duty. A failure is reported, and does not end the worker."""
        try:
            await duty(self._context)
        except NightherdError as error:
            self._report_trouble(error.message)

    async def _obey_answers(self) -> None:
        """Jobs that wait although they have been answered continue."""
        while True:
            await self._see_to(self._answers.obey)
            await anyio.sleep(ANSWERS_S)

    async def _rescue_lost(self) -> None:
        for notice in self._context.state.take_notices():
            self._reports.on_trouble(notice)
        try:
            rescued = await rescue(
                self._record,
                self._rescue_terms,
                is_orphan=self._is_orphan,
                # Given up by others, it still stops its own jobs itself first.
                is_wanted=lambda job: job.id not in self._running,
                on_trouble=self._report_trouble,
                threads=self._context.threads,
            )
        except NightherdError as error:
            self._report_trouble(f"rescue: {error.message}")
            return
        for job in rescued:
            log_rescue(job, self._context)
            self._abandoned.add(job)
            self._reports.on_rescue(job)

    def _is_orphan(self, job: Job) -> bool:
        """Whether the job is ours by its row only: it could not be settled when it ended here."""
        return job.worker == self._context.worker and not (self._is_claiming or self._runs(job))

    def _runs(self, job: Job) -> bool:
        """Whether it runs here: by itself, or in the place of a job above it."""
        found: Job | None = job
        while found is not None:
            if found.id in self._running:
                return True
            above = found.parent_job_id
            found = self._record.reader.find_job(above) if above is not None else None
        return False

    def _report_trouble(self, text: str) -> None:
        """Once, however often it is met in a row."""
        if text != self._last_trouble:
            self._last_trouble = text
            self._reports.on_trouble(text)


def one_at_a_time(duty: Callable[[], Awaitable[None]]) -> Callable[[], Awaitable[None]]:
    """Return the duty, which waits while it is being done already.

    An idle worker must not leave while its other rescue has ended a job whose hooks are still to run.
    """
    lock = anyio.Lock()

    async def in_turn() -> None:
        async with lock:
            await duty()

    return in_turn
