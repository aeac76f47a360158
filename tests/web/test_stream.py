"""The stream of a fleet: rows as lists have them, events of jobs once and in order, continued from any event."""

from __future__ import annotations

import asyncio
from functools import partial
from pathlib import Path
from typing import Any

import anyio
import pytest

from nightherd.db import ledger as ledger_files
from nightherd.model.ids import ExecutionId, WorkerId
from nightherd.model.jobs.changes import StartExecution
from nightherd.model.journal.event import describe
from nightherd.model.journal.live_text import TextDelta
from nightherd.model.journal.system import ExecutionStarted
from nightherd.views.streams.cursor import Place
from nightherd.views.streams.rows import StreamRows
from nightherd.web.streams import change_tail, stream_follower, tails
from nightherd.web.streams.change_tail import Changes, ChangeTail
from web.run_world import serving_runs, start, work_on
from web.stream_world import Heard, Listener, listening
from web.web_world import World, served, until

LISTS = "jobs,inbox,runs,sessions,schedules,agents"
PASSING = ("duration_seconds",)
"""Columns that grow with the clock."""


def without_passing(row: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in row.items() if name not in PASSING}


def test_rows_are_sent_as_their_lists_have_them(tmp_path: Path) -> None:
    async def main() -> None:
        async with served(tmp_path) as world, listening(world, LISTS) as listener:
            job_id = await world.run("hello")
            await listener.until_ended(job_id)
            await listener.until(lambda one: one.kind == "agent")
            await world.post("/v1/schedules/hello/nightly/disable")
            await listener.until(
                lambda one: one.kind == "schedule" and one.data["enabled"] is False
            )

            for topic, kind, key in (
                ("jobs", "job", "id"),
                ("sessions", "session", "id"),
                ("agents", "agent", "name"),
                ("schedules", "schedule", "id"),
            ):
                newest = {row[key]: row for row in listener.of(kind)}
                listed = {row[key]: row for row in (await world.get(f"/v1/{topic}")).data}
                assert newest
                for id, row in newest.items():
                    assert without_passing(row) == without_passing(listed[id])

    anyio.run(main)


def test_a_run_is_followed_with_its_phases_jobs_and_questions(tmp_path: Path) -> None:
    async def main() -> None:
        async with serving_runs(tmp_path) as world:
            run_id = await start(world, "build", title="a")
            other = await start(world, "build", title="b")
            async with listening(world, f"run:{run_id}") as listener:
                await work_on(world)
                while not listener.of("inbox") or not listener.of("run"):
                    await listener.until(lambda one: one.kind in ("inbox", "run"))
                assert (await world.post(f"/v1/runs/{run_id}/cancel")).status == 200
                await listener.until(
                    lambda one: one.kind == "run" and one.data["status"] == "cancelled"
                )

            (row,) = [row for row in (await world.get("/v1/runs")).data if row["id"] == run_id]
            assert without_passing(listener.of("run")[-1]) == without_passing(row)
            assert {node["run_id"] for node in listener.of("node")} == {run_id}
            assert {item["workflow_run_id"] for item in listener.of("inbox")} == {run_id}
            assert {job["workflow_run_id"] for job in listener.of("job")} == {run_id}
            assert other not in {row["id"] for row in listener.of("run")}

    anyio.run(main)


def seqs(heard: list[Heard]) -> list[int]:
    return [one.data["event"]["seq"] for one in heard if one.kind == "event"]


def rows(heard: list[Heard]) -> set[tuple[str, str]]:
    return {
        (one.kind, one.data.get("id") or one.data["name"])
        for one in heard
        if one.kind in ("job", "session", "agent")
    }


def is_job(job_id: str, heard: Heard) -> bool:
    return heard.kind == "job" and heard.data["id"] == job_id


