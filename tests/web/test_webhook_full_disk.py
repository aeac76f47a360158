"""Webhooks on a disk that is really full: what was acknowledged is there, and the rest is asked for again."""

from __future__ import annotations

from pathlib import Path

import anyio

from nightherd.model.jobs.job import JobQuery
from web.test_webhooks import standard
from web.web_world import World, served

ROOM = 400_000
"""Bytes that are free again once the operator has made room."""


def test_nothing_acknowledged_is_lost_when_the_disk_fills_up(small_disk: Path) -> None:
    ballast = small_disk / "ballast"
    ballast.write_bytes(b"x" * ROOM)

    async def main() -> None:
        async with served(small_disk) as world:
            known: dict[str, str] = {}
            payload = {"text": "x" * 20_000}
            answer = await standard(world, "d-0", payload)
            while answer.status == 202:
                known[f"d-{len(known)}"] = answer.data["job_id"]
                answer = await standard(world, f"d-{len(known)}", payload)

            assert answer.status in (503, 507), answer.body
            assert answer.document["code"] == "state_file"
            assert known
            assert delivered(world) == known
            ballast.unlink()
            again = await standard(world, f"d-{len(known)}", {"text": "now there is room"})
            first = await standard(world, "d-0", {"text": "sent again"})
            assert (again.status, again.data["is_new"]) == (202, True)
            assert (first.data["job_id"], first.data["is_new"]) == (known["d-0"], False)

    anyio.run(main)


def delivered(world: World) -> dict[str | None, str]:
    """The job of every delivery on record."""
    found = world.site.context.reader.list_jobs(JobQuery(limit=5_000))
    return {job.trigger_id: job.id for job in found}
