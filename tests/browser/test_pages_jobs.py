"""The page Jobs: a filter in the address, pages, actions for many; and the window that starts a job."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import UTC, datetime

from playwright.async_api import Locator, Page, expect

from browser.fleet_world import AGENTS, FleetWorld
from browser.large_history import write_jobs
from browser.looks import Look, every_look
from browser.visitor import Visitors
from nightherd.model.access.role import Role
from soak import often

MANY = often(130, soak=10_000)
"""Jobs of the longest list: three pages in `make test`."""
ASKS_FOR_VALUES = """\
  - name: fixer
    runtime: scripted
    default_prompt: "Fix ${inputs.part} of ${inputs.file}"
    limits: {spend: 3.50}
    script: [{say: "Fixed ${prompt}."}]
  - name: keeper
    runtime: scripted
    session: {mode: persistent}
    default_prompt: go
    questions: true
    script: [{tool: ask_person, input: {question: "Which server?"}}, {say: Thank you.}, {end: true}, {say: Again.}]
"""


def rows(page: Page, look: Look | None = None) -> Locator:
    """The jobs of the list."""
    if look is not None and look.is_phone:
        return page.get_by_role("list", name="Jobs").get_by_role("listitem")
    return page.get_by_role("table", name="Jobs").locator("tbody").get_by_role("row")


@every_look
async def test_jobs_are_listed_filtered_and_current(
    fleet: FleetWorld, visit: Visitors, look: Look
) -> None:
    await fleet.run()
    failed = await fleet.run("broken")
    alice = await visit(fleet, "/jobs", look=look)
    page = alice.page
    await expect(rows(page, look)).to_have_count(2)

    running = await fleet.running_job()
    await expect(rows(page, look)).to_have_count(3)
    await expect(rows(page, look).first).to_contain_text("running")
    assert await alice.axe() == []
    assert await page.evaluate("() => document.documentElement.scrollWidth <= innerWidth")
    await alice.shoot("jobs")
    fleet.release()
    await expect(rows(page, look).first).to_contain_text("completed")
    await expect(rows(page, look).first).to_contain_text("It is there.")
    assert await rows(page, look).first.get_by_role("link").get_attribute("href") == f"/jobs/{running}"  # fmt: skip

    await page.get_by_role("button", name="failed").click()
    await expect(rows(page, look)).to_have_count(1)
    await expect(rows(page, look).first).to_contain_text("No luck today.")
    assert page.url.endswith("/jobs?q=status%3Afailed")
    await page.reload()
    await expect(page.get_by_role("button", name="failed")).to_have_attribute("aria-pressed", "true")  # fmt: skip
    await rows(page, look).first.get_by_role("link").click()
    await expect(page).to_have_url(re.compile(f"/jobs/{failed}$"))
    await page.go_back()
    await expect(rows(page, look)).to_have_count(1)


async def test_a_filter_that_cannot_be_read_says_where(fleet: FleetWorld, visit: Visitors) -> None:
    await fleet.run()
    alice = await visit(fleet, "/jobs")
    alice.complaints.allow("status of 400")
    page = alice.page
    field = page.get_by_role("searchbox", name="Filter")
    await expect(rows(page)).to_have_count(1)

    await page.keyboard.press("f")
    await page.keyboard.type("agent:hello cow:moo")
    await page.keyboard.press("Enter")

    await expect(page.locator("main")).to_contain_text("column 13")
    await expect(field).to_have_attribute("aria-invalid", "true")
    assert await alice.axe() == []
    await field.fill("agent:hello")
    await page.keyboard.press("Enter")
    await expect(rows(page)).to_have_count(1)


async def test_long_lists_come_in_pages(
    new_fleet: Callable[..., FleetWorld], visit: Visitors
) -> None:
    fleet = new_fleet()
    await write_jobs(fleet.state, datetime.now(UTC), MANY)
    await fleet.start()
    alice = await visit(fleet, "/jobs")
    page = alice.page
    await expect(rows(page)).to_have_count(50)

    await page.get_by_role("button", name="Show more").click()
    await expect(rows(page)).to_have_count(100)

    # A job that comes meanwhile is at the top, and none is missing or there twice.
    await fleet.run("broken")
    await expect(rows(page).first).to_contain_text("No luck today.")
    links = await rows(page).get_by_role("link").evaluate_all("all => all.map(one => one.href)")
    assert len(set(links)) == len(links) == 100
    await page.get_by_role("searchbox", name="Filter").fill("status:failed agent:hello")
    await page.keyboard.press("Enter")
    await expect(rows(page).first).to_contain_text("failed")
    await expect(page.locator("tbody").get_by_text("completed")).to_have_count(0)


async def test_jobs_are_gone_through_and_chosen_by_keyboard(
    fleet: FleetWorld, visit: Visitors
) -> None:
    first, second = await fleet.run(), await fleet.run("broken")
    alice = await visit(fleet, "/jobs")
    page = alice.page
    await expect(rows(page)).to_have_count(2)
    chosen = page.get_by_role("region", name="Chosen jobs")

    await page.keyboard.press("j")
    await page.keyboard.press("x")
    await expect(page.get_by_role("checkbox", name=f"Select {second}")).to_be_checked()
    await expect(chosen).to_contain_text("1 chosen")
    await page.keyboard.press("j")
    await page.keyboard.press("x")
    await expect(chosen).to_contain_text("2 chosen")
    await page.keyboard.press("X")
    await expect(chosen).to_have_count(0)
    await page.keyboard.press("Enter")
    await expect(page).to_have_url(re.compile(f"/jobs/{first}$"))


@every_look
async def test_many_jobs_are_cancelled_after_a_look_at_which(
    fleet: FleetWorld, visit: Visitors, look: Look
) -> None:
    done = await fleet.run()
    waiting = [(await fleet.waiting_job("pusher"))["job_id"] for _ in range(2)]
    alice = await visit(fleet, "/jobs", look=look)
    page = alice.page
    await expect(rows(page, look)).to_have_count(3)
    for job in (done, *waiting):
        await page.get_by_role("checkbox", name=f"Select {job}").check()

    await page.get_by_role("button", name="Cancel …").click()

    dialog = page.get_by_role("dialog", name="Cancel jobs")
    await expect(dialog).to_contain_text("2 jobs would be cancelled")
    await expect(dialog).to_contain_text("1 job would be refused")
    assert await alice.axe() == []
    await alice.shoot("jobs-cancel")
    assert {(await fleet.get(f"/v1/jobs/{job}"))["status"] for job in waiting} == {"suspended"}
    await dialog.get_by_role("button", name="Cancel 2 jobs").click()
    await expect(dialog).to_contain_text("2 jobs cancelled.")
    await dialog.get_by_role("button", name="Close").last.click()

    assert {(await fleet.get(f"/v1/jobs/{job}"))["status"] for job in waiting} == {"cancelled"}
    assert (await fleet.get(f"/v1/jobs/{done}"))["status"] == "completed"
    await expect(page.get_by_role("region", name="Chosen jobs")).to_have_count(0)


async def test_all_that_a_filter_finds_is_tried_again(
    new_fleet: Callable[..., FleetWorld], visit: Visitors
) -> None:
    fleet = new_fleet()
    await write_jobs(fleet.state, datetime.now(UTC), 64)
    await fleet.start()
    alice = await visit(fleet, "/jobs?q=agent:hello,talker,writer")
    page = alice.page
    await expect(rows(page)).to_have_count(48)
    await page.get_by_role("searchbox", name="Filter").fill("agent:hello,talker,writer,held")
    await page.keyboard.press("Enter")
    await expect(rows(page)).to_have_count(50)

    await page.get_by_role("checkbox", name="Select all jobs").check()
    await page.get_by_role("button", name="Choose all that the filter finds").click()
    await page.get_by_role("button", name="Retry …").click()

    # By a filter without a status, those that failed are meant: two of the 64.
    dialog = page.get_by_role("dialog", name="Retry jobs")
    await expect(dialog).to_contain_text("2 jobs would be retried")
    await dialog.get_by_role("button", name="Retry 2 jobs").click()
    await expect(dialog).to_contain_text("2 jobs retried")
    await page.keyboard.press("Escape")
    await expect(rows(page).first).to_contain_text(re.compile("completed|running|pending"))


async def test_a_job_is_started_with_its_values_and_limits_by_keyboard(
    new_fleet: Callable[..., FleetWorld], visit: Visitors
) -> None:
    fleet = new_fleet(agents=AGENTS + ASKS_FOR_VALUES)
    await fleet.start()
    alice = await visit(fleet, "/jobs")
    page, keys = alice.page, alice.page.keyboard
    await expect(page.get_by_text("No job has run yet")).to_be_visible()

    await keys.press("c")
    dialog = page.get_by_role("dialog", name="Start a job")
    agents = dialog.get_by_role("combobox", name="Agent", exact=True)
    await expect(agents).to_be_focused()
    await expect(agents.locator("option", has_text="fixer")).to_have_count(1)
    # One letter: a slow browser may take two for two choices.
    await keys.press("f")
    await expect(dialog.get_by_label("Prompt")).to_have_attribute(
        "placeholder", "Fix ${inputs.part} of ${inputs.file}"
    )
    await dialog.get_by_label("part", exact=True).fill("the lock")
    await dialog.get_by_label("file", exact=True).fill("barn.py")
    await dialog.get_by_text("Limits and other settings").click()
    await expect(dialog.get_by_label("spend")).to_have_attribute("placeholder", "3.5")
    await dialog.get_by_label("turns", exact=True).fill("7")
    assert await alice.axe() == []
    await alice.shoot("start-job")
    await keys.press("Control+Enter")

    await expect(page).to_have_url(re.compile(r"/jobs/job-"))
    await expect(page.get_by_role("log")).to_contain_text("Fixed Fix the lock of barn.py.")
    (job,) = await fleet.get("/v1/jobs")
    shown = await fleet.get(f"/v1/jobs/{job['id']}")
    assert shown["prompt"] == "Fix the lock of barn.py"
    limits = {row["limit"]: row["maximum"] for row in shown["limits"] if row["scope"] == "job"}
    assert limits == {"turns": 7, "spend": 3.5}


async def test_a_session_is_continued_and_one_that_is_held_is_branched(
    new_fleet: Callable[..., FleetWorld], visit: Visitors
) -> None:
    fleet = new_fleet(agents=AGENTS + ASKS_FOR_VALUES)
    await fleet.start()
    holder = (await fleet.waiting_job("keeper"))["job_id"]
    session = (await fleet.get(f"/v1/jobs/{holder}"))["session_id"]
    alice = await visit(fleet, "/jobs")
    alice.complaints.allow("status of 409")
    page = alice.page

    await page.get_by_role("button", name="Start a job").last.click()
    dialog = page.get_by_role("dialog", name="Start a job")
    await dialog.get_by_role("combobox", name="Agent", exact=True).select_option("keeper")
    await dialog.get_by_role("combobox", name="Session", exact=True).select_option("resume")
    await dialog.get_by_role("combobox", name="Continue", exact=True).select_option(session)
    await dialog.get_by_role("button", name="Start").click()

    held = dialog.get_by_role("alert")
    await expect(held).to_contain_text("is held by")
    await expect(held.get_by_role("link", name="Look at the job")).to_have_attribute("href", f"/jobs/{holder}")  # fmt: skip
    assert await alice.axe() == []
    assert len(await fleet.get("/v1/jobs")) == 1
    await held.get_by_role("button", name="Run in a branch").click()

    await expect(page).to_have_url(re.compile(r"/jobs/job-"))
    branch = await fleet.get(f"/v1/jobs/{page.url.rpartition('/')[2]}")
    assert branch["session_id"] != session
    family = await fleet.get(f"/v1/sessions/{session}/tree")
    assert {node["id"] for node in family["nodes"]} == {session, branch["session_id"]}


async def test_a_viewer_starts_and_cancels_nothing(fleet: FleetWorld, visit: Visitors) -> None:
    job = (await fleet.waiting_job("pusher"))["job_id"]
    alice = await visit(fleet, "/jobs", role=Role.VIEWER)
    page = alice.page
    await page.get_by_role("checkbox", name=f"Select {job}").check()

    await expect(page.get_by_role("button", name="Cancel …")).to_be_disabled()
    await expect(page.get_by_role("button", name="Start a job")).to_be_disabled()
