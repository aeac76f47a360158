"""The settler: follows the issues that are taken, and tells their trackers when their jobs have ended."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Sequence
from datetime import datetime, timedelta

import anyio

from nightherd.engine.contexts import FleetContext
from nightherd.engine.work.context import WorkContext, end_claim, forgive_refusals
from nightherd.engine.work.left import LeftIssues
from nightherd.engine.work.settle import end_finished, settle
from nightherd.errors import message_of, unwrapped
from nightherd.model.agents.agent import Fleet
from nightherd.model.jobs.retry import Backoff
from nightherd.model.work.item import (
    HAND,
    WITHOUT_JOB,
    WorkItem,
    WorkOutcome,
    WorkStatus,
    lies_ahead,
)
from nightherd.views.work.work import every_source

INTERVAL_S = 1.0
IDLE_S = 15.0
"""The same while nothing is taken and no schedule takes anything."""
LAST_PATIENCE_S = 10.0
"""How long a process that leaves waits for trackers."""
ABANDONED = timedelta(seconds=30)
"""How long after the hand of a process has passed its claim is given back; until then a slot may continue it."""


class Settler:
    """What one process settles. Nothing it meets ends it: what fails now may work later."""

    def __init__(
        self, fleet: Fleet, context: WorkContext, report: Callable[[str], None] = lambda text: None
    ) -> None:
        self._context = context
        self._report = report
        self._backoff = Backoff()
        self._left = LeftIssues(context)
        self._sources = every_source(fleet.agents.values())
        self._is_leaving = False
        self._may_forgive = True
        self._changed = anyio.Event()

    def adopt(self, fleet: Fleet, context: FleetContext) -> None:
        """From now on the fleet is this one."""
        self._context.fleet = context
        self._sources, self._may_forgive = every_source(fleet.agents.values()), True
        self._changed.set()

    def leave(self) -> None:
        """Make `run` end soon."""
        self._is_leaving = True
        self._changed.set()

    async def run(self) -> None:
        """Settle until `leave` is called; then what has ended by then, if that does not take long."""
        while not self._is_leaving:
            self._changed = anyio.Event()
            pause_s = await self._round()
            with anyio.move_on_after(pause_s):
                await self._changed.wait()
        with anyio.move_on_after(LAST_PATIENCE_S):
            await self._round()

    async def _round(self) -> float:
        """Look once; return how long to wait before the next look."""
        try:
            if self._may_forgive:
                await forgive_refusals(self._sources, self._context)
                self._may_forgive = False
            is_busy = await self.look()
            await self._left.look(self._sources)
        except Exception as error:  # noqa: BLE001 (an edge: jobs and schedules go on)
            message = message_of(unwrapped(error))
            pause_s, is_new = self._backoff.fail(message)
            if is_new:
                self._report(f"issues are not settled: {message}; trying again until it works")
            return pause_s
        self._backoff.reset()
        return INTERVAL_S if is_busy or self._sources else IDLE_S

    async def look(self) -> bool:
        """Do what can be done now; return whether any issue is taken. What fails for one keeps no other from its turn."""
        items = self._context.fleet.reader.open_work_items()
        by_source: dict[str, list[WorkItem]] = defaultdict(list)
        for item in items:
            by_source[item.source].append(item)
        failures: list[Exception] = []
        async with anyio.create_task_group() as tasks:
            for of_source in by_source.values():
                tasks.start_soon(self._look_at, of_source, failures)
        if failures:
            raise failures[0]
        return bool(items)

    async def _look_at(self, items: Sequence[WorkItem], failures: list[Exception]) -> None:
        """The issues of one source, one after the other."""
        for item in items:
            try:
                await self._advance(item)
            except Exception as error:  # noqa: BLE001 (an edge: reported by the round)
                failures.append(error)

    async def _advance(self, item: WorkItem) -> None:
        context = self._context
        if item.status in WITHOUT_JOB and self._is_abandoned(item):
            await end_claim(item, WorkOutcome.UNUSED, context)
        elif item.status is WorkStatus.WORKING:
            await end_finished(item, context)
        current = context.fleet.reader.find_work_item(item.id)
        if current is None or current.status is not WorkStatus.SETTLING:
            return
        if not lies_ahead(current.due_at, context.now()):
            await settle(current, context)

    def _is_abandoned(self, item: WorkItem) -> bool:
        until: datetime = (item.step_until or item.changed_at + HAND) + ABANDONED
        return not lies_ahead(until, self._context.now(), HAND + ABANDONED)
