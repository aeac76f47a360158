"""The page Settings: tokens are made once, shown once and revoked; their browsers are logged out at once."""

from __future__ import annotations

import re

from playwright.async_api import expect

from browser.fleet_world import FleetWorld, shared
from browser.looks import Look, every_look
from browser.page_checks import violations
from browser.visitor import Visitors
from nightherd.host.machine import user_name
from nightherd.model.access.role import Role

REFUSED = "status of 401"


@every_look
async def test_a_token_logs_in_until_it_is_revoked(
    fleet: FleetWorld, visit: Visitors, look: Look
) -> None:
    alice = await visit(fleet, "/settings", look=look, permissions=["clipboard-read", "clipboard-write"])  # fmt: skip
    page = alice.page
    await page.get_by_label("Name").fill("bob")
    await page.get_by_label("Role").select_option("viewer")
    await page.get_by_role("button", name="Add token").click()
    dialog = page.get_by_role("dialog", name="Token bob")
    token = await dialog.locator("code").inner_text()
    await dialog.get_by_role("button", name="Copy").click()
    await expect(page.get_by_text("copied")).to_be_visible()
    assert await page.evaluate("() => navigator.clipboard.readText()") == token
    await dialog.get_by_role("button", name="Close").click()
    row = page.get_by_role("region", name="All tokens").get_by_role("row").filter(has_text="bob")
    await expect(row).to_contain_text(user_name())
    assert token not in await page.content()

    bob = await visit.arrive(fleet)
    bob.complaints.allow(REFUSED)
    first = await bob.open("/jobs")
    await first.get_by_label("Or log in with a token").fill(token)
    await first.get_by_role("button", name="Log in").click()
    await expect(first.get_by_role("heading", name="Jobs")).to_be_visible()
    second = await bob.open("/agents")
    await expect(second.get_by_role("heading", name="Agents")).to_be_visible()

    await page.get_by_role("button", name="Revoke bob").click()
    await page.get_by_role("dialog").get_by_role("button", name="Revoke", exact=True).click()
    await expect(row).to_contain_text("revoked")
    await first.keyboard.press("g")
    await first.keyboard.press("c")
    for tab in (first, second):
        await expect(tab.get_by_label("Or log in with a token")).to_be_visible()
    await first.get_by_label("Or log in with a token").fill(token)
    await first.get_by_role("button", name="Log in").click()
    await expect(first.get_by_role("alert")).to_be_visible()
    await alice.shoot("settings")
    assert await violations(page, {page.url: "Settings"}) == {}


@shared
async def test_a_name_that_is_taken_stays_in_the_form(fleet: FleetWorld, visit: Visitors) -> None:
    await fleet.new_token("bob", Role.VIEWER)
    alice = await visit(fleet, "/settings")
    alice.complaints.allow("status of 409")
    page = alice.page

    await page.get_by_label("Name").fill("bob")
    await page.get_by_label("Name").press("Enter")

    await expect(page.get_by_role("status").filter(has_text="bob")).to_be_visible()
    await expect(page.get_by_label("Name")).to_have_value("bob")


@shared
async def test_only_admins_see_tokens(fleet: FleetWorld, visit: Visitors) -> None:
    olga = await visit(fleet, "/settings", role=Role.OPERATOR, name="olga")

    await expect(olga.page.get_by_text("Admins manage tokens here.")).to_be_visible()
    await expect(olga.page.get_by_text(re.compile("olga, operator"))).to_be_visible()
    await expect(olga.page.get_by_role("button", name="Add token")).to_have_count(0)
    assert not any("/v1/tokens" in request.url for request in olga.requests)
