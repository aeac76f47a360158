"""Every page by keyboard alone: each control that a mouse can use is reached, named and seen to have the focus, and no window traps it."""

from __future__ import annotations

from collections.abc import AsyncIterator
from datetime import UTC, datetime
from pathlib import Path

import pytest
from playwright.async_api import Browser, Page, expect

from browser.coder_world import CODER, make_plain_project
from browser.fleet_world import FleetWorld
from browser.keyboard_walk import check_by_keyboard, press, tab_to
from browser.looks import DESKTOP, Look
from browser.rich_job import write_rich_job
from browser.visitor import Visitors
from browser.workflow_world import WORKFLOW_FLEET, paused_run, start_run, until_run
from nightherd.model.access.role import Role
from nightherd.testing.fork_server import ForkServer

LAPTOP = Look(1100, 720, "dark")
"""Not wide enough for three panes: a job has tabs."""
FLEET = WORKFLOW_FLEET.replace("workflows:\n", f"{CODER}workflows:\n", 1)
PAGES = {
    "home": "/",
    "inbox": "/inbox",
    "inbox-approval": "/inbox/{pusher}",
    "inbox-question": "/inbox/{asker}",
    "inbox-limit": "/inbox/{capped}",
    "inbox-gate": "/inbox/{gate}",
    "inbox-failure": "/inbox/{broken}",
    "inbox-decided": "/inbox?status=decided",
    "job": "/jobs/{rich}",
    "job-with-files": "/jobs/{coder}",
    "job-waits": "/jobs/{pusher}",
    "job-at-limit": "/jobs/{capped}",
    "job-failed": "/jobs/{broken}",
    "jobs": "/jobs",
    "runs": "/runs",
    "run": "/runs/{news}?phase=approve",
    "run-groups": "/runs/{groups}",
    "run-list": "/runs/{groups}?view=list&phase=list",
    "run-timeline": "/runs/{groups}?view=timeline",
    "run-events": "/runs/{news}?view=events",
    "run-facts": "/runs/{deploy}?view=facts",
    "run-failed": "/runs/{fragile}?phase=bad",
    "sessions": "/sessions",
    "session": "/sessions/{session}",
    "compare": "/compare/{session}/{fork}",
    "workflows": "/workflows",
    "workflow": "/workflows/news",
    "schedules": "/schedules?schedule=hello%2Fnightly",
    "agents": "/agents",
    "agent": "/agents/hello",
    "agent-with-error": "/agents/broken",
    "costs": "/costs",
    "search": "/search?q=plan",
    "health": "/health",
    "settings": "/settings",
}
"""By what it is called here, each page and each state of one that has other controls."""
ON_A_LAPTOP = {
    "job-asked": "/jobs/{pusher}?tab=asked",
    "job-transcript": "/jobs/{rich}?tab=transcript",
    "job-outline": "/jobs/{rich}?tab=outline",
    "job-details": "/jobs/{coder}?tab=details",
}
WINDOWS = {
    "start-a-job": ("/agents", "Start a job"),
    "palette": ("/agents", "Commands"),
    "legend": ("/agents", "Keys"),
    "raise": ("/jobs/{capped}", "Raise limits …"),
    "cancel": ("/jobs/{pusher}", "Cancel …"),
    "apply": ("/jobs/{coder}", "Apply …"),
    "merge": ("/jobs/{coder}", "Merge …"),
    "push": ("/jobs/{coder}", "Push …"),
    "clean-up": ("/sessions", "Clean up"),
    "fork-a-session": ("/sessions/{session}", "Fork"),
    "rename": ("/sessions/{session}", "Rename"),
    "end": ("/sessions/{session}", "End"),
    "fork-a-run": ("/runs/{fragile}", "Fork"),
    "send-event": ("/runs/{deploy}", "Send event"),
    "raise-a-run": ("/runs/{news}", "Raise limits"),
    "cancel-a-run": ("/runs/{news}", "Cancel"),
    "start-a-run": ("/workflows/news", "Start a run"),
    "delete": ("/health", "Delete now"),
    "revoke": ("/settings", "Revoke bob"),
}
"""By name, the page and the control that opens a window over it."""


@pytest.fixture(scope="module")
async def places(
    tmp_path_factory: pytest.TempPathFactory, prepared_server: ForkServer, chromium: Browser
) -> AsyncIterator[tuple[FleetWorld, dict[str, str]]]:
    """A fleet with something on each page, and the ids of what is in it."""
    folder = tmp_path_factory.mktemp("keyboard")
    fleet = FleetWorld(folder, prepared_server, agents=FLEET, stays=True)
    yield fleet, await fill(fleet, folder)
    await fleet.close()


