"""Retention over HTTP: the plan, applying it, and who may."""

from __future__ import annotations

from pathlib import Path

import anyio
import pytest

from nightherd.model.access.role import Role
from nightherd.model.checkpoints.retention import RetentionRun
from nightherd.wiring.stores import record_retention
from surfaces.drivers import Cli
from web.browser import named_token, on_port
from web.web_world import World, served, write_fleet

FLEET = """\
agents:
  - name: mower
    runtime: scripted
    default_prompt: Mow.
    limits: {turns: 5}
    script:
      - say: Mown.
"""


async def count_checkpoints(world: World) -> int:
    reader = world.site.context.reader
    return sum(bool(reader.list_checkpoints(id)) for id in reader.jobs_with_checkpoints())


def test_plan_is_that_of_the_command_and_changes_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, cli: Cli
) -> None:
    monkeypatch.chdir(tmp_path)

    async def main() -> None:
        async with served(tmp_path, fleet=write_fleet(tmp_path, FLEET)) as world:
            jobs = {await world.run("mower") for _ in range(3)}
            run = RetentionRun(at=world.site.now(), is_announcement=True, checkpoints=3, jobs=3)
            record_retention(world.site.state_dir, run)

            planned = await world.get("/v1/retention/plan")
            said = await anyio.to_thread.run_sync(cli, "retention", "plan", "--json")

            assert {**planned.document, "as_of": ""} == {**said.document, "as_of": ""}
            assert {one["job_id"] for one in planned.data} == jobs
            assert planned.document["is_dry_run"] is True
            assert planned.document["totals"]["jobs"] == 3
            assert planned.document["last_run"]["is_announcement"] is True
            assert await count_checkpoints(world) == 3

            short = (await world.get("/v1/retention/plan?limit=2")).document
            assert (len(short["data"]), short["is_cut"], short["totals"]["jobs"]) == (2, True, 3)

    anyio.run(main)


def test_plan_is_applied_for_one_job_or_for_all(tmp_path: Path) -> None:
    async def main() -> None:
        async with served(tmp_path, fleet=write_fleet(tmp_path, FLEET)) as world:
            told: list[str] = []
            object.__setattr__(world.site, "report", told.append)
            first, second, third = [await world.run("mower") for _ in range(3)]

            one = await world.post("/v1/retention/apply", {"job": first})
            left = (await world.get("/v1/retention/plan")).data
            alone = (await world.get(f"/v1/retention/plan?job={second}")).data
            rest = await world.post("/v1/retention/apply")

            assert (one.status, one.document["is_dry_run"]) == (200, False)
            assert [plan["job_id"] for plan in one.data] == [first]
            assert {plan["job_id"] for plan in left} == {second, third}
            assert [plan["job_id"] for plan in alone] == [second]
            assert {plan["job_id"] for plan in rest.data} == {second, third}
            assert (rest.document["failures"], rest.document["last_run"]) == ({}, None)
            assert (await world.get("/v1/retention/plan")).data == []
            assert await count_checkpoints(world) == 0
            assert (
                "checkpoints of 2 jobs, 0 workspaces, 0 texts and 0 files of chat deleted"
                in told[-1]
            )

    anyio.run(main)


def test_what_fails_is_named(tmp_path: Path) -> None:
    async def main() -> None:
        async with served(tmp_path, fleet=write_fleet(tmp_path, FLEET)) as world:
            job, other = await world.run("mower"), await world.run("mower")
            blocked = world.site.state_dir / "threads" / job / "archive" / "checkpoints.jsonl"
            blocked.mkdir(parents=True)

            applied = (await world.post("/v1/retention/apply")).document

            assert [plan["job_id"] for plan in applied["data"]] == [other]
            assert list(applied["failures"]) == [job]

    anyio.run(main)


def test_only_an_admin_applies(tmp_path: Path) -> None:
    async def main() -> None:
        async with on_port(tmp_path) as world:
            (port,) = world.ports
            olga = f"Bearer {await named_token(world, 'olga', Role.OPERATOR)}"

            plan = await world.ask("GET", "/v1/retention/plan", port=port, authorization=olga)
            apply = await world.ask("POST", "/v1/retention/apply", port=port, authorization=olga)

            assert (plan.status, apply.status) == (200, 403)

    anyio.run(main)


def test_unknown_job_has_no_plan(tmp_path: Path) -> None:
    async def main() -> None:
        async with served(tmp_path) as world:
            ghost = "job-2026-01-01-ghost1"
            assert (await world.get(f"/v1/retention/plan?job={ghost}")).status == 404
            assert (await world.post("/v1/retention/apply", {"job": ghost})).status == 404
            assert (await world.post("/v1/retention/apply", {"all": True})).status == 422

    anyio.run(main)
