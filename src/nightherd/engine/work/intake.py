"""Intake: looks for issues beside the scheduler, so that no tracker holds up a schedule.

The scheduler asks for an issue when a slot is due, looks again a moment later, and fires the slot with the answer: with
an issue, or skipped with the reason.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta

import anyio
import msgspec
from anyio.abc import TaskGroup

from nightherd.engine.contexts import FleetContext
from nightherd.engine.work.claim import DECIDED, find_issue
from nightherd.engine.work.context import WorkContext, end_claim
from nightherd.engine.work.found import BusyIssue, Found, FoundIssue, NoIssue
from nightherd.errors import message_of, unwrapped
from nightherd.model.agents.agent import Agent
from nightherd.model.log import LogLevel
from nightherd.model.schedules.rule import Schedule
from nightherd.model.schedules.schedule import schedule_id
from nightherd.model.work.item import WorkOutcome
from nightherd.model.work.source import WorkSource

FRESH = timedelta(seconds=30)
"""How long an answer counts; an issue that is held longer is looked at again."""
PATIENCE_S = 40.0
"""How long is looked for an issue. A slot that waited longer than a minute would count as missed."""
LATEST = 50
"""Slots of a schedule among which the one is looked for that an issue is for."""
BUSY_S = 1.0
"""How long to wait while another process claims an issue for the same schedule."""


class _Answer(msgspec.Struct, frozen=True, kw_only=True):
    found: Found
    at: datetime


class _Wanted(msgspec.Struct, frozen=True, kw_only=True):
    agent: Agent
    schedule: Schedule
    source: WorkSource
    slot_id: str | None


class Intake:
    """What one process looks for. `wake` is called whenever there is an answer."""

    def __init__(
        self,
        context: WorkContext,
        wake: Callable[[], None] = lambda: None,
        *,
        patience_s: float = PATIENCE_S,
    ) -> None:
        self._context = context
        self._wake = wake
        self._patience_s = patience_s
        self._wanted: dict[str, _Wanted] = {}
        self._active: set[str] = set()
        self._answers: dict[str, _Answer] = {}
        self._unused: list[FoundIssue] = []
        self._locks: dict[str, anyio.Lock] = {}
        self._changed = anyio.Event()

    def wake_with(self, wake: Callable[[], None]) -> None:
        """Call this from now on whenever there is an answer."""
        self._wake = wake

    def adopt(self, context: FleetContext) -> None:
        """From now on the fleet is this one."""
        self._context.fleet = context

    def answer(self, key: str) -> Found | None:
        """Return what was found for the schedule's next slot; None until it is known."""
        answer = self._answers.get(key)
        if answer is None or not answer.at <= self._context.now() <= answer.at + FRESH:
            return None
        return answer.found

    def ask(self, agent: Agent, schedule: Schedule, slot_id: str | None = None) -> None:
        """Look for an issue for that slot of the schedule, unless that is being done."""
        key = schedule_id(agent.name, schedule.name)
        self._answers.pop(key, None)
        if schedule.work is not None:
            wanted = _Wanted(agent=agent, schedule=schedule, source=schedule.work, slot_id=slot_id)
            # Another slot may be due by now than the one that is being looked for.
            self._wanted[key] = wanted
            self._changed.set()

    def keep(self, key: str) -> None:
        """Keep an issue for the schedule's next slot: another process has decided this one.

        The settler gives it back if there is none soon.
        """
        answer = self._answers.get(key)
        if answer is not None and isinstance(answer.found, NoIssue):
            del self._answers[key]

    def use(self, key: str, *, has_job: bool) -> None:
        """Take the answer as used: the slot has its outcome. An issue that got no job is given back."""
        answer = self._answers.pop(key, None)
        if answer is not None and isinstance(answer.found, FoundIssue) and not has_job:
            self._unused.append(answer.found)
            self._changed.set()

    async def run(self) -> None:
        """Look for what is asked for until cancelled."""
        async with anyio.create_task_group() as tasks:
            while True:
                self._changed = anyio.Event()
                await self.look(tasks)
                await self._changed.wait()

    async def look(self, tasks: TaskGroup) -> None:
        """Begin what is asked for, and give back what is not used."""
        unused, self._unused = self._unused, []
        for found in unused:
            try:
                await end_claim(found.item, WorkOutcome.UNUSED, self._context)
            except Exception as error:  # noqa: BLE001 (an edge: the settler gives it back a little later)
                message = f"{found.item.id} is not given back yet: {message_of(unwrapped(error))}"
                self._context.log("work.trouble", found.item, message, LogLevel.WARNING)
        for key in tuple(self._wanted):
            if key not in self._active:
                self._active.add(key)
                tasks.start_soon(self._find, key)

    async def _find(self, key: str) -> None:
        found: Found
        try:
            with anyio.fail_after(self._patience_s):
                found = await self._found(key)
        except TimeoutError:
            # What was begun is in hand for a while yet; then the settler gives it back.
            reason = f"no issue was found within {self._patience_s:g}s: its tracker is slow, or another process has it"
            found = NoIssue(reason=reason, is_error=True)
        except Exception as error:  # noqa: BLE001 (an edge: the slot is skipped with the reason)
            reason = f"no issue could be taken: {message_of(unwrapped(error))}"
            found = NoIssue(reason=reason, is_error=True)
        finally:
            self._active.discard(key)
            self._wanted.pop(key, None)
        if found is not DECIDED:  # else it is asked again for the slot that is due then
            self._answers[key] = _Answer(found=found, at=self._context.now())
        self._wake()

    async def _found(self, key: str) -> Found:
        wanted = self._wanted[key]
        agent, schedule, source = wanted.agent.name, wanted.schedule.name, wanted.source
        while True:
            # A tracker wants to be asked one thing after the other.
            async with self._locks.setdefault(source.id, anyio.Lock()):
                found = await find_issue(
                    agent, schedule, source, self._context, lambda: self._is_open(key)
                )
            if not isinstance(found, BusyIssue):
                return found
            await anyio.sleep(BUSY_S)

    def _is_open(self, key: str) -> bool:
        """Whether no process has decided the slot yet."""
        latest = self._context.fleet.reader.list_slots(key, LATEST)
        return self._wanted[key].slot_id not in {slot.id for slot in latest}
