"""The page Costs: by each split, of one agent, in a time; the same numbers as the API has."""

from __future__ import annotations

import re

from playwright.async_api import expect

from browser.fleet_world import FleetWorld
from browser.looks import Look, every_look
from browser.page_checks import violations
from browser.visitor import Visitors


async def until_counted(fleet: FleetWorld, jobs: int) -> None:
    """The indexer counts jobs after they have ended."""

    async def is_so() -> bool:
        return bool((await fleet.get("/v1/costs"))["total"]["jobs"] == jobs)

    await fleet.until(is_so)


@every_look
async def test_costs_by_each_split_are_those_of_the_api(
    fleet: FleetWorld, visit: Visitors, look: Look
) -> None:
    await fleet.run("hello")
    await fleet.run("talker")
    job = await fleet.post("/v1/schedules/hello/nightly/run")
    await fleet.until_status(job["id"], "completed")
    await until_counted(fleet, 3)
    alice = await visit(fleet, "/costs", look=look)
    page = alice.page
    await expect(page.get_by_role("img", name=re.compile("^Costs of 7 days"))).to_be_visible()

    for split, name in {"schedule": "hello/nightly", "model": "no model", "workflow": "no workflow", "agent": "hello"}.items():  # fmt: skip
        await page.get_by_role("combobox", name="By").select_option(split)
        table = page.get_by_role("region", name=f"Costs by {split}")
        await expect(table.get_by_role("row").filter(has_text=name)).to_have_count(1)
        assert f"by={split}" in page.url
        await expect(table.get_by_role("columnheader").first).to_have_text(split)

    costs = await fleet.get("/v1/costs?by=agent&since=7d")
    assert costs["total"]["jobs"] == 3
    await expect(page.get_by_text("for 3 jobs")).to_be_visible()
    await page.get_by_role("combobox", name="Agent").select_option("talker")
    await expect(page.get_by_text("for 1 job,")).to_be_visible()
    await page.get_by_role("combobox", name="Time").select_option("30d")
    await page.get_by_role("combobox", name="Agent").select_option("hello")
    await expect(page.get_by_role("img", name=re.compile("^Costs of 30 days"))).to_be_visible()
    assert {"since=30d", "agent=hello"} <= set(page.url.partition("?")[2].split("&"))

    await page.reload()
    await expect(page.get_by_text("for 2 jobs")).to_be_visible()
    await alice.shoot("costs")
    assert await violations(page, {page.url: "Costs"}) == {}
    await page.get_by_role("region", name="Costs by").get_by_role("link", name="hello").click()
    await expect(page).to_have_url(f"{fleet.url}/agents/hello")


async def test_costs_grow_while_the_page_is_open(fleet: FleetWorld, visit: Visitors) -> None:
    alice = await visit(fleet, "/costs")
    await expect(alice.page.get_by_text("Nothing was used in this time.")).to_be_visible()

    await fleet.run("hello")
    await until_counted(fleet, 1)

    table = alice.page.get_by_role("region", name="Costs by agent")
    await expect(table.get_by_role("row").filter(has_text="hello")).to_contain_text(
        "$0.0011", timeout=30_000
    )
