"""Costs over HTTP: groups that add up to the total, caps with a forecast, and the same document as the command line's."""

from __future__ import annotations

from pathlib import Path

import anyio
import pytest

from waiting_fleet import WAITING_AGENTS
from web.test_api_search import index
from web.web_world import FLEET, World, served, write_fleet
from workflow_fleet import work

CAPPED = """\
fleet: {name: capped}
limits: {spend: 10.00, per_day: {spend: 0.502, turns: 5}}
agents:
  - name: hello
    runtime: scripted
    model: barn:owl
    limits: {per_day: {tokens: 100}}
    default_prompt: everybody
    script:
      - say: Hello, ${prompt}.
      - usage: {input_tokens: 10, output_tokens: 2, cost_usd: 0.001}
    schedules:
      nightly: {type: cron, cron: "0 3 * * *", prompt: the night, limits: {per_day: {spend: 0.0005}}}
  - name: other
    runtime: scripted
    default_prompt: everybody
    script: [{say: "Hi."}, {usage: {output_tokens: 1, cost_usd: 0.5}}]
"""
CHILDREN = """\
  - name: parent
    runtime: scripted
    allowed_tools: [Spawn]
    script:
      - tool: Spawn
        input: {agent: child, prompt: "do it"}
      - say: Done.
      - usage: {input_tokens: 7, cost_usd: 0.5}
  - name: child
    runtime: scripted
    script: [{say: "Did it."}, {usage: {output_tokens: 3, cost_usd: 0.25}}]
"""
AMOUNTS = (
    "cost_usd",
    "tokens",
    "input_tokens",
    "output_tokens",
    "cache_creation_input_tokens",
    "cache_read_input_tokens",
    "turns",
)


async def filled(world: World) -> None:
    """Three jobs that cost something, indexed."""
    for agent in ("other", "hello", "hello"):
        await world.run(agent)
    await index(world)


def test_groups_and_others_add_up_to_the_total(tmp_path: Path) -> None:
    async def main() -> None:
        async with served(tmp_path, fleet=write_fleet(tmp_path, CAPPED)) as world:
            nothing = (await world.get("/v1/costs?by=agent")).data
            assert (nothing["rows"], nothing["pending_jobs"]) == ([], None)
            await filled(world)

            answer = (
                await world.get("/v1/costs?by=agent,model&since=2d&tz=Europe/Berlin")
            ).document
            few = (await world.get("/v1/costs?by=agent&limit=1")).data
            mine = (await world.get("/v1/costs?by=day&agent=hello")).data

            data = answer["data"]
            assert answer["schema"] == "nightherd/v1/costs"
            assert (data["by"], data["timezone"]) == (["agent", "model"], "Europe/Berlin")
            assert [
                (row["agent"], row["model"], row["model_source"], row["cost_usd"], row["jobs"])
                for row in data["rows"]
            ] == [
                ("other", None, "unknown", 0.5, 1),
                ("hello", "barn:owl", "configured", 0.002, 2),
            ]
            assert (data["groups"], data["others"], data["pending_jobs"]) == (2, None, 0)
            total = {"cost_usd": 0.502, "tokens": 25, "input_tokens": 20, "output_tokens": 5}
            cache = {"cache_creation_input_tokens": 0, "cache_read_input_tokens": 0}
            assert data["total"] == {**total, **cache, "turns": 3, "jobs": 3}
            assert [row["agent"] for row in few["rows"]] == ["other"]
            assert few["others"]["groups"] == 1
            for name in AMOUNTS:
                named = sum(row[name] for row in few["rows"])
                assert named + few["others"][name] == few["total"][name] == data["total"][name]
            (day,) = mine["rows"]
            assert (day["agent"], day["cost_usd"], day["turns"]) == (None, 0.002, 2)
            assert data["since"] < data["until"]

    anyio.run(main)


