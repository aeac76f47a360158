"""The frame of every page: keys, palette, legend, theme, login, roles, a base path and a phone."""

from __future__ import annotations

import re
from collections.abc import Callable

from playwright.async_api import expect

from browser.fleet_world import FleetWorld, shared
from browser.looks import DESKTOP, PHONE, PHONE_DARK, Look, every_look
from browser.page_checks import is_within, violations
from browser.visitor import Visitors
from nightherd.host.machine import user_name
from nightherd.model.access.role import Role

KEYS = {"i": "Inbox", "j": "Jobs", "r": "Runs", "s": "Sessions", "w": "Workflows", "t": "Schedules", "a": "Agents", "c": "Costs", "d": "Health", "e": "Settings"}  # fmt: skip
REFUSED = "status of 401"


@shared
async def test_keys_lead_everywhere(fleet: FleetWorld, visit: Visitors) -> None:
    alice = await visit(fleet, "/agents")
    page, keyboard = alice.page, alice.page.keyboard
    await expect(page.get_by_role("heading", level=1, name="Agents")).to_be_visible()
    for key, name in KEYS.items():
        await keyboard.press("g")
        await keyboard.press(key)
        await expect(page).to_have_url(f"{fleet.url}/{name.lower()}")
        await expect(page).to_have_title(re.compile(f"^{name}"))
        link = page.get_by_role("navigation", name="Pages").get_by_role("link", name=name)
        await expect(link).to_have_attribute("aria-current", "page")
    await keyboard.press("g")
    await keyboard.press("h")
    await expect(page).to_have_url(f"{fleet.url}/")

    await keyboard.press("c")
    await expect(page.get_by_role("dialog")).to_contain_text("Start a job")
    await keyboard.press("Escape")
    await expect(page.get_by_role("dialog")).to_have_count(0)
    await keyboard.press("/")
    await expect(page.get_by_role("searchbox")).to_be_focused()
    await keyboard.type("gi c?")
    await expect(page).to_have_url(f"{fleet.url}/search")
    await expect(page.get_by_role("searchbox")).to_have_value("gi c?")
    await expect(page.get_by_role("dialog")).to_have_count(0)


@shared
async def test_the_legend_lists_every_key_and_gives_the_focus_back(
    fleet: FleetWorld, visit: Visitors
) -> None:
    alice = await visit(fleet, "/agents")
    page = alice.page
    link = page.get_by_role("main").get_by_role("link", name="hello")
    await link.focus()

    await page.keyboard.press("?")

    dialog = page.get_by_role("dialog", name="Keys")
    for keys in ("g h", "g i", "g e", "/", "c", "?", "Ctrl k"):
        await expect(dialog.locator("dt").get_by_text(keys, exact=True)).to_have_count(1)
    assert await alice.axe() == []
    await page.keyboard.press("Escape")
    await expect(dialog).to_have_count(0)
    await expect(link).to_be_focused()


async def test_the_palette_is_used_by_keyboard(fleet: FleetWorld, visit: Visitors) -> None:
    job = await fleet.run("hello")
    alice = await visit(fleet, "/agents")
    page, keyboard = alice.page, alice.page.keyboard
    link = page.get_by_role("main").get_by_role("link", name="talker")
    await link.focus()
    await keyboard.press("Control+k")
    command = page.get_by_role("combobox", name="Command")
    await expect(command).to_be_focused()
    options = page.get_by_role("listbox").get_by_role("option")
    await expect(options.filter(has_text=job)).to_have_count(0)
    await expect(options.first).to_have_attribute("aria-selected", "true")
    await keyboard.press("ArrowDown")
    await keyboard.press("ArrowDown")
    await keyboard.press("ArrowUp")
    await expect(options.nth(1)).to_have_attribute("aria-selected", "true")
    assert await alice.axe() == []
    await keyboard.press("Escape")
    await expect(command).to_have_count(0)
    await expect(link).to_be_focused()

    await keyboard.press("Meta+k")
    await expect(command).to_be_focused()
    await keyboard.type("nothing is called so")
    await expect(options).to_have_count(1)
    await expect(options).to_contain_text("Search for nothing is called so")
    await command.fill(f"hello {job[-6:]}")
    await expect(options.first).to_contain_text(job)
    await keyboard.press("Enter")
    await expect(page).to_have_url(f"{fleet.url}/jobs/{job}")
    await expect(page.get_by_role("dialog")).to_have_count(0)


