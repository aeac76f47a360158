"""A worker that is killed beside a daemon that lives: pages that are open say so before the job is rescued."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable

from anyio import to_thread
from playwright.async_api import expect

from browser.fleet_world import FleetWorld
from browser.visitor import Visitors
from nightherd.engine.operations.new_job import JobDraft, record_job
from nightherd.wiring.fleets import load_fleet
from nightherd.wiring.running import open_fleet_context


async def test_a_worker_that_is_killed_is_shown_on_open_pages(
    new_fleet: Callable[..., FleetWorld], visit: Visitors
) -> None:
    fleet = new_fleet()
    text = fleet.pasture.file.read_text()
    fleet.pasture.rewrite(text.replace("lease: 5s", "lease: 5m"))  # nobody rescues it meanwhile
    declared = load_fleet(fleet.pasture.file, environ=os.environ, cwd=fleet.folder).fleet
    async with open_fleet_context(fleet.state, declared, os.environ) as context:
        draft = JobDraft(agent=declared.agents["held"], prompt="go")
        job = (await record_job(draft, context)).job.id
    worker = await fleet.start_beside_worker()
    alice = await visit(fleet, f"/jobs/{job}")
    home = await alice.open("/")
    header = alice.page.locator("main header").first
    await expect(header).to_contain_text("running")
    await expect(home.get_by_text("no live worker")).to_have_count(0)

    worker.send(signal.SIGKILL)
    await to_thread.run_sync(worker.wait)

    await expect(header).to_contain_text("No live worker since")
    await expect(home.get_by_text("lost").first).to_be_visible()