def test_a_client_that_stops_at_any_event_continues_after_it(tmp_path: Path) -> None:
    async def main() -> None:
        async with served(tmp_path) as world:
            job_id = await world.submit("hello")
            topics = f"jobs,sessions,agents,job:{job_id}@0"
            async with listening(world, topics) as first:
                await world.execute(job_id)
                await first.until_ended(job_id)
                job = world.site.context.reader.find_job(job_id)
                assert job is not None
                while len(seqs(first.heard)) < job.last_seq:
                    await first.next()
                # Nothing of the job is still to come: it was sent before this one.
                await first.until(partial(is_job, await world.submit("topical")))
            assert seqs(first.heard) == list(range(1, job.last_seq + 1))
            assert len({one.id for one in first.heard}) == len(first.heard)

            for cut, one in enumerate(first.heard):
                assert one.id is not None
                async with listening(world, topics, last_event_id=one.id) as second:
                    marker = await world.submit("topical")
                    await second.until(partial(is_job, marker))
                    had = first.heard[: cut + 1]
                    missing = job.last_seq - len(seqs(had))
                    while len(seqs(second.heard)) < missing:
                        await second.next()

                assert seqs(had) + seqs(second.heard) == list(range(1, job.last_seq + 1))
                # What was sent later is sent again; what was sent last before is not.
                later = rows(first.heard[cut + 1 :])
                assert later <= rows(second.heard)
                untouched = rows(first.heard) - later
                assert not untouched & rows(second.heard)

    anyio.run(main)


def test_a_topic_is_added_by_coming_back_with_the_old_cursor(tmp_path: Path) -> None:
    async def main() -> None:
        async with served(tmp_path) as world:
            job_id = await world.submit("hello")
            async with listening(world, "inbox") as first:
                pass
            await world.execute(job_id)

            topics = f"inbox,jobs,job:{job_id}@2"
            async with listening(world, topics, first.last_id) as second:
                await second.until_ended(job_id)
                job = world.site.context.reader.find_job(job_id)
                assert job is not None
                while len(seqs(second.heard)) < job.last_seq - 2:
                    await second.next()

            assert second.heard[0].data["jobs"] == {job_id: 2}
            assert seqs(second.heard) == list(range(3, job.last_seq + 1))

    anyio.run(main)


def test_a_followed_job_begins_at_its_last_event(tmp_path: Path) -> None:
    async def main() -> None:
        async with served(tmp_path) as world:
            job_id = await world.run("hello")
            job = world.site.context.reader.find_job(job_id)
            assert job is not None
            unknown = "job-2026-01-01-aaaaaa"
            run = "run:run-2026-01-01-aaaaaa"
            async with listening(world, f"job:{job_id},job:{unknown},{run}") as listener:
                ready = listener.heard[0].data

            assert ready == {
                "topics": [run, f"job:{job_id}", f"job:{unknown}"],
                "jobs": {job_id: job.last_seq},
                "unknown": [f"job:{unknown}", run],
            }

    anyio.run(main)


@pytest.mark.parametrize(
    ("query", "status"),
    [
        ("topics=", 400),
        ("topics=cows", 400),
        ("topics=job:x", 400),
        ("topics=job:job-2026-01-01-aaaaaa@x", 400),
        ("topics=jobs&after=no-cursor", 400),
        ("topics=jobs&after=1,job:x", 400),
        ("topics=jobs&after=99-00000", 406),
        ("topics=jobs", 406),
        ("", 422),
    ],
)
def test_what_is_not_a_stream_is_refused(tmp_path: Path, query: str, status: int) -> None:
    async def main() -> None:
        async with served(tmp_path) as world:
            answer = await world.get(f"/v1/stream?{query}")

            assert answer.status == status
            assert answer.headers["content-type"] == "application/problem+json"

    anyio.run(main)


async def reset_of(world: World, topics: str, cursor: str) -> Heard:
    async with listening(world, topics, cursor) as listener:
        with anyio.fail_after(60):
            found = await listener.next()
        assert found.kind == "reset"
        await works(world, listener)
        return found


async def is_unheard(world: World) -> bool:
    return world.site.changes._begun is None


async def works(world: World, listener: Listener) -> None:
    job_id = await world.submit("hello")
    await listener.until(partial(is_job, job_id))


