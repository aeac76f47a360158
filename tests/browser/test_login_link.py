"""Logging in to the dashboard by its link, in a real browser: once, without leaving the code anywhere, until all are logged out."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from playwright.async_api import Page, expect

from browser.fleet_world import FleetWorld, shared
from browser.probe_site import ProbeSite
from browser.visitor import Visitors
from nightherd.host.machine import user_name
from nightherd.web.access.login_codes import LIFETIME_S
from nightherd.web.page import UI
from nightherd.wiring.stores import random_text
from web.browser import on_port

REFUSED = r"console: Failed to load resource: .* status of 401 "
READ_STREAM = """
async (secret) => {
  window.heard = "";
  const headers = { accept: "text/event-stream", "x-nightherd-secret": secret };
  const answer = await fetch("v1/stream?topics=jobs", { headers });
  const reader = answer.body.pipeThrough(new TextDecoderStream()).getReader();
  const read = async () => {
    for (;;) {
      const { done, value } = await reader.read();
      if (done) return "done";
      window.heard += value;
    }
  };
  read().catch(String).then((end) => { window.end = end; });
}
"""
NOT_VALID = "this login code is not valid"


@pytest.fixture
async def served(tmp_path: Path) -> AsyncIterator[ProbeSite]:
    """The dashboard, served in this process: the clock of its codes is within reach."""
    async with on_port(tmp_path, recheck_s=0.2) as world:
        yield ProbeSite(world, UI)


async def is_logged_in(page: Page, name: str) -> None:
    await expect(page.get_by_text(f"{name} (admin)").first).to_be_attached()


async def is_logged_out(page: Page) -> None:
    await expect(page.get_by_role("button", name="Log in")).to_be_visible()


@shared
async def test_a_link_logs_in_and_leaves_its_code_nowhere(
    fleet: FleetWorld, visit: Visitors
) -> None:
    visitor = await visit.arrive(fleet)

    page = await visitor.log_in_by_link("/jobs")
    await is_logged_in(page, user_name())
    login = next(one for one in visitor.requests if one.url.endswith("/v1/login"))
    code = json.loads(login.post_data or "")["code"]

    assert page.url == f"{fleet.url}/jobs"
    assert await page.evaluate("() => history.length") <= 2
    assert await page.evaluate("() => document.cookie") == ""
    kept = await page.evaluate("() => JSON.stringify([{ ...localStorage }, { ...sessionStorage }, location.href, document.referrer])")  # fmt: skip
    assert code not in kept
    others = [one for one in visitor.requests if one is not login]
    assert others != []
    for one in others:
        assert code not in f"{one.url}{one.post_data}{await one.all_headers()}"

    await page.reload()
    await is_logged_in(page, user_name())
    await is_logged_in(await visitor.open("/inbox"), user_name())


@shared
async def test_a_link_works_once(fleet: FleetWorld, visit: Visitors) -> None:
    link = await fleet.new_link()
    first, second = await visit.arrive(fleet), await visit.arrive(fleet)
    second.complaints.expect(REFUSED)

    page = await first.context.new_page()
    await page.goto(link)
    await is_logged_in(page, user_name())
    late = await second.context.new_page()
    await late.goto(link)

    await is_logged_out(late)
    await expect(late.get_by_role("alert")).to_contain_text(NOT_VALID)


async def test_codes_that_are_guessed_or_too_old_are_refused(
    served: ProbeSite, visit: Visitors
) -> None:
    site = served.world.site
    before = site.context.clock.monotonic() - LIFETIME_S
    old = site.login_codes.make("alice", before, random_text())

    for code in (old, "guessed"):
        visitor = await visit.arrive(served)
        visitor.complaints.expect(REFUSED)
        page = await visitor.open(f"/#code={code}")
        await is_logged_out(page)
        await expect(page.get_by_role("alert")).to_contain_text(NOT_VALID)
        assert await visitor.context.cookies() == []


async def test_logging_out_everywhere_ends_an_open_stream(
    probe: ProbeSite, visit: Visitors
) -> None:
    """Its page sends nothing meanwhile: the server ends the stream."""
    visitor = await visit.arrive(probe)
    visitor.complaints.allow(REFUSED)
    code = (await probe.new_link()).partition("=")[2]
    secret = await visitor.log_in(code=code)
    page = await visitor.open()
    await page.evaluate(READ_STREAM, secret)
    await page.wait_for_function("() => window.heard.includes('event: ready')")

    other = await visit.arrive(probe)
    its_secret = await other.log_in(code=(await probe.new_link()).partition("=")[2])
    answer = await other.context.request.post(
        f"{probe.url}/v1/logout",
        data={"everywhere": True},
        headers={"x-nightherd-secret": its_secret, "sec-fetch-site": "same-origin"},
    )

    assert (await answer.json())["data"] == {"ended": 2}
    await page.wait_for_function("() => window.end !== undefined")
    assert await page.evaluate("() => window.end") == "done"
    assert await page.evaluate("() => fetch('v1/me').then((answer) => answer.status)") == 401


async def test_logging_out_everywhere_shows_the_login_page_in_other_browsers(
    served: ProbeSite, visit: Visitors
) -> None:
    here, there = await visit(served, "/jobs"), await visit(served, "/jobs")
    for visitor in (here, there):
        visitor.complaints.allow(REFUSED)
        await is_logged_in(visitor.page, user_name())

    await here.page.get_by_text(f"{user_name()} (admin)").first.click()
    await here.page.get_by_role("button", name="Log out everywhere").click()

    await is_logged_out(here.page)
    await is_logged_out(there.page)
