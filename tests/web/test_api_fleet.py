"""The fleet over HTTP: what it is doing, and the switches."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import anyio
import pytest

from nightherd.errors import StateFileError
from nightherd.host.machine import user_name
from nightherd.model.ids import WorkerId
from nightherd.model.inbox.item import ItemKind, item_id
from nightherd.model.jobs.changes import StartExecution
from nightherd.model.jobs.lost import BY_A_LIVE_WORKER
from nightherd.state.reader import SqliteReader
from nightherd.testing.contracts.inbox import ask
from web.web_world import served


def test_status_says_what_the_fleet_is_doing(tmp_path: Path) -> None:
    async def main() -> None:
        async with served(tmp_path) as world:
            done = await world.run()
            await world.submit("slow")

            answer = await world.get("/v1/status")

            assert answer.document["schema"] == "nightherd/v1/status"
            data = answer.data
            assert data["jobs"] == {"waiting": 1, "running": 0, "suspended": 0, "lost": 0}
            assert [one["id"] for one in data["workers"]] == [world.site.context.worker]
            agents = {one["name"]: one for one in data["agents"]}
            assert (agents["hello"]["status"], agents["hello"]["last_job"]) == ("idle", done)
            assert agents["hello"]["next_schedule"] == "nightly" or data["daemon"] is None
            assert agents["slow"]["waiting"] == 1
            assert (data["failed_hooks"], data["failing_notify_targets"]) == ([], [])

    anyio.run(main)


def test_status_counts_what_waits_for_a_person(tmp_path: Path) -> None:
    async def main() -> None:
        async with served(tmp_path) as world:
            await world.site.context.state.apply([ask("a", "b"), ask("c", kind=ItemKind.FAILURE)])

            inbox = (await world.get("/v1/status")).data["inbox"]

            assert (inbox["waiting"], inbox["oldest"]) == (3, item_id("a"))
            assert (inbox["kinds"]["reload"], inbox["kinds"]["failure"]) == (2, 1)
            assert inbox["oldest_age_seconds"] > 0

    anyio.run(main)


def test_a_job_whose_worker_is_gone_is_lost_in_every_answer(tmp_path: Path) -> None:
    async def main() -> None:
        async with served(tmp_path) as world:
            job_id = await world.submit("slow")
            context = world.site.context
            gone, at = WorkerId("worker-gone0000"), context.clock.now()
            await context.state.apply([StartExecution(job_id=job_id, worker=gone, at=at)])

            (listed,) = (await world.get("/v1/jobs")).data
            shown = (await world.get(f"/v1/jobs/{job_id}")).data
            agent = (await world.get("/v1/agents/slow")).data

            assert (listed["status"], listed["lost"]["next"]) == ("running", BY_A_LIVE_WORKER)
            assert listed["lost"] == shown["lost"]
            assert listed["duration_seconds"] == shown["worked_seconds"] == 0.0
            assert (agent["status"], agent["lost_job"]) == ("idle", job_id)
            assert agent["lost_since"] == listed["lost"]["since"]
            (session,) = (await world.get("/v1/sessions")).data
            assert session["lost"] == {"job": job_id, **listed["lost"]}
            assert (await world.get(f"/v1/sessions/{session['id']}")).data["lost"] == session[
                "lost"
            ]
            assert (shown["tree"]["jobs"], shown["children"], shown["denials"]) == (1, [], [])

    anyio.run(main)


def test_agents_are_listed_shown_and_reset(tmp_path: Path) -> None:
    async def main() -> None:
        async with served(tmp_path) as world:
            early = await world.post("/v1/agents/hello/reset")
            await world.run()

            listed = (await world.get("/v1/agents")).data
            shown = (await world.get("/v1/agents/hello")).data
            reset = await world.post("/v1/agents/hello/reset")
            ghost = await world.get("/v1/agents/ghost")

            assert "hello" in [one["name"] for one in listed]
            assert [one["name"] for one in shown["schedules"]] == ["nightly", "fired", "rarely"]
            assert (early.status, reset.status, ghost.status) == (409, 200, 404)

    anyio.run(main)


def test_schedules_are_switched_and_run(tmp_path: Path) -> None:
    async def main() -> None:
        async with served(tmp_path) as world:

            async def of(name: str) -> dict[str, Any]:
                rows = (await world.get("/v1/schedules")).data
                found: dict[str, Any] = next(row for row in rows if row["name"] == name)
                return found

            assert (await of("nightly"))["status"] == "idle"
            off = await world.post("/v1/schedules/hello/nightly/disable")
            on = await world.post("/v1/schedules/hello/rarely/enable")
            job = await world.post("/v1/schedules/hello/nightly/run")
            missing = await world.post("/v1/schedules/hello/never/run")

            assert (off.status, off.data["status"], off.data["enabled"]) == (200, "disabled", False)
            assert (on.data["status"], on.data["override"]["updated_by"]) == ("idle", user_name())
            assert (await of("rarely"))["next_run_at"] is not None
            assert (job.status, job.data["schedule"]) == (201, "nightly")
            assert missing.status == 404

    anyio.run(main)


def test_numbers_are_there_for_those_who_watch(tmp_path: Path) -> None:
    async def main() -> None:
        async with served(tmp_path) as world:
            await world.run()
            await world.submit("slow")
            await world.get("/v1/jobs/nothing")

            answer = await world.get("/metrics")

            text = answer.body.decode()
            assert answer.headers["content-type"].startswith("text/plain; version=0.0.4")
            lines = dict(
                line.rsplit(" ", 1) for line in text.splitlines() if not line.startswith("#")
            )
            assert lines['nightherd_jobs{status="pending"}'] == "1"
            assert lines["nightherd_jobs_total"] == "2"
            assert lines["nightherd_workers"] == "1"
            assert lines['nightherd_http_requests_total{method="GET",status="404"}'] == "1"
            named = {line.split("{")[0] for line in lines}
            typed = {line.split()[2] for line in text.splitlines() if line.startswith("# TYPE")}
            assert named <= typed

    anyio.run(main)


def test_state_that_cannot_be_read_is_told_as_it_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(self: SqliteReader) -> None:
        raise StateFileError("the database is gone", code="DATABASE_GONE")

    async def main() -> None:
        async with served(tmp_path) as world:
            monkeypatch.setattr(SqliteReader, "live_workers", broken)

            answer = await world.get("/healthz")

            assert (answer.status, answer.document["code"]) == (500, "state_file")

    anyio.run(main)


def test_a_mistake_of_ours_is_told_to_the_operator_and_not_to_the_client(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(self: SqliteReader) -> None:
        raise ZeroDivisionError("secret detail")

    async def main() -> None:
        async with served(tmp_path) as world:
            told: list[str] = []
            object.__setattr__(world.site, "report", told.append)
            monkeypatch.setattr(SqliteReader, "list_agents", broken)

            answer = await world.get("/v1/agents")

            assert (answer.status, answer.document["code"]) == (500, "unexpected")
            assert b"secret detail" not in answer.body
            assert "secret detail" in told[0]

    anyio.run(main)
