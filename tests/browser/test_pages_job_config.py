"""The configuration of a job on its page: what each execution began with, and what differs now."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import UTC, datetime

from playwright.async_api import Page, expect

from browser.fleet_world import FleetWorld
from browser.looks import Look, every_look
from browser.page_checks import is_within
from browser.rich_job import write_rich_job
from browser.visitor import Visitors

SETTINGS = ("      - say: It is there.", "      - say: It is there.\n    max_turns: 7")


async def open_details(page: Page, look: Look) -> None:
    """A phone shows them on a tab of its own."""
    if look.is_phone:
        await page.get_by_role("tab", name="Details").click()


@every_look
async def test_each_execution_has_its_own_settings_and_what_differs_now_is_marked(
    fleet: FleetWorld, visit: Visitors, look: Look
) -> None:
    job = await fleet.running_job()
    await fleet.kill()
    fleet.pasture.rewrite(fleet.pasture.file.read_text().replace(*SETTINGS))
    fleet.release()
    await fleet.start()
    await fleet.until_status(job, "completed")
    alice = await visit(fleet, f"/jobs/{job}", look=look)
    page = alice.page
    await open_details(page, look)
    section = page.get_by_role("region", name="Configuration of the job")
    values = section.get_by_role("region", name="Values of the job").get_by_role("row")

    await expect(section).to_contain_text("All values are the same now.")
    await expect(values.filter(has_text="max_turns")).to_contain_text(re.compile(r"7.*nightherd\.yaml:\d+.*agent", re.DOTALL))  # fmt: skip
    await section.get_by_label("Execution").select_option("1")
    await expect(section).to_contain_text("1 value differs now.")
    await section.get_by_label("only what differs now").check()
    await expect(values).to_have_count(2)
    await expect(values.last).to_contain_text("max_turns")
    assert await alice.axe() == []
    assert await is_within(page)


async def test_a_job_from_before_settings_were_recorded_says_so(
    new_fleet: Callable[..., FleetWorld], visit: Visitors
) -> None:
    fleet = new_fleet()
    job = await write_rich_job(fleet.state, datetime.now(UTC))
    await fleet.start()
    alice = await visit(fleet, f"/jobs/{job}")

    section = alice.page.get_by_role("region", name="Configuration of the job")

    await expect(section).to_contain_text("were not recorded")
    await section.get_by_text("Configuration of the agent as it is now").click()
    values = section.get_by_role("region", name="Values", exact=True)
    await expect(values.get_by_role("row").filter(has_text="default_prompt")).to_be_visible()
