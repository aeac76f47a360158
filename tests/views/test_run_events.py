"""The events of a run: everything once, in order, from every place where a client may have stopped."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from datetime import timedelta
from pathlib import Path

import anyio
import anyio.lowlevel
import pytest
from anyio import to_thread

from nightherd.engine.contexts import WorkerContext
from nightherd.engine.operations.agents import agents_of
from nightherd.engine.operations.inbox import answer_item
from nightherd.engine.operations.requests import Answer
from nightherd.engine.operations.run_again import retry_run
from nightherd.engine.operations.run_requests import CancelRun, RetryRun, StartWorkflow
from nightherd.engine.operations.runs import cancel_run, start_workflow
from nightherd.errors import InvalidValueError
from nightherd.model.agents.agent import Fleet
from nightherd.model.inbox.item import Verdict
from nightherd.model.workflows.run import RunId
from nightherd.views.runs import events as run_events
from nightherd.views.runs.events import RunCursor, RunEvent, RunEventFollower, parse_cursor
from nightherd.wiring.fleets import load_fleet
from nightherd.wiring.running import open_worker
from nightherd.wiring.stores import open_feed
from workflow_fleet import WORKFLOW_FLEET, work

Opened = tuple[Fleet, WorkerContext]


@asynccontextmanager
async def opened(directory: Path) -> AsyncIterator[Opened]:
    (directory / "nightherd.yaml").write_text(WORKFLOW_FLEET)
    fleet = load_fleet(directory / "nightherd.yaml", environ={}, cwd=directory).fleet
    environ = {"PATH": os.environ["PATH"]}
    async with open_worker(directory / ".nightherd", fleet, environ) as context:
        yield fleet, context


async def start(context: WorkerContext, workflow: str, **inputs: object) -> RunId:
    request = StartWorkflow(workflow=workflow, inputs=inputs, by="tester")
    return (await start_workflow(request, context)).run.id


async def approve(context: WorkerContext, run_id: RunId) -> None:
    (item,) = [one for one in context.reader.items_of_run(run_id) if one.is_pending]
    request = Answer(item_id=item.id, verdict=Verdict.APPROVE, by="tester", via="test")
    await answer_item(request, agents_of(context), context)


def follower_at(
    directory: Path, context: WorkerContext, run_id: RunId, cursor: str = "0"
) -> RunEventFollower:
    feed = open_feed(directory / ".nightherd")
    follower = RunEventFollower(run_id, parse_cursor(cursor), feed, context.journals)
    follower.begin(context.reader)
    return follower


def everything(follower: RunEventFollower) -> list[RunEvent]:
    events: list[RunEvent] = []
    while more := follower.poll():
        events += more
    follower.close()
    return events


def name_of(event: RunEvent) -> tuple[str, ...]:
    """What an event is about: the same for the same event, wherever it was read."""
    data = event.data
    if event.kind == "job":
        return "job", data["job_id"], f"{data['event'].seq:06}"
    return event.kind, data["at"], str(data.get("path") or data.get("id")), data["status"]


def names(events: Sequence[RunEvent]) -> list[tuple[str, ...]]:
    return [name_of(event) for event in events]


def test_a_run_is_told_from_its_first_node_to_its_end(tmp_path: Path) -> None:
    async def main() -> None:
        async with opened(tmp_path) as (fleet, context):
            run_id = await start(context, "build", title="cows")
            await work(fleet, context)
            await approve(context, run_id)
            await work(fleet, context)
            follower = follower_at(tmp_path, context, run_id)
            events = everything(follower)

        told = [
            (event.kind, event.data.get("path") or event.data.get("phase"), event.data["status"])
            for event in events
            if event.kind != "job"
        ]
        assert told == [
            ("node", "plan", "waiting"),
            ("run", None, "running"),
            ("node", "plan", "running"),
            ("node", "plan", "succeeded"),
            ("node", "ask", "paused"),
            ("inbox", "ask", "pending"),
            ("run", None, "paused"),
            ("inbox", "ask", "approved"),
            ("node", "ask", "succeeded"),
            ("node", "publish", "waiting"),
            ("run", None, "running"),
            ("node", "publish", "running"),
            ("node", "publish", "succeeded"),
            ("run", None, "succeeded"),
        ]
        assert follower.is_over
        assert {event.data["phase"] for event in events if event.kind == "job"} == {
            "plan",
            "publish",
        }

    anyio.run(main)


def test_all_events_of_a_job_come_before_the_end_of_its_node(tmp_path: Path) -> None:
    async def main() -> None:
        async with opened(tmp_path) as (fleet, context):
            run_id = await start(context, "wide")
            await work(fleet, context)
            events = everything(follower_at(tmp_path, context, run_id))
            lengths = {job.id: job.last_seq for job in context.reader.jobs_of_run(run_id)}

        for job_id, length in lengths.items():
            ended = next(
                place
                for place, event in enumerate(events)
                if event.data.get("job_id") == job_id and event.data.get("status") == "succeeded"
            )
            seqs = [
                event.data["event"].seq
                for event in events[:ended]
                if event.kind == "job" and event.data["job_id"] == job_id
            ]
            assert seqs == list(range(1, length + 1))

    anyio.run(main)


@pytest.mark.parametrize("workflow", ["wide", "failing"])
def test_from_every_event_on_exactly_the_rest_follows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, workflow: str
) -> None:
    monkeypatch.setattr(run_events, "BLOCK", 7)

    async def main() -> None:
        async with opened(tmp_path) as (fleet, context):
            run_id = await start(context, workflow)
            await work(fleet, context)
            events = everything(follower_at(tmp_path, context, run_id))
            for place, event in enumerate(events, 1):
                rest = everything(follower_at(tmp_path, context, run_id, event.cursor))
                assert names(rest) == names(events[place:])

        assert len(events) > 10

    anyio.run(main)


def test_a_client_that_reconnects_all_the_time_misses_nothing_while_the_run_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(run_events, "BLOCK", 5)

    async def main() -> None:
        async with opened(tmp_path) as (fleet, context):
            run_id = await start(context, "wide")
            seen: list[RunEvent] = []

            async def follow() -> None:
                cursor = "0"
                while not parse_cursor(cursor).is_over:
                    follower = follower_at(tmp_path, context, run_id, cursor)
                    # Of what was sent, only a part has arrived.
                    more = (await to_thread.run_sync(follower.poll))[:3]
                    follower.close()
                    seen.extend(more)
                    cursor = more[-1].cursor if more else cursor
                    await anyio.lowlevel.checkpoint()

            async with anyio.create_task_group() as tasks:
                tasks.start_soon(follow)
                await work(fleet, context)
            whole = everything(follower_at(tmp_path, context, run_id))

        assert len(set(names(seen))) == len(seen)
        assert sorted(names(seen)) == sorted(names(whole))
        for kind in ("node", "run"):
            assert [one for one in names(seen) if one[0] == kind] == [
                one for one in names(whole) if one[0] == kind
            ]

    anyio.run(main)


def test_the_stream_goes_on_in_another_process_after_a_pause(tmp_path: Path) -> None:
    async def main() -> None:
        async with opened(tmp_path) as (fleet, context):
            run_id = await start(context, "build", title="cows")
            await work(fleet, context)
            first = everything(follower_at(tmp_path, context, run_id))
        async with opened(tmp_path) as (fleet, context):
            await approve(context, run_id)
            await work(fleet, context)
            rest = everything(follower_at(tmp_path, context, run_id, first[-1].cursor))
            whole = everything(follower_at(tmp_path, context, run_id))

        assert names([*first, *rest]) == names(whole)
        assert parse_cursor(rest[-1].cursor).is_over

    anyio.run(main)


def test_a_run_has_only_its_own_events(tmp_path: Path) -> None:
    async def main() -> None:
        async with opened(tmp_path) as (fleet, context):
            failed = await start(context, "failing")
            other = await start(context, "failing")
            await work(fleet, context)
            again = (await retry_run(RetryRun(run_id=failed, by="tester"), context)).run.id
            await work(fleet, context)
            told = {
                run_id: everything(follower_at(tmp_path, context, run_id))
                for run_id in (failed, other, again)
            }
            jobs = {
                run_id: {job.id for job in context.reader.jobs_of_run(run_id)} for run_id in told
            }

        for run_id, events in told.items():
            assert {e.data["job_id"] for e in events if e.kind == "job"} == jobs[run_id]
            assert {e.data["run_id"] for e in events if e.kind == "node"} == {run_id}
        kept = [e.data for e in told[again] if e.kind == "node" and e.data["kept_from"]]
        assert [(one["path"], one["kept_from"]) for one in kept] == [("good", failed)]

    anyio.run(main)


def test_a_cancelled_run_ends_its_stream(tmp_path: Path) -> None:
    async def main() -> None:
        async with opened(tmp_path) as (_, context):
            run_id = await start(context, "quick")
            await cancel_run(CancelRun(run_id=run_id, by="tester"), context)
            follower = follower_at(tmp_path, context, run_id)
            events = everything(follower)

        assert follower.is_over
        assert events[-1].data["status"] == "cancelled"

    anyio.run(main)


def test_the_start_is_found_when_the_clock_was_set_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # The run seems to have started long after what the ledger says.
    monkeypatch.setattr(run_events, "MARGIN", timedelta(hours=-5))

    async def main() -> None:
        async with opened(tmp_path) as (fleet, context):
            run_id = await start(context, "failing")
            await work(fleet, context)
            events = everything(follower_at(tmp_path, context, run_id))

        assert events[0].data["status"] == "waiting"
        assert parse_cursor(events[-1].cursor).is_over

    anyio.run(main)


def test_cursors_are_read_as_they_are_written() -> None:
    for text in ("0", "17", "17.2", "17.2,job-2026-11-18-abc123:4", "17,end"):
        assert str(parse_cursor(text)) == text

    assert RunCursor(change=3, has_ended=True).is_over
    assert not parse_cursor("3,job-2026-11-18-abc123:4,end").is_over


@pytest.mark.parametrize(
    "text", ["", "x", "1.x", "1,job-1:2", "-1", "1,job-2026-11-18-abc123", "9" * 40]
)
def test_what_is_no_cursor_is_refused(text: str) -> None:
    with pytest.raises(InvalidValueError, match="is not the id of an event of a run"):
        parse_cursor(text)
