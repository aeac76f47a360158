"""One live stream for all tabs of a browser: a tab that closes hands it over, one that joins shares it, and nothing is lost."""

from __future__ import annotations

import re

from playwright.async_api import Locator, Page, Request, expect

from browser.fleet_world import FleetWorld
from browser.visitor import Visitor, Visitors

MANY = 20
WATCH = """
() => {
  const name = `nightherd ${document.baseURI}`;
  window.heard = [];
  new BroadcastChannel(name).onmessage = ({ data }) => {
    if (data.kind === "event" && data.event.type === "event") {
      window.heard.push(data.event.data.event.seq);
    }
  };
}
"""
"""Notes the events of followed jobs that the tab with the stream passes on to the others."""


def streams(visitor: Visitor) -> list[Request]:
    """The streams that its tabs have opened so far."""
    return [request for request in visitor.requests if "/v1/stream?" in request.url]


def fetches(visitor: Visitor, path: str) -> int:
    """How often a list was asked for."""
    return sum(bool(re.search(rf"{path}(\?|$)", one.url)) for one in visitor.requests)


def said(page: Page, text: str) -> Locator:
    """What the job said, in the transcript."""
    return page.get_by_test_id("transcript").get_by_text(text)


async def shown_events(page: Page, job: str) -> None:
    """The transcript has everything that the held job does."""
    for text in ("I wait for a file.", "It is there."):
        await expect(said(page, text)).to_have_count(1)
    assert page.url.endswith(job)


async def test_a_tab_that_closes_hands_the_stream_over_with_the_jobs_of_the_others(
    fleet: FleetWorld, visit: Visitors
) -> None:
    job = await fleet.running_job()
    alice = await visit(fleet, "/agents")
    await expect(alice.page.get_by_role("region", name="Agents")).to_be_visible()
    reader = await alice.open(f"/jobs/{job}")
    await expect(said(reader, "I wait for a file.")).to_be_visible()
    watcher = await alice.open("/costs")
    await watcher.evaluate(WATCH)
    async with alice.context.expect_event("request", lambda request: "/v1/stream?" in request.url):
        await alice.page.close()
    fleet.release()
    await fleet.until_status(job, "completed")
    await shown_events(reader, job)
    opened = streams(alice)
    assert f"job%3A{job}" in opened[-1].url or f"job:{job}" in opened[-1].url
    cursor = (await opened[-1].all_headers())["last-event-id"]
    assert job.removeprefix("job-") in cursor

    await expect(watcher.get_by_role("region", name="Costs by agent")).to_contain_text("held")
    heard = await watcher.evaluate("() => window.heard")
    assert heard == sorted(set(heard))


async def test_a_tab_that_joins_follows_a_job_from_where_it_is(
    fleet: FleetWorld, visit: Visitors
) -> None:
    job = await fleet.running_job()
    alice = await visit(fleet, f"/jobs/{job}")
    await expect(said(alice.page, "I wait for a file.")).to_be_visible()
    before = len(streams(alice))

    second = await alice.open(f"/jobs/{job}")
    await expect(said(second, "I wait for a file.")).to_be_visible()
    fleet.release()

    for tab in (alice.page, second):
        await shown_events(tab, job)
    assert len(streams(alice)) == before


async def test_a_daemon_that_is_gone_is_said_and_its_return_needs_nobody(
    fleet: FleetWorld, visit: Visitors
) -> None:
    job = await fleet.running_job()
    alice = await visit(fleet, "/schedules?schedule=hello%2Fnightly")
    second = await alice.open(f"/jobs/{job}")
    await expect(said(second, "I wait for a file.")).to_be_visible()
    tabs = [alice.page, second]
    run = alice.page.get_by_role("button", name="Run now")
    await expect(run).to_be_enabled()
    alice.allow_absence()

    await fleet.kill()

    banners = [tab.get_by_role("alert").filter(has_text="The daemon does not answer") for tab in tabs]  # fmt: skip
    for banner in banners:
        await expect(banner).to_contain_text(re.compile(r"as of .*\d\d:\d\d:\d\d"))
    await expect(run).to_be_disabled()
    await expect(run).to_have_attribute("title", "The daemon does not answer")
    await expect(said(second, "I wait for a file.")).to_be_visible()
    fleet.release()
    await fleet.start()
    for banner in banners:
        await expect(banner).to_have_count(0, timeout=20_000)
    await expect(run).to_be_enabled()
    await fleet.until_status(job, "completed")
    await expect(said(second, "It is there.")).to_have_count(1)
    await expect(said(second, "I wait for a file.")).to_have_count(1)


async def test_many_changes_at_once_are_few_requests(fleet: FleetWorld, visit: Visitors) -> None:
    alice = await visit(fleet, "/jobs")
    page = alice.page
    await expect(page.get_by_text("No job has run yet.")).to_be_visible()
    before = fetches(alice, "/v1/jobs")

    jobs = [await fleet.submit("talker", f"number {number}") for number in range(MANY)]
    for job in jobs:
        await fleet.until_status(job, "completed")

    links = page.locator('main a[href*="/jobs/job-"]')
    await expect(links).to_have_count(MANY)
    last = page.get_by_role("row").filter(has=page.locator(f'a[href*="{jobs[-1]}"]'))
    await expect(last.get_by_text("completed")).to_be_visible()
    changes = MANY * 3  # each is queued, runs and ends
    assert fetches(alice, "/v1/jobs") - before < changes / 3
