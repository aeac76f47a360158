"""The limit of tokens counts every kind: input, output, and what was written to or read from a cache."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import anyio
import pytest
from msgspec.structs import replace

from engine.bench import AGENT, Bench
from nightherd.model.agents.agent import Agent
from nightherd.model.agents.runtime import RuntimeCapabilities
from nightherd.model.agents.script import Say, Spend, compile_script
from nightherd.model.change import Change
from nightherd.model.ids import JobId
from nightherd.model.jobs.job import JobStatus
from nightherd.model.journal.event import (
    AssistantEvent,
    Event,
    ToolResultEvent,
    ToolUseEvent,
    describe,
)
from nightherd.model.journal.system import Complete
from nightherd.model.limits.limits import NO_LIMITS, DayLimits, Limits
from nightherd.model.usage import Totals, Usage
from nightherd.runtimes.native.capabilities import NATIVE
from nightherd.runtimes.native.runtime import NativeRuntime
from nightherd.runtimes.scripted.capabilities import SCRIPTED
from nightherd.runtimes.scripted.runtime import ScriptedRuntime
from nightherd.state.directory import init_state_directory
from nightherd.state.reader import SqliteReader
from nightherd.state.store import SqliteStore
from nightherd.testing.determinism import FakeClock
from nightherd.testing.runtime import PlayedRuntime
from nightherd.testing.state_values import job_id, settle, start, submit
from nightherd.views.costs.limits import limits_of_job
from nightherd.views.jobs.checkpoints import checkpoint_row, list_bookmarks, thread_state
from nightherd.views.jobs.jobs import own_job
from nightherd.wiring.runtimes import KNOWN_RUNTIMES

CACHED = Usage(
    input_tokens=10,
    output_tokens=15,
    cache_creation_input_tokens=40_000,
    cache_read_input_tokens=60_000,
)
"""One turn of a long conversation: 100,025 tokens, of which 25 are not in the cache."""
LIMIT = 250_000


def scripted(tmp_path: Path, runtime: RuntimeCapabilities, limits: Limits) -> Agent:
    steps = [step for n in range(4) for step in (Say(f"turn {n + 1}"), Spend(CACHED))]
    return replace(
        AGENT,
        runtime=runtime,
        script=compile_script(steps),
        limits=limits,
        working_directory=str(tmp_path),
    )


def watched_turns() -> Sequence[Event]:
    found: list[Event] = []
    for turn in range(1, 5):
        call = f"call-{turn}"
        found += [
            AssistantEvent(content="on", usage=CACHED, turn=turn, index=0),
            ToolUseEvent(tool_name="Bash", tool_use_id=call, turn=turn, index=1, end=True),
            ToolResultEvent(tool_use_id=call, success=True, turn=turn, index=0, end=True),
        ]
    return [*found, describe(Complete(stop_reason="end_turn"))]


def bench_for(name: str, tmp_path: Path, limits: Limits = NO_LIMITS) -> Bench:
    match name:
        case "native":
            agent = scripted(tmp_path, NATIVE, limits)
            return Bench(NativeRuntime(), agent=agent)  # type: ignore[arg-type]  # any runtime does
        case "scripted":
            agent = scripted(tmp_path, SCRIPTED, limits)
            return Bench(ScriptedRuntime(), agent=agent)  # type: ignore[arg-type]  # any runtime does
        case _:
            agent = replace(AGENT, runtime=KNOWN_RUNTIMES.get(name), limits=limits)
            return Bench(PlayedRuntime(tuple(watched_turns())), agent=agent)


# The Claude runtimes are stopped after the turn that passed the limit, the others before it.
TURNS = {"native": 2, "scripted": 2, "sdk": 2, "cli": 2}


@pytest.mark.parametrize("name", TURNS)
def test_cached_tokens_count_against_the_limit_of_a_job(name: str, tmp_path: Path) -> None:
    job = bench_for(name, tmp_path, Limits(tokens=LIMIT)).run()

    assert (job.status, job.error_code) == (JobStatus.SUSPENDED, "tokens_exceeded")
    assert job.turns == TURNS[name]


@pytest.mark.parametrize("name", TURNS)
def test_cached_tokens_count_against_the_limit_of_a_day(name: str, tmp_path: Path) -> None:
    job = bench_for(name, tmp_path, Limits(per_day=DayLimits(tokens=LIMIT))).run()

    assert (job.status, job.error_code) == (JobStatus.SUSPENDED, "tokens_exceeded")
    assert job.turns == TURNS[name]


def test_cached_tokens_count_against_the_limit_of_the_fleet(tmp_path: Path) -> None:
    bench = bench_for("scripted", tmp_path)
    bench.context = replace(bench.context, budget=Limits(tokens=LIMIT))

    job = bench.run()

    assert (job.error_code, job.turns) == ("tokens_exceeded", 2)


def test_the_kinds_stay_apart_on_record(tmp_path: Path) -> None:
    bench = bench_for("native", tmp_path, Limits(tokens=LIMIT))

    job = bench.run()

    row = checkpoint_row(list_bookmarks(bench.reader, bench.context.journals, job.id)[-1])
    document = thread_state(bench.reader, bench.context.journals, job.id, now=bench.clock.now())
    kinds = {
        "input_tokens": 20,
        "output_tokens": 30,
        "cache_creation_input_tokens": 80_000,
        "cache_read_input_tokens": 120_000,
    }
    assert {name: getattr(job, name) for name in kinds} == kinds
    assert {**row, **kinds} == row
    assert document["cost"]["tokens"] == kinds


def test_what_is_shown_as_used_is_what_is_counted(tmp_path: Path) -> None:
    bench = bench_for("native", tmp_path, Limits(tokens=LIMIT))
    job = bench.run()
    last = list_bookmarks(bench.reader, bench.context.journals, job.id)[-1]

    seen = own_job(bench.reader, job, bench.clock.now())
    (limit,) = limits_of_job(seen, last, bench.reader.used_below(job.id))

    assert limit.used == 2 * 100_025


def test_cached_tokens_of_children_count_for_the_jobs_above(tmp_path: Path) -> None:
    root = tmp_path / ".nightherd"
    init_state_directory(root)
    parent = submit(1)
    child = replace(submit(2), job=replace(submit(2).job, parent_job_id=job_id(1)))
    done = settle(2, totals=Totals(turns=1, usage=CACHED))
    changes: list[Change] = [parent, child, start(2), done]

    async def record() -> None:
        store = SqliteStore(root, FakeClock())
        await store.apply(changes)
        await store.close()

    anyio.run(record)
    reader = SqliteReader(root)
    try:
        assert reader.used_below(JobId(job_id(1))).tokens == 100_025
    finally:
        reader.close()
