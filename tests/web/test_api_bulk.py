"""Many jobs cancelled or retried by one request: each for itself, once per key, by ids or by a filter."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import anyio
import pytest

from nightherd.engine.operations import bulk as operation
from nightherd.model.jobs.bulk import BulkVerb
from nightherd.model.jobs.job import JobQuery, JobStatus
from web.web_world import Answer, World, served, until, write_fleet

FLEET = """\
agents:
  - name: broken
    runtime: scripted
    default_prompt: go
    script: [{say: trying}, {fail: {message: it broke}}]
  - name: good
    runtime: scripted
    default_prompt: go
    script: [{say: done}]
  - name: slow
    runtime: scripted
    default_prompt: go
    script: [{say: working}, {sleep: 600s}]
"""


async def bulk(world: World, body: dict[str, Any], **headers: str) -> Answer:
    answer = await world.post("/v1/jobs/bulk", body, **headers)
    assert answer.status == 200, answer.body
    return answer


def outcomes(answer: Answer) -> dict[str, str]:
    return {row["job_id"]: row["outcome"] for row in answer.data["jobs"]}


def all_jobs(world: World) -> int:
    return len(world.site.context.reader.list_jobs(JobQuery(limit=1_000)))


def test_each_job_is_done_or_refused_for_itself(tmp_path: Path) -> None:
    async def main() -> None:
        async with served(tmp_path, fleet=write_fleet(tmp_path, FLEET)) as world:
            failed = await world.run("broken")
            done = await world.run("good")
            waiting = await world.submit("slow")
            ids = [failed, "job-2020-01-01-aaaaaa", waiting, done, failed]

            cancelled = await bulk(world, {"verb": "cancel", "jobs": ids})
            retried = await bulk(world, {"verb": "retry", "jobs": [failed, waiting]})

            assert outcomes(cancelled) == {
                failed: "refused",
                ids[1]: "refused",
                waiting: "done",
                done: "refused",
            }
            rows = {row["job_id"]: row for row in cancelled.data["jobs"]}
            assert rows[waiting]["job"]["status"] == "cancelled"
            assert rows[ids[1]]["job"] is None
            assert rows[ids[1]]["problem"]["code"] == "job_not_found"
            assert rows[done]["problem"] == {
                "code": "refused",
                "message": f"job {done} is completed",
                "hint": f"GET /v1/jobs/{done}",
            }
            counts = {key: cancelled.data[key] for key in ("done", "planned", "refused")}
            assert counts == {"done": 1, "planned": 0, "refused": 3}
            assert set(outcomes(retried).values()) == {"done"}
            made = [row["new_job_id"] for row in retried.data["jobs"]]
            agents = [(await world.get(f"/v1/jobs/{one}")).data["agent"] for one in made]
            assert agents == ["broken", "slow"]
            assert all_jobs(world) == 5

    anyio.run(main)


def test_a_filter_means_the_jobs_that_the_verb_is_for(tmp_path: Path) -> None:
    async def main() -> None:
        async with served(tmp_path, fleet=write_fleet(tmp_path, FLEET)) as world:
            failed = [await world.run("broken") for _ in range(2)]
            done = await world.run("good")
            waiting = await world.submit("good")

            async def chosen(verb: str, q: str) -> list[str]:
                answer = await bulk(world, {"verb": verb, "q": q, "dry_run": True})
                assert answer.data["is_dry_run"] is True
                assert set(outcomes(answer).values()) <= {"planned"}
                return list(outcomes(answer))

            assert await chosen("retry", "") == failed[::-1]
            assert await chosen("retry", "agent:good") == []
            assert await chosen("retry", "agent:good status:completed,pending") == [done]
            assert await chosen("retry", "status:running") == []
            assert await chosen("cancel", "agent:good,broken") == [waiting]
            assert await chosen("cancel", "status:failed") == []
            assert all_jobs(world) == 4
            await bulk(world, {"verb": "cancel", "q": "agent:good"})
            job = world.site.context.reader.find_job(waiting)
            assert job is not None
            assert job.status is JobStatus.CANCELLED

    anyio.run(main)


def test_a_repeated_request_makes_no_second_retry(tmp_path: Path) -> None:
    async def main() -> None:
        async with served(tmp_path, fleet=write_fleet(tmp_path, FLEET)) as world:
            failed = [await world.run("broken") for _ in range(3)]
            body = {"verb": "retry", "q": "agent:broken"}

            first = await bulk(world, body, idempotency_key="k")
            made = [row["new_job_id"] for row in first.data["jobs"]]
            for job in made:  # these fail too, and the filter fits them
                await world.execute(job, "broken")
            again = await bulk(world, body, idempotency_key="k")
            by_ids = await bulk(world, {"verb": "retry", "jobs": failed}, idempotency_key="k")
            assert all_jobs(world) == 6
            other = await bulk(world, body, idempotency_key="k2")

            assert list(outcomes(first)) == failed[::-1]
            assert [row["new_job_id"] for row in again.data["jobs"]] == made
            assert {row["new_job_id"] for row in by_ids.data["jobs"]} == set(made)
            assert set(outcomes(other)) == {*made, *failed}
            assert all_jobs(world) == 12

    anyio.run(main)


def test_a_repeated_cancel_says_the_same(tmp_path: Path) -> None:
    async def main() -> None:
        async with served(tmp_path, fleet=write_fleet(tmp_path, FLEET)) as world:
            ids = [await world.submit("good") for _ in range(3)]
            body = {"verb": "cancel", "jobs": ids}

            first, again = await bulk(world, body), await bulk(world, body)

            assert outcomes(first) == outcomes(again) == dict.fromkeys(ids, "done")

    anyio.run(main)


def test_what_waits_is_cancelled_before_what_runs(tmp_path: Path) -> None:
    async def main() -> None:
        async with served(tmp_path, fleet=write_fleet(tmp_path, FLEET)) as world:
            async with anyio.create_task_group() as tasks:
                running = await world.submit("slow")
                tasks.start_soon(world.execute, running, "slow")
                waiting = [await world.submit("slow") for _ in range(2)]

                async def is_running() -> bool:
                    job = world.site.context.reader.find_job(running)
                    return job is not None and job.status is JobStatus.RUNNING

                await until(is_running)
                taken: list[str] = []

                async def carry_out(request: Any) -> Any:
                    taken.append(request.job_id)
                    return world.site.context.reader.find_job(request.job_id)

                ids = [waiting[0], running, waiting[1]]
                asked = operation.Bulk(verb=BulkVerb.CANCEL, job_ids=ids)
                found = await operation.perform_bulk(asked, carry_out, world.site.context.reader)
                done = await bulk(world, {"verb": "cancel", "q": "agent:slow"})
                tasks.cancel_scope.cancel()

            assert taken == [waiting[1], waiting[0], running]
            assert [one.job_id for one in found] == ids
            assert set(outcomes(done).values()) == {"done"}
            rows = {row["job_id"]: row["job"] for row in done.data["jobs"]}
            assert [rows[one]["status"] for one in waiting] == ["cancelled", "cancelled"]
            job = world.site.context.reader.find_job(running)
            assert job is not None
            assert job.cancel_requested_at is not None

    anyio.run(main)


def test_a_dry_run_says_what_would_be_refused(tmp_path: Path) -> None:
    async def main() -> None:
        async with served(tmp_path, fleet=write_fleet(tmp_path, FLEET)) as world:
            failed, waiting = await world.run("broken"), await world.submit("good")
            body = {"jobs": [failed, waiting, "job-none"], "dry_run": True}

            cancel = await bulk(world, {**body, "verb": "cancel"})
            retry = await bulk(world, {**body, "verb": "retry"}, idempotency_key="k")

            assert list(outcomes(cancel).values()) == ["refused", "planned", "refused"]
            assert list(outcomes(retry).values()) == ["planned", "refused", "refused"]
            assert retry.data["jobs"][1]["problem"]["message"] == f"job {waiting} is pending"
            assert (retry.data["planned"], retry.data["refused"]) == (1, 2)
            assert all_jobs(world) == 2

    anyio.run(main)


@pytest.mark.parametrize(
    ("body", "status", "said"),
    [
        ({"verb": "cancel"}, 400, "either jobs or q"),
        ({"verb": "cancel", "jobs": ["x"], "q": ""}, 400, "either jobs or q"),
        ({"verb": "cancel", "jobs": []}, 422, "jobs"),
        ({"verb": "cancel", "jobs": ["x"] * 501}, 422, "jobs"),
        ({"verb": "delete", "jobs": ["x"]}, 422, "verb"),
        ({"verb": "retry", "q": "agent:x state:y"}, 400, "column 9 of the filter"),
    ],
)
def test_what_cannot_be_understood_does_nothing(
    tmp_path: Path, body: dict[str, Any], status: int, said: str
) -> None:
    async def main() -> None:
        async with served(tmp_path, fleet=write_fleet(tmp_path, FLEET)) as world:
            refused = await world.post("/v1/jobs/bulk", body)

            assert refused.status == status, refused.body
            assert said in refused.document["detail"]

    anyio.run(main)


def test_a_filter_that_fits_too_many_jobs_does_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(operation, "MOST_JOBS", 2)

    async def main() -> None:
        async with served(tmp_path, fleet=write_fleet(tmp_path, FLEET)) as world:
            for _ in range(3):
                await world.submit("good")

            refused = await world.post("/v1/jobs/bulk", {"verb": "cancel", "q": "agent:good"})

            assert refused.status == 400
            assert "fits more than 2 jobs" in refused.document["detail"]
            assert {one.status for one in world.site.context.reader.list_jobs(JobQuery())} == {
                JobStatus.PENDING
            }

    anyio.run(main)
