"""The page Health: the daemon, its checks, what retention deletes, a reload that widens rights, and the operator log."""

from __future__ import annotations

import re
from collections.abc import Callable

from playwright.async_api import expect

from browser.fleet_world import FleetWorld
from browser.looks import Look, every_look
from browser.page_checks import violations
from browser.visitor import Visitors
from nightherd.model.access.role import Role
from runtimes.notify.loopback import loopback

MOWER = """\
  - name: mower
    runtime: scripted
    default_prompt: Mow.
    limits: {turns: 5}
    script: [{say: Mown.}]
"""
"""Leaves a checkpoint, which retention deletes."""
ON_SLACK = """\
  - name: helper
    runtime: scripted
    default_prompt: Help.
    script: [{say: Helped.}]
    chat: {slack: {bot_token_env: HERD_NO_SUCH_TOKEN, channels: [{id: C0123}]}}
"""
NOTIFIED = """\
notify:
  - {name: phone, url_env: HERD_PHONE, events: [failed], allow_hosts: [127.0.0.1]}
"""
WIDER = ("limits:", "allowed_tools: [Write]\n    limits:")


@every_look
async def test_health_shows_the_daemon_its_checks_and_its_log(
    fleet: FleetWorld, visit: Visitors, look: Look
) -> None:
    job = await fleet.run("hello")
    await fleet.new_token("idle", Role.VIEWER)
    vera = await visit(fleet, "/health", role=Role.VIEWER, name="vera")
    await expect(vera.page.get_by_text("Admins see them.")).to_be_visible()
    alice = await visit(fleet, "/health", look=look)
    page = alice.page
    tokens = page.get_by_role("region", name="Named tokens").get_by_role("row")
    await expect(tokens.filter(has_text="idle")).to_contain_text("not since the daemon started")
    await expect(tokens.filter(has_text="vera")).to_contain_text(re.compile("viewer.*(now|ago)"))
    await expect(page.get_by_text(re.compile(r"process \d+ on"))).not_to_have_count(0)
    passed = page.get_by_role("list", name="Passed checks")
    await expect(passed).to_have_count(0)
    await page.get_by_text(re.compile(r"All \d+ checks|\d+ other checks")).click()
    await expect(passed.get_by_role("listitem").filter(has_text="database")).to_be_visible()
    await expect(page.get_by_role("region", name="Workers")).to_be_visible()
    log = page.get_by_role("list", name="Operator log")
    await expect(log.get_by_role("link", name=job).first).to_be_visible()

    async with page.expect_response(re.compile(r"/v1/doctor\?verify=false")) as answer:
        await page.get_by_role("button", name="Check again").click()
    assert (await answer.value).status == 200
    async with page.expect_response(re.compile(r"/v1/doctor\?verify=true")) as answer:
        await page.get_by_role("button", name="Read every journal too").click()
    assert (await answer.value).status == 200
    await expect(page.get_by_role("button", name="Check again")).to_be_enabled()
    await alice.shoot("health", is_whole=True)
    assert await violations(page, {page.url: "Health"}) == {}


async def test_retention_deletes_what_it_announced_after_a_confirmation(
    new_fleet: Callable[..., FleetWorld], visit: Visitors
) -> None:
    fleet = new_fleet(agents=MOWER)
    await fleet.start()
    await fleet.run("mower")
    alice = await visit(fleet, "/health")
    carol = await visit(fleet, "/health", role=Role.OPERATOR, name="carol")
    page = alice.page
    await expect(page.get_by_text(re.compile("^Would delete 2 checkpoints"))).to_be_visible()
    theirs = carol.page.get_by_role("button", name="Delete now")
    await expect(theirs).to_have_attribute("title", "This needs the role admin")
    await expect(theirs).to_be_disabled()

    button = page.get_by_role("button", name="Delete now")
    await button.click()
    await expect(page.get_by_role("dialog")).to_contain_text("It cannot be undone.")
    await page.keyboard.press("Escape")
    await expect(page.get_by_role("dialog")).to_have_count(0)
    await expect(button).to_be_focused()
    assert (await fleet.ask("GET", "/v1/retention/plan"))["totals"]["checkpoints"] == 2
    await page.keyboard.press("Enter")
    await page.get_by_role("dialog").get_by_role("button", name="Delete", exact=True).click()

    await expect(page.get_by_text("Nothing would be deleted now.")).to_be_visible()
    assert (await fleet.ask("GET", "/v1/retention/plan"))["totals"]["checkpoints"] == 0


