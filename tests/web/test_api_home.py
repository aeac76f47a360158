"""Home over HTTP: what happened since a person last looked, what needs them, what runs, and health."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from typing import Any

import anyio
import pytest

from nightherd.engine.operations.visits import mark_visit
from nightherd.model.access.visit import PATIENCE
from waiting_fleet import WAITING_AGENTS
from web.test_api_search import index
from web.web_world import FLEET, World, served, write_fleet
from workflow_fleet import work

WORKFLOWS = """\
workflows:
  flow:
    phases:
      - {name: dig, agent: hello, prompt: dig}
"""


def the_fleet() -> str:
    return FLEET + WAITING_AGENTS.split("agents:\n", 1)[1] + WORKFLOWS


async def me(world: World) -> str:
    return str((await world.get("/v1/home")).data["person"])


def ids(group: dict[str, Any]) -> list[str]:
    return [row["id"] for row in group["rows"]]


def test_it_shows_what_ended_since_the_visit_before_and_what_it_cost(tmp_path: Path) -> None:
    async def main() -> None:
        async with served(tmp_path, fleet=write_fleet(tmp_path, the_fleet())) as world:
            state, now = world.site.context.state, world.site.now()
            old = await world.run("hello")
            first = (await world.get("/v1/home?tz=Europe/Berlin")).document
            assert first["schema"] == "nightherd/v1/home"
            assert (first["data"]["visited_at"], ids(first["data"]["jobs"]["completed"])) == (
                None,
                [old],
            )

            person = await me(world)
            await mark_visit(person, state, at=now - timedelta(hours=3))
            await mark_visit(person, state, at=world.site.now() - PATIENCE - timedelta(seconds=1))
            await mark_visit("somebody-else", state, at=now)
            await world.post("/v1/workflows/flow/runs", {})
            await world.submit("broken")
            await work(world.site.fleet(), world.site.context)
            new = await world.run("hello")
            await index(world)

            seen = (await world.get("/v1/home")).data
            visit = (await world.post("/v1/visit")).document
            again = (await world.get("/v1/home")).data
            longer = (await world.get("/v1/home?since=1d")).data

            assert (
                seen["visited_at"] == again["visited_at"] == visit["data"]["visited_at"] is not None
            )
            assert visit["schema"] == "nightherd/v1/visit"
            assert visit["data"]["person"] == person
            assert seen["since"] == seen["visited_at"]
            assert ids(seen["jobs"]["completed"]) == [new, old]
            assert seen["jobs"]["completed"]["count"] == 2
            assert [job["agent"] for job in seen["jobs"]["failed"]["rows"]] == ["broken"]
            assert seen["jobs"]["cancelled"] == {"count": 0, "rows": []}
            assert [run["workflow"] for run in seen["runs"]["succeeded"]["rows"]] == ["flow"]
            assert seen["runs"]["failed"]["count"] == 0
            assert seen["spent"]["cost_usd"] == 0.003
            assert seen["spent"]["jobs"] == 3
            assert seen["pending_jobs"] == 0
            assert longer["jobs"]["completed"]["count"] == 2
            assert longer["visited_at"] == seen["visited_at"]

    anyio.run(main)


def test_it_shows_what_waits_what_runs_with_evidence_of_life_and_what_is_next(
    tmp_path: Path,
) -> None:
    async def main() -> None:
        async with served(tmp_path, fleet=write_fleet(tmp_path, the_fleet())) as world:
            asked = await world.run("asker")
            waits = await world.submit("hello")
            slow = await world.submit("slow")
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(world.execute, slow, "slow")
                data = (await world.get("/v1/home")).data
                while (
                    not data["running"]["rows"] or data["running"]["rows"][0]["last_event"] is None
                ):
                    data = (await world.get("/v1/home")).data
                tasks.cancel_scope.cancel()

            assert data["inbox"]["waiting"] == 1
            (item,) = data["inbox"]["rows"]
            assert (item["job_id"], data["inbox"]["oldest"]) == (asked, item["id"])
            assert (data["suspended"]["count"], ids(data["suspended"])) == (1, [asked])
            assert data["waiting"] == 1
            assert waits not in str(data["running"])
            (live,) = data["running"]["rows"]
            assert (live["job"]["id"], live["job"]["status"]) == (slow, "running")
            assert live["last_event"]["seq"] > 0
            assert live["last_event"]["age_seconds"] >= 0
            assert data["running"]["count"] == 1
            assert data["lost"] == {"count": 0, "rows": []}
            planned = data["next_schedules"]
            assert [one["id"] for one in planned] == ["hello/nightly"]
            health = data["health"]
            assert health["daemon"] is None
            assert 0 < health["disk"]["free_bytes"] <= health["disk"]["total_bytes"]
            assert health["rate_limits"] == health["failing_notify_targets"] == []

    anyio.run(main)


def test_looking_at_home_marks_no_visit(tmp_path: Path) -> None:
    async def main() -> None:
        async with served(tmp_path) as world:
            person = await me(world)
            known = await world.site.ask(lambda reader: reader.find_visit(person))
            assert known is None

            first = (await world.post("/v1/visit", {})).data
            again = (await world.post("/v1/visit")).data
            known = await world.site.ask(lambda reader: reader.find_visit(person))

            assert known is not None
            assert first["began_at"] == again["began_at"]
            assert (first["visited_at"], again["visited_at"]) == (None, None)

    anyio.run(main)


@pytest.mark.parametrize("query", ["since=soon", "tz=Nowhere", "since="])
def test_a_home_that_cannot_be_understood_is_refused(tmp_path: Path, query: str) -> None:
    async def main() -> None:
        async with served(tmp_path) as world:
            assert (await world.get(f"/v1/home?{query}")).status in (400, 422)

    anyio.run(main)
