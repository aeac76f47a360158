"""A session of the real `claude`: begun by the fleet, continued in the page, and then by hand with the command that the page copies."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Callable
from functools import partial
from pathlib import Path

from anyio import to_thread
from playwright.async_api import expect

from browser.fleet_world import FleetWorld
from browser.visitor import Visitors
from components import Components
from nightherd.testing.messages_api import MessagesApi
from nightherd.testing.messages_script import Say
from runtimes.claude.claude_stage import PATIENCE_S, make_stage

KEEPER = """\
  - name: keeper
    runtime: cli
    permission_mode: bypassPermissions
    session: {mode: persistent}
"""
SAID = ("pick a colour", "blue", "and a number", "seven", "which were they?")


async def test_a_session_is_continued_in_the_page_and_then_with_claude_resume(
    new_fleet: Callable[..., FleetWorld], visit: Visitors, components: Components, tmp_path: Path
) -> None:
    place = tmp_path / "stage"
    place.mkdir()
    stage = make_stage(place, components.claude())
    with MessagesApi(*(Say(text=text) for text in ("blue", "seven", "blue and seven"))) as api:
        fleet = new_fleet(agents=KEEPER, environ=stage.environment(api))
        await fleet.start()
        job = await fleet.run("keeper", SAID[0])
        alice = await visit(fleet, f"/jobs/{job}")
        await alice.context.grant_permissions(["clipboard-read", "clipboard-write"])
        page, transcript = alice.page, alice.page.get_by_role("log", name="Transcript")
        await expect(transcript).to_contain_text("blue")

        await page.keyboard.press("m")
        await page.keyboard.type(SAID[2])
        await page.keyboard.press("Control+Enter")
        await expect(transcript).to_contain_text("seven")
        await expect(page).not_to_have_url(re.compile(job))
        await fleet.until_status(page.url.rpartition("/")[2], "completed")

        await page.get_by_role("button", name="Copy claude --resume").click()
        await expect(page.get_by_text("copied")).to_be_visible()
        command = await page.evaluate("() => navigator.clipboard.readText()")
        words = ["bash", "-c", f"{command} -p '{SAID[4]}'"]
        by_hand = partial(
            subprocess.run,
            words,
            env=stage.environment(api),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=PATIENCE_S,
            check=False,
        )
        done = await to_thread.run_sync(by_hand)
        await page.get_by_role("link", name="session", exact=True).click()
        await page.get_by_role("button", name="By hand").click()
        dialog = page.get_by_role("dialog", name="Continue the session by hand")
        await dialog.get_by_role("button", name="Hand over").click()
        await expect(dialog.get_by_role("status")).to_contain_text("claude --resume")
        await expect(dialog.get_by_role("status")).to_contain_text(re.compile("2 messages.* job-"))
        await dialog.get_by_role("button", name="Take back").click()
        await expect(dialog.get_by_role("status")).to_contain_text("Nothing was said outside")
        assert await alice.axe() == []

    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.strip() == "blue and seven"
    assert [text for text in api.asked[-1].texts if text in SAID] == list(SAID)
