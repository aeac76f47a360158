"""The pages Runs and Run: phases as they are now, answers to gates, and everything that can be done with a run."""

from __future__ import annotations

import re

from playwright.async_api import Locator, Page, Route, expect

from browser.fleet_world import FleetWorld, shared
from browser.looks import Look, every_look
from browser.visitor import Visitors
from browser.workflow_world import (
    WORKFLOW_FLEET,
    ended_run,
    paused_run,
    start_run,
    until_run,
)
from nightherd.model.access.role import Role

FLEET_AGENTS = WORKFLOW_FLEET


def phase(page: Page, look: Look, name: str) -> Locator:
    """A phase: a box of the graph, or on a phone a row of the list."""
    label = re.compile(f"^{name}, ")
    return page.get_by_role("treeitem" if look.is_phone else "button", name=label)


async def is_within(page: Page) -> bool:
    """Whether the page is not wider than the window."""
    return bool(await page.evaluate("() => document.documentElement.scrollWidth <= innerWidth"))


@every_look
async def test_runs_are_listed_filtered_and_current(
    fleet: FleetWorld, visit: Visitors, look: Look
) -> None:
    failed = await ended_run(fleet, "fragile")
    alice = await visit(fleet, "/runs", look=look)
    runs = alice.page.get_by_role("list", name="Runs")
    await expect(runs.get_by_role("listitem")).to_have_count(1)
    await expect(runs).to_contain_text("bad failed")

    waiting = await paused_run(fleet, "news", topic="cows")

    await expect(runs.get_by_role("listitem")).to_have_count(2)
    await expect(runs.get_by_role("listitem").first).to_contain_text("paused")
    assert await alice.axe() == []
    assert await is_within(alice.page)
    await alice.shoot("runs")

    await alice.page.get_by_role("button", name="failed", exact=True).click()
    await expect(runs.get_by_role("listitem")).to_have_count(1)
    assert "q=status%3Afailed" in alice.page.url
    await expect(runs.get_by_role("link")).to_have_attribute("href", f"/runs/{failed}")

    await alice.page.get_by_role("searchbox", name="Filter").fill("workflow:news")
    await alice.page.keyboard.press("Enter")
    await expect(runs.get_by_role("link")).to_have_attribute("href", f"/runs/{waiting}")


@shared
async def test_a_filter_that_cannot_be_read_says_where(fleet: FleetWorld, visit: Visitors) -> None:
    alice = await visit(fleet, "/runs?q=status:never")
    alice.complaints.allow("status of 400")

    await expect(alice.page.locator("main")).to_contain_text("column 8")


@every_look
@shared
async def test_a_gate_is_answered_on_the_page_and_the_graph_moves(
    fleet: FleetWorld, visit: Visitors, look: Look
) -> None:
    run = await paused_run(fleet, "news", topic="<img src=x onerror=alert(1)>")
    alice = await visit(fleet, f"/runs/{run}", look=look)
    page = alice.page
    await expect(phase(page, look, "draft")).to_have_accessible_name(re.compile("succeeded"))
    await expect(phase(page, look, "approve")).to_have_accessible_name(re.compile("asks: Publish"))
    await expect(phase(page, look, "publish")).to_have_accessible_name(re.compile("pending"))

    await phase(page, look, "approve").click()
    await expect(page.get_by_text("A draft about")).to_be_visible()
    assert await alice.axe() == []
    assert await is_within(page)
    await alice.shoot("run-gate")
    await page.get_by_role("button", name="Approve", exact=True).click()

    await until_run(fleet, run, "succeeded")
    await expect(page.locator("main")).to_contain_text("approve by")
    if look.is_phone:
        await page.get_by_role("button", name="Close", exact=True).click()
    await expect(phase(page, look, "publish")).to_have_accessible_name(re.compile("succeeded"))
    await expect(page.locator("header")).to_contain_text("succeeded")
    await phase(page, look, "publish").click()
    await expect(page.get_by_label("Output")).to_contain_text("A **draft** about <img src=x")
    await alice.shoot("run")


