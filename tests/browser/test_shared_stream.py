"""The stream over HTTP/1.1, where a browser opens six connections to a server: eight tabs share one."""

from __future__ import annotations

from playwright.async_api import Page, expect

from browser.fleet_world import FleetWorld
from browser.visitor import Visitor, Visitors

TABS = 8
"""More than the connections that a browser opens to one server."""


async def eight_tabs(fleet: FleetWorld, visit: Visitors) -> tuple[Visitor, list[Page]]:
    """The page of the jobs, once in each tab."""
    visitor = await visit.arrive(fleet)
    tabs = [await visitor.log_in_by_link("/jobs")]
    tabs += [await visitor.open("/jobs") for _ in range(TABS - 1)]
    return visitor, tabs


async def has_one_stream(fleet: FleetWorld) -> None:
    """The daemon, which notices soon when a stream is gone, has one open."""

    async def is_so() -> bool:
        return await fleet.metric("nightherd_sse_followers") == 1

    await fleet.until(is_so)


async def all_show(tabs: list[Page], job: str, status: str = "completed") -> None:
    """Each tab has the job in its list, in this status; none was loaded again."""
    for tab in tabs:
        row = tab.get_by_role("row").filter(has=tab.locator(f'a[href*="{job}"]'))
        await expect(row.get_by_text(status).first).to_be_visible()


async def test_eight_tabs_share_one_stream_and_all_show_what_happens(
    fleet: FleetWorld, visit: Visitors
) -> None:
    _, tabs = await eight_tabs(fleet, visit)

    job = await fleet.running_job()
    await all_show(tabs, job, "running")
    fleet.release()
    await all_show(tabs, job)
    await has_one_stream(fleet)

    await tabs[0].close()
    after = await fleet.run()
    await all_show(tabs[1:], after)
    await has_one_stream(fleet)


async def test_eight_tabs_continue_after_a_kill_of_the_daemon(
    fleet: FleetWorld, visit: Visitors
) -> None:
    visitor, tabs = await eight_tabs(fleet, visit)
    before = await fleet.running_job()
    await all_show(tabs, before, "running")
    visitor.allow_absence()

    await fleet.kill()
    fleet.release()
    await fleet.start()

    await all_show(tabs, before)
    after = await fleet.run()
    await all_show(tabs, after)
    await has_one_stream(fleet)
