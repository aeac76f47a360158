"""The pages Agents and Agent: what an agent may do, did and costs, where each value was written, and clearing its error."""

from __future__ import annotations

import re

from playwright.async_api import expect

from browser.fleet_world import FleetWorld
from browser.looks import Look, every_look
from browser.page_checks import violations
from browser.visitor import Visitors
from nightherd.model.access.role import Role


@every_look
async def test_agents_lead_to_their_jobs_schedules_and_values(
    fleet: FleetWorld, visit: Visitors, look: Look
) -> None:
    job = await fleet.run("hello")
    alice = await visit(fleet, "/agents", look=look)
    page = alice.page
    table = page.get_by_role("region", name="Agents")
    await expect(table.get_by_role("row").filter(has_text="hello")).to_contain_text("$0.0011")
    assert await violations(page, {page.url: "Agents"}) == {}
    await alice.shoot("agents")

    await page.get_by_role("region", name="Agents").get_by_role("link", name="hello").click()
    await expect(page.get_by_role("link", name=job[-6:])).to_have_attribute("href", f"/jobs/{job}")
    configuration = page.get_by_role("region", name="Values")
    await page.get_by_role("searchbox", name="Filter values").fill("default_prompt")
    rows = configuration.get_by_role("row")
    await expect(rows).to_have_count(2)
    await expect(rows.nth(1)).to_contain_text("everybody")
    await expect(rows.nth(1)).to_contain_text(re.compile(r"nightherd\.yaml:\d+"))
    await alice.shoot("agent")
    assert await violations(page, {page.url: "hello"}) == {}
    await page.get_by_role("link", name="nightly").click()
    await expect(page).to_have_url(f"{fleet.url}/schedules?schedule=hello%2Fnightly")


async def test_the_error_of_an_agent_is_shown_and_cleared(
    fleet: FleetWorld, visit: Visitors
) -> None:
    alice = await visit(fleet, "/agents/broken")
    page = alice.page
    await expect(page.get_by_text("It has no jobs yet.")).to_be_visible()
    await fleet.run("broken")
    await expect(page.get_by_role("alert")).to_contain_text("No luck today.")
    carol = await visit(fleet, "/agents/broken", role=Role.VIEWER, name="carol")
    button = carol.page.get_by_role("button", name="Clear the error")
    await expect(button).to_have_attribute("title", "This needs the role operator")
    await expect(button).to_be_disabled()

    await page.get_by_role("button", name="Clear the error").click()

    await expect(page.get_by_text("broken is reset")).to_be_visible()
    await expect(page.get_by_role("alert")).to_have_count(0)
    await expect(button).to_have_count(0)
    assert (await fleet.get("/v1/agents/broken"))["status"] == "idle"


async def test_an_agent_that_is_unknown_says_so(fleet: FleetWorld, visit: Visitors) -> None:
    alice = await visit(fleet, "/agents/nobody")
    alice.complaints.allow("status of 404")

    await expect(alice.page.get_by_role("alert")).to_contain_text("nobody")