@every_look
@shared
async def test_every_view_of_a_run_can_be_read(
    fleet: FleetWorld, visit: Visitors, look: Look
) -> None:
    run = await paused_run(fleet, "news", topic="cows")
    alice = await visit(fleet, f"/runs/{run}?view=timeline", look=look)
    page = alice.page
    await expect(page.get_by_role("button", name=re.compile("^approve"))).to_be_visible()
    found = {"timeline": await alice.axe()}
    await alice.shoot("run-timeline")

    await page.get_by_role("tab", name="Events").click()
    events = page.get_by_role("list", name="Events")
    await expect(events).to_contain_text("asks: Publish the news about cows?")
    await expect(events).not_to_contain_text("A **draft** about cows.")
    await page.get_by_label("Events of the jobs too").check()
    await expect(events).to_contain_text("A **draft** about cows.")
    found["events"] = await alice.axe()

    await page.get_by_role("tab", name="Facts").click()
    await expect(page.get_by_label("Inputs")).to_contain_text("cows")
    found["facts"] = await alice.axe()
    await page.get_by_role("tab", name="List").click()
    await expect(page.get_by_role("treeitem")).to_have_count(3)
    found["list"] = await alice.axe()
    await page.get_by_role("tab", name="Graph").click()
    await expect(page.get_by_role("button", name=re.compile("^publish, "))).to_be_visible()
    found["graph"] = await alice.axe()
    assert await is_within(page)
    assert {view: lines for view, lines in found.items() if lines} == {}


@shared
async def test_events_and_dead_time_of_a_run_are_current(
    fleet: FleetWorld, visit: Visitors
) -> None:
    run = await paused_run(fleet, "deploy")
    alice = await visit(fleet, f"/runs/{run}?view=events")
    events = alice.page.get_by_role("list", name="Events")
    await expect(events).to_contain_text("the run is paused")

    await fleet.post(f"/v1/runs/{run}/signal", event="window-open", payload={"by": "Ada"})

    await expect(events).to_contain_text("the run is succeeded")
    await alice.page.get_by_role("tab", name="Timeline").click()
    row = alice.page.get_by_role("button", name=re.compile("^window"))
    await expect(row).to_contain_text("waits for the event window-open")


@shared
async def test_a_run_is_used_by_keyboard_alone(fleet: FleetWorld, visit: Visitors) -> None:
    run = await paused_run(fleet, "news", topic="cows")
    alice = await visit(fleet, "/runs")
    page, keyboard = alice.page, alice.page.keyboard
    await expect(page.get_by_role("list", name="Runs")).to_be_visible()
    await keyboard.press("j")
    await keyboard.press("Enter")
    await expect(page).to_have_url(re.compile(run))
    draft = page.get_by_role("button", name=re.compile("^draft, "))
    await expect(draft).to_be_visible()

    await page.get_by_role("tab", name="Graph").focus()
    await keyboard.press("Tab")
    await expect(draft).to_be_focused()
    await keyboard.press("ArrowDown")
    await expect(page.get_by_role("button", name=re.compile("^approve, "))).to_be_focused()
    await keyboard.press("Enter")
    await expect(page.get_by_role("complementary")).to_contain_text("Publish the news about cows?")

    await keyboard.press("2")
    first = page.get_by_role("treeitem").first
    await page.get_by_role("tab", name="List").focus()
    await keyboard.press("Tab")
    await expect(page.get_by_role("treeitem", name=re.compile("^approve"))).to_be_focused()
    await keyboard.press("Home")
    await expect(first).to_be_focused()
    await keyboard.press("ArrowDown")
    await keyboard.press("ArrowDown")
    await keyboard.press("Enter")
    await expect(page).to_have_url(re.compile("phase=publish"))
    await keyboard.press("Escape")
    await expect(page.get_by_role("complementary")).to_have_count(0)


@shared
async def test_groups_show_their_items_and_iterations(fleet: FleetWorld, visit: Visitors) -> None:
    run = await ended_run(fleet, "groups")
    alice = await visit(fleet, f"/runs/{run}")
    page = alice.page
    await expect(page.get_by_role("button", name=re.compile(r"^each\[\d\], "))).to_have_count(3)
    await expect(
        page.get_by_role("button", name=re.compile("^each, .*3 of 3 done"))
    ).to_be_visible()
    await expect(
        page.get_by_role("button", name=re.compile("^circle, .*iteration 2 of at most 3"))
    ).to_be_visible()
    plan = page.get_by_role("button", name=re.compile("^plan, "))
    await expect(plan).to_have_attribute("data-phase", "circle[2]/plan")
    await page.get_by_role("button", name="Earlier iteration of circle").click()
    await expect(plan).to_have_attribute("data-phase", "circle[1]/plan")
    assert await alice.axe() == []
    await alice.shoot("run-groups")

    await page.get_by_role("tab", name="List").click()
    await expect(page.get_by_role("treeitem")).to_have_count(12)