def test_a_cursor_that_cannot_be_continued_is_answered_with_a_reset(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def main() -> None:
        async with served(tmp_path) as world:
            job_id = await world.run("hello")
            async with listening(world, f"jobs,job:{job_id}") as listener:
                cursor = listener.last_id
            place, _, job = cursor.partition(",")
            change, _, mark = place.partition("-")
            other = f"{int(mark, 16) ^ 1:05x}"

            for wrong in (f"{int(change) + 9}-{mark}", f"{change}-{other}", f"{change}"):
                found = await reset_of(world, "jobs,inbox", wrong)
                assert found.data == {"topics": ["jobs", "inbox"]}
            name, _, seq = job.partition(":")
            found = await reset_of(world, f"jobs,job:{job_id}", f"{place},{name}:{int(seq) + 1}")
            assert found.data == {"topics": [f"job:{job_id}"]}
            restored = f"{change}-{other},{job}"
            found = await reset_of(world, f"jobs,job:{job_id}", restored)
            assert found.data == {"topics": ["jobs", f"job:{job_id}"]}
            monkeypatch.setattr(stream_follower, "MOST_BEHIND", 1)
            found = await reset_of(world, f"jobs,job:{job_id}", cursor)
            assert found.data == {"topics": ["jobs"]}
            found = await reset_of(world, f"jobs,job:{job_id}", restored)
            assert found.data == {"topics": ["jobs", f"job:{job_id}"]}

    anyio.run(main)


def test_a_client_whose_changes_cannot_be_read_any_more_fetches_its_lists(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ledger_files, "TAIL_BYTES", 1_000)  # else all of a short one is read

    async def main() -> None:
        async with served(tmp_path) as world:
            async with listening(world, "jobs") as listener:
                cursor = listener.last_id
            for _ in range(3):
                await world.run("hello")
            # The server reads nothing, and remembers nothing, once it has noticed that nobody listens.
            await until(partial(is_unheard, world))
            (ledger,) = (tmp_path / ".nightherd/ledger").glob("*.jsonl")
            lines = ledger.read_bytes().splitlines(keepends=True)
            damaged = int(cursor.partition("-")[0]) + 2
            lines[damaged] = lines[damaged].replace(b"hello", b"jello", 1)
            with ledger.open("r+b") as file:
                file.write(b"".join(lines))

            assert (await reset_of(world, "jobs", cursor)).data == {"topics": ["jobs"]}

    anyio.run(main)


def test_long_texts_of_events_are_cut_as_in_pages(tmp_path: Path) -> None:
    async def main() -> None:
        async with served(tmp_path) as world:
            job_id = await world.run("topical", "long " * 4_000)
            topics = f"job:{job_id}@0"
            async with listening(world, topics) as listener:
                job = world.site.context.reader.find_job(job_id)
                assert job is not None
                while len(seqs(listener.heard)) < job.last_seq:
                    await listener.next()

            page = await world.get(f"/v1/jobs/{job_id}/events?bodies=short")
            assert [one["event"] for one in listener.of("event")] == page.data
            assert any("cut" in event for event in page.data)

    anyio.run(main)


def test_streamed_text_comes_without_an_id(tmp_path: Path) -> None:
    async def main() -> None:
        async with served(tmp_path) as world:
            context = world.site.context
            job_id = await world.submit("hello")
            now = context.clock.now()
            worker = WorkerId(context.worker)
            await context.state.apply([StartExecution(job_id=job_id, worker=worker, at=now)])
            execution = ExecutionId(f"{job_id}.1")
            journal = context.journals.open(job_id, epoch=1, execution=execution)
            journal.append(describe(ExecutionStarted(worker=worker)))
            async with listening(world, f"job:{job_id}") as listener:
                text = context.journals.live_text(job_id, asyncio.get_running_loop().call_later)
                text.append(TextDelta(epoch=1, after=1, part=1, at=0, text="Hel"))
                found = await listener.until(lambda one: one.kind == "text_delta")

            assert found.id is None
            assert found.data == {
                "job_id": job_id, "epoch": 1, "after": 1, "part": 1, "at": 0, "text": "Hel",
            }  # fmt: skip
            journal.close()
            text.close()

    anyio.run(main)


@pytest.mark.parametrize("topic", ["jobs", "job:{}"])
def test_a_lost_worker_is_reported_once_without_an_id(tmp_path: Path, topic: str) -> None:
    async def main() -> None:
        async with served(tmp_path) as world:
            context = world.site.context
            job_id = await world.submit("hello")
            now, gone = context.clock.now(), WorkerId("worker-gonegone")
            await context.state.apply([StartExecution(job_id=job_id, worker=gone, at=now)])
            async with listening(world, topic.format(job_id)) as listener:
                found = await listener.until(lambda one: one.kind == "lost")
                assert found.id is None
                assert found.data["job_id"] == job_id
                await world.execute(await world.submit("topical"), "topical")
                if topic == "jobs":
                    await works(world, listener)

            assert len(listener.of("lost")) == 1

    anyio.run(main)


def test_a_client_that_hears_nothing_is_told_that_the_stream_is_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stream_follower, "HEARTBEAT_S", 0.01)

    async def main() -> None:
        async with served(tmp_path) as world, listening(world, "jobs") as listener:
            with anyio.fail_after(60):
                while tails.STILL_THERE not in listener.text:
                    listener.text += await listener.stream.receive()

    anyio.run(main)


