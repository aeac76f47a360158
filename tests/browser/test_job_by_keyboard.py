"""What can be done with a job, by keyboard alone: cancel, retry, resume, raise a limit, fork, and take its changes over."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest
from playwright.async_api import Locator, Page, expect

from browser.coder_world import start_coders, start_coders_with_repository
from browser.fleet_world import FleetWorld, shared
from browser.keyboard_walk import press, tab_to
from browser.visitor import Visitors
from components import Components
from workspace_fleet import git

NewFleet = Callable[..., FleetWorld]


def job_of(page: Page) -> str:
    """The job that the page shows."""
    return page.url.rpartition("/")[2]


def button(of: Page | Locator, name: str) -> Locator:
    """A button of the page, or of a window."""
    return of.get_by_role("button", name=name, exact=True)


def item(page: Page, text: str) -> Locator:
    """The innermost item of the transcript that says this."""
    return page.get_by_role("log", name="Transcript").locator("article", has_text=text).last


@shared
async def test_a_job_is_cancelled_after_a_question_and_tried_again(
    fleet: FleetWorld, visit: Visitors
) -> None:
    job = await fleet.running_job()
    alice = await visit(fleet, f"/jobs/{job}")
    page = alice.page

    await press(page, button(page, "Cancel …"))
    dialog = page.get_by_role("dialog", name="Cancel this job?")
    await press(page, button(dialog, "Let it go on"))
    await expect(button(page, "Cancel …")).to_be_focused()
    assert (await fleet.get(f"/v1/jobs/{job}"))["status"] == "running"
    await page.keyboard.press("Enter")
    await expect(dialog).to_be_visible()
    assert await alice.axe() == []
    await press(page, button(dialog, "Cancel the job"))

    await fleet.until_status(job, "cancelled")
    fleet.release()
    await press(page, button(page, "Retry"))
    await expect(page).not_to_have_url(re.compile(job))
    await expect(item(page, "It is there.")).to_be_visible()
    await fleet.until_status(job_of(page), "completed")


@shared
async def test_a_limit_is_raised_and_the_job_continues(fleet: FleetWorld, visit: Visitors) -> None:
    job = (await fleet.waiting_job("capped"))["job_id"]
    alice = await visit(fleet, f"/jobs/{job}")
    page = alice.page

    await press(page, button(page, "Raise limits …"))
    dialog = page.get_by_role("dialog", name="Raise limits")
    await tab_to(page, dialog.get_by_role("textbox", name=re.compile("^turns")))
    await page.keyboard.press("Control+A")
    await page.keyboard.type("9")
    await press(page, button(dialog, "Raise and continue"))

    await fleet.until_status(job, "completed")
    await expect(page.locator("main header").first).to_contain_text("of 9")
    limits = (await fleet.get(f"/v1/jobs/{job}"))["limits"]
    assert [row["maximum"] for row in limits if row["limit"] == "turns"] == [9]


@shared
async def test_a_failed_job_is_resumed_as_a_new_one(fleet: FleetWorld, visit: Visitors) -> None:
    job = await fleet.run("broken")
    alice = await visit(fleet, f"/jobs/{job}")
    page = alice.page
    await expect(page.locator("main header").first).to_contain_text("No luck today.")

    await press(page, button(page, "Resume"))

    await expect(page).not_to_have_url(re.compile(job))
    resumed = job_of(page)
    await fleet.until_status(resumed, "failed")
    assert (await fleet.get(f"/v1/jobs/{resumed}"))["resumed_from"] == job


@shared
async def test_a_job_is_forked_after_a_message(fleet: FleetWorld, visit: Visitors) -> None:
    first = await fleet.run("talker", "one")
    session = (await fleet.get(f"/v1/jobs/{first}"))["session_id"]
    await fleet.run("talker", "two")
    known = len((await fleet.get(f"/v1/sessions/{session}/tree"))["nodes"])
    alice = await visit(fleet, f"/jobs/{first}")
    page, keys = alice.page, alice.page.keyboard
    answer = item(page, "turn 1: one")
    await expect(answer).to_be_visible()

    # Turn by turn to the answer; its actions are the next stops.
    await keys.press("g")
    await keys.press("g")
    await keys.press("j")
    await keys.press("j")
    await expect(answer).to_be_focused()
    for _ in range(3):
        await keys.press("Tab")
    await expect(button(answer, "fork")).to_be_focused()
    await keys.press("Enter")
    await expect(page.get_by_label("Message", exact=True)).to_be_focused()
    await keys.type("three")
    await press(page, button(page, "Fork"))

    await expect(item(page, "turn 2: three")).to_be_visible()
    family = await fleet.get(f"/v1/sessions/{session}/tree")
    assert len(family["nodes"]) == known + 1


async def test_what_a_job_changed_is_shown_and_applied(
    new_fleet: NewFleet, visit: Visitors
) -> None:
    fleet = await start_coders(new_fleet)
    job = await fleet.run("coder", "rest")
    alice = await visit(fleet, f"/jobs/{job}")
    page = alice.page
    await expect(page.get_by_role("region", name="Details")).to_contain_text("plan.txt")
    await page.keyboard.press("d")
    await press(page, button(page, "Apply …"))
    dialog = page.get_by_role("dialog", name="Apply the changes")
    await press(page, button(dialog, "Show what would change"))
    await expect(dialog.get_by_role("status")).to_contain_text("plan.txt")
    assert not (fleet.folder / "project" / "plan.txt").exists()
    assert await alice.axe() == []

    await press(page, button(dialog, "Apply"))

    await expect(dialog).to_have_count(0)
    assert (fleet.folder / "project" / "plan.txt").read_text() == "1. rest\n"


@pytest.mark.parametrize("way", ["Merge", "Push"])
async def test_what_a_job_changed_is_merged_or_pushed_with_a_message(
    new_fleet: NewFleet, visit: Visitors, components: Components, way: str
) -> None:
    components.program("git")
    fleet = await start_coders_with_repository(new_fleet)
    job = await fleet.run("coder", "rest")
    alice = await visit(fleet, f"/jobs/{job}")
    page = alice.page
    await expect(button(page, f"{way} …")).to_be_enabled()
    await page.keyboard.press("d")
    await press(page, button(page, f"{way} …"))
    dialog = page.get_by_role("dialog", name=f"{way} the changes")
    await expect(dialog.get_by_role("textbox", name="Message of the commit")).to_be_focused()
    await page.keyboard.type("Plan the rest")

    await press(page, button(dialog, way))

    await expect(dialog).to_have_count(0)
    place = fleet.folder / ("project" if way == "Merge" else "remote.git")
    branches = git(place, "for-each-ref", "--format=%(refname)", "refs/heads").splitlines()
    subjects = {name: git(place, "log", "-1", "--format=%s", name) for name in branches}
    assert "Plan the rest" in subjects.values()
    (changed,) = {name for name, subject in subjects.items() if subject == "Plan the rest"} & (
        {"refs/heads/main"} if way == "Merge" else set(branches) - {"refs/heads/main"}
    )
    assert git(place, "show", f"{changed}:plan.txt") == "1. rest"