async def fill(fleet: FleetWorld, folder: Path) -> dict[str, str]:
    """Begin everything at once, then wait for it."""
    make_plain_project(folder)
    ids: dict[str, str] = {"rich": await write_rich_job(fleet.state, datetime.now(UTC))}
    await fleet.start()
    begun = {name: await fleet.submit(name) for name in ("pusher", "asker", "capped", "broken")}
    ids |= begun
    ids["coder"] = await fleet.submit("coder", "the plan")
    runs = {name: await start_run(fleet, name) for name in ("groups", "deploy", "fragile")}
    ids |= runs
    ids["news"] = await paused_run(fleet, "news", topic="cows")
    waits = (await fleet.get(f"/v1/runs/{ids['news']}"))["waits_for"]
    ids["gate"] = next(wait["item_id"] for wait in waits if wait["item_id"] is not None)
    await until_run(fleet, ids["fragile"], "failed")
    await until_run(fleet, ids["groups"], "succeeded")
    for name, job in begun.items():
        await fleet.until_status(job, "failed" if name == "broken" else "suspended")
    await fleet.until_status(ids["coder"], "completed")
    ids["session"] = (await fleet.get(f"/v1/jobs/{ids['coder']}"))["session_id"]
    ids["fork"] = (await fleet.post(f"/v1/sessions/{ids['session']}/fork", name="other"))["id"]
    await fleet.post("/v1/tokens", name="bob", role="viewer")
    decided = await fleet.waiting_job("asker")
    await fleet.post(f"/v1/inbox/{decided['id']}/answers", verdict="reply", text="blue")
    await fleet.until_status(decided["job_id"], "completed")
    return ids


async def open_page(
    places: tuple[FleetWorld, dict[str, str]], visit: Visitors, path: str, look: Look = DESKTOP
) -> Page:
    """The page, with everything on it."""
    fleet, ids = places
    alice = await visit(fleet, path.format(**ids), look=look)
    page = alice.page
    await expect(page.get_by_role("heading", level=1).first).to_be_attached()
    await expect(page.get_by_text("loading …")).to_have_count(0)
    return page


@pytest.mark.parametrize("name", PAGES)
async def test_every_control_of_a_page_is_reached_by_keyboard(
    places: tuple[FleetWorld, dict[str, str]], visit: Visitors, name: str
) -> None:
    page = await open_page(places, visit, PAGES[name])

    await check_by_keyboard(page)


@pytest.mark.parametrize("name", ON_A_LAPTOP)
async def test_every_tab_of_a_job_is_used_by_keyboard(
    places: tuple[FleetWorld, dict[str, str]], visit: Visitors, name: str
) -> None:
    page = await open_page(places, visit, ON_A_LAPTOP[name], LAPTOP)

    await check_by_keyboard(page)

    tabs = page.get_by_role("tab")
    chosen = page.get_by_role("tab", selected=True)
    at = await tabs.evaluate_all("(all) => all.findIndex((tab) => tab.ariaSelected === 'true')")
    await chosen.focus()
    await page.keyboard.press("ArrowRight")
    following = tabs.nth((at + 1) % await tabs.count())
    await expect(following).to_be_focused()
    await expect(following).to_have_attribute("aria-selected", "true")


async def test_the_login_page_is_used_by_keyboard(
    places: tuple[FleetWorld, dict[str, str]], visit: Visitors
) -> None:
    fleet, _ = places
    nobody = await visit(fleet, "/jobs", role=None)
    nobody.complaints.allow("status of 401")
    field = nobody.page.get_by_label("Or log in with a token")
    await expect(field).to_be_visible()
    await check_by_keyboard(nobody.page)

    await tab_to(nobody.page, field)
    await nobody.page.keyboard.type(await fleet.new_token("olga", Role.OPERATOR))
    await press(nobody.page, nobody.page.get_by_role("button", name="Log in"))

    await expect(nobody.page.get_by_role("heading", level=1, name="Jobs")).to_be_visible()


@pytest.mark.parametrize("name", WINDOWS)
async def test_a_window_is_used_by_keyboard_and_gives_the_focus_back(
    places: tuple[FleetWorld, dict[str, str]], visit: Visitors, name: str
) -> None:
    path, opener = WINDOWS[name]
    page = await open_page(places, visit, path)
    is_exact = name not in ("palette", "legend", "start-a-job")
    control = page.get_by_role("button", name=opener, exact=is_exact).first
    window = page.get_by_role("dialog")

    await press(page, control)
    await expect(window).to_be_visible()
    assert await window.evaluate("(element) => element.contains(document.activeElement)")
    await check_by_keyboard(page)

    await page.keyboard.press("Escape")
    await expect(window).to_have_count(0)
    await expect(control).to_be_focused()
