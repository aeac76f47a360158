"""HTML exports in a real browser, opened as files: they show everything, and load and run nothing else."""

from __future__ import annotations

import json
from pathlib import Path

from playwright.async_api import Browser, expect

from browser.fleet_world import FleetWorld, shared
from nightherd.model.ids import JobId
from nightherd.views.export.page import job_page
from nightherd.wiring.stores import open_journals, open_reader

HOSTILE = (
    """<script>window.ran = 1</script><img src=x onerror="window.ran = 1"></script><!--<script>"""
)


@shared
async def test_an_exported_job_opens_as_a_file(
    fleet: FleetWorld, chromium: Browser, tmp_path: Path
) -> None:
    job_id = await fleet.run("hello", prompt=HOSTILE)
    page_file = tmp_path / "job.html"
    write_page(fleet, job_id, page_file)
    context = await chromium.new_context()
    page = await context.new_page()
    complaints: list[str] = []
    asked: list[str] = []
    page.on("console", lambda message: complaints.append(message.text))
    page.on("pageerror", lambda error: complaints.append(str(error)))
    page.on("request", lambda request: asked.append(request.url))

    await page.goto(page_file.as_uri())

    await expect(page.get_by_role("heading", level=1)).to_contain_text(job_id)
    await expect(page.get_by_test_id("transcript")).to_contain_text("<script>window.ran = 1")
    assert await page.evaluate("window.ran") is None
    assert [url for url in asked if url != page_file.as_uri()] == []
    assert complaints == []
    await context.close()


@shared
async def test_a_page_that_somebody_changed_runs_nothing(
    fleet: FleetWorld, chromium: Browser, tmp_path: Path
) -> None:
    job_id = await fleet.run("hello")
    page_file = tmp_path / "job.html"
    write_page(fleet, job_id, page_file)
    before, _, after = page_file.read_text().rpartition("</body>")
    page_file.write_text(f"{before}<script>window.ran = 1</script></body>{after}")
    context = await chromium.new_context()
    page = await context.new_page()
    refusals: list[str] = []
    page.on("console", lambda message: refusals.append(message.text))

    await page.goto(page_file.as_uri())

    await expect(page.get_by_role("heading", level=1)).to_contain_text(job_id)
    assert await page.evaluate("window.ran") is None
    assert ["Content Security Policy" in refusal for refusal in refusals] == [True]
    await context.close()


@shared
async def test_the_data_of_a_page_is_what_the_journal_says(
    fleet: FleetWorld, tmp_path: Path
) -> None:
    job_id = await fleet.run("hello", prompt=HOSTILE)
    page_file = tmp_path / "job.html"
    write_page(fleet, job_id, page_file)

    data = page_file.read_text().split('id="journal">')[1].split("</script>")[0]

    journal = (fleet.state / "jobs" / f"{job_id}.jsonl").read_text().splitlines()
    assert json.loads(data)["jobs"][0]["events"] == [json.loads(line) for line in journal]


def write_page(fleet: FleetWorld, job_id: str, file: Path) -> None:
    """Export a job as a page."""
    reader = open_reader(fleet.state)
    try:
        row = reader.find_job(JobId(job_id))
        assert row is not None
        file.write_text("".join(job_page(row, open_journals(fleet.state))))
    finally:
        reader.close()