async def test_a_failed_run_is_retried_and_forked_with_other_inputs(
    fleet: FleetWorld, visit: Visitors
) -> None:
    run = await ended_run(fleet, "fragile")
    alice = await visit(fleet, f"/runs/{run}?phase=bad")
    page = alice.page
    await expect(page.get_by_role("complementary")).to_contain_text("exit code 1")
    (fleet.folder / "repaired").touch()

    await page.get_by_role("button", name="Retry").click()

    await expect(page).not_to_have_url(re.compile(run))
    retried = page.url.rpartition("/")[2].partition("?")[0]
    await until_run(fleet, retried, "succeeded")
    await expect(page.locator("header")).to_contain_text(f"retries {run}")
    await expect(page.locator("header")).to_contain_text("succeeded")

    await page.goto(f"{fleet.url}/runs/{run}?phase=bad")
    await page.get_by_role("button", name="Fork the run here").click()
    dialog = page.get_by_role("dialog")
    await expect(dialog.get_by_label("Phase to run again")).to_have_value("bad")
    await dialog.get_by_label("word").fill("owl")
    await dialog.get_by_role("button", name="Fork").click()

    await expect(page).not_to_have_url(re.compile(run))
    forked = page.url.rpartition("/")[2].partition("?")[0]
    await until_run(fleet, forked, "succeeded")
    shown = await fleet.get(f"/v1/runs/{forked}")
    assert (shown["forked_from"], shown["inputs"]) == (run, {"word": "owl"})
    assert (await fleet.get(f"/v1/runs/{forked}/outputs/bad"))["output"] == "owl"
    await expect(page.get_by_role("button", name=re.compile("^good, .*kept from"))).to_be_visible()


@shared
async def test_an_event_is_sent_with_a_payload(fleet: FleetWorld, visit: Visitors) -> None:
    run = await paused_run(fleet, "deploy")
    alice = await visit(fleet, f"/runs/{run}")
    page = alice.page
    await page.get_by_role("button", name="Send event").click()
    dialog = page.get_by_role("dialog")
    await expect(dialog.get_by_label("Event")).to_have_value("window-open")
    await dialog.get_by_label(re.compile("^Payload")).fill("by Ada")
    await dialog.get_by_role("button", name="Send").click()
    await expect(dialog.get_by_role("alert")).to_contain_text("not JSON")
    assert await alice.axe() == []

    await dialog.get_by_label(re.compile("^Payload")).fill('{"by": "Ada"}')
    await dialog.get_by_role("button", name="Send").click()

    await expect(page.locator("header")).to_contain_text("succeeded")
    assert (await fleet.get(f"/v1/runs/{run}/outputs/announce"))["output"] == "Ada"


@shared
async def test_a_run_is_cancelled_only_when_a_person_is_sure(
    fleet: FleetWorld, visit: Visitors
) -> None:
    run = await paused_run(fleet, "news", topic="cows")
    alice = await visit(fleet, f"/runs/{run}")
    page = alice.page
    await page.get_by_role("button", name="Cancel", exact=True).click()
    await page.keyboard.press("Escape")
    assert (await fleet.get(f"/v1/runs/{run}"))["status"] == "paused"

    await page.get_by_role("button", name="Cancel", exact=True).click()
    await page.get_by_role("dialog").get_by_role("button", name="Cancel the run").click()

    await expect(page.locator("header")).to_contain_text("cancelled")
    await expect(page.get_by_role("button", name="Retry")).to_be_enabled()


@shared
async def test_limits_are_raised_for_the_run_and_for_a_job_of_it(
    fleet: FleetWorld, visit: Visitors
) -> None:
    run = await paused_run(fleet, "capped")
    alice = await visit(fleet, f"/runs/{run}?phase=talk")
    page = alice.page
    await page.get_by_role("button", name="Raise limits").click()
    dialog = page.get_by_role("dialog")
    await dialog.get_by_label(re.compile("^spend")).fill("3.50")
    await dialog.get_by_role("button", name="Raise and continue").click()
    await expect(page.locator("header")).to_contain_text("of $3.50")

    aside = page.get_by_role("complementary")
    await aside.get_by_label(re.compile("^turns")).fill("9")
    await aside.get_by_role("button", name=re.compile("^Raise")).click()

    await until_run(fleet, run, "succeeded")
    await expect(page.locator("header")).to_contain_text("succeeded")


