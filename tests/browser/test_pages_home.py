"""The page Home: what happened since the last visit, what needs somebody, what goes on, and how to begin."""

from __future__ import annotations

import re
from collections.abc import Callable

from playwright.async_api import Locator, Page, expect

from browser.fleet_world import AGENTS, FleetWorld
from browser.looks import PHONE, Look, both_looks
from browser.visitor import Visitors
from nightherd.model.access.role import Role

FAST_SCHEDULE = AGENTS.replace("interval: 720h, enabled: false", "interval: 720h")


def figure(page: Page, name: str) -> Locator:
    """The number that stands for something in the summary."""
    return page.locator("dl > div").filter(has=page.locator("dt", has_text=name)).locator("dd")


@both_looks
async def test_what_happened_what_waits_and_what_goes_on(
    new_fleet: Callable[..., FleetWorld], visit: Visitors, look: Look
) -> None:
    fleet = new_fleet(agents=FAST_SCHEDULE)
    await fleet.start()
    await fleet.run()
    await fleet.run()
    failed = await fleet.run("broken")
    asked = await fleet.waiting_job("pusher")
    running = await fleet.running_job()
    alice = await visit(fleet, look=look)
    page = alice.page

    await expect(figure(page, "finished")).to_have_text("2")
    await expect(figure(page, "failed")).to_have_text("1")
    await expect(figure(page, "cancelled")).to_have_text("0")
    await expect(figure(page, "spent")).to_have_text("$0.0022")
    await expect(page.get_by_text("this is your first visit")).to_be_visible()
    await expect(page.get_by_role("list", name="Failed")).to_contain_text("No luck today.")
    assert await page.get_by_role("list", name="Failed").get_by_role("link").get_attribute("href") == f"/jobs/{failed}"  # fmt: skip
    await expect(page.get_by_role("list", name="Needs you")).to_contain_text(asked["title"])
    rows = page.get_by_role("list", name="Jobs now").get_by_role("listitem")
    await expect(rows.nth(0)).to_contain_text("waits: approval")
    await expect(rows.nth(1)).to_contain_text("running")
    await expect(rows.nth(1)).to_contain_text(re.compile(r"0 turns.*last event .*ago"))
    await expect(rows.nth(1)).to_contain_text("Bash touch held-begun")
    assert await rows.nth(1).get_by_role("link").get_attribute("href") == f"/jobs/{running}"
    await expect(page.get_by_role("list", name="Next schedules")).to_contain_text("hello/hourly")
    await expect(page.get_by_role("region", name="Health")).to_contain_text("daemon up")
    assert await alice.axe() == []
    assert await page.evaluate("() => document.documentElement.scrollWidth <= innerWidth")
    await alice.shoot("home", is_whole=True)

    fleet.release()
    await expect(figure(page, "finished")).to_have_text("3")
    await expect(rows).to_have_count(1)


async def test_a_call_is_approved_on_home_in_a_phone_sized_window(
    fleet: FleetWorld, visit: Visitors
) -> None:
    asked = await fleet.waiting_job("pusher")
    alice = await visit(fleet, look=PHONE)
    needs = alice.page.get_by_role("list", name="Needs you")
    await expect(needs).to_contain_text("echo pushed >> pushed")

    await needs.get_by_role("button", name=f"Approve {asked['title']}").tap()

    await fleet.until_status(asked["job_id"], "completed")
    await expect(needs).to_have_count(0)
    assert (await fleet.get(f"/v1/inbox/{asked['id']}"))["decided_via"] == "dashboard"


async def test_the_page_says_that_somebody_is_here_and_other_periods_can_be_chosen(
    fleet: FleetWorld, visit: Visitors
) -> None:
    await fleet.run()
    alice = await visit(fleet)
    page = alice.page
    await expect(figure(page, "finished")).to_have_text("1")
    visits = [one for one in alice.requests if one.url.endswith("/v1/visit")]
    assert [one.method for one in visits] == ["POST"]

    await page.get_by_label("Since").select_option("7d")

    await expect(page).to_have_url(re.compile(r"\?since=7d$"))
    await expect(page.locator("main")).to_contain_text("6 d ago")
    await expect(figure(page, "finished")).to_have_text("1")


async def test_an_empty_fleet_says_how_to_begin(fleet: FleetWorld, visit: Visitors) -> None:
    alice = await visit(fleet)
    page = alice.page
    await expect(page.get_by_role("heading", name="Nothing has run yet")).to_be_visible()
    assert await alice.axe() == []

    await page.get_by_role("button", name="Start hello").click()
    await page.get_by_role("dialog").get_by_role("button", name="Start").click()

    await expect(page).to_have_url(re.compile(r"/jobs/job-"))
    await expect(page.get_by_role("log")).to_contain_text("Done.")


async def test_a_viewer_sees_everything_and_may_do_nothing(
    fleet: FleetWorld, visit: Visitors
) -> None:
    await fleet.waiting_job("pusher")
    alice = await visit(fleet, role=Role.VIEWER)
    page = alice.page
    await expect(page.get_by_role("button", name=re.compile("^Approve"))).to_be_disabled()
    await expect(page.get_by_role("button", name="Start a job")).to_have_count(0)
    await page.keyboard.press("c")
    await expect(page.get_by_role("dialog")).to_have_count(0)
