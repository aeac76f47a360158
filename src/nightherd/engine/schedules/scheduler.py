"""Scheduling: fires the slots of every schedule when they are due, each exactly once.

Any number of processes may do this on one state directory. What decides is the slot's row: the first to
write it made its job, or skipped it; everybody else is refused and continues. Nothing here waits for a job,
so no schedule delays another.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Collection, Iterator, Sequence
from datetime import datetime, timedelta

import anyio
import msgspec
from anyio.lowlevel import checkpoint

from nightherd.engine.contexts import WorkerContext
from nightherd.engine.limits.logins import stopped_by
from nightherd.engine.operations.schedules import DueSlot, fire_slots
from nightherd.engine.schedules.entries import Entry, Plan, entries, plan, retire
from nightherd.engine.work.found import Found, FoundIssue, NoIssue
from nightherd.engine.work.intake import Intake
from nightherd.engine.workers.changed_fleet import for_fleet
from nightherd.engine.workers.clock_watch import ClockWatch
from nightherd.engine.workers.lease import Beats
from nightherd.errors import NightherdError
from nightherd.model.agents.agent import Fleet
from nightherd.model.change import Answer, Applied, FireSlot, Refused, Why
from nightherd.model.jobs.job import Job
from nightherd.model.schedules.due import Due, review, spread
from nightherd.model.schedules.rule import CatchUp
from nightherd.model.schedules.schedule import (
    ScheduleOverride,
    ScheduleState,
    Slot,
    SlotOutcome,
    slot_id,
)

LOOK_S = 1.0
"""How often the scheduler checks for overrides and for a clock that was set."""
TOGETHER = 200
"""Schedules fired in one transaction."""
SOON_S = 0.05
"""How long to wait before reading what another process just changed."""
NOT_LOOKED_FOR = NoIssue(reason="nothing here looks for issues", is_error=True)
"""For schedules that take issues, where the scheduler has no intake."""


class SchedulingReports(msgspec.Struct, frozen=True, kw_only=True):
    """Called with what the scheduler does."""

    on_fire: Callable[[str, str], None] = lambda schedule, job: None
    """Called with the job or the run that a slot made."""
    on_skip: Callable[[str, str], None] = lambda schedule, reason: None
    on_trouble: Callable[[str], None] = lambda text: None


class _Firing(msgspec.Struct, frozen=True, kw_only=True):
    """One due slot, and what comes after it."""

    entry: Entry
    slot: DueSlot
    instant: datetime
    next: Due | None


class Scheduler:
    """The schedules of one fleet, kept to their time. `adopt` gives it another fleet while it runs.

    `keeps_all` says that the fleet is whole: schedules on record that it does not declare are put to rest.
    `since_boot` gives the seconds since the machine started, by which a clock that is set is noticed.
    `known_since` is when the state directory was made: no slot before it was missed. `intake` finds the issues of
    schedules that work on some.
    """

    def __init__(
        self,
        fleet: Fleet,
        context: WorkerContext,
        reports: SchedulingReports | None = None,
        *,
        keeps_all: bool = True,
        beats: Beats | None = None,
        since_boot: Callable[[], float] | None = None,
        known_since: datetime | None = None,
        intake: Intake | None = None,
    ) -> None:
        self._fleet = fleet
        self._intake = intake
        self._context = context
        self._reports = reports or SchedulingReports()
        self._keeps_all = keeps_all
        self._beats = beats if beats is not None else Beats()
        self._entries: dict[str, Entry] = {}
        self._due: dict[str, Due] = {}
        self._heap: list[tuple[datetime, str]] = []
        self._overrides: dict[str, ScheduleOverride] = {}
        self._stale: set[str] = set()
        self._is_new = True
        boot_clock = since_boot or context.clock.monotonic
        self._clock_watch = ClockWatch(boot_clock, known_since, self._reports.on_trouble)
        self._last_trouble = ""
        self._woken = anyio.Event()

    def adopt(self, fleet: Fleet) -> None:
        """From the next round on these are the schedules."""
        self._context = for_fleet(self._context, fleet, self._fleet)
        self._fleet = fleet
        self._is_new = True
        self.wake()

    def wake(self) -> None:
        """Look now."""
        self._woken.set()

    async def run(self) -> None:
        """Keep every schedule until cancelled. A failure is reported and retried."""
        while True:
            try:
                await self.look()
                self._last_trouble = ""
                wait_s = self._wait_s()
            except NightherdError as error:
                # A full disk, say: nothing is lost, the slots are still due when it is better.
                self._report_trouble(error.message)
                wait_s = LOOK_S
            except Exception as error:  # noqa: BLE001 (an edge: schedules continue while the process does)
                self._report_trouble(f"scheduling: {type(error).__name__}: {error}")
                wait_s = LOOK_S
            with anyio.move_on_after(wait_s):
                await self._woken.wait()
            self._woken = anyio.Event()

    async def look(self) -> None:
        """One round: take in what changed, then fire everything that is due by now."""
        await self._fire(await self.plan_now())

    async def plan_now(self) -> datetime:
        """Take in what changed, and put the next slot of every schedule on record; as of when."""
        now, fleet = self._context.clock.now(), self._fleet
        overrides = {override.id: override for override in self._context.reader.list_overrides()}
        is_set_back = self._clock_watch.is_set_back(now)
        changed = {
            key
            for key in overrides.keys() | self._overrides.keys()
            if overrides.get(key) != self._overrides.get(key)
        }
        if self._is_new or is_set_back:
            await self._plan(overrides, None, now)
        elif changed or self._stale:
            await self._plan(overrides, changed | self._stale, now)
        # Another fleet may have come while this one was planned.
        self._is_new = self._fleet is not fleet
        self._overrides = overrides
        return now

    def _wait_s(self) -> float:
        if self._stale:
            return SOON_S
        look_s = self._beats.left_s(LOOK_S)
        if not self._heap:
            return look_s
        left = (self._heap[0][0] - self._context.clock.now()).total_seconds()
        return min(max(left, 0.0), look_s)

    async def _plan(
        self, overrides: dict[str, ScheduleOverride], only: Collection[str] | None, now: datetime
    ) -> None:
        """Work out the next slot of every schedule, or of `only` those, and put it on record."""
        reader = self._context.reader
        states = {state.id: state for state in reader.list_schedules()}
        found = {
            entry.id: entry for entry in entries(self._fleet, overrides, self._reports.on_trouble)
        }
        wanted = sorted(found.keys() if only is None else found.keys() & set(only))
        if only is None:
            self._is_new = True  # until all of it is on record
            self._entries, self._due, self._heap, self._stale = {}, {}, [], set()
        self._stale -= set(wanted if only is None else only)
        for begin in range(0, len(wanted), TOGETHER):
            keys = wanted[begin : begin + TOGETHER]
            plans = (self._plan_one(found[key], states.get(key), now) for key in keys)
            await self._record([one for one in plans if one is not None])
            await checkpoint()  # a large fleet must not hold up what else runs here
        if self._keeps_all and only is None:
            gone = [state for key, state in states.items() if key not in found]
            retired = [retire(state, overrides.get(state.id)) for state in gone]
            await self._context.state.apply([one for one in retired if one is not None])

    def _plan_one(self, entry: Entry, state: ScheduleState | None, now: datetime) -> Plan | None:
        """Return the schedule's next slot; None, with a report, for a broken schedule."""
        try:
            return plan(entry, state, now, self._context.reader)
        except NightherdError:
            raise
        except Exception as error:  # noqa: BLE001 (an edge: one schedule takes no other with it)
            self._reports.on_trouble(f"{entry.id} is left out: {type(error).__name__}: {error}")
            return None

    async def _record(self, plans: Sequence[Plan]) -> None:
        changes = [one.change for one in plans if one.change is not None]
        answers = iter(await self._context.state.apply(changes))
        for one in plans:
            answer = next(answers) if one.change is not None else None
            if isinstance(answer, Refused):
                self._stale.add(one.entry.id)
                continue
            self._entries[one.entry.id] = one.entry
            self._expect(one.entry.id, one.due)

    def _expect(self, key: str, due: Due | None, *, at: datetime | None = None) -> None:
        """The schedule's next slot is this one; looked at when it is fired, or `at` that time."""
        if due is None:
            self._due.pop(key, None)
            return
        self._due[key] = due
        heapq.heappush(self._heap, (at or due.runs_at, key))

    async def _fire(self, now: datetime) -> None:
        """Give every slot that is due its outcome, many schedules in one transaction."""
        due = list(self._take_due(now))
        for begin in range(0, len(due), TOGETHER):
            batch = due[begin : begin + TOGETHER]
            firings = [firing for entry in batch for firing in self._firings_of(entry, now)]
            try:
                await self._apply(firings, now)
            except BaseException:
                for entry in due[begin:]:
                    self._expect(entry.id, self._due.get(entry.id))
                raise

    def _take_due(self, now: datetime) -> Iterator[Entry]:
        """The schedules that have something due, each once."""
        taken: set[str] = set()
        while self._heap and self._heap[0][0] <= now:
            _, key = heapq.heappop(self._heap)
            due, entry = self._due.get(key), self._entries.get(key)
            if due is None or entry is None or key in taken:
                continue
            if due.runs_at <= now:
                taken.add(key)
                yield entry

    def _firings_of(self, entry: Entry, now: datetime) -> list[_Firing]:
        """Return what is due of a schedule; nothing, with a report, for a broken schedule."""
        try:
            return list(self._firings(entry, now))
        except NightherdError:
            raise
        except Exception as error:  # noqa: BLE001 (an edge, as above)
            self._reports.on_trouble(f"{entry.id} is left out: {type(error).__name__}: {error}")
            self._due.pop(entry.id, None)
            return []

    def _firings(self, entry: Entry, now: datetime) -> Iterator[_Firing]:
        due, rule = self._due[entry.id], entry.rule
        if rule is None:
            return
        found = review(entry.id, entry.schedule, rule, due.instant, now, self._clock_watch.floor)
        jitter, waits = entry.schedule.jitter, entry.schedule.catch_up is CatchUp.ALL
        following = [spread(entry.id, rule, one.instant, jitter) for one in found.verdicts[1:]]
        together = list(zip(found.verdicts, [*following, found.next], strict=True))
        work = self._found_for(entry)
        # Those that wait for each other need not be tried before it is their turn.
        for verdict, after in together[: entry.schedule.max_overlap] if waits else together:
            slot = Slot(
                id=slot_id(entry.id, verdict.instant),
                schedule_id=entry.id,
                due_at=verdict.instant,
                outcome=SlotOutcome.SKIPPED,
                decided_at=now,
                reason=verdict.reason,
            )
            change = FireSlot(
                slot=slot,
                agent=entry.agent.name,
                schedule=entry.schedule.name,
                next_run_at=after.runs_at if after is not None else None,
                next_due_at=after.instant if after is not None else None,
                override=entry.override_rule,
                max_overlap=entry.schedule.max_overlap,
                max_suspended=entry.schedule.max_suspended,
                waits=waits,
                stopped_by=stopped_by(entry.agent, self._context.environment),
            )
            due_slot = DueSlot(
                agent=entry.agent,
                schedule=entry.schedule,
                change=change,
                makes_job=verdict.is_job,
                found=work,
            )
            if verdict.is_job:
                work = None  # an issue is for one job
            yield _Firing(entry=entry, slot=due_slot, instant=verdict.instant, next=after)

    def _found_for(self, entry: Entry) -> Found | None:
        """What was found for the next job of a schedule that takes issues."""
        source = entry.schedule.work
        if source is None:
            return None
        if self._intake is None:
            return NOT_LOOKED_FOR
        found = self._intake.answer(entry.id)
        # One of a source that was declared otherwise meanwhile is given back when it is looked for again.
        is_other = isinstance(found, FoundIssue) and found.source != source
        return None if is_other else found

    async def _apply(self, firings: Sequence[_Firing], now: datetime) -> None:
        answers = await fire_slots([firing.slot for firing in firings], self._context)
        held: set[str] = set()
        for firing, answer in zip(firings, answers, strict=True):
            if firing.entry.id not in held and not self._take_in(firing, answer, now):
                held.add(firing.entry.id)
            self._take_in_work(firing, answer)

    def _take_in_work(self, firing: _Firing, answer: Answer) -> None:
        """Look for an issue where the slot needs one, and take what was found as used where it is decided."""
        intake, entry = self._intake, firing.entry
        if intake is None or entry.schedule.work is None or not firing.slot.makes_job:
            return
        match answer:
            case Refused(why=Why.NO_WORK):
                intake.ask(entry.agent, entry.schedule, firing.slot.change.slot.id)
            case Refused(why=Why.FULL):
                pass  # the slot waits, and so does its issue
            case Refused(why=Why.DUPLICATE):
                intake.keep(entry.id)
            case _ if firing.slot.found is not None:
                intake.use(entry.id, has_job=isinstance(answer, Applied) and answer.job is not None)
            case _:
                pass

    def _take_in(self, firing: _Firing, answer: Answer, now: datetime) -> bool:
        """Return whether to continue after the slot: it was decided, here or by another process."""
        key = firing.entry.id
        match answer:
            case Applied(run_id=str(run_id)):
                self._reports.on_fire(key, run_id)
            case Applied(job=None, rows=rows):
                reasons = [row.reason for row in rows if isinstance(row, Slot)]
                self._reports.on_skip(key, reasons[0] or "")
            case Applied(job=Job() as job):
                self._reports.on_fire(key, job.id)
            case Refused(why=Why.FULL | Why.NO_WORK):
                waiting = Due(instant=firing.instant, runs_at=now)
                self._expect(key, waiting, at=now + timedelta(seconds=LOOK_S))
                return False
            case Refused(why=why) if why is not Why.DUPLICATE:
                # Overridden or disabled meanwhile: it is looked at again.
                self._due.pop(key, None)
                self._stale.add(key)
                return False
            case _:
                pass
        self._expect(key, firing.next)
        return True

    def _report_trouble(self, text: str) -> None:
        """Once, however often it is met in a row."""
        if text != self._last_trouble:
            self._last_trouble = text
            self._reports.on_trouble(text)