@shared
async def test_the_content_is_one_key_away(fleet: FleetWorld, visit: Visitors) -> None:
    alice = await visit(fleet, "/agents")
    page = alice.page
    await expect(page.get_by_role("region", name="Agents")).to_be_visible()

    await page.keyboard.press("Tab")
    await expect(page.get_by_role("link", name="Skip to content")).to_be_focused()
    await page.keyboard.press("Enter")
    await expect(page.get_by_role("main")).to_be_focused()


@shared
async def test_a_theme_is_kept_and_the_system_decides_again(
    fleet: FleetWorld, visit: Visitors
) -> None:
    alice = await visit(fleet, "/agents", look=DESKTOP)
    page = alice.page
    background = "() => getComputedStyle(document.documentElement).backgroundColor"
    light = await page.evaluate(background)
    await page.get_by_text(f"{user_name()} (admin)").click()
    theme = page.get_by_label("Theme")

    await theme.select_option("dark")
    dark = await page.evaluate(background)
    assert dark != light
    await page.reload()
    await expect(page.get_by_role("region", name="Agents")).to_be_visible()
    assert await page.evaluate(background) == dark
    assert await alice.axe() == []
    await page.get_by_text(f"{user_name()} (admin)").click()
    await theme.select_option("system")
    assert await page.evaluate(background) == light
    await page.emulate_media(color_scheme="dark")
    assert await page.evaluate(background) == dark
    await theme.select_option("light")
    assert await page.evaluate(background) == light


@shared
async def test_logging_out_ends_this_browser_in_all_its_tabs_and_everywhere_the_others(
    fleet: FleetWorld, visit: Visitors
) -> None:
    token = await fleet.new_token("bob", Role.VIEWER)
    here, there = await visit.arrive(fleet), await visit.arrive(fleet)
    for browser in (here, there):
        browser.complaints.allow(REFUSED)
        await browser.log_in(token=token)
    tabs = [await here.open("/jobs"), await here.open("/agents"), await there.open("/agents")]
    for tab in tabs:
        await tab.get_by_text("bob (viewer)").first.wait_for()

    await tabs[1].get_by_text("bob (viewer)").click()
    await tabs[1].get_by_role("button", name="Log out", exact=True).click()
    await tabs[1].get_by_role("button", name="Log in").wait_for()
    await expect(tabs[0].get_by_role("button", name="Log in")).to_be_visible()
    await expect(tabs[2].get_by_role("region", name="Agents")).to_be_visible()

    await tabs[2].get_by_text("bob (viewer)").click()
    await tabs[2].get_by_role("button", name="Log out everywhere").click()
    await tabs[2].get_by_role("button", name="Log in").wait_for()


@every_look
@shared
async def test_the_login_page_takes_tokens_and_logs_in_every_tab(
    fleet: FleetWorld, visit: Visitors, look: Look
) -> None:
    token = await fleet.new_token("bob", Role.VIEWER)
    bob = await visit(fleet, "/costs?since=30d", look=look, role=None)
    bob.complaints.allow(REFUSED)
    page = bob.page
    other = await bob.open("/agents")
    field = page.get_by_label("Or log in with a token")
    button = page.get_by_role("button", name="Log in")
    await expect(button).to_be_disabled()
    assert await bob.axe() == []
    assert await page.evaluate("() => document.documentElement.scrollWidth <= innerWidth")
    await bob.shoot("login")
    await field.fill("wrong")
    await field.press("Enter")
    await expect(page.get_by_role("alert")).to_be_visible()
    assert await bob.axe() == []

    await field.fill(f" {token} ")
    await field.press("Enter")

    await expect(page.get_by_role("heading", level=1, name="Costs")).to_be_visible()
    assert page.url == f"{fleet.url}/costs?since=30d"
    await expect(other.get_by_role("region", name="Agents")).to_be_visible()


@shared
async def test_a_code_that_was_used_says_so_and_leaves_the_address(
    fleet: FleetWorld, visit: Visitors
) -> None:
    link = await fleet.new_link("/agents")
    alice, eve = await visit.arrive(fleet), await visit.arrive(fleet)
    eve.complaints.allow(REFUSED)
    first = await alice.context.new_page()
    await first.goto(link)
    await expect(first.get_by_role("region", name="Agents")).to_be_visible()

    second = await eve.context.new_page()
    await second.goto(link)

    await expect(second.get_by_role("alert")).to_contain_text("not valid")
    assert second.url == f"{fleet.url}/agents"