async def test_a_reload_that_widens_rights_waits_for_a_person(
    new_fleet: Callable[..., FleetWorld], visit: Visitors
) -> None:
    fleet = new_fleet(agents=MOWER)
    fleet.pasture.rewrite(fleet.pasture.file.read_text().replace("reload: auto", "reload: ask"))
    await fleet.start()
    alice = await visit(fleet, "/health")
    page = alice.page
    fleet.pasture.rewrite(fleet.pasture.file.read_text().replace(*WIDER))

    await page.get_by_role("button", name="Reload").click()

    await expect(page.get_by_text("some of it waits for a person")).to_be_visible()
    waiting = page.get_by_role("list", name="Waits for a person")
    await expect(waiting).to_contain_text("Write")
    await page.goto(f"{fleet.url}/agents/mower")
    await page.get_by_role("link", name="Decide").click()
    (item,) = await fleet.get("/v1/inbox")
    await expect(page).to_have_url(f"{fleet.url}/inbox/{item['id']}")


async def test_a_fleet_file_with_an_error_is_not_loaded_and_says_where(
    fleet: FleetWorld, visit: Visitors
) -> None:
    alice = await visit(fleet, "/health")
    alice.complaints.allow("status of 4")
    fleet.pasture.rewrite(fleet.pasture.file.read_text() + "  - name: [\n")

    await alice.page.get_by_role("button", name="Reload").click()

    problems = alice.page.get_by_role("alert")
    await expect(problems.filter(has_text=re.compile(r"nightherd\.yaml:\d+:\d+")).first).to_be_visible()  # fmt: skip


@every_look
async def test_connectors_show_how_each_bot_does(
    new_fleet: Callable[..., FleetWorld], visit: Visitors, look: Look
) -> None:
    fleet = new_fleet(agents=ON_SLACK)
    await fleet.start()
    (bot,) = (await fleet.get("/v1/status"))["bots"]
    alice = await visit(fleet, "/health", look=look)
    page = alice.page

    row = page.get_by_role("region", name="Bots of chat platforms").get_by_role("row").last
    await expect(row).to_contain_text(bot["bot"])
    await expect(row).to_contain_text("slack")
    await expect(row).to_contain_text(re.compile("starting|unavailable|stopped"))
    assert await row.get_by_role("link", name="helper").get_attribute("href") == "/agents/helper"
    assert await violations(page, {page.url: "Health"}) == {}


async def test_a_target_of_notifications_is_tested(
    new_fleet: Callable[..., FleetWorld], visit: Visitors
) -> None:
    with loopback() as server:
        fleet = new_fleet(environ={"HERD_PHONE": server.url(path="/a-secret-path")})
        fleet.pasture.rewrite(NOTIFIED + fleet.pasture.file.read_text())
        await fleet.start()
        alice = await visit(fleet, "/health")
        page = alice.page
        test = page.get_by_role("button", name="Test phone")
        await test.click()
        await expect(page.get_by_text("sent a test to phone")).to_be_visible()
        server.status = 503
        alice.complaints.allow("status of 409")
        await test.click()
        await expect(page.get_by_text("the server answered 503")).to_be_visible()

    assert b"Test of nightherd" in server.bodies[0]
    assert "a-secret-path" not in await page.content()
