"""The page of a job: when it worked and why it did not, what can be done with it, its session as a chat, and its files."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

from playwright.async_api import Locator, Page, expect

from browser.coder_world import start_coders
from browser.fleet_world import AGENTS, FleetWorld, shared
from browser.large_history import write_long_job
from browser.looks import PHONE, Look, every_look
from browser.page_checks import is_within
from browser.rich_job import write_rich_job
from browser.visitor import Visitors
from nightherd.model.access.role import Role

NewFleet = Callable[..., FleetWorld]
TELLER = (
    AGENTS
    + """\
  - name: teller
    runtime: scripted
    session: {mode: persistent}
    default_prompt: go
    script:
      - say: Yes?
      - {end: true}
      - {say: "one two three four five six seven eight nine ten", over: 6s}
  - name: keeper
    runtime: scripted
    session: {mode: persistent}
    default_prompt: go
    questions: true
    script: [{tool: ask_person, input: {question: "Which server?"}}, {say: Thank you.}, {end: true}, {say: Again.}]
  - name: novelist
    runtime: scripted
    default_prompt: go
    allowed_tools: [Bash]
    script:
      - repeat: 40
        steps: [{say: "Chapter ${turn} begins."}]
      - tool: Bash
        input: {command: "touch novel-begun; while [ ! -e novel-go ]; do sleep 0.05; done"}
      - say: The end of the novel.
