"""The page Schedules: what ran and what comes, why, and everything that can be done with a schedule."""

from __future__ import annotations

import re

from playwright.async_api import Locator, Page, expect

from browser.fleet_world import FleetWorld, shared
from browser.looks import Look, every_look
from browser.page_checks import violations
from browser.visitor import Visitors
from nightherd.host.machine import user_name
from nightherd.model.access.role import Role

NIGHTLY = "/v1/schedules/hello/nightly"


def schedule(page: Page, name: str) -> Locator:
    """The entry of a schedule."""
    entries = page.get_by_role("list", name="Schedules").get_by_role("listitem")
    return entries.filter(has=page.get_by_role("button", name=name, exact=True))


async def until_changed(fleet: FleetWorld, **expected: object) -> None:
    """Until the nightly schedule is so."""

    async def is_so() -> bool:
        row = await fleet.get(NIGHTLY)
        return {name: row[name] for name in expected} == expected

    await fleet.until(is_so)


@every_look
async def test_a_schedule_runs_is_changed_and_put_back(
    fleet: FleetWorld, visit: Visitors, look: Look
) -> None:
    alice = await visit(fleet, "/schedules", look=look)
    page = alice.page
    await expect(schedule(page, "hourly")).to_contain_text("disabled")
    await schedule(page, "nightly").get_by_role("button", name="nightly").click()
    assert "schedule=hello%2Fnightly" in page.url
    nightly = schedule(page, "nightly")
    await expect(nightly.get_by_role("list", name="Why").get_by_role("listitem")).not_to_have_count(0)  # fmt: skip

    await nightly.get_by_role("button", name="Disable").click()
    await until_changed(fleet, enabled=False)
    await expect(nightly).to_contain_text(f"changed here by {user_name()}")
    override = (await fleet.get(NIGHTLY))["override"]
    assert override["updated_by"] == user_name()
    await nightly.get_by_role("button", name="Enable").click()
    await until_changed(fleet, enabled=True)

    await nightly.get_by_role("button", name="Change rule").click()
    rule = nightly.get_by_role("textbox", name="Rule")
    await expect(rule).to_have_value("0 3 1 1 *")
    await rule.fill("30 4 * * *")
    await rule.press("Enter")
    await until_changed(fleet, rule="30 4 * * * (UTC)")
    await expect(nightly).to_contain_text("30 4 * * *")
    await nightly.get_by_role("button", name="Back to the fleet file").click()
    await until_changed(fleet, rule="0 3 1 1 * (UTC)", override=None)
    await expect(nightly).to_contain_text("0 3 1 1 *")
    await alice.shoot("schedules")
    assert await violations(page, {page.url: "Schedules"}) == {}

    await schedule(page, "nightly").get_by_role("button", name="Run now").click()
    await expect(page).to_have_url(re.compile(r"/jobs/job-"))
    (job,) = await fleet.get("/v1/jobs")
    assert (job["agent"], job["schedule"]) == ("hello", "nightly")


@shared
async def test_a_rule_that_cannot_be_read_says_why_and_changes_nothing(
    fleet: FleetWorld, visit: Visitors
) -> None:
    alice = await visit(fleet, "/schedules?schedule=hello%2Fnightly")
    alice.complaints.allow("status of 4")
    page = alice.page

    await page.get_by_role("button", name="Change rule").click()
    await page.get_by_role("textbox", name="Rule").fill("every full moon")
    await page.get_by_role("button", name="Set").click()

    await expect(page.get_by_role("status").filter(has_text="full moon")).to_be_visible()
    await expect(page.get_by_role("textbox", name="Rule")).to_have_value("every full moon")
    assert (await fleet.get(NIGHTLY))["override"] is None


async def test_a_schedule_is_used_by_keyboard_alone(fleet: FleetWorld, visit: Visitors) -> None:
    alice = await visit(fleet, "/agents")
    page, keyboard = alice.page, alice.page.keyboard
    await expect(page.get_by_role("heading", name="Agents")).to_be_visible()

    await keyboard.press("g")
    await keyboard.press("t")
    await expect(page).to_have_url(f"{fleet.url}/schedules")
    nightly = schedule(page, "nightly").get_by_role("button", name="nightly")
    await nightly.focus()
    await keyboard.press("Enter")
    run = page.get_by_role("button", name="Run now")
    await expect(run).to_be_visible()
    while not await run.evaluate("(element) => element === document.activeElement"):
        await keyboard.press("Tab")
    await keyboard.press("Enter")

    await expect(page).to_have_url(re.compile(r"/jobs/job-"))


@shared
async def test_a_viewer_reads_schedules_and_changes_none(
    fleet: FleetWorld, visit: Visitors
) -> None:
    carol = await visit(
        fleet, "/schedules?schedule=hello%2Fnightly", role=Role.VIEWER, name="carol"
    )

    for name, role in {"Run now": "operator", "Disable": "admin", "Change rule": "admin"}.items():
        button = carol.page.get_by_role("button", name=name)
        await expect(button).to_be_disabled()
        await expect(button).to_have_attribute("title", f"This needs the role {role}")
