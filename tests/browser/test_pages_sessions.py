"""The pages Sessions, Session and Compare: the fork tree, the conversation, and everything that continues it."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from anyio import to_thread
from playwright.async_api import Locator, Page, expect

from browser.fleet_world import AGENTS, FleetWorld
from browser.large_history import Story, write_history, write_sessions
from browser.looks import Look, every_look
from browser.visitor import Visitors
from nightherd.model.access.role import Role
from nightherd.testing.fork_server import ForkServer
from warm_command import run

NewFleet = Callable[..., FleetWorld]
AT = datetime(2026, 3, 1, 12, tzinfo=UTC)
CODERS = (
    AGENTS
    + """\
  - name: coder
    runtime: scripted
    session: {mode: persistent}
    working_directory: {root: project, mode: copy}
    script:
      - repeat: 9
        steps:
          - say: "I write **${prompt}**."
          - tool: Write
            input: {file_path: plan.txt, content: "1. ${prompt}\\n2. rest\\n"}
          - usage: {input_tokens: 100, output_tokens: 20, cost_usd: 0.01}
          - say: "Done with ${prompt}."
          - {end: true}
  - name: chatterbox
    runtime: scripted
    default_prompt: go
    session: {mode: persistent}
    script: [{say: "LONG"}]
""".replace("LONG", "word " * 2_000 + "the end")
)


async def coders(new_fleet: NewFleet) -> FleetWorld:
    """A fleet in which sessions have files."""
    world = new_fleet(agents=CODERS)
    (world.folder / "project").mkdir()
    (world.folder / "project" / "README").write_text("A project.\n")
    await world.start()
    return world


async def session_of(fleet: FleetWorld, job: str) -> str:
    """The session that a job works in."""
    return str((await fleet.get(f"/v1/jobs/{job}"))["session_id"])


async def is_within(page: Page) -> bool:
    """Whether the page is not wider than the window."""
    return bool(await page.evaluate("() => document.documentElement.scrollWidth <= innerWidth"))


def message(page: Page, number: int) -> Locator:
    """A message of the conversation."""
    return page.locator(f"#message-{number}")


@every_look
async def test_sessions_are_listed_filtered_and_current(
    fleet: FleetWorld, visit: Visitors, look: Look
) -> None:
    await fleet.run("hello")
    alice = await visit(fleet, "/sessions", look=look)
    page = alice.page
    rows = page.get_by_role("list", name="Sessions").get_by_role("listitem")
    await expect(rows).to_have_count(1)

    talked = await session_of(fleet, await fleet.run("talker", "the parser"))

    await expect(rows).to_have_count(2)
    await expect(rows.first).to_contain_text("persistent")
    assert await alice.axe() == []
    assert await is_within(page)
    await alice.shoot("sessions")

    await page.get_by_role("button", name="persistent").click()
    await expect(rows).to_have_count(1)
    assert "q=mode%3Apersistent" in page.url
    await expect(rows.get_by_role("link").first).to_have_attribute("href", f"/sessions/{talked}")


async def test_sessions_come_page_by_page(new_fleet: NewFleet, visit: Visitors) -> None:
    fleet = new_fleet()
    await write_sessions(fleet.state, AT, 60)
    await fleet.start()
    alice = await visit(fleet, "/sessions")
    rows = alice.page.get_by_role("list", name="Sessions").get_by_role("listitem")
    await expect(rows).to_have_count(50)

    await alice.page.get_by_role("button", name="Show more").click()

    await expect(rows).to_have_count(60)
    await expect(alice.page.get_by_role("button", name="Show more")).to_have_count(0)


async def test_ended_sessions_are_cleaned_up_after_a_look(
    fleet: FleetWorld, visit: Visitors
) -> None:
    ended = await session_of(fleet, await fleet.run("hello"))
    kept = await session_of(fleet, await fleet.run("talker"))
    alice = await visit(fleet, "/sessions")
    page = alice.page
    rows = page.get_by_role("list", name="Sessions").get_by_role("listitem")
    await expect(rows).to_have_count(2)
    await page.get_by_role("button", name="Clean up").click()
    dialog = page.get_by_role("dialog")
    await dialog.get_by_label(re.compile("^Unused")).fill("1ms")
    await page.keyboard.press("Enter")
    await expect(dialog).to_contain_text("1 session would be cleaned up")
    await expect(dialog).to_contain_text(ended)
    assert await alice.axe() == []
    await expect(rows).to_have_count(2)

    await dialog.get_by_role("button", name="Clean up 1 session").click()

    await expect(rows).to_have_count(1)
    await expect(rows.get_by_role("link").first).to_have_attribute("href", f"/sessions/{kept}")


@every_look
async def test_a_session_shows_its_family_and_its_conversation(
    new_fleet: NewFleet, visit: Visitors, look: Look
) -> None:
    fleet = await coders(new_fleet)
    prompt = "<img src=x onerror=alert(1)>"
    await fleet.run("coder", "the parser")
    session = await session_of(fleet, await fleet.run("coder", prompt))
    await fleet.post(f"/v1/sessions/{session}/fork", at_message=4, name="another way")
    alice = await visit(fleet, f"/sessions/{session}", look=look)
    page = alice.page
    tree = page.get_by_role("list", name="Fork tree").get_by_role("listitem")

    await expect(tree).to_have_count(4)
    await expect(tree.nth(0)).to_contain_text("current")
    await expect(tree.nth(1)).to_contain_text("Done with the parser.")
    await expect(tree.nth(2)).to_contain_text("fork after message 4")
    await expect(tree.nth(3)).to_contain_text("Done with <img")
    await expect(message(page, 1)).to_contain_text("the parser")
    await expect(message(page, 5)).to_contain_text("<img src=x onerror=alert(1)>")
    await expect(message(page, 2).locator("strong")).to_have_text("the parser")
    assert await alice.axe() == []
    assert await is_within(page)
    await alice.shoot("session")

    await message(page, 3).get_by_role("button", name=re.compile("^Write")).click()
    await expect(message(page, 3)).to_contain_text("1. the parser")
    await page.get_by_label("jobs").uncheck()
    await expect(tree).to_have_count(2)
    await tree.nth(1).get_by_role("link").click()
    await expect(page.get_by_role("heading", name="another way")).to_be_visible()
    await expect(message(page, 4)).to_contain_text("before the fork")
    await expect(page.locator("main")).to_contain_text("after message 4")


async def test_a_session_is_continued_in_the_page_and_then_with_the_command(
    fleet: FleetWorld, visit: Visitors
) -> None:
    session = await session_of(fleet, await fleet.run("talker", "one"))
    alice = await visit(fleet, f"/sessions/{session}")
    page, keyboard = alice.page, alice.page.keyboard
    await expect(message(page, 2)).to_contain_text("turn 1: one")

    await keyboard.press("r")
    await expect(page.get_by_label("Message", exact=True)).to_be_focused()
    await keyboard.type("two")
    await keyboard.press("Control+Enter")

    await expect(page).to_have_url(re.compile("/jobs/job-"))
    await expect(page.get_by_text("turn 2: two").first).to_be_visible()
    await page.get_by_role("link", name="session", exact=True).click()
    await expect(message(page, 4)).to_contain_text("turn 2: two")

    words = ["session", "resume", session, "-p", "three", "--quiet"]
    resumed = await to_thread.run_sync(lambda: run(words, fleet.folder, os.environ))

    assert resumed.returncode == 0, resumed.stderr
    await expect(message(page, 6)).to_contain_text("turn 3: three")
    jobs = await fleet.get(f"/v1/jobs?q=session:{session}")
    assert [one["status"] for one in jobs] == ["completed"] * 3


async def test_a_session_is_forked_at_a_message_by_keyboard(
    fleet: FleetWorld, visit: Visitors
) -> None:
    await fleet.run("talker", "one")
    session = await session_of(fleet, await fleet.run("talker", "two"))
    alice = await visit(fleet, f"/sessions/{session}")
    page, keyboard = alice.page, alice.page.keyboard
    await expect(message(page, 4)).to_be_visible()
    await keyboard.press("j")
    await keyboard.press("j")
    await expect(message(page, 2).get_by_role("link").first).to_be_focused()
    await keyboard.press("F")
    dialog = page.get_by_role("dialog")
    await expect(dialog.get_by_label(re.compile("^After message"))).to_have_value("2")
    assert await alice.axe() == []
    await dialog.get_by_label(re.compile("^Name")).fill("the other")
    await keyboard.press("Enter")

    await expect(page.get_by_role("heading", name="the other")).to_be_visible()
    (fork,) = await fleet.get("/v1/sessions?q=other")
    assert (fork["parent_session_id"], fork["base_messages"], fork["job_count"]) == (session, 2, 0)


async def test_a_fork_with_a_prompt_runs_at_once(fleet: FleetWorld, visit: Visitors) -> None:
    await fleet.run("talker", "one")
    session = await session_of(fleet, await fleet.run("talker", "two"))
    alice = await visit(fleet, f"/sessions/{session}")
    page = alice.page
    await message(page, 2).get_by_role("button", name=re.compile("^Fork here")).click()
    dialog = page.get_by_role("dialog")
    await dialog.get_by_label(re.compile("^Prompt")).fill("another")
    await dialog.get_by_role("button", name="Fork and run").click()

    await expect(page).to_have_url(re.compile("/jobs/job-"))
    await expect(page.get_by_text("turn 2: another").first).to_be_visible()
    await page.goto(f"{fleet.url}/sessions/{session}")
    tree = page.get_by_role("list", name="Fork tree").get_by_role("listitem")
    await expect(tree).to_have_count(5)
    await expect(tree.nth(2)).to_contain_text("fork after message 2")


async def test_a_fork_is_used_named_and_ended(fleet: FleetWorld, visit: Visitors) -> None:
    session = await session_of(fleet, await fleet.run("talker", "one"))
    fork = (await fleet.post(f"/v1/sessions/{session}/fork"))["id"]
    alice = await visit(fleet, f"/sessions/{fork}")
    page = alice.page
    here = page.get_by_role("list", name="Fork tree").locator(f"[data-session={fork}]")
    await expect(here).not_to_contain_text("current")

    await page.get_by_role("button", name="Use", exact=True).click()
    await expect(here).to_contain_text("current")
    assert await session_of(fleet, await fleet.run("talker", "two")) == fork

    await page.get_by_role("button", name="Rename").click()
    await page.get_by_role("dialog").get_by_label(re.compile("^Name")).fill("the good one")
    await page.keyboard.press("Enter")
    await expect(page.get_by_role("heading", name="the good one")).to_be_visible()

    await page.goto(f"{fleet.url}/sessions/{session}")
    await page.get_by_role("button", name="End", exact=True).click()
    await page.get_by_role("dialog").get_by_role("button", name="End the session").click()
    await expect(page).to_have_url(re.compile("/sessions$"))
    rows = page.get_by_role("list", name="Sessions").get_by_role("listitem")
    await expect(rows).to_have_count(1)
    await expect(rows).to_contain_text("the good one")


@every_look
async def test_two_tips_are_compared_with_their_files(
    new_fleet: NewFleet, visit: Visitors, look: Look
) -> None:
    fleet = await coders(new_fleet)
    session = await session_of(fleet, await fleet.run("coder", "the parser"))
    fork = await fleet.ask("POST", f"/v1/sessions/{session}/fork", {"prompt": "the lexer"})
    await fleet.until_status(fork["job"]["id"], "completed")
    await fleet.run("coder", "the printer")
    alice = await visit(fleet, f"/sessions/{session}", look=look)
    page = alice.page
    tree = page.get_by_role("list", name="Fork tree")
    await tree.locator(f"[data-session={session}]").get_by_role("checkbox").check()
    await tree.locator(f"[data-session={fork['data']['id']}]").get_by_role("checkbox").check()
    await page.get_by_role("region", name="Compare").get_by_role("link", name="Compare").click()

    await expect(page.locator("main")).to_contain_text("Both begin with the same 4 messages")
    left, right = page.get_by_label(re.compile("^Left")), page.get_by_label(re.compile("^Right"))
    await expect(left).to_contain_text("Done with the printer.")
    await expect(right).to_contain_text("Done with the lexer.")
    await expect(left).to_contain_text("4 messages, 1 job, $0.01")
    files = page.get_by_label("Files", exact=True)
    await expect(files).to_contain_text("plan.txt")
    await expect(files).to_contain_text("-1. the printer")
    await expect(files).to_contain_text("+1. the lexer")
    await expect(page.get_by_label("Said in left")).to_contain_text("I write the printer.")
    await expect(page.get_by_label("Said in right")).to_contain_text("I write the lexer.")
    assert await alice.axe() == []
    assert await is_within(page)
    await alice.shoot("compare")


async def test_sessions_are_compared_from_the_list_by_keyboard(
    fleet: FleetWorld, visit: Visitors
) -> None:
    first = await session_of(fleet, await fleet.run("hello", "cows"))
    second = await session_of(fleet, await fleet.run("hello", "pigs"))
    alice = await visit(fleet, "/sessions")
    page = alice.page
    await expect(page.get_by_role("list", name="Sessions").get_by_role("listitem")).to_have_count(2)
    for key in ("j", "x", "j", "x", "="):
        await page.keyboard.press(key)

    await expect(page).to_have_url(f"{fleet.url}/compare/{second}/{first}")
    await expect(page.locator("main")).to_contain_text("They have no message in common.")
    await expect(page.get_by_label("Files", exact=True)).to_contain_text("a workspace of their own")


async def test_a_tree_of_500_sessions_makes_only_the_rows_that_are_seen(
    new_fleet: NewFleet, visit: Visitors
) -> None:
    fleet = new_fleet()
    stories: list[Story] = []
    for number in range(500):
        parent = stories[(number - 1) // 2] if number else None
        at = AT + timedelta(minutes=number)
        stories.append(
            Story(
                number=number, at=at, mode="persistent", turns=2, prompt=str(number), parent=parent
            )
        )
    await write_history(fleet.state, stories)
    await fleet.start()
    alice = await visit(fleet, f"/sessions/{stories[0].session}")
    page = alice.page
    await page.get_by_role("button", name="Show more").click()
    await expect(page.get_by_role("heading", name="Fork tree, 500 sessions")).to_be_visible()
    tree = page.get_by_role("list", name="Fork tree")
    rows = tree.get_by_role("listitem")
    await expect(rows.first).to_have_attribute("aria-setsize", "1000")
    assert await rows.count() < 80

    await rows.first.get_by_role("link").focus()
    await page.keyboard.press("End")

    await expect(tree.locator("[aria-posinset='1000'] a")).to_be_focused()
    assert await rows.count() < 80
    assert await alice.axe() == []
    await alice.shoot("session-500")


async def test_a_long_conversation_comes_page_by_page(new_fleet: NewFleet, visit: Visitors) -> None:
    fleet = new_fleet()
    story = Story(number=7, at=AT, mode="persistent", turns=60)
    await write_history(fleet.state, [story])
    await fleet.start()
    alice = await visit(fleet, f"/sessions/{story.session}")
    page = alice.page
    messages = page.get_by_role("list", name="Messages").locator(":scope > li")
    await expect(messages).to_have_count(50)
    await expect(message(page, 121)).to_be_visible()

    await page.get_by_role("button", name="Show earlier messages").click()
    await expect(messages).to_have_count(100)

    await page.goto(f"{fleet.url}/sessions/{story.session}#9")
    await page.reload()
    await expect(message(page, 9)).to_be_in_viewport()
    await expect(message(page, 121)).to_have_count(0)
    await page.get_by_role("button", name="Show later messages").click()
    await page.get_by_role("button", name="Show later messages").click()
    await expect(message(page, 121)).to_have_count(1)


async def test_a_long_message_is_loaded_whole_on_demand(
    new_fleet: NewFleet, visit: Visitors
) -> None:
    fleet = await coders(new_fleet)
    session = await session_of(fleet, await fleet.run("chatterbox"))
    alice = await visit(fleet, f"/sessions/{session}")
    said = message(alice.page, 2)
    await expect(said).to_contain_text("9.8 KB in all")
    await expect(said).not_to_contain_text("the end")

    await said.get_by_role("button", name="Show all").click()

    await expect(said).to_contain_text("the end")


async def test_a_session_is_saved_as_a_file(fleet: FleetWorld, visit: Visitors) -> None:
    session = await session_of(fleet, await fleet.run("talker", "one"))
    alice = await visit(fleet, f"/sessions/{session}", accept_downloads=True)
    async with alice.page.expect_download() as saving:
        await alice.page.get_by_role("button", name="markdown").click()
    saved = await saving.value

    assert saved.suggested_filename == f"{session}.md"
    assert "turn 1: one" in (await saved.path()).read_text("utf-8")


async def test_a_saved_session_is_read_and_imported_into_another_fleet(
    tmp_path: Path, daemon_server: ForkServer, visit: Visitors
) -> None:
    fleets = []
    for name in ("here", "there"):
        (tmp_path / name).mkdir()
        fleets.append(FleetWorld(tmp_path / name, daemon_server, name=name))
    here, there = fleets
    await here.start()
    session = await session_of(here, await here.run("talker", "one"))
    exported = tmp_path / "session.json"
    exported.write_text(json.dumps(await here.ask("GET", f"/v1/sessions/{session}/export")))
    await here.stop()
    await there.start()
    carol = await visit(there, "/sessions", role=Role.OPERATOR, name="carol")
    alice = await visit(there, "/sessions")
    refused = "This needs the role admin"
    for page in (carol.page, alice.page):
        async with page.expect_file_chooser() as choosing:
            await page.get_by_role("button", name="Open a file …").click()
        await (await choosing.value).set_files(exported)
        opened = page.get_by_role("dialog", name="session.json")
        await expect(opened.get_by_role("log")).to_contain_text("turn 1: one")
    take = carol.page.get_by_role("button", name="Import the session")
    await expect(take).to_be_disabled()
    await expect(take).to_have_attribute("title", refused)
    assert await there.get("/v1/sessions") == []
    assert await alice.axe() == []

    page = alice.page
    await page.get_by_role("button", name="Import the session").click()

    await expect(page).to_have_url(f"{there.url}/sessions/{session}")
    await expect(message(page, 2)).to_contain_text("turn 1: one")
    await page.get_by_label("Message", exact=True).fill("two")
    await page.get_by_role("button", name="Send", exact=True).click()
    await expect(page).to_have_url(re.compile("/jobs/job-"))
    await expect(page.get_by_text("turn 2: two").first).to_be_visible()


async def test_a_viewer_reads_sessions_and_changes_nothing(
    fleet: FleetWorld, visit: Visitors
) -> None:
    session = await session_of(fleet, await fleet.run("talker", "one"))
    carol = await visit(fleet, f"/sessions/{session}", role=Role.VIEWER, name="carol")
    page = carol.page
    await expect(message(page, 2)).to_be_visible()

    reasons: dict[str, Any] = {}
    for name in ("Use", "Fork", "Rename", "End", "Send"):
        button = page.get_by_role("button", name=name, exact=True)
        await expect(button).to_be_disabled()
        reasons[name] = await button.get_attribute("title")
    await expect(page.get_by_label("Message", exact=True)).to_be_disabled()
    assert reasons == {
        "Use": "This needs the role operator",
        "Fork": "This needs the role operator",
        "Rename": "This needs the role operator",
        "End": "This needs the role admin",
        "Send": "This needs the role operator",
    }


async def test_a_session_stays_readable_without_the_daemon(
    fleet: FleetWorld, visit: Visitors
) -> None:
    session = await session_of(fleet, await fleet.run("talker", "one"))
    alice = await visit(fleet, f"/sessions/{session}")
    page = alice.page
    await expect(message(page, 2)).to_be_visible()
    alice.allow_absence()

    await fleet.kill()
    fork = page.get_by_role("button", name="Fork", exact=True)
    await expect(fork).to_be_disabled()
    await expect(fork).to_have_attribute("title", "The daemon does not answer")
    await expect(message(page, 2)).to_contain_text("turn 1: one")
    await fleet.start()

    await expect(fork).to_be_enabled()
    await fleet.run("talker", "two")
    await expect(message(page, 4)).to_contain_text("turn 2: two")
