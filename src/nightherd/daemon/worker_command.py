"""The workers of one `nightherd worker`, one after the other.

Most of a new configuration is taken over as it goes. What a worker is opened with, such as its lease, cannot be
changed under it: then it finishes what it runs, and another begins beside it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import anyio
import msgspec
from anyio import to_thread
from anyio.abc import TaskGroup, TaskStatus

from nightherd.daemon.worker_service import worker_groundwork
from nightherd.engine.contexts import WorkerContext
from nightherd.engine.notifications.notifier import Notifier
from nightherd.engine.work.settler import Settler
from nightherd.engine.workers.changed_fleet import for_fleet
from nightherd.engine.workers.output_logs import with_output_logs
from nightherd.engine.workers.worker import WorkerLoop, WorkerReports
from nightherd.errors import FencedError, message_of, unwrapped
from nightherd.model.agents.agent import Fleet
from nightherd.model.jobs.retry import Backoff
from nightherd.model.text import counted
from nightherd.next_step import Action, NextStep, SpellStep, plain_step
from nightherd.wiring.files import write_output_log
from nightherd.wiring.notifications import make_notifier
from nightherd.wiring.running import make_worker_loop, open_worker
from nightherd.wiring.work import make_work


class Place(msgspec.Struct, frozen=True, kw_only=True):
    """The state directory of workers, how long they run, and where they report."""

    state_dir: Path
    environ: Mapping[str, str]
    leaves_when_idle: bool
    reports: WorkerReports
    report: Callable[[str], None]
    spell: SpellStep = plain_step
    """How notifications write commands."""


class _AtWork(msgspec.Struct, kw_only=True):
    """One worker while it takes what comes."""

    loop: WorkerLoop
    context: WorkerContext
    groundwork: tuple[Any, ...]
    notifier: Notifier
    settler: Settler
    """Tells trackers of issues what came of jobs: there may be no daemon that does."""
    left: anyio.Event = msgspec.field(default_factory=anyio.Event)
    """It takes no more jobs; what it runs may still continue."""
    is_relieved: bool = False
    failure: Exception | None = None
    """Why it had to stop, if it had to."""


class Relay:
    """Workers for a fleet that may change; the last one takes what comes."""

    def __init__(self, place: Place, fleet: Fleet) -> None:
        self._place = place
        self._fleet = fleet
        self._shifts: list[WorkerLoop] = []
        self._last: _AtWork | None = None
        """The one that takes what comes; None while it is being opened."""
        self.is_draining = False
        """Whether no more jobs are taken."""
        self._is_cancelling = False
        self._backoff = Backoff()
        self._drained = anyio.Event()

    async def work(self) -> None:
        """Work until it is drained or idle; `FencedError` when the worker was given up by others.

        A worker that had to stop because of a fault such as a full disk is followed by another, once that
        can begin. Only the first has to begin at once.
        """
        async with anyio.create_task_group() as tasks:
            at_work: _AtWork | None = await tasks.start(self._run_one_worker)
            while at_work is not None:
                # The fleet may have changed while it was opened.
                await self.adopt(self._fleet)
                await at_work.left.wait()
                if at_work.failure is not None:
                    await self._pause(at_work.failure)
                elif not at_work.is_relieved:
                    return
                at_work = await self._next(tasks)

    async def _next(self, tasks: TaskGroup) -> _AtWork | None:
        """The next worker, once one can begin; None when no more jobs are to be taken."""
        while not self.is_draining:
            try:
                at_work: _AtWork = await tasks.start(self._run_one_worker)
            except Exception as error:  # noqa: BLE001 (an edge: what fails now may work later)
                await self._pause(error)
            else:
                self._backoff.reset()
                return at_work
        return None

    async def _pause(self, error: Exception) -> None:
        """Say what failed, once in a row, and wait before the next worker begins."""
        message = message_of(unwrapped(error))
        pause_s, is_new = self._backoff.fail(message)
        if is_new:
            self._place.report(f"{message}; trying again until it works")
        with anyio.move_on_after(pause_s):
            await self._drained.wait()

    async def adopt(self, fleet: Fleet) -> None:
        """From now on the fleet is this one, for everything that begins."""
        groundwork = worker_groundwork(fleet, self._place.state_dir)
        self._fleet, last = fleet, self._last
        if last is None or last.loop.fleet is fleet:
            return
        before = last.loop.fleet
        last.loop.adopt(fleet)
        changed = for_fleet(last.context, fleet, before)
        last.notifier.adopt(fleet, changed.environment, changed.secrets)
        last.settler.adopt(fleet, changed)
        await to_thread.run_sync(last.context.declare, fleet.standing)
        if groundwork == last.groundwork or self.is_draining or last is not self._last:
            return
        self._place.report(
            f"{last.context.worker} finishes its running jobs; another worker starts"
        )
        self._last, last.is_relieved = None, True
        last.loop.drain()
        last.left.set()

    def drain(self) -> None:
        """Take no more jobs; leave when those that run have ended."""
        self.is_draining = True
        self._drained.set()
        for loop in self._shifts:
            loop.drain()

    def cancel(self) -> None:
        """The same, and end those that run."""
        self._is_cancelling = True
        self.is_draining = True
        self._drained.set()
        for loop in self._shifts:
            loop.cancel()

    async def _run_one_worker(
        self, *, task_status: TaskStatus[_AtWork] = anyio.TASK_STATUS_IGNORED
    ) -> None:
        """One worker, from opening the memories to closing them."""
        place, fleet = self._place, self._fleet
        groundwork = worker_groundwork(fleet, place.state_dir)
        async with open_worker(place.state_dir, fleet, place.environ) as context:
            reports = with_output_logs(
                place.reports,
                lambda: self._fleet,
                lambda job: write_output_log(place.state_dir, job),
            )
            loop = make_worker_loop(
                fleet, context, reports, leaves_when_idle=place.leaves_when_idle
            )
            notifier = make_notifier(place.state_dir, fleet, context, place.environ, place.spell)
            _, settler = make_work(fleet, context, context.worker, place.report)
            at_work = _AtWork(
                loop=loop,
                context=context,
                groundwork=groundwork,
                notifier=notifier,
                settler=settler,
            )
            self._shifts.append(loop)
            self._last = at_work
            if self.is_draining:
                loop.cancel() if self._is_cancelling else loop.drain()
            place.report(f"{context.worker} is running for {counted(len(fleet.agents), 'agent')}")
            task_status.started(at_work)
            try:
                await self._see_to_its_end(at_work)
            finally:
                self._shifts.remove(loop)
                at_work.left.set()

    async def _see_to_its_end(self, at_work: _AtWork) -> None:
        """Let it work until it leaves; why it had to, if it did not leave by itself."""
        context = at_work.context
        try:
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(at_work.notifier.run)
                tasks.start_soon(at_work.settler.run)
                await at_work.loop.work()
                at_work.notifier.leave()
                at_work.settler.leave()
        except Exception as error:  # noqa: BLE001 (an edge: another worker follows)
            at_work.failure = error
            return
        if context.lease.holds(context.clock.monotonic()):
            return
        at_work.failure = context.lease.failure
        if at_work.failure is None:
            raise FencedError(
                f"{context.worker} did not renew its lease in time and was replaced",
                next_step=NextStep(Action.START_WORKER),
            )
