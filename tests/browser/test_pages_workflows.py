"""The pages Workflows and Workflow: what is declared, the switch, and the form that starts a run."""

from __future__ import annotations

import re

from playwright.async_api import expect

from browser.fleet_world import FleetWorld, shared
from browser.looks import Look, every_look
from browser.visitor import Visitors
from browser.workflow_world import WORKFLOW_FLEET, ended_run, paused_run
from nightherd.model.access.role import Role

FLEET_AGENTS = WORKFLOW_FLEET


@every_look
async def test_workflows_are_listed_with_their_last_runs(
    fleet: FleetWorld, visit: Visitors, look: Look
) -> None:
    failed = await ended_run(fleet, "fragile")
    alice = await visit(fleet, "/workflows", look=look)
    page = alice.page
    rows = page.get_by_role("list", name="Workflows").get_by_role("listitem")

    await expect(rows).to_have_count(6)
    news = rows.filter(has_text="Drafts, asks and publishes.")
    await expect(news).to_contain_text("3 phases · schedule nightly, by hand")
    await expect(news).to_contain_text("never ran")
    last = rows.get_by_role("link", name=f"failed run {failed}")
    await expect(last).to_be_visible()
    assert await alice.axe() == []
    assert await page.evaluate("() => document.documentElement.scrollWidth <= innerWidth")
    await alice.shoot("workflows")

    waiting = await paused_run(fleet, "news", topic="cows")
    await expect(news.get_by_role("link", name=f"paused run {waiting}")).to_be_visible()


@every_look
@shared
async def test_a_workflow_shows_its_phases_inputs_and_triggers(
    fleet: FleetWorld, visit: Visitors, look: Look
) -> None:
    alice = await visit(fleet, "/workflows/news", look=look)
    page = alice.page
    names = re.compile("^(draft|approve|publish), ")
    phases = page.get_by_role("treeitem" if look.is_phone else "button", name=names)
    await expect(phases).to_have_count(3)
    await expect(page.get_by_label("Inputs")).to_contain_text("topic text, required")
    await expect(page.get_by_label("Limits of a run")).to_contain_text("spend $1.00")
    await expect(page.get_by_label("Triggers")).to_contain_text("0 3 1 1 * (UTC)")
    assert await alice.axe() == []
    await alice.shoot("workflow")

    await phases.first.click()
    await expect(page.get_by_text("A job of drafter")).to_be_visible()
    await expect(page.get_by_text("${inputs.topic}", exact=True)).to_be_visible()
    assert await alice.axe() == []
    assert await page.evaluate("() => document.documentElement.scrollWidth <= innerWidth")


async def test_a_run_is_started_with_a_form_of_its_inputs(
    fleet: FleetWorld, visit: Visitors
) -> None:
    alice = await visit(fleet, "/workflows")
    page, keyboard = alice.page, alice.page.keyboard
    alice.complaints.allow("status of 422")
    await expect(page.get_by_role("list", name="Workflows")).to_be_visible()
    await keyboard.press("j")
    await keyboard.press("Enter")
    await expect(page).to_have_url(re.compile("/workflows/news$"))
    await expect(page.get_by_role("heading", name="news")).to_be_visible()
    await keyboard.press("s")
    dialog = page.get_by_role("dialog")
    assert await alice.axe() == []

    await dialog.get_by_label(re.compile("^copies")).fill("many")
    await keyboard.press("Enter")
    topic = dialog.get_by_label(re.compile("^topic"))
    await expect(topic).to_be_focused()
    await expect(dialog).to_contain_text("It is required.")
    await expect(dialog).to_contain_text("It is not a number.")

    await topic.fill("owls")
    await dialog.get_by_label(re.compile("^copies")).fill("3")
    await dialog.get_by_label(re.compile("^options")).fill('{"half": "\\ud800"}')
    await dialog.get_by_role("button", name="Start").click()
    await expect(dialog).to_contain_text("the input 'options' cannot be stored")
    assert await fleet.get("/v1/runs") == []

    await dialog.get_by_label(re.compile("^options")).fill('{"deep": [1]}')
    await dialog.get_by_role("button", name="Start").click()
    await expect(page).to_have_url(re.compile("/runs/run-"))
    (run,) = await fleet.get("/v1/runs")
    shown = await fleet.get(f"/v1/runs/{run['id']}")
    assert shown["inputs"] == {"topic": "owls", "copies": 3, "options": {"deep": [1]}}


@shared
async def test_an_admin_switches_a_workflow_off_and_on(fleet: FleetWorld, visit: Visitors) -> None:
    alice = await visit(fleet, "/workflows/news")
    page = alice.page
    start = page.get_by_role("button", name="Start a run")
    await page.get_by_role("button", name="Disable").click()

    await expect(page.locator("main")).to_contain_text("disabled")
    await expect(start).to_be_disabled()
    await expect(start).to_have_attribute("title", "The workflow is disabled")
    assert (await fleet.get("/v1/workflows/news"))["is_enabled"] is False

    await page.get_by_role("button", name="Enable").click()
    await expect(start).to_be_enabled()
    await page.get_by_role("button", name="Reset").click()
    await expect(page.get_by_role("button", name="Reset")).to_have_count(0)
    assert (await fleet.get("/v1/workflows/news"))["is_overridden"] is False


@shared
async def test_an_operator_starts_runs_and_switches_nothing(
    fleet: FleetWorld, visit: Visitors
) -> None:
    bob = await visit(fleet, "/workflows/deploy", role=Role.OPERATOR, name="bob")
    disable = bob.page.get_by_role("button", name="Disable")
    await expect(disable).to_be_disabled()
    await expect(disable).to_have_attribute("title", "This needs the role admin")

    await bob.page.get_by_role("button", name="Start a run").click()
    dialog = bob.page.get_by_role("dialog")
    await expect(dialog).to_contain_text("takes no inputs")
    await dialog.get_by_role("button", name="Start").click()
    await expect(bob.page).to_have_url(re.compile("/runs/run-"))

    run = await fleet.get(f"/v1/runs/{bob.page.url.rpartition('/')[2]}")
    assert run["started_by"] == "bob"
