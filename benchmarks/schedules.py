"""What schedules cost: 10,000 of them at rest, 200 due in one second, and `status` after a long history.

One process with everything on: durability `checkpoint`, ledger and mirror. At rest, CPU is what the process
used while nothing was due. Firing is measured from the instant of the slot until its job is on record and
acknowledged.
"""

from __future__ import annotations

import os
import resource
import tempfile
import time
from collections.abc import Callable, Mapping
from datetime import datetime, timedelta
from pathlib import Path

import anyio
from msgspec.structs import replace

from nightherd.engine.schedules.scheduler import Scheduler, SchedulingReports
from nightherd.host.process import is_at_work
from nightherd.model.agents.agent import Agent, Fleet
from nightherd.model.agents.state import AgentState, AgentStatus
from nightherd.model.change import AdoptRows, Row
from nightherd.model.ids import JobId
from nightherd.model.jobs.job import ExitReason, Job, JobStatus, TriggerType
from nightherd.model.schedules.rule import Cron, Interval, Rule, Schedule
from nightherd.runtimes.scripted.capabilities import SCRIPTED
from nightherd.views.fleet.fleet import show_fleet
from nightherd.wiring.running import open_worker
from nightherd.wiring.stores import open_reader, open_repair, system_clock

AGENTS, EACH = 1_000, 10
REST_S = 10
DUE = 200
SECONDS = 5
HISTORY, SHORT = 100_000, 100
AT_ONCE = 1_000
ROUNDS = 200


def make_fleet(agents: int, rules: list[Rule]) -> Fleet:
    """Agents that all have these schedules."""
    schedules = {
        f"rule{number}": Schedule(name=f"rule{number}", rule=rule, prompt="go", max_overlap=1_000)
        for number, rule in enumerate(rules)
    }
    made = [
        Agent(
            name=f"agent{number}",
            runtime=SCRIPTED,
            working_directory="/",
            schedules=schedules,
        )
        for number in range(agents)
    ]
    return Fleet(file="nightherd.yaml", agents={agent.name: agent for agent in made})


async def rest(folder: Path) -> tuple[float, float]:
    """Seconds to plan everything, and the share of a core while nothing is due."""
    far: list[Rule] = [Interval(every=timedelta(days=365 + number)) for number in range(EACH // 2)]
    far += [Cron(expression=f"0 0 1 1 {number}") for number in range(EACH - len(far))]
    fleet = make_fleet(AGENTS, far)
    async with open_worker(folder, fleet, os.environ) as context:
        scheduler = Scheduler(fleet, context)
        begin = time.perf_counter()
        await scheduler.plan_now()
        planned = time.perf_counter() - begin
        await anyio.sleep(3)  # the mirror writes down what was planned
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(scheduler.run)
            await anyio.sleep(1)
            used, wall = time.process_time(), time.perf_counter()
            await anyio.sleep(REST_S)
            share = (time.process_time() - used) / (time.perf_counter() - wall)
            tasks.cancel_scope.cancel()
    return planned, share


async def fire(folder: Path) -> list[float]:
    """How late each slot's job was on record, in seconds, with `DUE` of them due every second."""
    second = timedelta(seconds=1)
    fleet = make_fleet(DUE, [Interval(every=second)])
    clock, late, is_enough = system_clock(), list[float](), anyio.Event()
    due: dict[str, datetime] = {}

    def fired(schedule: str, _job: str) -> None:
        late.append((clock.now() - due[schedule]).total_seconds())
        due[schedule] += second
        if len(late) >= DUE * SECONDS:
            is_enough.set()

    def skipped(schedule: str, _reason: str) -> None:
        due[schedule] += second

    async with open_worker(folder, fleet, os.environ) as context:
        reports = SchedulingReports(on_fire=fired, on_skip=skipped)
        scheduler = Scheduler(fleet, context, reports)
        await scheduler.plan_now()
        for state in context.reader.list_schedules():
            due[state.id] = state.next_due_at or clock.now()
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(scheduler.run)
            await is_enough.wait()
            tasks.cancel_scope.cancel()
    return late[DUE:]


async def fill(folder: Path, count: int) -> None:
    """A history of jobs that have ended, and every tenth agent at work on one more."""
    async with open_repair(folder) as record:
        now = record.clock.now()
        job = Job(
            id=JobId(""),
            agent="agent0",
            trigger_type=TriggerType.MANUAL,
            status=JobStatus.COMPLETED,
            exit_reason=ExitReason.SUCCESS,
            created_at=now,
            started_at=now,
            finished_at=now,
        )
        for begin in range(0, count, AT_ONCE):
            numbers = range(begin, min(begin + AT_ONCE, count))
            rows = tuple(
                replace(job, id=JobId(f"job-2026-01-01-{number:06d}"), agent=f"agent{number % 100}")
                for number in numbers
            )
            await record.state.apply([AdoptRows(rows=rows, source="bench")])
        at_work: list[Row] = []
        for place in range(0, 100, 10):
            running = JobId(f"job-2026-01-02-{place:06d}")
            agent = f"agent{place}"
            at_work.append(AgentState(name=agent, status=AgentStatus.RUNNING, current_job=running))
            at_work.append(
                replace(job, id=running, agent=agent, status=JobStatus.RUNNING, exit_reason=None)
            )
        await record.state.apply([AdoptRows(rows=tuple(at_work), source="bench")])


def ask(folder: Path, fleet: Fleet) -> Callable[[], object]:
    """What `status` asks of the state."""
    reader, clock = open_reader(folder), system_clock()
    return lambda: show_fleet(reader, fleet.agents, is_at_work, clock.now())


def best(questions: Mapping[int, Callable[[], object]]) -> dict[int, float]:
    """The least time each took, asked in turn: whatever else the machine does then happens to all of them."""
    least = dict.fromkeys(questions, float("inf"))
    for _ in range(ROUNDS):
        for count, question in questions.items():
            begin = time.perf_counter()
            question()
            least[count] = min(least[count], time.perf_counter() - begin)
    return least


def main() -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        planned, share = anyio.run(rest, folder / "rest")
        megabytes = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
        print(f"{AGENTS * EACH:,} schedules planned and on record in {planned:.1f} s")
        print(f"the process took at most {megabytes:.0f} MB")
        print(
            f"CPU per second with {AGENTS * EACH} schedules at rest: {share * 1_000:.1f} ms (limit 20 ms)"
        )

        late = sorted(anyio.run(fire, folder / "fire"))
        middle, p99 = late[len(late) // 2], late[int(len(late) * 0.99)]
        print(
            f"{DUE} slots due at one instant, {SECONDS - 1} times: half on record after {middle * 1e3:.0f} ms"
        )
        print(
            f"slot to job on record, p99 of {DUE} in one second: {p99 * 1_000:.0f} ms (limit 250 ms)"
        )

        fleet = make_fleet(100, [])
        questions = {}
        for count in (SHORT, HISTORY):
            state = folder / f"jobs{count}"
            state.mkdir()
            (state / "ledger").mkdir()
            anyio.run(fill, state, count)
            questions[count] = ask(state, fleet)
        times = best(questions)
        for count, seconds in times.items():
            print(
                f"status of 100 agents with {count:,} jobs on record: {seconds * 1e3:.2f} ms in the store"
            )
        print(
            f"status, {HISTORY} jobs against {SHORT}: {times[HISTORY] / times[SHORT]:.2f}x (limit 1.1x)"
        )


if __name__ == "__main__":
    main()
