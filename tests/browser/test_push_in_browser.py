"""Notifications of a browser: switched on in Settings, sent by the daemon, shown by the service worker, opened by a click."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator

import pytest
from playwright.async_api import Page, expect

from browser.fleet_world import FleetWorld
from browser.subscribed_browser import ServiceWorkerPushes, hand_subscription
from browser.visitor import Visitor, Visitors
from runtimes.notify.push_service import Browser, PushService, push_service

NOTIFICATIONS = """
  async () => {
    const registration = await navigator.serviceWorker.getRegistration();
    const shown = await registration.getNotifications();
    return shown.map(({ title, tag, data }) => ({ title, tag, path: data.path }));
  }
"""
CLOSE = """
  async () => {
    const registration = await navigator.serviceWorker.getRegistration();
    for (const shown of await registration.getNotifications()) shown.close();
  }
"""
CLICK = """
  async (path) => {
    await self.registration.showNotification("clicked", { tag: path, data: { path } });
    const [notification] = await self.registration.getNotifications();
    self.dispatchEvent(new NotificationEvent("notificationclick", { notification }));
  }
"""
OPENED = """
  () => {
    self.opened = [];
    const matchAll = self.clients.matchAll.bind(self.clients);
    self.clients.matchAll = async (options) => {
      const windows = await matchAll(options);
      return windows.map(({ url }) => ({
        url,
        focus: async () => undefined,
        navigate: async (address) => { self.opened.push(address); },
      }));
    };
  }
"""
"""Automation gives no click: without one, a browser lets no worker focus a window. What the worker asks for is noted instead."""
INBOX = "Tell me when something waits for me"
FAILURES = "Tell me when a job or run failed"


@pytest.fixture
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[PushService]:
    with push_service(tmp_path_factory.mktemp("push")) as served:
        yield served


async def switched_on(fleet: FleetWorld, visit: Visitors, service: PushService, keys: Browser) -> Visitor:  # fmt: skip
    """A person whose browser hears of the inbox."""
    alice = await visit.arrive(fleet)
    await hand_subscription(alice, service.endpoint(), keys)
    page = await alice.log_in_by_link("/settings")
    await page.get_by_label(INBOX).click()
    await expect(page.get_by_role("region", name="Your devices")).to_contain_text("(this one)")
    return alice


async def until_shown(fleet: FleetWorld, page: Page, **expected: str) -> None:
    """Until this is the one notification that is shown."""

    async def is_so() -> bool:
        shown = await page.evaluate(NOTIFICATIONS)
        return bool(shown == [expected])

    await fleet.until(is_so)


async def test_a_push_is_shown_and_leads_to_the_item(
    new_fleet: Callable[..., FleetWorld], visit: Visitors, service: PushService
) -> None:
    fleet = new_fleet(base_path="/herd")
    await fleet.start()
    alice = await switched_on(fleet, visit, service, Browser())
    page = alice.page
    scope = f"{fleet.url}/"
    registered = await page.evaluate("() => navigator.serviceWorker.getRegistration().then(({ scope, active }) => [scope, active.scriptURL])")  # fmt: skip
    assert registered == [scope, f"{scope}sw.js"]
    pushes = await ServiceWorkerPushes.of(page, fleet.origin)
    item = await fleet.waiting_job("pusher")
    path = f"inbox/{item['id']}"

    data = {"kind": "approval", "title": "pusher needs approval", "item": item["id"], "path": path}
    await pushes.deliver(json.dumps(data), scope)
    await until_shown(fleet, page, title="pusher needs approval", tag=path, path=path)
    await pushes.deliver(json.dumps({**data, "title": "pusher still waits"}), scope)
    await until_shown(fleet, page, title="pusher still waits", tag=path, path=path)
    await page.evaluate(CLOSE)
    for rubbish in ("", "no JSON", "[]", '{"title": 3, "path": "inbox"}'):
        await pushes.deliver(rubbish, scope)
        await until_shown(fleet, page, title="nightherd", tag="", path="")
        await page.evaluate(CLOSE)

    assert await page.evaluate("() => caches.keys()") == []
    served = await alice.context.request.get(f"{scope}sw.js")
    assert "fetch" not in await served.text()
    controlled = await alice.open("/inbox")
    await expect(controlled.get_by_role("heading", name="Inbox").first).to_be_visible()
    assert await controlled.evaluate("() => navigator.serviceWorker.controller !== null")
    assert await controlled.evaluate("() => caches.keys()") == []


async def test_devices_are_switched_on_changed_and_off(
    fleet: FleetWorld, visit: Visitors, service: PushService
) -> None:
    alice = await switched_on(fleet, visit, service, Browser())
    page = alice.page

    await page.get_by_label(FAILURES).click()
    devices = page.get_by_role("region", name="Your devices")
    await expect(devices).to_contain_text("inbox, failures")
    await page.reload()
    await expect(page.get_by_label(FAILURES)).to_be_checked()
    assert await alice.axe() == []
    await page.get_by_label(INBOX).click()
    await expect(devices).not_to_contain_text("inbox")
    await page.get_by_label(FAILURES).click()
    await expect(devices).to_have_count(0)

    await page.get_by_label(INBOX).click()
    await devices.get_by_role("button", name="Remove").click()
    await expect(devices).to_have_count(0)
    await expect(page.get_by_label(INBOX)).not_to_be_checked()
    assert await page.evaluate("() => localStorage.getItem('nightherd.push')") is None


async def test_a_browser_without_permission_says_so(fleet: FleetWorld, visit: Visitors) -> None:
    alice = await visit.arrive(fleet)
    await alice.context.add_init_script(
        'Object.defineProperty(Notification, "permission", { get: () => "denied" })'
    )
    await alice.log_in_by_link("/settings")

    await expect(alice.page.get_by_text("blocked in the settings of the browser")).to_be_visible()
    await expect(alice.page.get_by_label(INBOX)).to_be_disabled()


async def test_a_click_opens_the_item_and_nothing_else(
    fleet: FleetWorld, visit: Visitors, service: PushService
) -> None:
    alice = await switched_on(fleet, visit, service, Browser())
    (worker,) = alice.context.service_workers
    await worker.evaluate(OPENED)

    for path in ("inbox/inb-1", "https://elsewhere.test/", "../../x", ""):
        await worker.evaluate(CLICK, path)

    async def is_so() -> bool:
        opened = await worker.evaluate("() => self.opened")
        return bool(len(opened) == 4)

    await fleet.until(is_so)
    opened = await worker.evaluate("() => self.opened")
    home = f"{fleet.url}/"
    assert sorted(opened) == sorted([f"{home}inbox/inb-1", home, f"{home}x", home])
