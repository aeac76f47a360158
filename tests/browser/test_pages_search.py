"""The page Search: words in what agents were asked and answered; a hit leads to its event."""

from __future__ import annotations

import re

from playwright.async_api import expect

from browser.fleet_world import FleetWorld
from browser.looks import Look, every_look
from browser.page_checks import violations
from browser.visitor import Visitors


async def until_indexed(fleet: FleetWorld, words: str, count: int) -> None:
    """The indexer reads journals after jobs have written them."""

    async def is_so() -> bool:
        return len(await fleet.get(f"/v1/search?q={words}")) >= count

    await fleet.until(is_so)


@every_look
async def test_a_search_is_filtered_and_a_hit_leads_to_its_event(
    fleet: FleetWorld, visit: Visitors, look: Look
) -> None:
    job = await fleet.run("hello", "marmalade for breakfast")
    await fleet.run("talker", "marmalade <b>for</b> tea")
    await until_indexed(fleet, "marmalade", 4)
    alice = await visit(fleet, "/search", look=look)
    page = alice.page
    box = page.get_by_role("searchbox")
    await expect(box).to_be_focused()
    await page.keyboard.type("marmalade")
    await page.keyboard.press("Enter")
    hits = page.get_by_role("list", name="Hits").get_by_role("listitem")
    await expect(hits.filter(has_text="talker").first).to_be_visible()
    await expect(hits.filter(has_text="<b>for</b> tea").first).to_be_visible()
    await alice.shoot("search")
    assert await violations(page, {page.url: "Search"}) == {}

    await page.get_by_label("Agent").select_option("hello")
    await expect(hits.filter(has_text="talker")).to_have_count(0)
    await page.get_by_label("Time").select_option("1d")
    await expect(page).to_have_url(f"{fleet.url}/search?q=marmalade&agent=hello&since=1d")
    await expect(hits.locator("mark").first).to_have_text("marmalade")
    answer = hits.filter(has_text="Hello, **marmalade").first
    seq = re.search(r"event (\d+)", await answer.inner_text())
    assert seq is not None
    await answer.get_by_role("link").click()

    await expect(page).to_have_url(f"{fleet.url}/jobs/{job}#{seq[1]}")
    await expect(page.get_by_text("Hello, marmalade for breakfast.")).to_be_visible()
    await page.go_back()
    await expect(page.get_by_role("searchbox")).to_have_value("marmalade")


async def test_words_of_the_palette_and_of_the_history_are_in_the_field(
    fleet: FleetWorld, visit: Visitors
) -> None:
    await fleet.run("hello", "lemon")
    await until_indexed(fleet, "lemon", 1)
    alice = await visit(fleet, "/search?q=orange")
    page = alice.page
    await expect(page.get_by_text("Nothing has these words.")).to_be_visible()

    await page.keyboard.press("Control+k")
    await expect(page.get_by_role("combobox", name="Command")).to_be_focused()
    await page.keyboard.type("lemon")
    await page.get_by_role("option", name="Search for lemon").click()

    await expect(page.get_by_role("searchbox")).to_have_value("lemon")
    await expect(page.get_by_role("list", name="Hits").get_by_role("listitem").first).to_contain_text("lemon")  # fmt: skip
    await page.go_back()
    await expect(page.get_by_role("searchbox")).to_have_value("orange")


async def test_a_search_that_cannot_be_read_says_why(fleet: FleetWorld, visit: Visitors) -> None:
    alice = await visit(fleet, '/search?q="')
    alice.complaints.allow("status of 400")

    await expect(alice.page.get_by_role("alert").or_(alice.page.get_by_text("Nothing has these words."))).to_be_visible()  # fmt: skip