@shared
async def test_a_viewer_sees_actions_disabled_and_a_forged_request_is_refused(
    fleet: FleetWorld, visit: Visitors
) -> None:
    job = await fleet.running_job()
    carol = await visit(fleet, "/agents", role=Role.VIEWER, name="carol")
    carol.complaints.expect("status of 403")
    page = carol.page
    await expect(page.get_by_role("region", name="Agents")).to_be_visible()
    await expect(page.get_by_role("button", name="Start a job")).to_have_count(0)
    await page.keyboard.press("c")
    await page.keyboard.press("Control+k")
    await expect(page.get_by_role("combobox", name="Command")).to_be_focused()
    await page.keyboard.type("start")
    await expect(page.get_by_role("option", name="Start a job")).to_have_count(0)
    forge = """
      async (path) => {
        const key = Object.keys(localStorage).find((name) => name.startsWith("nightherd.secret"));
        const headers = { "x-nightherd-secret": localStorage.getItem(key), "content-type": "application/json" };
        return (await fetch(path, { method: "POST", headers, body: "{}" })).status;
      }
    """

    assert await page.evaluate(forge, f"/v1/jobs/{job}/cancel") == 403
    assert await page.evaluate(forge, "/v1/reload") == 403
    assert (await fleet.get(f"/v1/jobs/{job}"))["status"] == "running"
    fleet.release()


@shared
async def test_an_address_without_a_page_says_so(fleet: FleetWorld, visit: Visitors) -> None:
    alice = await visit(fleet, "/nowhere/at/all")
    alice.complaints.allow("status of 404", "/nowhere/at/all 404")

    await expect(alice.page.get_by_role("heading", name="Not found")).to_be_visible()
    assert await alice.axe() == []
    await alice.page.get_by_role("main").get_by_role("link", name="Home").click()
    await expect(alice.page).to_have_url(f"{fleet.url}/")


async def test_everything_works_below_a_base_path(
    new_fleet: Callable[..., FleetWorld], visit: Visitors
) -> None:
    fleet = new_fleet(base_path="/herd")
    await fleet.start()
    job = await fleet.run("hello")
    alice = await visit(fleet, "/agents/hello")
    page = alice.page
    assert page.url == f"{fleet.origin}/herd/agents/hello"
    await page.get_by_role("link", name=job[-6:]).click()
    await expect(page).to_have_url(f"{fleet.origin}/herd/jobs/{job}")
    await page.reload()
    await expect(page.get_by_text("Hello, everybody.")).to_be_visible()
    await page.keyboard.press("g")
    await page.keyboard.press("a")
    await expect(page).to_have_url(f"{fleet.origin}/herd/agents")
    link = page.get_by_role("navigation", name="Pages").get_by_role("link", name="Agents")
    await expect(link).to_have_attribute("aria-current", "page")

    outside = [request.url for request in alice.requests if not request.url.startswith(f"{fleet.origin}/herd/")]  # fmt: skip
    assert outside == []
    manifest = await alice.context.request.get(f"{fleet.url}/manifest.webmanifest")
    assert (await manifest.json())["start_url"] == "./"


@shared
async def test_the_menu_of_a_phone_has_every_page(fleet: FleetWorld, visit: Visitors) -> None:
    alice = await visit(fleet, "/jobs", look=PHONE_DARK)
    page = alice.page
    bar = page.get_by_role("navigation", name="Main pages")
    await expect(bar.get_by_role("link", name="Jobs")).to_have_attribute("aria-current", "page")
    more = bar.get_by_role("button", name="More")
    await more.tap()
    menu = page.get_by_role("dialog", name="More")
    for name in set(KEYS.values()) - {"Inbox", "Jobs"}:
        box = await menu.get_by_role("link", name=name).bounding_box()
        assert box is not None
        assert box["height"] >= 40, name
    assert await alice.axe() == []
    await alice.shoot("phone-menu")
    await page.keyboard.press("Escape")
    await expect(menu).to_have_count(0)
    await expect(more).to_be_focused()
    await more.tap()
    await menu.get_by_role("link", name="Costs").tap()
    await expect(page).to_have_url(f"{fleet.url}/costs")
    await expect(menu).to_have_count(0)
    await more.tap()
    await menu.get_by_role("button", name="Start a job").tap()
    await expect(page.get_by_role("dialog")).to_contain_text("Start a job")
    assert await is_within(page)


async def test_empty_pages_are_sound_on_a_phone(fleet: FleetWorld, visit: Visitors) -> None:
    alice = await visit(fleet, "/agents", look=PHONE)
    pages = {f"{fleet.url}/{name.lower()}": name for name in ("Costs", "Search", "Schedules")}
    assert await violations(alice.page, pages) == {}
