"""A browser with a push subscription: under automation no push service gives it one, so the page is handed one of the test's own."""

from __future__ import annotations

import json

from playwright.async_api import CDPSession, Page

from browser.visitor import Visitor
from runtimes.notify.push_service import Browser

SUBSCRIPTION = """
(({ endpoint, p256dh, auth }) => {
  let subscription = null;
  const make = (applicationServerKey) => ({
    endpoint,
    options: { applicationServerKey: applicationServerKey.buffer, userVisibleOnly: true },
    toJSON: () => ({ endpoint, expirationTime: null, keys: { p256dh, auth } }),
    unsubscribe: async () => { subscription = null; return true; },
  });
  PushManager.prototype.subscribe = async ({ applicationServerKey }) => (subscription = make(applicationServerKey));
  PushManager.prototype.getSubscription = async () => subscription;
})
"""
"""Takes the place of what Chromium does with its push service, and of nothing else."""


async def hand_subscription(visitor: Visitor, endpoint: str, browser: Browser) -> None:
    """Pages opened from now on may show notifications, and get this subscription when they ask for one."""
    await visitor.context.grant_permissions(["notifications"], origin=visitor.fleet.origin)
    given = {"endpoint": endpoint, "p256dh": browser.p256dh, "auth": browser.auth}
    await visitor.context.add_init_script(f"{SUBSCRIPTION}({json.dumps(given)})")


class ServiceWorkerPushes:
    """Delivers pushes to the service worker that a page has registered, as the browser does."""

    def __init__(self, session: CDPSession, origin: str) -> None:
        self._session = session
        self._origin = origin
        self.scopes: dict[str, str] = {}
        """By the id of a registration, its scope."""
        session.on("ServiceWorker.workerRegistrationUpdated", self._note)

    @classmethod
    async def of(cls, page: Page, origin: str) -> ServiceWorkerPushes:
        """Those for workers of the page's browser."""
        made = cls(await page.context.new_cdp_session(page), origin)
        await made._session.send("ServiceWorker.enable")
        return made

    def _note(self, event: dict[str, list[dict[str, str]]]) -> None:
        for one in event["registrations"]:
            self.scopes[one["registrationId"]] = one["scopeURL"]

    async def deliver(self, data: str, scope: str) -> None:
        """A push that arrives with this text in it, for the worker of a scope."""
        id = next(id for id, known in self.scopes.items() if known == scope)
        message = {"origin": self._origin, "registrationId": id, "data": data}
        await self._session.send("ServiceWorker.deliverPushMessage", message)
