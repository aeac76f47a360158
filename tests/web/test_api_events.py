"""Following jobs over HTTP: every event once and in order, for any number of followers, however slow."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import anyio
import pytest

from nightherd.model.ids import ExecutionId, JobId, WorkerId
from nightherd.model.jobs.changes import LoseExecution, StartExecution
from nightherd.model.journal.event import AssistantEvent, describe
from nightherd.model.journal.live_text import TextDelta
from nightherd.model.journal.system import ExecutionStarted
from nightherd.model.usage import Totals
from nightherd.web.streams import job_tail, tails
from web.web_world import World, following, served, until

FOLLOWERS = 50


async def all_of(world: World, job_id: JobId, **headers: str) -> list[int]:
    async with following(world, job_id, **headers) as follower:
        return [event["seq"] async for event in follower.events()]


def test_many_followers_get_everything_once_and_in_order(tmp_path: Path) -> None:
    async def main() -> None:
        async with served(tmp_path) as world:
            job_id = await world.submit("chatty")
            seen: dict[int, list[int]] = {}

            async def follow(number: int) -> None:
                # Some come before the first event, some in the middle, some from later on.
                await anyio.sleep(0.01 * number)
                seen[number] = await all_of(world, job_id, last_event_id=str(number % 5))

            async with anyio.create_task_group() as tasks:
                for number in range(FOLLOWERS):
                    tasks.start_soon(follow, number)
                await anyio.sleep(0.1)
                await world.execute(job_id, "chatty")

            job = world.site.context.reader.find_job(job_id)
            assert job is not None
            assert job.last_seq > 100
            for number in range(FOLLOWERS):
                assert seen[number] == list(range(number % 5 + 1, job.last_seq + 1))
            assert world.site.counters.followers == 0

    anyio.run(main)


def test_one_look_at_the_journal_serves_all(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun: list[job_tail.JobTail] = []
    original = job_tail.JobTail.__init__

    def counted(self: job_tail.JobTail, *given: object) -> None:
        begun.append(self)
        original(self, *given)  # type: ignore[arg-type]

    monkeypatch.setattr(job_tail.JobTail, "__init__", counted)

    async def main() -> None:
        async with served(tmp_path) as world, anyio.create_task_group() as tasks:
            job_id = await world.submit("slow")
            for _ in range(10):
                tasks.start_soon(all_of, world, job_id)

            async def all_follow() -> bool:
                # A stream that is open has not joined yet: were all others gone, it would begin anew.
                return [tail.followers for tail in begun] == [10]

            await until(all_follow)
            tasks.cancel_scope.cancel()

    anyio.run(main)

    assert len(begun) == 1


def test_one_who_is_far_behind_catches_up_from_the_journal(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(job_tail, "KEPT_EVENTS", 3)
    monkeypatch.setattr(tails, "BLOCK", 7)

    async def main() -> None:
        async with served(tmp_path) as world:
            job_id = await world.submit("chatty")
            async with following(world, job_id) as slow:
                await world.execute(job_id, "chatty")
                seen = [event["seq"] async for event in slow.events()]

            job = world.site.context.reader.find_job(job_id)
            assert job is not None
            assert seen == list(range(1, job.last_seq + 1))

    anyio.run(main)


def test_the_stream_goes_on_across_a_lost_worker(tmp_path: Path) -> None:
    async def main() -> None:
        async with served(tmp_path) as world:
            context = world.site.context
            job_id = await world.submit("hello")
            seen: list[tuple[int, int]] = []

            def note(event: dict[str, Any]) -> None:
                seen.append((event["seq"], event["epoch"]))

            async def follow() -> None:
                async with following(world, job_id) as follower:
                    async for event in follower.events():
                        note(event)

            async with anyio.create_task_group() as tasks:
                tasks.start_soon(follow)
                now = context.clock.now()
                gone = WorkerId("worker-gonegone")
                await context.state.apply([StartExecution(job_id=job_id, worker=gone, at=now)])
                lost = context.journals.open(job_id, epoch=1, execution=ExecutionId(f"{job_id}.1"))
                lost.append(describe(ExecutionStarted(worker=gone)))
                lost.append(AssistantEvent(content="half", turn=1, index=0))

                async def has_come() -> bool:
                    return len(seen) == 2

                await until(has_come)
                nothing = Totals()
                await context.state.apply(
                    [
                        LoseExecution(
                            job_id=job_id, epoch=1, at=now, reason="gone", max_restarts=5,
                            last_seq=2, total=nothing, own=nothing,
                        )
                    ]
                )  # fmt: skip
                await world.execute(job_id)
                lost.close()

            assert [seq for seq, _ in seen] == list(range(1, len(seen) + 1))
            assert {epoch for _, epoch in seen} == {1, 2}

    anyio.run(main)


def test_a_job_that_ends_without_a_word_ends_its_stream(tmp_path: Path) -> None:
    async def main() -> None:
        async with served(tmp_path) as world, anyio.create_task_group() as tasks:
            job_id = await world.submit("slow")
            ended = anyio.Event()

            async def follow() -> None:
                assert await all_of(world, job_id) == []
                ended.set()

            tasks.start_soon(follow)

            async def follows() -> bool:
                return world.site.counters.followers == 1

            await until(follows)
            await world.post(f"/v1/jobs/{job_id}/cancel")
            await ended.wait()

    anyio.run(main)


def test_one_who_has_everything_of_an_ended_job_is_told_not_to_come_back(tmp_path: Path) -> None:
    async def main() -> None:
        async with served(tmp_path) as world:
            job_id = await world.run()
            job = world.site.context.reader.find_job(job_id)
            assert job is not None

            path = f"/v1/jobs/{job_id}/events"
            stream = "text/event-stream"
            done = await world.get(path, accept=stream, last_event_id=str(job.last_seq))
            again = await all_of(world, job_id, last_event_id=str(job.last_seq - 1))
            wrong = await world.get(path, accept=stream, last_event_id="soon")

            assert done.status == 204
            assert again == [job.last_seq]
            assert (wrong.status, wrong.document["code"]) == (400, "invalid_value")

    anyio.run(main)


def test_events_come_in_pages_too(tmp_path: Path) -> None:
    async def main() -> None:
        async with served(tmp_path) as world:
            job_id = await world.run("chatty")
            path = f"/v1/jobs/{job_id}/events"
            seen: list[int] = []
            while True:
                after = seen[-1] if seen else 0
                page = (await world.get(f"{path}?limit=30&after={after}")).document
                if not page["data"]:
                    break
                assert len(page["data"]) <= 30
                seen += [event["seq"] for event in page["data"]]
                assert page["last_seq"] == seen[-1]

            job = world.site.context.reader.find_job(job_id)
            assert job is not None
            assert seen == list(range(1, job.last_seq + 1))

    anyio.run(main)


def test_a_client_that_leaves_is_forgotten(tmp_path: Path) -> None:
    async def main() -> None:
        async with served(tmp_path) as world:
            job_id = await world.submit("slow")
            async with following(world, job_id):
                assert world.site.counters.followers == 1

            async def is_gone() -> bool:
                return world.site.counters.followers == 0

            await until(is_gone)

    anyio.run(main)


def test_a_quiet_stream_says_that_it_is_still_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tails, "HEARTBEAT_S", 0.1)

    async def main() -> None:
        async with served(tmp_path) as world:
            job_id = await world.submit("slow")
            async with following(world, job_id) as follower:
                heard = await follower.hear(tails.STILL_THERE * 2)

            assert tails.STILL_THERE in heard

    anyio.run(main)


def test_text_comes_without_an_id_and_not_after_its_event(tmp_path: Path) -> None:
    async def main() -> None:
        async with served(tmp_path) as world, anyio.create_task_group() as tasks:
            job_id = await world.submit("slow")
            journals = world.site.context.journals
            later = asyncio.get_running_loop().call_later
            live = journals.live_text(job_id, later)
            execution = ExecutionId(f"{job_id}.1")
            journal = journals.open(job_id, epoch=1, execution=execution)
            journal.append(describe(ExecutionStarted(worker="w")))
            async with following(world, job_id) as follower:
                live.append(TextDelta(epoch=1, after=1, part=1, at=0, text="Hel"))
                heard = await follower.hear(b"text_delta")
                heard = await follower.hear(b'"Hel"}\n\n')
                assert b"id:" not in heard.split(b"event: text_delta")[1]
                live.append(TextDelta(epoch=1, after=1, part=1, at=3, text="lo"))
                await follower.hear(b'"lo"}\n\n')
                async with following(world, job_id, last_event_id="1") as late:
                    heard = await late.hear(b'"lo"}\n\n')
                    assert b'"Hel"' in heard
                journal.append(AssistantEvent(content="Hello", end=True))
                await follower.hear(b"id: 2\n")
            async with following(world, job_id, last_event_id="1") as late:
                heard = await late.hear(b"id: 2\n")
                assert b"text_delta" not in heard
            live.close()
            tasks.cancel_scope.cancel()

    anyio.run(main)


def test_a_follower_is_told_once_that_the_job_lost_its_worker(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tails, "HEARTBEAT_S", 0.1)
    monkeypatch.setattr(tails, "LOOKS_PER_QUESTION", 2)

    async def main() -> None:
        async with served(tmp_path) as world:
            job_id = await world.submit("slow")
            context = world.site.context
            gone, at = WorkerId("worker-gone0000"), context.clock.now()
            await context.state.apply([StartExecution(job_id=job_id, worker=gone, at=at)])
            lost = (await world.get(f"/v1/jobs/{job_id}")).data["lost"]
            async with following(world, job_id) as first, following(world, job_id) as second:
                for one in (first, second):
                    await one.hear(b"event: lost")
                heard = [await one.hear(tails.STILL_THERE * 2) for one in (first, second)]

            data = json.dumps({"job_id": job_id, **lost}, separators=(",", ":"))
            for text in heard:
                assert text.count(b"event: lost\ndata: " + data.encode() + b"\n\n") == 1

    anyio.run(main)
