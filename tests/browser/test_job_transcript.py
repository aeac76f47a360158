"""The transcript of a job: every kind of event in its own way, keys, find, permalinks, and jobs of any length."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import UTC, datetime

from playwright.async_api import Locator, Page, expect

from browser.fleet_world import FleetWorld
from browser.large_history import write_long_job
from browser.looks import Look, every_look
from browser.page_checks import is_within
from browser.rich_job import write_rich_job
from browser.visitor import Visitors
from soak import often

LONG = often(12_000, soak=100_000)
"""Events of the longest job."""
IS_SEEN = """
(element) => {
  const [own, area] = [element, element.closest('[role=log]')].map((one) => one.getBoundingClientRect());
  return own.top >= area.top - 40 && own.top < area.bottom;
}
"""


def transcript(page: Page) -> Locator:
    """The conversation."""
    return page.get_by_role("log", name="Transcript")


def item(page: Page, text: str | re.Pattern[str]) -> Locator:
    """The innermost item of the transcript that says this."""
    return transcript(page).locator("article", has_text=text).last


@every_look
async def test_every_kind_of_event_is_shown_in_its_own_way(
    new_fleet: Callable[..., FleetWorld], visit: Visitors, look: Look
) -> None:
    fleet = new_fleet()
    job = await write_rich_job(fleet.state, datetime.now(UTC))
    await fleet.start()
    alice = await visit(fleet, "/jobs", look=look)
    page = alice.page
    await page.goto(f"{fleet.url}/jobs/{job}#4")

    # Markdown, with thinking that is closed at first.
    answer = item(page, "I look first.")
    await expect(answer.get_by_role("cell", name="read")).to_be_visible()
    await expect(answer.locator("pre code")).to_have_text("gate.close()\n")
    await expect(answer).not_to_contain_text("The gate is open")
    await answer.get_by_role("button", name="thinking").click()
    await expect(answer).to_contain_text("The gate is open, I think.")
    assert await alice.axe() == []
    assert await is_within(page)
    await alice.shoot("job-transcript")

    # Tools, each in its own way.
    failed = item(page, "Run the tests")
    await expect(failed.locator("pre").first).to_have_text("$ pytest -q")
    red = failed.locator("span", has_text=re.compile("^FAILED$"))
    assert int(await red.evaluate("(one) => getComputedStyle(one).fontWeight")) >= 600
    await expect(failed).to_contain_text("exit code 3")
    read = item(page, "/pasture/barn.py, lines 10-11")
    await expect(read.locator("pre")).to_have_count(0)
    await read.get_by_role("button", name=re.compile("Read")).click()
    await expect(read.locator("pre")).to_contain_text("hay = 3")
    edit = item(page, re.compile("Edit/pasture"))
    await expect(edit.locator("del")).to_contain_text("gate = open")
    await expect(edit.locator("ins")).to_contain_text("gate = closed")
    await page.goto(f"{fleet.url}/jobs/{job}#20")
    task = item(page, "Count the hay")
    await expect(task).to_contain_text("Task · counter")
    await expect(task).not_to_contain_text("I am the subagent.")
    await task.get_by_role("button", name="subagent: 2 steps").click()
    await expect(item(page, "I am the subagent.")).to_be_visible()
    tool = item(page, "desk · look")
    await tool.get_by_role("button", name=re.compile("desk")).click()
    await expect(tool.get_by_role("img", name="image, image/png")).to_be_visible()
    await expect(tool).to_contain_text("a key")
    unknown = item(page, "Teleport")
    await unknown.get_by_role("button", name=re.compile("Teleport")).click()
    await expect(unknown).to_contain_text('"moon"')
    await alice.shoot("job-tools")
    assert await alice.axe() == []
    assert await is_within(page)


async def test_an_item_is_linked_shown_raw_and_found_by_keyboard(
    new_fleet: Callable[..., FleetWorld], visit: Visitors
) -> None:
    fleet = new_fleet()
    job = await write_rich_job(fleet.state, datetime.now(UTC))
    await fleet.start()
    alice = await visit(fleet, f"/jobs/{job}")
    page, keys = alice.page, alice.page.keyboard
    end = item(page, "The roof is sound.")
    await expect(end).to_be_visible()
    await expect(item(page, "No worker: it was lost for 2 m")).to_contain_text("worker-after000")

    # By errors, from the end up.
    await keys.press("p")
    await keys.press("p")
    await keys.press("p")
    fire = transcript(page).locator(".outline-accent")
    await expect(fire).to_have_count(1)
    await keys.press("g")
    await keys.press("g")
    await expect(item(page, "Mend the barn.")).to_be_visible()
    await keys.press("j")
    await expect(fire).to_contain_text("Mend the barn.")
    await keys.press("j")
    await expect(fire).to_contain_text("I look first.")
    await keys.press("n")
    await expect(fire).to_contain_text("pytest -q")
    await keys.press("j")
    await keys.press("k")
    await expect(fire).to_contain_text("pytest -q")

    # Words, then the link and the raw line of what was found.
    await keys.press("f")
    await keys.type("three bales")
    await expect(page.get_by_role("search").get_by_role("status")).to_have_text(
        "1 in the loaded part"
    )
    await keys.press("Enter")
    await expect(fire).to_contain_text("Count the hay")
    await keys.press("Escape")
    await expect(page.get_by_role("search")).to_have_count(0)
    hay = item(page, "Count the hay")
    await hay.get_by_role("button", name="raw").focus()
    await keys.press("Enter")
    await expect(hay).to_contain_text('"subagent_type":"counter"')
    await hay.get_by_title("Link to this event").focus()
    await keys.press("Enter")
    seq = page.url.partition("#")[2]
    assert int(seq) > 10

    other = await alice.open(f"/jobs/{job}#{seq}")
    found = other.locator(f"#event-{seq}")
    await expect(found).to_be_in_viewport()
    await expect(found).to_contain_text("Count the hay")


async def test_a_long_job_opens_at_its_end_and_is_read_anywhere(
    new_fleet: Callable[..., FleetWorld], visit: Visitors
) -> None:
    fleet = new_fleet()
    job = await write_long_job(fleet.state, datetime.now(UTC), LONG)
    await fleet.start()
    alice = await visit(fleet, f"/jobs/{job}")
    page = alice.page
    area, position = transcript(page), page.get_by_test_id("position")
    last = (await fleet.get(f"/v1/jobs/{job}/outline"))["last_seq"]
    await expect(position).to_contain_text(f"to {last:,} of {last:,}")
    await expect(area.get_by_text("completed")).to_be_in_viewport()

    # Any place of the scroll bar is a place of the job.
    await area.evaluate("(one) => (one.scrollTop = one.scrollHeight / 2)")
    await expect(position).not_to_contain_text(f"to {last:,} of")
    middle = area.locator("article[data-seq]").first
    await expect(middle).to_be_visible()
    assert abs(int(await middle.get_attribute("data-seq") or 0) - last / 2) < last / 10
    await page.keyboard.press("g")
    await page.keyboard.press("g")
    await expect(position).to_contain_text(re.compile(r"^events 1 to "))
    await expect(area.get_by_text("Tend the herd.")).to_be_in_viewport()
    failed = (await fleet.get(f"/v1/jobs/{job}/outline"))["errors"][0]["seq"]
    await page.keyboard.press("n")
    await expect(area.locator(".outline-accent")).to_contain_text("exit 3")
    await expect(area.locator(f"#event-{failed - 1}")).to_be_in_viewport()
    await page.keyboard.press("Shift+G")
    await expect(area.get_by_text("completed")).to_be_in_viewport()

    # Wheel by wheel up, over the seams between windows: no event is missing or doubled.
    seen: list[int] = []
    for _ in range(12):
        shown = await area.locator("article[data-seq]").evaluate_all(
            "(all) => all.map((one) => Number(one.dataset.seq))"
        )
        assert shown == sorted(set(shown))
        seen += shown
        await area.evaluate("(one) => (one.scrollTop -= one.clientHeight * 0.8)")
        await expect(area.locator("article[data-seq]").first).to_be_visible()
    assert min(seen) < last - 60
    assert await area.locator("article").count() < 60
    asked = [one.url for one in alice.requests if f"{job}/events?" in one.url]
    assert len(asked) < 20
