"""A rate limit belongs to a login: jobs that share it do not run into the limit one by one."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta

import anyio
import pytest
from msgspec.structs import replace

from engine.bench import AGENT, Bench
from engine.jobs.test_retries import RunsInTurn
from engine.schedules.stall import HOURLY, Stall, fleet
from engine.yard import Yard, until
from nightherd.engine.jobs.runner import run_job
from nightherd.engine.operations.new_job import JobDraft, record_job
from nightherd.engine.operations.requests import Resume
from nightherd.engine.operations.resume import resume_job
from nightherd.engine.workers.clock_watch import wake_jobs
from nightherd.engine.workers.rescue import rescue
from nightherd.errors import NotYetError
from nightherd.model.agents.agent import Agent
from nightherd.model.change import Answer, Change
from nightherd.model.ids import JobId
from nightherd.model.jobs.changes import SuspendExecution
from nightherd.model.jobs.job import JobStatus, SuspendReason
from nightherd.model.journal.event import ErrorEvent
from nightherd.model.limits.login import STAGGER
from nightherd.runtimes.claude.capabilities import CLI, SDK
from nightherd.testing.determinism import START, FakeClock
from nightherd.testing.memory_state import MemoryStore
from nightherd.testing.runtime import ANSWER
from nightherd.views.fleet.fleet import fleet_document, show_fleet
from nightherd.views.schedules.schedules import list_views, schedule_row
from nightherd.views.schedules.why import why_next

RESET = START + timedelta(hours=3)
HIT = ErrorEvent(
    message="You've hit your limit",
    code="rate_limited",
    extra={"recoverable": True, "resets_at": RESET.isoformat(), "limit": "five_hour"},
)
KEY = {"ANTHROPIC_API_KEY": "sk-of-the-tests"}
FIRST = replace(AGENT, runtime=CLI, max_concurrent=5)
SECOND = replace(FIRST, name="second", runtime=SDK)
SCRIPTED = replace(AGENT, name="scripted")


def yard_of(*runs: list[ErrorEvent] | tuple[object, ...]) -> Yard:
    clock = FakeClock(step=timedelta(0))
    runtime = RunsInTurn(*runs)  # type: ignore[arg-type]
    return Yard(bench=Bench(runtime, agent=FIRST, environment=KEY, clock=clock))


def submit_for(yard: Yard, agent: Agent) -> JobId:
    request = JobDraft(agent=agent, prompt="Fix it")
    return anyio.run(record_job, request, yard.bench.context).job.id


def work(yard: Yard, *agents: Agent) -> None:
    async def go() -> None:
        with anyio.fail_after(60):
            await yard.shift(*agents).work()

    anyio.run(go)


def test_worker_leaves_the_other_jobs_of_a_limited_login_until_the_reset() -> None:
    yard = yard_of([HIT], ANSWER)
    hit = yard.bench.run()
    waiting = [submit_for(yard, FIRST), submit_for(yard, SECOND)]
    free = submit_for(yard, SCRIPTED)

    work(yard, FIRST, SECOND, SCRIPTED)

    assert (hit.suspend_reason, hit.resumes_at) == (SuspendReason.RATE_LIMIT, RESET)
    assert yard.started == [free]
    assert [yard.bench.job(one).status for one in waiting] == [JobStatus.PENDING] * 2

    yard.bench.clock.advance(timedelta(hours=3))
    anyio.run(wake_jobs, yard.bench.context)
    seen: list[int] = []

    async def go() -> None:
        with anyio.fail_after(60):
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(pass_time)
                await yard.shift(FIRST, SECOND, SCRIPTED).work()
                tasks.cancel_scope.cancel()

    async def pass_time() -> None:
        while True:
            await until(lambda: len(yard.ended) > 1 + len(seen))
            seen.append(len(yard.started))
            yard.bench.clock.advance(STAGGER)

    anyio.run(go)

    assert yard.started == [free, hit.id, *waiting], "an idle worker waits for those a moment later"
    assert seen[:2] == [2, 3], "one by one"


def test_job_in_the_foreground_waits_and_says_until_when() -> None:
    yard = yard_of([HIT], ANSWER)
    yard.bench.run()
    job_id = submit_for(yard, SECOND)

    with pytest.raises(NotYetError, match=r"rate limited until .*Z \(five_hour\)"):
        anyio.run(lambda: run_job(job_id, SECOND, yard.bench.context, on_event=lambda event: None))


def test_resume_by_a_person_tries_now() -> None:
    yard = yard_of([HIT], ANSWER)
    hit = yard.bench.run()

    async def resume() -> None:
        async def nobody() -> None:
            """No worker was lost."""

        await resume_job(Resume(job_id=hit.id), FIRST, yard.bench.context, rescue=nobody)

    anyio.run(resume)

    assert yard.bench.execute(hit.id).status is JobStatus.COMPLETED


def test_pause_of_our_own_stops_no_other_job() -> None:
    limited = ErrorEvent(message="No", code="rate_limited", extra={"recoverable": True})
    yard = yard_of([limited], ANSWER)
    yard.bench.context = replace(
        yard.bench.context, retry=replace(yard.bench.context.retry, attempts=1)
    )
    waiting = yard.bench.run()

    work_id = submit_for(yard, SECOND)
    work(yard, FIRST, SECOND)

    assert waiting.resumes_at is not None
    assert yard.started == [work_id]


def test_slots_of_a_limited_login_are_skipped_and_every_view_says_so() -> None:
    declared = fleet(HOURLY, agents=("coder", "twin"), runtime=CLI)
    stall = Stall(declared)
    agent = declared.agents["coder"]
    stall.bench.agent = agent
    stall.bench.context = replace(stall.bench.context, environment=KEY)
    reset = stall.clock.now() + timedelta(hours=2, minutes=30)
    facts = {"recoverable": True, "resets_at": reset.isoformat(), "limit": "five_hour"}
    stall.bench.context = replace(
        stall.bench.context,
        runtimes=lambda name: RunsInTurn(
            [ErrorEvent(message="No", code="rate_limited", extra=facts)]
        ),
    )
    stall.restart()
    stall.look()
    stall.bench.run()

    stall.look(after=timedelta(hours=1))
    now = stall.clock.now()
    until = f"{reset:%Y-%m-%dT%H:%M:%SZ}"
    mine, _ = list_views(stall.bench.reader, declared, lambda worker: True, now)
    shown = show_fleet(stall.bench.reader, declared.agents, lambda worker: True, now)

    assert [one.reason for one in stall.slots()] == [f"rate limited until {until} (five_hour)"]
    assert [one.reason for one in stall.slots("twin/hourly")] == [
        f"rate limited until {until} (five_hour)"
    ]
    assert any(
        f"its login is rate limited until {until}" in one for one in why_next(mine, is_kept=True)
    )
    assert (schedule_row(mine)["rate_limited_until"] or "").startswith(until[:-1])
    (limit,) = fleet_document(shown)["rate_limits"]
    assert (limit["limit"], limit["agents"]) == ("five_hour", ["coder", "twin"])

    stall.look(after=timedelta(hours=2))

    assert stall.slots()[-1].job_id is not None


class Killed(BaseException):
    """Ends a worker where it stands."""


class DiesBeforeTheRow(MemoryStore):
    """The state as a worker sees it that is killed between the journal's `suspended` line and the job's row."""

    def __init__(self, store: MemoryStore) -> None:
        super().__init__()
        self._store = store

    async def apply(self, changes: Sequence[Change]) -> Sequence[Answer]:
        if any(isinstance(change, SuspendExecution) for change in changes):
            raise Killed
        return await self._store.apply(changes)


@pytest.mark.parametrize("limit", ["five_hour", "seven_day_opus", None])
def test_rescue_records_the_limit_that_only_the_journal_knows(limit: str | None) -> None:
    facts = {"recoverable": True, "resets_at": RESET.isoformat(), "limit": limit}
    hit = ErrorEvent(message="No", code="rate_limited", extra=facts)
    whole, killed = yard_of([hit]), yard_of([hit])
    whole.bench.run()
    context = killed.bench.context
    killed.bench.context = replace(context, state=DiesBeforeTheRow(killed.bench.store))
    job_id = submit_for(killed, FIRST)
    with pytest.raises(Killed):
        killed.bench.execute(job_id)
    killed.bench.context = context

    anyio.run(lambda: rescue(killed.record, killed.terms))

    job = killed.bench.job(job_id)
    assert (job.suspend_reason, job.resumes_at) == (SuspendReason.RATE_LIMIT, RESET)
    limits = [yard.bench.reader.list_login_limits(START) for yard in (whole, killed)]
    facts_of = [[(one.id, one.until, one.name) for one in found] for found in limits]
    assert facts_of[0] == facts_of[1] != []