@shared
async def test_operators_set_values_of_the_scratch(fleet: FleetWorld, visit: Visitors) -> None:
    run = await paused_run(fleet, "deploy")
    bob = await visit(fleet, f"/runs/{run}?view=facts", role=Role.OPERATOR, name="bob")
    scratch = bob.page.get_by_label("Scratch", exact=True)
    await scratch.get_by_role("button", name="Add a value").click()
    await scratch.get_by_label("Name").fill("note")
    await scratch.get_by_label(re.compile("^Value")).fill('{"deep": [1]}')
    await scratch.get_by_role("button", name="Set").click()

    await expect(scratch).to_contain_text('{"deep":[1]}')
    assert (await fleet.get(f"/v1/runs/{run}"))["scratch"] == {"note": {"deep": [1]}}
    await scratch.get_by_role("button", name="Edit note").click()
    await scratch.get_by_label(re.compile("^Value")).fill("null")
    await scratch.get_by_role("button", name="Set").click()
    await expect(scratch).to_contain_text("empty")


@shared
async def test_a_viewer_reads_a_run_and_changes_nothing(fleet: FleetWorld, visit: Visitors) -> None:
    run = await paused_run(fleet, "news", topic="cows")
    carol = await visit(fleet, f"/runs/{run}?phase=approve", role=Role.VIEWER, name="carol")

    for name in ("Fork", "Cancel", "Raise limits", "Approve", "Reject"):
        button = carol.page.get_by_role("button", name=name, exact=True)
        await expect(button).to_be_disabled()
        await expect(button).to_have_attribute("title", "This needs the role operator")


async def test_a_run_stays_readable_without_the_daemon_and_is_current_after_it(
    fleet: FleetWorld, visit: Visitors
) -> None:
    run = await start_run(fleet, "held")
    alice = await visit(fleet, f"/runs/{run}?phase=hold")
    page = alice.page
    hold = page.get_by_role("button", name=re.compile("^hold, "))
    await expect(hold).to_have_accessible_name(re.compile("running"))
    await expect(page.get_by_role("complementary")).to_contain_text("worker")
    alice.allow_absence()

    await fleet.kill()
    await expect(page.get_by_role("button", name="Cancel", exact=True)).to_be_disabled()
    await expect(hold).to_be_visible()
    (fleet.folder / "held-go").touch()
    await fleet.start()

    await until_run(fleet, run, "succeeded")
    await expect(hold).to_have_accessible_name(re.compile("succeeded"))
    await page.get_by_role("tab", name="Timeline").click()
    await expect(page.get_by_role("button", name=re.compile("^hold"))).to_contain_text(
        "worker lost"
    )


@shared
async def test_a_run_starts_one_fork_however_often_it_is_asked(
    fleet: FleetWorld, visit: Visitors
) -> None:
    run = await ended_run(fleet, "fragile")
    before = len(await fleet.get("/v1/runs"))
    alice = await visit(fleet, f"/runs/{run}")
    alice.complaints.allow(r"ERR_FAILED", r"fork net::")
    page = alice.page
    is_cut = True
    keys: list[str] = []

    async def cut_answer(route: Route) -> None:
        nonlocal is_cut
        keys.append(route.request.headers["idempotency-key"])
        if is_cut:
            is_cut = False
            await route.fetch()
            await route.abort()
        else:
            await route.fallback()

    await page.route("**/v1/runs/*/fork", cut_answer)
    await page.get_by_role("button", name="Fork", exact=True).click()
    fork = page.get_by_role("dialog").get_by_role("button", name="Fork")
    await fork.click()
    await expect(page.get_by_text("the daemon does not answer")).to_be_visible()
    await fork.click()
    await expect(page).not_to_have_url(re.compile(run))

    assert len(await fleet.get("/v1/runs")) == before + 1
    assert len(keys) == 2
    assert len(set(keys)) == 1
