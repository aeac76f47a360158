"""A journal that cannot be read: what it says is missing, and nothing else is."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

import anyio
import pytest

from nightherd.model.ids import ExecutionId, JobId, WorkerId
from nightherd.model.jobs.changes import StartExecution
from nightherd.model.journal.event import describe
from nightherd.model.journal.system import ExecutionStarted
from nightherd.ports import Journal
from nightherd.web.streams import stream_follower
from web.stream_world import Heard, Listener, listening
from web.web_world import World, served

NEWER = b'{"v":99,"seq":2,"epoch":1,"ts":"2026-01-01T00:00:00Z","type":"future"}\n'


def journal_of(world: World, job_id: str) -> Path:
    (path,) = (world.directory / ".nightherd").rglob(f"{job_id}.jsonl")
    return path


def hide(path: Path) -> Path:
    """Put a link at the place of a journal: links are not followed."""
    kept = path.with_suffix(".kept")
    path.rename(kept)
    path.symlink_to(kept)
    return kept


async def begin(world: World, agent: str = "hello") -> tuple[JobId, Journal]:
    """A job that runs, and its journal with one event."""
    context = world.site.context
    job_id = JobId(await world.submit(agent))
    worker = WorkerId(context.worker)
    now = context.clock.now()
    await context.state.apply([StartExecution(job_id=job_id, worker=worker, at=now)])
    journal = context.journals.open(job_id, epoch=1, execution=ExecutionId(f"{job_id}.1"))
    journal.append(describe(ExecutionStarted(worker=worker)))
    return job_id, journal


def is_about(job_id: str, kind: str, heard: Heard) -> bool:
    return heard.kind == kind and job_id in (heard.data.get("id"), heard.data.get("job_id"))


async def still_hears(world: World, listener: Listener) -> None:
    marker = await world.submit("topical")
    await listener.until(partial(is_about, marker, "job"))


def resets(listener: Listener) -> list[Any]:
    return [data["topics"] for data in listener.of("reset")]


def test_a_followed_job_with_an_unreadable_journal_ends_no_stream(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stream_follower, "HEARTBEAT_S", 0.05)

    async def main() -> None:
        async with served(tmp_path) as world:
            job_id = await world.run("hello")
            job = world.site.context.reader.find_job(JobId(job_id))
            assert job is not None
            path = journal_of(world, job_id)
            kept = hide(path)
            async with listening(world, f"jobs,job:{job_id}@0") as listener:
                await still_hears(world, listener)
                assert resets(listener) == [[f"job:{job_id}"]]

                kept.rename(path)
                heard = [one async for one in events_until(listener, job.last_seq)]
            assert heard == list(range(1, job.last_seq + 1))

    anyio.run(main)


async def events_until(listener: Listener, last: int) -> Any:
    while True:
        found = await listener.until(lambda one: one.kind == "event")
        yield found.data["event"]["seq"]
        if found.data["event"]["seq"] == last:
            return


def test_a_journal_that_becomes_unreadable_while_it_is_followed_ends_no_stream(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stream_follower, "HEARTBEAT_S", 0.05)

    async def main() -> None:
        async with served(tmp_path) as world:
            job_id, journal = await begin(world)
            async with listening(world, f"jobs,job:{job_id}") as listener:
                with journal_of(world, job_id).open("ab") as file:
                    file.write(NEWER)
                await listener.until(lambda one: one.kind == "reset")
                await still_hears(world, listener)
                await still_hears(world, listener)

                assert resets(listener) == [[f"job:{job_id}"]]
            journal.close()

    anyio.run(main)


def test_a_session_whose_journal_cannot_be_read_is_listed_as_it_is_on_record(
    tmp_path: Path,
) -> None:
    async def main() -> None:
        async with served(tmp_path) as world:
            await world.run("hello")
            job_id, journal = await begin(world)
            journal.close()
            async with listening(world, "sessions,jobs") as listener:
                hide(journal_of(world, job_id))
                answer = await world.get("/v1/sessions")
                home = await world.get("/v1/home")
                context = world.site.context
                running = context.reader.find_job(job_id)
                assert running is not None
                assert running.session_id is not None
                await still_hears(world, listener)
                renamed = await world.ask(
                    "PATCH", f"/v1/sessions/{running.session_id}", {"name": "kept"}
                )
                await listener.until(partial(is_about, running.session_id, "session"))

            assert (answer.status, home.status) == (200, 200)
            assert renamed.status == 200, renamed.body
            assert len(answer.data) == 2

    anyio.run(main)