def test_caps_say_what_is_left_and_what_will_be(tmp_path: Path) -> None:
    async def main() -> None:
        async with served(tmp_path, fleet=write_fleet(tmp_path, CAPPED)) as world:
            await filled(world)

            burn = (await world.get("/v1/costs")).data["burn"]
            hello = (await world.get("/v1/costs?agent=other")).data["burn"]

            caps = {
                (cap["scope"], cap["owner"], cap["limit"], cap["per_day"]): cap
                for cap in burn["caps"]
            }
            assert list(caps) == [
                ("fleet", None, "spend", False),
                ("fleet", None, "spend", True),
                ("fleet", None, "turns", True),
                ("agent", "hello", "tokens", True),
                ("schedule", "hello/nightly", "spend", True),
            ]
            ever = caps["fleet", None, "spend", False]
            assert (ever["maximum"], ever["used"], ever["left"]) == (10.0, 0.502, 9.498)
            assert (ever["resets_at"], ever["expected"]) == (None, None)
            assert ever["reached_at"] is not None
            spend = caps["fleet", None, "spend", True]
            assert (spend["is_reached"], spend["reached_at"], spend["left"]) == (True, None, 0)
            assert spend["expected"] >= spend["used"] == 0.502
            assert spend["on_reached"] == "suspend"
            tokens = caps["agent", "hello", "tokens", True]
            assert (tokens["used"], tokens["left"], tokens["is_reached"]) == (24, 76, False)
            assert tokens["resets_at"].endswith("T00:00:00.000000Z")
            assert caps["schedule", "hello/nightly", "spend", True]["per_hour"] == 0
            assert burn["per_hour"]["cost_usd"] > 0
            assert burn["today"]["expected_usd"] >= burn["today"]["cost_usd"]
            assert {cap["owner"] for cap in hello["caps"]} == {None}
            assert hello["per_hour"]["tokens"] <= burn["per_hour"]["tokens"]

    anyio.run(main)


def test_costs_are_exactly_what_the_rows_of_jobs_say_whatever_happened_to_them(
    tmp_path: Path,
) -> None:
    agents = WAITING_AGENTS.split("agents:\n", 1)[1]

    async def main() -> None:
        async with served(
            tmp_path, fleet=write_fleet(tmp_path, FLEET + agents + CHILDREN)
        ) as world:
            for agent in ("hello", "broken", "capped", "asker", "pusher", "chatty", "parent"):
                await world.submit(agent, "go")
            await work(world.site.fleet(), world.site.context)
            capped = (await world.get("/v1/jobs?agent=capped")).data[0]
            assert capped["status"] == "suspended"
            await index(world)
            path = f"/v1/jobs/{capped['id']}"
            resumed = await world.post(f"{path}/resume", {"limits": {"turns": "9"}})
            forked = await world.post(f"{path}/fork", {"prompt": "again"})
            await work(world.site.fleet(), world.site.context)
            asker = (await world.get("/v1/jobs?agent=asker")).data[0]
            cancelled = await world.post(f"/v1/jobs/{asker['id']}/cancel")
            assert [one.status for one in (resumed, forked, cancelled)] == [200, 201, 200]
            await index(world)

            jobs = (await world.get("/v1/jobs?limit=100")).data
            costs = (await world.get("/v1/costs?by=agent,schedule")).data
            spent = await world.site.ask(lambda reader: reader.spent(None, None, None))

            micro = sum(round(job["cost_usd"] * 1_000_000) for job in jobs)
            assert round(costs["total"]["cost_usd"] * 1_000_000) == micro == spent.spend > 0
            assert costs["total"]["turns"] == sum(job["turns"] for job in jobs) == spent.turns
            assert costs["total"]["tokens"] == spent.tokens
            for row in costs["rows"]:
                mine = [job for job in jobs if job["agent"] == row["agent"]]
                assert row["turns"] == sum(job["turns"] for job in mine), row["agent"]
            assert {job["agent"] for job in jobs} >= {"parent", "child"}

    anyio.run(main)


@pytest.mark.parametrize(
    "query",
    [
        "by=price",
        "by=agent,agent",
        "by=",
        "since=soon",
        "until=1999-01-01",
        "tz=Europe/Nowhere",
        "tz=../../etc/passwd",
        "limit=0",
        "limit=1001",
    ],
)
def test_costs_that_cannot_be_understood_are_refused(tmp_path: Path, query: str) -> None:
    async def main() -> None:
        async with served(tmp_path) as world:
            answer = await world.get(f"/v1/costs?{query}")
            assert answer.status in (400, 422), answer.body

    anyio.run(main)
