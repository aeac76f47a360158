"""Checkpoints over HTTP: listed in pages, shown, and places to resume and fork a job at."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import anyio

from web.session_world import made
from web.web_world import World, served, write_fleet

FLEET = """\
agents:
  - name: stepper
    runtime: scripted
    default_prompt: go
    session: {mode: persistent}
    limits: {turns: 4}
    script: [{repeat: 9, steps: [{say: "step ${turn}"}, {usage: {output_tokens: 1}}]}]
  - name: plain
    runtime: scripted
    default_prompt: go
    script: [{say: done}]
"""


async def stopped(world: World) -> str:
    """A job that is suspended at its limit of four turns."""
    return str(await world.run("stepper", "go"))


def test_checkpoints_are_listed_newest_first_in_pages(tmp_path: Path) -> None:
    async def main() -> None:
        async with served(tmp_path, fleet=write_fleet(tmp_path, FLEET)) as world:
            path = f"/v1/jobs/{await stopped(world)}/checkpoints"

            whole = (await world.get(path)).document
            numbers = [row["number"] for row in whole["data"]]
            first = (await world.get(path + "?limit=2")).document
            rest = (await world.get(f"{path}?before={first['next_before']}")).document
            one = (await world.get(f"{path}/{numbers[0]}")).data
            gone = await world.get(f"{path}/99")
            plain = (await world.get(f"/v1/jobs/{await world.run('plain')}/checkpoints")).document

            assert len(numbers) >= 4
            assert numbers == sorted(numbers, reverse=True)
            assert (whole["total"], whole["next_before"]) == (len(numbers), None)
            assert (whole["removed"], whole["removed_at"]) == (0, None)
            assert [row["number"] for row in first["data"] + rest["data"]] == numbers
            assert {key: one[key] for key in one if key != "header"} == whole["data"][0]
            assert one["header"]["suspension"]["code"] == "turns_exceeded"
            assert (gone.status, "has no checkpoint 99" in gone.document["detail"]) == (404, True)
            assert (plain["data"], plain["total"]) == ([], 0)

    anyio.run(main)


async def second_turn(world: World, job: str) -> dict[str, Any]:
    rows = (await world.get(f"/v1/jobs/{job}/checkpoints")).data
    return next(row for row in rows if row["turn"] == 2)


def test_a_job_is_resumed_at_a_checkpoint_once_per_key(tmp_path: Path) -> None:
    async def main() -> None:
        async with served(tmp_path, fleet=write_fleet(tmp_path, FLEET)) as world:
            job = await stopped(world)
            place = await second_turn(world, job)
            body = {"at_checkpoint": place["number"], "prompt": "again"}

            first, again = [
                await world.post(f"/v1/jobs/{job}/resume", body, idempotency_key="k")
                for _ in range(2)
            ]

            assert first.status == again.status == 200
            assert first.data["id"] == again.data["id"] != job
            assert (first.data["trigger_type"], first.data["forked_from"]) == ("fork", job)
            branch = (await world.get(f"/v1/sessions/{first.data['session_id']}")).data
            assert (branch["base_job_id"], branch["base_turns"]) == (job, 2)
            assert branch["base_seq"] <= place["seq"]
            assert len((await world.get("/v1/jobs")).data) == 2

    anyio.run(main)


def test_a_session_is_forked_at_a_checkpoint(tmp_path: Path) -> None:
    async def main() -> None:
        async with served(tmp_path, fleet=write_fleet(tmp_path, FLEET)) as world:
            job = await stopped(world)
            number = (await second_turn(world, job))["number"]
            session = (await world.get(f"/v1/jobs/{job}")).data["session_id"]
            body = {"at_checkpoint": number, "at_job": job}

            fork = await made(world, f"/v1/sessions/{session}/fork", body)

            assert (fork["base_job_id"], fork["base_turns"], fork["job_count"]) == (job, 2, 0)

    anyio.run(main)


def test_a_job_is_forked_at_its_end_or_earlier_once_per_key(tmp_path: Path) -> None:
    async def main() -> None:
        async with served(tmp_path, fleet=write_fleet(tmp_path, FLEET)) as world:
            job = await stopped(world)
            path, number = f"/v1/jobs/{job}/fork", (await second_turn(world, job))["number"]

            async def turns(body: dict[str, Any]) -> int:
                answer = await world.post(path, {**body, "prompt": "otherwise"})
                assert answer.status == 201, answer.body
                assert answer.headers["location"] == f"/v1/jobs/{answer.data['id']}"
                assert answer.data["forked_from"] == job
                session = answer.data["session_id"]
                return int((await world.get(f"/v1/sessions/{session}")).data["base_turns"])

            assert await turns({}) == 4
            assert await turns({"at_checkpoint": number}) == 2
            assert await turns({"at_message": 2}) == 1
            keyed = [await world.post(path, {"prompt": "x"}, idempotency_key="k") for _ in "ab"]
            assert [answer.status for answer in keyed] == [201, 200]
            assert keyed[0].data["id"] == keyed[1].data["id"]
            other = await world.post(path, {"prompt": "y"}, idempotency_key="k")
            assert (other.status, other.document["code"]) == (409, "refused")
            waiting = await world.submit("plain")
            early = await world.post(f"/v1/jobs/{waiting}/fork", {})
            assert (early.status, early.document["next"]["action"]) == (409, "show_job")
            assert "has not started" in early.document["detail"]

    anyio.run(main)
