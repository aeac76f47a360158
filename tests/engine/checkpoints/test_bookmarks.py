"""Bookmarks are put where the project wants them, once for each line, and cost the same at any length."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from typing import Any

import anyio
import pytest
from msgspec.structs import replace

from engine.bench import AGENT, Bench, no_one
from engine.limits.resuming import resume
from engine.limits.turns import CENT, END, FOUR_TURNS, turn, used
from engine.yard import Yard, until
from nightherd.engine.contexts import NoLog
from nightherd.engine.jobs.oversight import Stopper, oversee
from nightherd.engine.jobs.recorder import OnEvent
from nightherd.engine.jobs.runner import run_job
from nightherd.engine.workers.rescue import rescue
from nightherd.errors import FencedError
from nightherd.model.agents.agent import Agent
from nightherd.model.agents.script import Say, Spend, Step, UseTool, compile_script
from nightherd.model.checkpoints.checkpoint import Checkpoint, TriggerPoint
from nightherd.model.checkpoints.persistence import DEFAULT, Performance, Persistence, Trigger
from nightherd.model.hooks import AgentSubmission, Hook, HookPoint
from nightherd.model.ids import JobId
from nightherd.model.jobs.job import ExitReason, Job, JobStatus
from nightherd.model.journal.event import AssistantEvent, ErrorEvent, Event, SystemEvent, describe
from nightherd.model.journal.system import Complete, SystemSubtype
from nightherd.model.limits.limits import Limits
from nightherd.model.log import LogLine
from nightherd.model.units import MicroUsd
from nightherd.runtimes.claude.capabilities import SDK
from nightherd.runtimes.scripted.runtime import ScriptedRuntime
from nightherd.testing.runtime import PlayedRuntime
from nightherd.views.jobs.checkpoints import list_bookmarks, thread_state

ROOMY = Limits(turns=100)


def agent_of(tmp_path: Path, limits: Limits = ROOMY) -> Agent:
    """Two turns with a tool, then an answer."""
    (tmp_path / "a.txt").write_text("hay")
    turn: list[Step] = [Say("look"), UseTool("Read", {"file_path": "a.txt"}), Spend(used(10))]
    return replace(
        AGENT,
        script=compile_script([*turn, *turn, Say("done"), Spend(used(10))]),
        limits=limits,
        working_directory=str(tmp_path),
    )


def bench_of(agent: Agent, persistence: Persistence = DEFAULT) -> Bench:
    runtime: Any = ScriptedRuntime() if agent.script else PlayedRuntime(FOUR_TURNS)
    bench = Bench(runtime, agent=agent)
    bench.context = replace(bench.context, persistence=persistence)
    return bench


def without(*points: TriggerPoint) -> Persistence:
    off = {point: replace(DEFAULT.triggers[point], enabled=False) for point in points}
    return replace(DEFAULT, triggers={**DEFAULT.triggers, **off})


def bookmarks(bench: Bench, job: Job) -> list[Checkpoint]:
    return list_bookmarks(bench.reader, bench.context.journals, job.id)


def triggers(bench: Bench, job: Job) -> list[str]:
    return [one.trigger for one in bookmarks(bench, job)]


TURNS = ["pre_turn", "post_llm", "post_tools", "post_llm", "post_tools", "post_llm"]


def test_a_run_has_a_bookmark_at_each_place_and_one_for_each_line(tmp_path: Path) -> None:
    bench = bench_of(agent_of(tmp_path))

    job = bench.run()

    assert job.status is JobStatus.COMPLETED
    assert triggers(bench, job) == TURNS
    found = bookmarks(bench, job)
    assert [one.number for one in found] == [1, 2, 3, 4, 5, 6]
    assert [one.turn for one in found] == [0, 0, 1, 1, 2, 3]
    assert [one.cost_microusd // CENT for one in found] == [0, 10, 10, 20, 20, 30]
    assert {one.status for one in found} == {"running"}
    said = [
        one.extra
        for one in bench.journal(job.id)
        if isinstance(one, SystemEvent) and one.subtype is SystemSubtype.CHECKPOINT
    ]
    lines = [(one["number"], one["trigger"], one["seq"]) for one in said if one is not None]
    assert lines == [(one.number, one.trigger, one.seq) for one in found]


def test_only_the_first_bookmark_of_an_execution_and_the_last_of_a_stop_are_rows(
    tmp_path: Path,
) -> None:
    completed = bench_of(agent_of(tmp_path))
    waiting = bench_of(agent_of(tmp_path, Limits(turns=1)))

    done, suspended = completed.run(), waiting.run()

    assert [one.number for one in completed.reader.list_checkpoints(done.id)] == [1]
    assert [one.number for one in waiting.reader.list_checkpoints(suspended.id)] == [1, 3]
    assert {str(one.header) for one in bookmarks(completed, done)} == {
        str({"limits": {"turns": 100}})
    }


def test_a_bookmark_that_must_be_saved_is_a_row_wherever_it_is(tmp_path: Path) -> None:
    must = {**DEFAULT.triggers, TriggerPoint.POST_TOOLS: Trigger(priority=10)}
    bench = bench_of(agent_of(tmp_path), replace(DEFAULT, triggers=must))

    job = bench.run()

    rows = bench.reader.list_checkpoints(job.id)
    assert [one.trigger for one in rows] == ["pre_turn", "post_tools", "post_tools"]
    assert triggers(bench, job) == TURNS


def test_a_bookmark_names_the_line_it_stands_at(tmp_path: Path) -> None:
    bench = bench_of(agent_of(tmp_path))

    job = bench.run()

    events = {event.seq: event for event in bench.journal(job.id)}
    for one in bookmarks(bench, job):
        at = events[one.seq]
        assert not (isinstance(at, SystemEvent) and at.subtype is SystemSubtype.CHECKPOINT)
        assert isinstance(events[one.seq + 1], SystemEvent)


@pytest.mark.parametrize(
    "point", [TriggerPoint.PRE_TURN, TriggerPoint.POST_LLM, TriggerPoint.POST_TOOLS]
)
def test_what_is_switched_off_is_not_made(tmp_path: Path, point: TriggerPoint) -> None:
    bench = bench_of(agent_of(tmp_path), without(point))

    found = triggers(bench, bench.run())

    assert point.value not in found
    if point is TriggerPoint.POST_TOOLS:
        # What was hidden by the higher priority on the same line shows.
        assert found == ["pre_turn", "post_llm", "pre_turn", "post_llm", "pre_turn", "post_llm"]


def test_a_watched_runtime_shows_its_places_by_its_events() -> None:
    bench = bench_of(replace(AGENT, runtime=SDK, limits=ROOMY))

    job = bench.run()

    assert triggers(bench, job) == ["post_llm", "post_tools"] * 3 + ["post_llm"]


def test_an_agent_that_nothing_limits_has_none_on_the_way(tmp_path: Path) -> None:
    bench = bench_of(agent_of(tmp_path, Limits()))
    of_a_project = bench_of(agent_of(tmp_path, Limits()), replace(DEFAULT, is_project=True))

    assert triggers(bench, bench.run()) == []
    assert triggers(of_a_project, of_a_project.run()) == TURNS


def test_where_a_job_stops_there_is_one_whatever_is_switched_off(tmp_path: Path) -> None:
    waiting = bench_of(agent_of(tmp_path, Limits(turns=1)))
    failing = Bench(PlayedRuntime([ErrorEvent(message="no", code="broken")]))
    ended = Bench(PlayedRuntime([AssistantEvent(content="hm", turn=1)], is_endless=True))

    suspended, failed = waiting.run(), failing.run()
    cancelled = ended.execute(
        ended.submit().job.id, stop_when=lambda event: isinstance(event, AssistantEvent)
    )

    last = bookmarks(waiting, suspended)[-1]
    assert (last.trigger, last.status, last.suspend_reason) == ("on_suspend", "suspended", "limit")
    assert last.header["suspension"]["code"] == "turns_exceeded"
    assert [(one.trigger, one.status) for one in bookmarks(failing, failed)] == [
        ("on_error", "failed")
    ]
    assert [(one.trigger, one.status) for one in bookmarks(ended, cancelled)] == [
        ("on_cancel", "cancelled")
    ]


def test_the_last_place_takes_over_the_bookmark_of_its_line(tmp_path: Path) -> None:
    bench = bench_of(agent_of(tmp_path, Limits(turns=1)))

    job = bench.run()

    assert triggers(bench, job) == ["pre_turn", "post_llm", "on_suspend"]
    seqs = [one.seq for one in bookmarks(bench, job)]
    assert len(set(seqs)) == len(seqs)


def test_numbers_go_on_over_executions(tmp_path: Path) -> None:
    bench = bench_of(agent_of(tmp_path, Limits(spend=MicroUsd(10 * CENT))))
    job = bench.run()
    first = [one.number for one in bookmarks(bench, job)]

    resume(bench, job, spend=100 * CENT)

    found = bookmarks(bench, job)
    assert [one.number for one in found] == list(range(1, len(found) + 1))
    assert found[len(first)].epoch == 2
    assert found[-1].header["limits"] == {"spend": 100 * CENT}


def test_a_header_stays_small_and_says_what_it_leaves_out(tmp_path: Path) -> None:
    hooks = tuple(
        Hook(
            id=f"limits.hooks[{n}]",
            point=HookPoint.LIMITS,
            action=AgentSubmission(agent="judge", inputs={"why": "x" * 1_000}),
            on=frozenset({"limit"}),
        )
        for n in range(20)
    )
    agent = replace(
        agent_of(tmp_path), hooks=hooks, system_prompt="y" * 3_000, required_caps=("a",)
    )
    bench = bench_of(agent)

    job = bench.run()

    header = bookmarks(bench, job)[0].header
    assert header["left_out"] == ["hooks", "system_prompt"]
    assert header["required_caps"] == ["a"]


def long_run(turns: int) -> tuple[Event, ...]:
    answers = [
        AssistantEvent(content="z" * 1_000, turn=n + 1, index=0, end=True) for n in range(turns)
    ]
    return (*answers, describe(Complete(stop_reason="end_turn")))


def test_a_bookmark_is_as_small_after_many_messages_as_after_few() -> None:
    agent = replace(AGENT, runtime=SDK, limits=Limits(tokens=10**9))
    short, long = (
        Bench(PlayedRuntime(long_run(5)), agent=agent),
        Bench(PlayedRuntime(long_run(300)), agent=agent),
    )

    few, many = bookmarks(short, short.run()), bookmarks(long, long.run())

    assert (len(few), len(many)) == (5, 300)
    assert len(str(many[-1])) < 1.2 * len(str(few[-1]))


class Folder:
    """Remembers what it was given to write."""

    def __init__(self) -> None:
        self.written: list[dict[str, Any]] = []

    def write(self, job_id: str, document: Any, /) -> None:
        self.written.append({**document, "job": job_id})


def at_every_event(bench: Bench, seconds: float) -> OnEvent:
    """Lets time pass with each event."""
    return lambda event: bench.clock.advance(timedelta(seconds=seconds))


@pytest.mark.parametrize(
    ("incremental", "seconds", "on_the_way"), [(True, 2, 0), (False, 2, 3), (False, 0, 1)]
)
def test_the_document_is_written_where_a_job_stops_and_if_wanted_on_the_way_once_a_second(
    tmp_path: Path, incremental: bool, seconds: float, on_the_way: int
) -> None:
    persistence = replace(DEFAULT, performance=Performance(incremental=incremental))
    bench, folder = bench_of(agent_of(tmp_path, Limits(turns=1)), persistence), Folder()
    bench.context = replace(bench.context, threads=folder)

    job = bench.run(on_event=at_every_event(bench, seconds))

    statuses = [one["status"] for one in folder.written]
    assert statuses == [*["running"] * on_the_way, "suspended"]
    assert folder.written[-1]["thread_id"] == job.id
    assert folder.written[-1]["suspend_metadata"]["limit_code"] == "turns_exceeded"


def test_a_folder_that_cannot_be_written_fails_no_job(tmp_path: Path) -> None:
    class Full(Folder):
        def write(self, job_id: str, document: Any, /) -> None:
            raise OSError(28, "no space left")

    bench = bench_of(agent_of(tmp_path))
    bench.context = replace(bench.context, threads=Full())

    assert bench.run().status is JobStatus.COMPLETED


def test_priorities_are_what_the_project_says(tmp_path: Path) -> None:
    turned = {
        **DEFAULT.triggers,
        TriggerPoint.PRE_TURN: Trigger(priority=9),
        TriggerPoint.POST_TOOLS: Trigger(priority=2),
    }
    bench = bench_of(agent_of(tmp_path), replace(DEFAULT, triggers=turned))

    found = triggers(bench, bench.run())

    assert found == ["pre_turn", "post_llm", "pre_turn", "post_llm", "pre_turn", "post_llm"]


def test_job_as_it_stands_while_it_runs_is_what_is_on_record_by_then() -> None:
    bench = Bench(PlayedRuntime((*turn(1), AssistantEvent(content="I wi", partial=True), *END)))
    shown: list[dict[str, Any]] = []
    job_id = bench.submit().job.id

    def look(event: Event) -> None:
        if isinstance(event, AssistantEvent) and event.partial:
            journals, now = bench.context.journals, bench.clock.now()
            shown.append(thread_state(bench.reader, journals, job_id, now=now))

    bench.execute(job_id, on_event=look)

    (state,) = shown
    assert [one["role"] for one in state["messages"]] == ["user", "assistant", "assistant", "user"]
    assert (state["turn_number"], state["cost"]["spend"]) == (1, 0.10)
    assert state["partial_cognition"]["text"] == "I wi"


def test_the_last_checkpoint_is_written_when_the_throttle_ends_though_the_model_still_thinks() -> (
    None
):
    bench = Bench(
        PlayedRuntime((*turn(1), *turn(2), *turn(3)), is_endless=True),
        agent=replace(AGENT, runtime=SDK, limits=ROOMY),
    )
    folder = Folder()
    bench.context = replace(bench.context, threads=folder)
    job_id = bench.submit().job.id

    async def go() -> None:
        stopper = Stopper()
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(oversee, {job_id: stopper}, bench.context)
            tasks.start_soon(_run_to_the_end, bench, job_id, stopper)
            await until(lambda: folder.written)
            bench.clock.advance(timedelta(seconds=30))
            await until(lambda: folder.written[-1]["turn_number"] == 3)
            stopper.stop(ExitReason.CANCELLED)
            await until(lambda: bench.job(job_id).is_terminal)
            tasks.cancel_scope.cancel()

    anyio.run(go)

    assert folder.written[-2]["turn_number"] == 3
    assert (folder.written[-1]["status"], folder.written[-1]["turn_number"]) == ("cancelled", 3)


async def _run_to_the_end(bench: Bench, job_id: JobId, stopper: Stopper) -> None:
    await run_job(job_id, bench.agent, bench.context, on_event=no_one, stopper=stopper)


def test_a_file_that_cannot_be_written_is_in_the_operator_log_once(tmp_path: Path) -> None:
    class Full(Folder):
        def write(self, job_id: str, document: Any, /) -> None:
            raise OSError(28, "no space left")

    class Log(NoLog):
        def __init__(self) -> None:
            self.lines: list[LogLine] = []

        def write(self, line: LogLine) -> None:
            self.lines.append(line)

    bench, log = bench_of(agent_of(tmp_path)), Log()
    bench.context = replace(bench.context, threads=Full(), log=log)

    job = bench.run(on_event=at_every_event(bench, 2))

    (line,) = [one for one in log.lines if one.event == "state.unwritten"]
    assert line.job == job.id
    assert "no space left" in (line.message or "")


def test_rescue_brings_the_file_up_to_what_is_on_record() -> None:
    bench = Bench(
        PlayedRuntime((*turn(1), *turn(2), *turn(3)), is_endless=True),
        agent=replace(AGENT, runtime=SDK, limits=ROOMY),
    )
    yard, folder = Yard(bench=bench), Folder()
    job_id = bench.submit().job.id

    async def go() -> None:
        stopper = Stopper()
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(_abandoned, bench, job_id, stopper)
            await until(lambda: len(bench.journal(job_id)) > 12)
            stopper.abandon()
        await rescue(yard.record, yard.terms, threads=folder)

    anyio.run(go)

    (document,) = folder.written
    assert (document["status"], document["turn_number"]) == ("running", 3)
    assert document["cost"]["spend"] == pytest.approx(0.3)
    assert document["limits"]["turns"] == 100


async def _abandoned(bench: Bench, job_id: JobId, stopper: Stopper) -> None:
    with pytest.raises(FencedError):
        await run_job(job_id, bench.agent, bench.context, on_event=no_one, stopper=stopper)


def test_the_file_of_a_job_that_was_suspended_says_when_it_has_completed(tmp_path: Path) -> None:
    bench, folder = bench_of(agent_of(tmp_path, Limits(turns=1))), Folder()
    bench.context = replace(bench.context, threads=folder)
    job = bench.run()
    assert folder.written[-1]["status"] == "suspended"
    bench.agent = replace(bench.agent, limits=Limits())

    ended = resume(bench, job)

    assert ended.status is JobStatus.COMPLETED
    assert folder.written[-1]["status"] == "completed"