"""
)
NO_SNAPSHOT = r"status of 409.*/diff"
"""What a browser notes of a job that has just begun: nothing of its files is on record yet."""


def item(page: Page, text: str) -> Locator:
    """The innermost item of the transcript that says this."""
    return page.get_by_role("log", name="Transcript").locator("article", has_text=text).last


def timeline(page: Page) -> Locator:
    """The bars of a wide window."""
    return page.get_by_role("region", name="Timeline")


def outline(page: Page) -> Locator:
    """The rows of the outline."""
    return page.get_by_role("list", name="Outline").get_by_role("listitem")


async def open_outline(page: Page, look: Look) -> None:
    """A phone shows it on a tab of its own."""
    if look.is_phone:
        await page.get_by_role("tab", name="Outline").click()


# When it worked


@every_look
async def test_a_job_that_was_killed_and_rescued_shows_its_dead_time_with_the_reason(
    fleet: FleetWorld, visit: Visitors, look: Look
) -> None:
    job = await fleet.rescued_job()
    alice = await visit(fleet, f"/jobs/{job}", look=look)
    page = alice.page
    await expect(item(page, "It is there.")).to_be_visible()
    await open_outline(page, look)

    gap = timeline(page).get_by_role("button", name=re.compile("^worker lost"))
    await expect(gap.last).to_be_visible()
    await expect(outline(page).filter(has_text="worker lost")).to_have_count(1)
    assert await alice.axe() == []
    assert await is_within(page)
    await alice.shoot("job-rescued")

    await outline(page).filter(has_text="worker lost").get_by_role("button").click()

    await expect(page).to_have_url(re.compile(rf"/jobs/{job}.*#\d+$"))


@shared
async def test_a_running_job_is_shown_until_now_and_one_that_has_ended_no_longer(
    fleet: FleetWorld, visit: Visitors
) -> None:
    job = await fleet.running_job()
    alice = await visit(fleet, f"/jobs/{job}")
    page = alice.page
    at_work = re.compile("^at work since the last event")

    await expect(timeline(page).get_by_role("button", name=at_work)).to_have_count(1)
    await expect(outline(page).last).to_contain_text("at work since the last event")
    await expect(page.get_by_test_id("evidence")).to_contain_text("worker-")
    assert await alice.axe() == []
    await alice.shoot("job-running")
    fleet.release()

    await expect(item(page, "It is there.")).to_be_visible()
    await expect(timeline(page).get_by_role("button", name=at_work)).to_have_count(0)
    await expect(outline(page).filter(has_text="at work")).to_have_count(0)


@shared
async def test_the_wait_for_a_person_is_dead_time_and_ends_with_the_answer(
    fleet: FleetWorld, visit: Visitors
) -> None:
    waiting = await fleet.waiting_job("pusher")
    alice = await visit(fleet, f"/jobs/{waiting['job_id']}")
    page = alice.page
    await expect(timeline(page).get_by_role("button", name=re.compile("approval")).last).to_be_visible()  # fmt: skip
    asked = page.get_by_role("region", name="Waits for you")
    await expect(asked).to_contain_text("echo pushed >> pushed")
    assert await alice.axe() == []
    await alice.shoot("job-waits")

    await asked.get_by_role("button", name="Approve").click()

    await fleet.until_status(waiting["job_id"], "completed")
    await expect(asked).to_have_count(0)
    await expect(item(page, "Pushed.")).to_be_visible()
    assert (await fleet.get(f"/v1/inbox/{waiting['id']}"))["decided_via"] == "dashboard"


# What can be done with it


async def test_a_message_to_a_session_that_is_held_waits_behind_the_job(
    new_fleet: NewFleet, visit: Visitors
) -> None:
    fleet = new_fleet(agents=TELLER)
    await fleet.start()
    holder = await fleet.waiting_job("keeper")
    alice = await visit(fleet, f"/jobs/{holder['job_id']}?tab=transcript")
    alice.complaints.allow("status of 409")
    page = alice.page
    form = page.get_by_role("form", name="Continue the session")
    await form.get_by_label("Message", exact=True).fill("and then?")
    await form.get_by_role("button", name="Send").click()
    await expect(form.get_by_role("alert")).to_contain_text("is held by")
    assert await alice.axe() == []
    await form.get_by_role("button", name="Queue behind it").click()

    await expect(page).not_to_have_url(re.compile(holder["job_id"]))
    await expect(page.locator("main header").first).to_contain_text("Waits behind")
    await fleet.post(f"/v1/inbox/{holder['id']}/answers", verdict="reply", text="green")
    await expect(item(page, "Again.")).to_be_visible()


@shared
async def test_a_viewer_reads_a_job_and_changes_nothing(fleet: FleetWorld, visit: Visitors) -> None:
    waiting = await fleet.waiting_job("pusher")
    carol = await visit(fleet, f"/jobs/{waiting['job_id']}", role=Role.VIEWER, name="carol")
    page = carol.page
    await expect(page.get_by_role("region", name="Waits for you")).to_be_visible()

    for name in ("Raise limits …", "Cancel …", "Send", "Approve"):
        await expect(page.get_by_role("button", name=name).first).to_be_disabled()
    await expect(page.get_by_label("Message", exact=True)).to_be_disabled()
    assert (await fleet.get(f"/v1/inbox/{waiting['id']}"))["status"] == "pending"


async def test_a_job_stays_readable_without_the_daemon_and_continues_after_it(
    fleet: FleetWorld, visit: Visitors
) -> None:
    job = await fleet.running_job()
    alice = await visit(fleet, f"/jobs/{job}")
    page = alice.page
    await expect(item(page, "I wait for a file.")).to_be_visible()
    cancel = page.get_by_role("button", name="Cancel …")
    await expect(cancel).to_be_enabled()
    alice.allow_absence()

    await fleet.kill()
    await expect(cancel).to_be_disabled()
    await expect(page.get_by_text("as of")).to_be_visible()
    await expect(item(page, "I wait for a file.")).to_be_visible()
    fleet.release()
    await fleet.start()

    await expect(item(page, "It is there.")).to_be_visible()
    await expect(timeline(page).get_by_role("button", name=re.compile("^worker lost")).last).to_be_visible()  # fmt: skip


# Its session as a chat


async def test_a_session_is_a_chat_whose_answers_stream_in(
    new_fleet: NewFleet, visit: Visitors
) -> None:
    fleet = new_fleet(agents=TELLER)
    await fleet.start()
    job = await fleet.run("teller")
    alice = await visit(fleet, f"/jobs/{job}", role=Role.OPERATOR)
    page, keys = alice.page, alice.page.keyboard
    await expect(item(page, "Yes?")).to_be_visible()

    await keys.press("m")
    await expect(page.get_by_label("Message", exact=True)).to_be_focused()
    await keys.type("once more")
    await keys.press("Control+Enter")

    # Its text is there in parts, before the message is in the journal.
    await expect(item(page, "one two")).to_be_visible()
    assert "ten" not in await item(page, "one two").inner_text()
    await expect(item(page, "nine ten")).to_be_visible()
    await expect(page.get_by_role("log").get_by_text("one two three")).to_have_count(1)
    assert not page.url.endswith(job)


async def test_following_yields_to_a_person_who_scrolls(
    new_fleet: NewFleet, visit: Visitors
) -> None:
    fleet = new_fleet(agents=TELLER)
    await fleet.start()
    job = await fleet.submit("novelist")
    alice = await visit(fleet, f"/jobs/{job}")
    page = alice.page
    follow = page.get_by_role("button", name=re.compile("^Follow"))
    await expect(item(page, "novel-begun")).to_be_in_viewport()
    await expect(follow).to_have_attribute("aria-pressed", "true")

    await page.get_by_test_id("transcript").hover()
    await page.mouse.wheel(0, -1_500)
    await expect(follow).to_have_attribute("aria-pressed", "false")
    first = page.get_by_test_id("transcript").locator("article").first
    before = await first.get_attribute("data-seq")
    (fleet.folder / "novel-go").touch()
    await fleet.until_status(job, "completed")
    await expect(page.get_by_role("button", name="Retry")).to_be_visible()
    assert await first.get_attribute("data-seq") == before
    await expect(item(page, "The end of the novel.")).not_to_be_in_viewport()

    await page.keyboard.press("Shift+G")
    await expect(item(page, "The end of the novel.")).to_be_in_viewport()


async def test_words_are_found_in_the_whole_job(new_fleet: NewFleet, visit: Visitors) -> None:
    fleet = new_fleet()
    job = await write_long_job(fleet.state, datetime.now(UTC), 3_000)
    await fleet.start()

    async def is_found() -> bool:
        return bool(await fleet.get("/v1/search?q=Tend&agent=hello"))

    await fleet.until(is_found)
    alice = await visit(fleet, f"/jobs/{job}")
    page = alice.page
    await expect(page.get_by_test_id("position")).to_contain_text("to 3,")
    await page.keyboard.press("f")
    await page.keyboard.type("Tend the herd")
    await expect(page.get_by_role("search").get_by_role("status")).to_have_text("0 in the loaded part")  # fmt: skip

    await page.get_by_role("button", name="Search the whole job").click()

    await expect(item(page, "Tend the herd.")).to_be_in_viewport()


# Its files


async def test_a_job_is_resumed_at_a_checkpoint(new_fleet: NewFleet, visit: Visitors) -> None:
    fleet = await start_coders(new_fleet)
    job = await fleet.run("coder", "one")
    first = min(row["number"] for row in await fleet.get(f"/v1/jobs/{job}/checkpoints"))
    carol = await visit(fleet, f"/jobs/{job}", role=Role.VIEWER, name="carol")
    alice = await visit(fleet, f"/jobs/{job}")
    alice.complaints.allow(NO_SNAPSHOT)
    name = f"Resume at checkpoint {first}"
    await expect(carol.page.get_by_role("button", name=name)).to_be_disabled()

    await alice.page.get_by_role("button", name=name).click()

    await expect(alice.page).not_to_have_url(re.compile(job))
    resumed = alice.page.url.rpartition("/")[2]
    await fleet.until_status(resumed, "completed")
    assert (await fleet.get(f"/v1/jobs/{resumed}"))["forked_from"].startswith(job)


async def test_a_job_continues_in_a_fork_at_a_checkpoint(
    new_fleet: NewFleet, visit: Visitors
) -> None:
    fleet = await start_coders(new_fleet)
    job = await fleet.run("coder", "one")
    numbers = [row["number"] for row in await fleet.get(f"/v1/jobs/{job}/checkpoints")]
    alice = await visit(fleet, f"/jobs/{job}")
    alice.complaints.allow(NO_SNAPSHOT)
    page = alice.page
    await page.get_by_role("button", name=f"Fork at checkpoint {numbers[0]}").click()
    form = page.get_by_role("form", name="Continue the session")
    await expect(form).to_contain_text(f"checkpoint {numbers[0]}")
    await page.keyboard.type("otherwise")
    await page.keyboard.press("Control+Enter")

    await expect(page).not_to_have_url(re.compile(job))
    await expect(item(page, "Done with otherwise.")).to_be_visible()
    forked = await fleet.get(f"/v1/jobs/{page.url.rpartition('/')[2]}")
    assert forked["forked_from"].startswith(job)


@shared
async def test_a_job_is_saved_as_a_page_and_as_a_journal_that_the_dashboard_opens(
    fleet: FleetWorld, visit: Visitors, tmp_path: Path
) -> None:
    job = await fleet.run("hello", "you")
    alice = await visit(fleet, f"/jobs/{job}", accept_downloads=True)
    page = alice.page
    saved: dict[str, str] = {}
    for name in ("page", "journal"):
        async with page.expect_download() as saving:
            await page.get_by_role("button", name=name, exact=True).click()
        download = await saving.value
        saved[download.suggested_filename] = (await download.path()).read_text("utf-8")
    assert list(saved) == [f"{job}.html", f"{job}.jsonl"]
    assert saved[f"{job}.html"].startswith("<!doctype html>")

    await page.goto(f"{fleet.url}/agents")
    await expect(page.get_by_role("heading", level=1, name="Agents")).to_be_visible()
    asked = len(alice.requests)
    given = await page.evaluate_handle(
        "([text, name]) => { const data = new DataTransfer();"
        " data.items.add(new File([text], name)); return data; }",
        [saved[f"{job}.jsonl"], f"{job}.jsonl"],
    )
    opened = page.get_by_role("dialog", name=f"{job}.jsonl")

    async def is_open() -> bool:
        await page.dispatch_event("main", "dragover", {"dataTransfer": given})
        await page.dispatch_event("main", "drop", {"dataTransfer": given})
        return await opened.count() > 0

    await fleet.until(is_open)
    await expect(opened.get_by_role("log")).to_contain_text("Hello, you.")
    assert await alice.axe() == []
    posted = [one.url for one in alice.requests[asked:] if one.method != "GET"]
    assert posted == []
    await opened.get_by_role("button", name="Close").first.click()
    await expect(opened).to_have_count(0)


async def test_every_part_of_a_job_can_be_read_on_a_phone(
    new_fleet: NewFleet, visit: Visitors
) -> None:
    fleet = new_fleet()
    job = await write_rich_job(fleet.state, datetime.now(UTC))
    await fleet.start()
    alice = await visit(fleet, f"/jobs/{job}", look=PHONE)
    page = alice.page
    tabs = ("Waits for you (1)", "Transcript", "Outline", "Details")
    await expect(page.get_by_role("tab")).to_have_text(list(tabs))
    found: dict[str, list[str]] = {}
    for tab in tabs:
        await page.get_by_role("tab", name=tab).tap()
        await expect(page.get_by_role("tab", name=tab)).to_have_attribute("aria-selected", "true")
        await expect(page.get_by_text("loading …")).to_have_count(0)
        found[tab] = await alice.axe()
        if not await is_within(page):
            found[tab].append("it scrolls sideways")
        await alice.shoot(f"job-tab-{tab.split()[0].lower()}")
    assert found == {tab: [] for tab in tabs}
