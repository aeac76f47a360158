"""Outlines over HTTP: the command line's document."""

from __future__ import annotations

from pathlib import Path

import anyio

from nightherd.views.jobs.outlines import JobOutline
from web.web_world import served


def test_the_outline_of_a_job_has_its_steps_executions_and_gaps(tmp_path: Path) -> None:
    async def main() -> None:
        async with served(tmp_path) as world:
            job_id = await world.run(prompt="night")

            answer = await world.get(f"/v1/jobs/{job_id}/outline")

            assert answer.document["schema"] == "nightherd/v1/job_outline"
            found = answer.data
            assert set(found) == set(JobOutline.__annotations__)
            assert (found["job_id"], found["status"]) == (job_id, "completed")
            kinds = [(one["kind"], one["label"]) for one in found["segments"]]
            assert ("prompt", "night") in kinds
            assert ("answer", "Hello, night.") in kinds
            assert [one["outcome"] for one in found["executions"]] == ["completed"]
            assert [gap["reason"] for gap in found["gaps"]] == ["queued"]
            assert found["counts"]["events"] == found["last_seq"]

    anyio.run(main)


def test_a_job_that_has_not_begun_is_one_gap_that_lasts(tmp_path: Path) -> None:
    async def main() -> None:
        async with served(tmp_path) as world:
            job_id = await world.submit()

            found = (await world.get(f"/v1/jobs/{job_id}/outline")).data

            assert found["segments"] == []
            assert [(gap["reason"], gap["end"]) for gap in found["gaps"]] == [("queued", None)]

    anyio.run(main)


def test_there_is_no_outline_of_a_job_that_does_not_exist(tmp_path: Path) -> None:
    async def main() -> None:
        async with served(tmp_path) as world:
            answer = await world.get("/v1/jobs/job-2020-01-01-aaaaaa/outline")
            assert answer.status == 404

    anyio.run(main)
