"""Following a run over HTTP: every event once, across broken connections and restarts of the server."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import anyio

from nightherd.views.runs.events import parse_cursor
from web.run_world import following_run, serving_runs, start, work_on
from web.web_world import World

Told = tuple[str, str, dict[str, Any]]


async def all_of(world: World, run_id: str, most: int | None = None, **headers: str) -> list[Told]:
    """What a client is sent; at most so many events before it hangs up."""
    told: list[Told] = []
    async with following_run(world, run_id, **headers) as stream:
        async for event in stream.events():
            told.append(event)
            if len(told) == most:
                break
    return told


def name_of(event: Told) -> tuple[str, ...]:
    _, kind, data = event
    if kind == "job":
        return kind, data["job_id"], f"{data['event']['seq']:06}"
    return kind, data["at"], str(data.get("path") or data.get("id")), data["status"]


def names(told: list[Told]) -> list[tuple[str, ...]]:
    return sorted(name_of(event) for event in told)


def test_a_stream_has_everything_from_the_start_to_the_end_of_the_run(tmp_path: Path) -> None:
    async def main() -> None:
        async with serving_runs(tmp_path) as world:
            run_id = await start(world, "wide")
            live: list[Told] = []

            async def follow() -> None:
                live.extend(await all_of(world, run_id))

            async with anyio.create_task_group() as tasks:
                tasks.start_soon(follow)
                await work_on(world)
            later = await all_of(world, run_id)
            jobs = {job.id: job.last_seq for job in world.site.context.reader.jobs_of_run(run_id)}

        assert names(live) == names(later)
        assert len(set(names(live))) == len(live)
        assert sum(kind == "job" for _, kind, _ in live) == sum(jobs.values())
        assert {data["phase"] for _, kind, data in live if kind == "job"} == {
            "left",
            "right",
            "join",
        }
        (_, kind, last) = live[-1]
        assert (kind, last["status"]) == ("run", "succeeded")

    anyio.run(main)


def test_a_client_that_comes_back_gets_the_rest_also_from_a_restarted_server(
    tmp_path: Path,
) -> None:
    async def main() -> None:
        async with serving_runs(tmp_path) as world:
            run_id = await start(world, "wide")
            first = await all_of(world, run_id, most=1)
            await work_on(world)
            second = await all_of(world, run_id, most=40, last_event_id=first[-1][0])
        async with serving_runs(tmp_path) as world:
            third = await all_of(world, run_id, last_event_id=second[-1][0])
            whole = await all_of(world, run_id)
            path = f"/v1/runs/{run_id}/events"
            over = await world.get(path, accept="text/event-stream", last_event_id=third[-1][0])

        assert names([*first, *second, *third]) == names(whole)
        assert parse_cursor(third[-1][0]).is_over
        assert over.status == 204

    anyio.run(main)


def test_gates_and_their_answers_are_events(tmp_path: Path) -> None:
    async def main() -> None:
        async with serving_runs(tmp_path) as world:
            run_id = await start(world, "single")
            told: list[Told] = []
            async with following_run(world, run_id) as stream:
                async for event in stream.events():
                    told.append(event)
                    if event[1] == "inbox" and event[2]["status"] == "pending":
                        path = f"/v1/inbox/{event[2]['id']}/answers"
                        assert (await world.post(path, {"verdict": "approve"})).status == 200

        assert [
            (data["phase"], data["status"], data["decided_by"] is not None)
            for _, kind, data in told
            if kind == "inbox"
        ] == [("ask", "pending", False), ("ask", "approved", True)]
        assert told[-1][2]["status"] == "succeeded"

    anyio.run(main)


def test_pages_have_the_same_events_as_the_stream(tmp_path: Path) -> None:
    async def main() -> None:
        async with serving_runs(tmp_path) as world:
            run_id = await start(world, "quick")
            await work_on(world)
            stream = await all_of(world, run_id)
            pages: list[Told] = []
            after = "0"
            while True:
                page = await world.get(f"/v1/runs/{run_id}/events?after={after}&limit=30")
                if not page.data:
                    break
                assert len(page.data) <= 30
                pages += [(one["id"], one["type"], one["data"]) for one in page.data]
                after = page.document["next_after"]

        assert pages == stream
        assert page.document["next_after"] == after

    anyio.run(main)


def test_many_clients_follow_runs_beside_each_other(tmp_path: Path) -> None:
    async def main() -> None:
        async with serving_runs(tmp_path) as world:
            runs = [await start(world, "quick") for _ in range(3)]
            told: dict[tuple[str, int], list[Told]] = {}

            async def follow(run_id: str, number: int) -> None:
                told[run_id, number] = await all_of(world, run_id)

            async with anyio.create_task_group() as tasks:
                for run_id in runs:
                    for number in range(4):
                        tasks.start_soon(follow, run_id, number)
                await work_on(world)
            for (followed, _), events in told.items():
                assert names(events) == names(await all_of(world, followed))
            assert world.site.counters.followers == 0

    anyio.run(main)