def test_many_streams_share_one_look_at_the_ledger_and_at_each_row(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    read: list[tuple[str, str]] = []
    watches: list[object] = []
    original, watch = StreamRows.read, ChangeTail._watch

    def counted(self: StreamRows, reader: Any, wanted: Any) -> Any:
        read.extend(wanted)
        return original(self, reader, wanted)

    async def watched(self: ChangeTail, begun: anyio.Event) -> None:
        watches.append(self)
        await watch(self, begun)

    monkeypatch.setattr(StreamRows, "read", counted)
    monkeypatch.setattr(ChangeTail, "_watch", watched)

    async def listen(world: World, marker: str, ready: list[None]) -> None:
        async with listening(world, "jobs") as listener:
            ready.append(None)
            await listener.until(lambda one: one.data.get("id") == marker)

    async def main() -> None:
        async with served(tmp_path) as world, listening(world, "jobs") as first:
            ready: list[None] = []
            marker = "job-none"

            async def all_are_there() -> bool:
                return len(ready) == 10

            async with anyio.create_task_group() as tasks:
                request = world.site.context
                job_id = await world.submit("slow")
                await first.until(lambda one: one.data.get("id") == job_id)
                read.clear()
                marker = job_id
                for _ in range(10):
                    tasks.start_soon(listen, world, marker, ready)
                await until(all_are_there)
                now = request.clock.now()
                worker = WorkerId(request.worker)
                await request.state.apply([StartExecution(job_id=job_id, worker=worker, at=now)])

            assert read == [("job", job_id)]
            assert len(watches) == 1

    anyio.run(main)


def test_a_client_that_read_the_ledger_itself_is_not_sent_back(tmp_path: Path) -> None:
    def ignore() -> None:
        """Nothing is to be done."""

    async def main() -> None:
        async with served(tmp_path) as world:
            changes = world.site.changes
            await changes.join(ignore)
            # It was behind what is in memory, and has read a change that is not in memory yet.
            ahead = Place(change=changes.place.change + 1, mark="00000")

            found = await changes.after(ahead)

            assert found == Changes(rows=(), place=ahead)
            changes.leave(ignore)

    anyio.run(main)


def test_a_slow_client_holds_no_memory_and_gets_the_newest_rows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(change_tail, "KEPT_ROWS", 20)
    monkeypatch.setattr(change_tail, "ENTRIES", 7)

    async def main() -> None:
        async with served(tmp_path) as world, listening(world, "jobs,agents") as slow:
            jobs = [await world.run("hello") for _ in range(30)]
            async with listening(world, "jobs") as quick:
                await works(world, quick)
            assert len(world.site.changes._kept) <= 20

            newest: dict[str, str] = {}
            while [newest.get(job_id) for job_id in jobs] != ["completed"] * len(jobs):
                found = await slow.until(lambda one: one.kind == "job")
                newest[found.data["id"]] = found.data["status"]
            assert len({one.id for one in slow.heard}) == len(slow.heard)

    anyio.run(main)
