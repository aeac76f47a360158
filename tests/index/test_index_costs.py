"""Costs from the index: exactly what the rows of jobs say, by whatever they are grouped, and nothing twice."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import UTC, timedelta, tzinfo
from itertools import combinations
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from msgspec.structs import replace

from index.test_indexed_outlines import make_worthless
from mirror.mirror_world import World
from nightherd.db.connection import open_for_writing
from nightherd.index.costs import IndexCosts
from nightherd.index.file import FILE, discard_index
from nightherd.index.indexer import Indexer
from nightherd.model.costs.breakdown import CostGroup, CostKey, CostQuery
from nightherd.model.costs.cell import NOTHING, Amounts
from nightherd.model.costs.period import Period, days_of, read_period
from nightherd.model.jobs.job import Job
from nightherd.model.jobs.outcome import usage_of
from nightherd.model.journal.event import AssistantEvent, Event, describe
from nightherd.model.journal.system import ExecutionStarted, Init
from nightherd.model.units import MicroUsd
from nightherd.model.usage import NOTHING_USED, Totals, Usage
from nightherd.model.workflows.rows import WorkflowRun
from nightherd.model.workflows.run import RunId, RunStatus
from nightherd.testing.determinism import START
from nightherd.testing.state_values import BEGINNING, job_id, settle, start, submit

EVER = Period(first=0, until=10**8)
BERLIN = ZoneInfo("Europe/Berlin")
ONE = Usage(input_tokens=10, output_tokens=2, cost_microusd=MicroUsd(1_001))


@pytest.fixture
def indexer(world: World) -> Iterator[Indexer]:
    indexer = Indexer(world.root, world.feed, world.journals)
    yield indexer
    indexer.close()


def ask(
    world: World,
    *by: CostKey,
    period: Period = EVER,
    zone: tzinfo = UTC,
    agent: str | None = None,
    job: str | None = None,
) -> Sequence[CostGroup]:
    """The groups of the index."""
    days = days_of(period, zone) if CostKey.DAY in by else ()
    query = CostQuery(period=period, by=by, days=days, agent=agent, job=job)
    return IndexCosts(world.root).costs(query).groups


def total(groups: Sequence[CostGroup]) -> Amounts:
    return sum((one.amounts for one in groups), NOTHING)


def costs(groups: Sequence[CostGroup], key: str) -> dict[str | None, int]:
    """Micro-dollars by one key."""
    return {getattr(one, key): one.amounts.usage.cost_microusd for one in groups}


def answers(*models: str | None, usage: Usage = ONE) -> list[Event]:
    return [
        AssistantEvent(
            content="moo",
            usage=usage,
            turn=turn,
            message=turn,
            end=True,
            extra=None if name is None else {"response": {"model_name": name}},
        )
        for turn, name in enumerate(models, 1)
    ]


def new_job(world: World, number: int, *models: str | None, **fields: Any) -> None:
    """A job that has answered once with each of the models, and has ended."""
    change = submit(number, agent=fields.pop("agent", "grazer"))
    world.apply(replace(change, job=replace(change.job, **fields)), start(number))
    world.say(number, describe(ExecutionStarted(worker="worker-00000001")), *answers(*models))
    usage = sum([ONE] * len(models), NOTHING_USED)
    world.apply(settle(number, totals=Totals(turns=len(models), usage=usage)))


def rows_total(world: World) -> tuple[Usage, int]:
    """What the rows of all jobs come to."""
    jobs = world.rows.all(Job)
    return sum((usage_of(job) for job in jobs), NOTHING_USED), sum(job.turns for job in jobs)


def whole(world: World, *by: CostKey) -> tuple[Usage, int]:
    found = total(ask(world, *by, period=read_period("2026-01-01", "2026-05-01", BEGINNING, UTC)))
    return found.usage, found.turns


def test_groups_add_up_to_the_rows_of_jobs_however_they_are_grouped(
    world: World, indexer: Indexer
) -> None:
    new_job(world, 1, "opus", "haiku", "opus")
    world.clock.advance(timedelta(hours=30))
    new_job(world, 2, None, None, agent="tester")
    new_job(world, 3, "opus", agent="tester", parent_job_id=job_id(1))
    indexer.catch_up()

    for count in range(len(CostKey) + 1):
        for by in combinations(CostKey, count):
            assert whole(world, *by) == rows_total(world), by
    assert costs(ask(world, CostKey.AGENT), "agent") == {"grazer": 3_003, "tester": 3_003}
    assert costs(ask(world, CostKey.MODEL), "model") == {"opus": 3_003, "haiku": 1_001, None: 2_002}
    by_model = {one.model: one for one in ask(world, CostKey.MODEL)}
    assert by_model[None].agent == "tester"
    assert by_model["opus"].amounts.jobs == 2
    assert costs(ask(world, CostKey.MODEL, agent="tester"), "model") == {"opus": 1_001, None: 2_002}
    of_job = ask(world, CostKey.MODEL, job=job_id(1))
    assert costs(of_job, "model") == {"opus": 2_002, "haiku": 1_001}
    assert ask(world, CostKey.MODEL, job=job_id(1), agent="tester") == []


def test_a_job_counts_on_the_days_on_which_it_worked(world: World, indexer: Indexer) -> None:
    world.apply(submit(1), start(1))
    world.clock.advance(START.replace(hour=22, minute=50) - START)
    world.say(1, *answers("opus", usage=ONE))
    world.clock.advance(timedelta(minutes=20))
    world.say(1, *answers("opus", usage=ONE + ONE))
    indexer.catch_up()
    day = START.date()
    period = read_period(day.isoformat(), f"{day + timedelta(days=2)}", BEGINNING, UTC)

    utc = ask(world, CostKey.DAY, period=period)
    berlin = ask(world, CostKey.DAY, period=period, zone=BERLIN)

    assert costs(utc, "day") == {f"{day}": 3_003}
    assert costs(berlin, "day") == {f"{day}": 1_001, f"{day + timedelta(days=1)}": 2_002}
    assert [one.amounts.jobs for one in berlin] == [1, 1]
    query = CostQuery(period=period, by=(CostKey.DAY,), days=days_of(period, BERLIN))
    assert IndexCosts(world.root).costs(query).jobs == 1


def test_child_jobs_count_for_the_schedule_and_the_run_of_their_first_ancestor(
    world: World, indexer: Indexer
) -> None:
    run = WorkflowRun(
        id=RunId("run-2026-03-01-000001"),
        workflow_name="build",
        trigger_id="slot",
        status=RunStatus.RUNNING,
        current_phase="",
        started_at=BEGINNING,
        updated_at=BEGINNING,
        schedule="hourly",
    )
    part = replace(
        run,
        id=RunId("run-2026-03-01-000002"),
        workflow_name="test",
        schedule=None,
        root_run_id=run.id,
        parent_run_id=run.id,
        number=2,
    )
    world.put(run, part)
    new_job(world, 1, "opus", schedule="nightly")
    new_job(world, 2, "opus", agent="tester", parent_job_id=job_id(1))
    new_job(world, 3, "opus", agent="writer", parent_job_id=job_id(2))
    for number, of in ((4, run), (5, part)):
        new_job(world, number, "opus", agent="tester")
        world.put(replace(world.find_job(number), workflow_run_id=of.id))
    new_job(world, 6, "opus", agent="writer")
    world.put(replace(world.find_job(6), parent_job_id=job_id(5)))
    indexer.catch_up()

    assert costs(ask(world, CostKey.SCHEDULE), "schedule") == {
        "grazer/nightly": 3_003,
        "workflow:build/hourly": 3_003,
    }
    assert costs(ask(world, CostKey.WORKFLOW), "workflow") == {
        None: 3_003,
        "build": 1_001,
        "test": 2_002,
    }
    uses = IndexCosts(world.root).families(EVER)
    assert {(use.agent, use.above, use.schedule) for use in uses} == {
        ("grazer", (), "grazer/nightly"),
        ("tester", ("grazer",), "grazer/nightly"),
        ("writer", ("grazer", "tester"), "grazer/nightly"),
        ("tester", (), "workflow:build/hourly"),
        ("writer", ("tester",), "workflow:build/hourly"),
    }


def test_a_running_job_counts_as_far_as_its_journal_goes_and_then_as_its_row_says(
    world: World, indexer: Indexer
) -> None:
    world.apply(submit(1), start(1))
    begun = describe(ExecutionStarted(worker="worker-00000001"))
    world.say(1, begun, describe(Init(runtime="claude", model="opus")), *answers(None))
    indexer.catch_up()
    assert whole(world)[0] == ONE

    on_its_way = AssistantEvent(content="mo", partial=True, usage=ONE)
    world.say(1, on_its_way)
    indexer.catch_up()
    assert whole(world)[0] == ONE
    usage = ONE + ONE + Usage(cost_microusd=MicroUsd(7))
    world.apply(settle(1, totals=Totals(turns=1, usage=usage)))
    indexer.catch_up()

    assert whole(world) == (usage, 1) == rows_total(world)
    assert costs(ask(world, CostKey.MODEL), "model") == {"opus": usage.cost_microusd}


def test_what_was_used_stays_when_a_journal_is_gone(world: World, indexer: Indexer) -> None:
    new_job(world, 1, "opus")
    new_job(world, 2, "opus")
    indexer.catch_up()
    world.journals.path(job_id(1)).unlink()

    assert indexer.sweep() == 1
    assert indexer.sweep() == 0
    world.put(replace(world.find_job(1), summary="changed"))
    indexer.catch_up()
    assert whole(world) == rows_total(world)
    assert costs(ask(world, CostKey.MODEL), "model") == {"opus": 2_002}
    discard_index(world.root)
    indexer.catch_up()

    assert whole(world) == rows_total(world)
    assert costs(ask(world, CostKey.MODEL), "model") == {"opus": 1_001, None: 1_001}


def test_a_journal_that_was_replaced_is_counted_once(world: World, indexer: Indexer) -> None:
    new_job(world, 1, *["opus"] * 5)
    indexer.catch_up()
    world.journals.path(job_id(1)).unlink()
    world.say(1, *answers("haiku"))
    world.put(replace(world.find_job(1), cost_microusd=MicroUsd(2_000), last_seq=1))
    indexer.catch_up()

    assert whole(world) == rows_total(world)
    assert costs(ask(world, CostKey.MODEL), "model")["haiku"] >= ONE.cost_microusd


def test_two_indexers_count_nothing_twice(world: World, indexer: Indexer) -> None:
    new_job(world, 1, *["opus"] * 3_000)
    other = Indexer(world.root, world.feed, world.journals)
    indexer.follow_changes()
    more = True
    while more:
        more = indexer.index_job(job_id(1)) | other.index_job(job_id(1))
    other.close()

    assert whole(world) == rows_total(world)


def test_a_job_that_was_deleted_does_not_count(world: World, indexer: Indexer) -> None:
    new_job(world, 1, "opus")
    new_job(world, 2, "opus")
    indexer.catch_up()
    rows = world.feed.entries[-1].rows
    world.feed.add([])
    entry = world.feed.entries.pop()
    world.feed.entries.append(
        type(entry)(change=entry.change, at=entry.at, kind="x", rows=[], deleted=rows)
    )
    indexer.catch_up()

    assert whole(world)[0] == ONE


def test_a_damaged_fold_is_made_again(world: World, indexer: Indexer) -> None:
    new_job(world, 1, "opus")
    indexer.catch_up()
    indexer.close()
    database = open_for_writing(world.root / FILE)
    database.execute("UPDATE jobs SET costs = x'7b'")
    database.close()
    world.put(replace(world.find_job(1), summary="changed"))

    indexer.catch_up()

    assert whole(world) == rows_total(world)


def test_a_damaged_index_has_no_costs_and_is_removed(world: World, indexer: Indexer) -> None:
    new_job(world, 1, "opus")
    indexer.catch_up()
    indexer.close()
    make_worthless(world.root / FILE)
    said: list[str] = []
    query = CostQuery(period=EVER)

    found = IndexCosts(world.root, said.append).costs(query)

    assert (found.groups, found.pending_jobs) == ((), None)
    assert "made again" in said[0]
    assert not (world.root / FILE).exists()
    assert IndexCosts(world.root, said.append).costs(query).pending_jobs is None


def test_jobs_that_wait_to_be_indexed_are_named_as_pending(world: World, indexer: Indexer) -> None:
    new_job(world, 1, "opus")
    indexer.due_jobs(1)
    assert IndexCosts(world.root).costs(CostQuery(period=EVER)).pending_jobs is None
    indexer.follow_changes()

    assert IndexCosts(world.root).costs(CostQuery(period=EVER)).pending_jobs == 1
    indexer.catch_up()
    assert IndexCosts(world.root).costs(CostQuery(period=EVER)).pending_jobs == 0


def test_no_column_that_sums_read_stands_behind_a_long_one(world: World, indexer: Indexer) -> None:
    new_job(world, 1, "opus")
    indexer.catch_up()
    database = open_for_writing(world.root / FILE)
    columns = [str(row[1]) for row in database.execute("PRAGMA table_info(jobs)")]
    database.close()

    read = max(columns.index(name) for name in ("number", "agent", "schedule", "run_id", "above"))
    assert read < min(columns.index(name) for name in ("totals", "costs", "outline"))
