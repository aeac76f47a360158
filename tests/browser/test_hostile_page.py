"""A page on another port of the same host, as an agent's dev server has one: it is sent the cookie, and gets nothing.

`SameSite=Strict` does not keep the cookie from it, because a site is a host without its port.
"""

from __future__ import annotations

import json
from http.client import HTTPConnection
from typing import Any

import anyio
from playwright.async_api import Page

from browser.fleet_world import FleetWorld, shared
from browser.hostile_site import HostileSite
from browser.visitor import Visitors
from nightherd.model.access.role import Role

REFUSED = "refused"
PATIENCE_S = 60.0
PUBLIC = (200, 304)
"""How the page itself is answered, which is the same for everyone."""
TRYING = """
async ([url, body]) => {
  const loaded = (element) => new Promise((done, fail) => {
    element.onload = () => done("loaded");
    element.onerror = () => fail(new Error());
    document.body.append(element);
  });
  const make = (name, properties) => Object.assign(document.createElement(name), properties);
  try {
    return (await (%s)) || "refused";
  } catch {
    return "refused";
  }
}
"""
READING = {
    "fetch": 'fetch(url + "/v1/jobs", { credentials: "include" }).then((answer) => answer.text())',
    "fetch without CORS": 'fetch(url + "/v1/jobs", { credentials: "include", mode: "no-cors" }).then((answer) => answer.type)',
    "XMLHttpRequest": """new Promise((done, fail) => {
      const request = new XMLHttpRequest();
      request.open("GET", url + "/v1/jobs");
      request.withCredentials = true;
      request.onload = () => done(request.responseText);
      request.onerror = fail;
      request.send();
    })""",
    "EventSource": """new Promise((done, fail) => {
      const source = new EventSource(url + "/v1/stream?topics=jobs,inbox", { withCredentials: true });
      source.onopen = () => done("opened");
      source.addEventListener("ready", () => done("ready"));
      source.onerror = () => { source.close(); fail(); };
    })""",
    "a picture": 'loaded(make("img", { src: url + "/v1/jobs" }))',
    "a script": 'loaded(make("script", { src: url + "/v1/jobs" }))',
    "a style sheet": 'loaded(make("link", { rel: "stylesheet", href: url + "/v1/jobs" }))',
    "the page as a script": 'loaded(make("script", { src: url + "/" }))',
}
"""Ways to read that send the cookie."""
NOT_SENT = {
    "a module": 'import(url + "/v1/jobs")',
    "a guessed secret": 'fetch(url + "/v1/jobs", { credentials: "include", headers: { "X-Nightherd-Secret": "guessed" } }).then((answer) => answer.text())',
    "a token": 'fetch(url + "/v1/jobs", { headers: { authorization: "Bearer guessed" } }).then((answer) => answer.text())',
    "JSON": 'fetch(url + "/v1/jobs", { method: "POST", credentials: "include", headers: { "content-type": "application/json" }, body: "{}" }).then((answer) => answer.text())',
    "DELETE": 'fetch(url + "/v1/tokens/alice", { method: "DELETE", credentials: "include" }).then((answer) => answer.text())',
    "a claimed origin": 'fetch(url + "/v1/jobs", { credentials: "include", mode: "same-origin" }).then((answer) => answer.text())',
    "a WebSocket": """new Promise((done, fail) => {
      const socket = new WebSocket(url.replace("http", "ws") + "/v1/stream?topics=jobs");
      socket.onopen = () => done("opened");
      socket.onerror = fail;
    })""",
    "a service worker": 'navigator.serviceWorker.register(url + "/sw.js").then(() => "registered")',
    "a worker": 'new Promise((done, fail) => { new Worker(url + "/v1/jobs"); done("started"); })',
}
"""Ways that the browser itself does not send, or not with the cookie."""


SENDING = {
    "fetch": 'fetch(url, { method: "POST", mode: "no-cors", credentials: "include", body }).then(() => "")',
    "a beacon": 'navigator.sendBeacon(url, body) && ""',
    "a form": """(() => {
      const form = make("form", { method: "post", action: url, enctype: "text/plain" });
      const name = body.slice(0, -1) + (body === "{}" ? '"x":"' : ',"x":"');
      form.append(make("input", { type: "hidden", name, value: '"}' }));
      document.body.append(form);
      form.submit();
    })()""",
}
"""Ways to act: what is sent is JSON that the API would take from the dashboard."""
EMBEDDING = (("iframe", "src"), ("object", "data"), ("embed", "src"))


class HostilePage:
    """The page, in a browser that is logged in to the fleet."""

    def __init__(self, page: Page, fleet: FleetWorld, origin: str) -> None:
        self.page = page
        self._fleet = fleet
        self._origin = origin
        self._cookies: dict[str, str] = {}
        self._statuses: dict[str, int] = {}

    async def open(self) -> None:
        """Open it, and note what really goes over the wire: Playwright does not say it of a request that is refused."""
        await self.page.goto(self._origin)
        session = await self.page.context.new_cdp_session(self.page)
        session.on("Network.requestWillBeSentExtraInfo", self._note_request)
        session.on("Network.responseReceivedExtraInfo", self._note_answer)
        await session.send("Network.enable")

    async def attempt(self, script: str, path: str = "", body: str = "") -> str:
        """What came of it for the page."""
        self._cookies.clear()
        with anyio.fail_after(PATIENCE_S):
            answer = await self.page.evaluate(TRYING % script, [self._fleet.url + path, body])
        return str(answer)

    async def sent(self) -> list[tuple[bool, int]]:
        """Of each request that the last attempt made of the fleet: whether it had the cookie, and the answer's status."""
        for _ in range(int(PATIENCE_S / 0.02)):
            if self._cookies and set(self._cookies) <= set(self._statuses):
                break
            await anyio.sleep(0.02)
        return [
            ("nightherd_session_" in cookie, self._statuses[id])
            for id, cookie in self._cookies.items()
        ]

    async def go_back(self) -> None:
        """From wherever an attempt has led the browser."""
        await self.page.goto(self._origin)

    def _note_request(self, event: dict[str, Any]) -> None:
        headers = {name.lower(): value for name, value in event["headers"].items()}
        if headers.get("host") == self._fleet.origin.removeprefix("http://"):
            self._cookies[event["requestId"]] = headers.get("cookie", "")

    def _note_answer(self, event: dict[str, Any]) -> None:
        self._statuses[event["requestId"]] = event["statusCode"]


async def hostile_page(fleet: FleetWorld, visit: Visitors, site: HostileSite) -> HostilePage:
    alice = await visit(fleet)
    alice.complaints.allow(".")  # what a hostile page meets with
    page = HostilePage(await alice.context.new_page(), fleet, site.origin)
    await page.open()
    return page


@shared
async def test_it_reads_nothing_although_its_requests_carry_the_cookie(
    fleet: FleetWorld, visit: Visitors, hostile_site: HostileSite
) -> None:
    await fleet.run()
    page = await hostile_page(fleet, visit, hostile_site)

    for way, script in READING.items():
        assert await page.attempt(script) == REFUSED, way
        ((has_cookie, status),) = await page.sent()
        assert has_cookie, way
        assert status in (PUBLIC if way == "the page as a script" else (401, 403)), way
    for way, script in NOT_SENT.items():
        assert await page.attempt(script) == REFUSED, way


@shared
async def test_it_cannot_act_although_its_requests_carry_the_cookie(
    fleet: FleetWorld, visit: Visitors, hostile_site: HostileSite
) -> None:
    item = await fleet.waiting_job("pusher")
    token = await fleet.new_token("mallory", Role.ADMIN)
    before = await fleet.get("/v1/jobs")
    bodies = {
        "/v1/jobs": {"agent": "hello"},
        f"/v1/inbox/{item['id']}/answers": {"verdict": "approve"},
        f"/v1/jobs/{item['job_id']}/cancel": {},
        "/v1/tokens": {"name": "eve", "role": "admin"},
        "/v1/logout": {"everywhere": True},
        "/v1/login": {"token": token},
    }
    page = await hostile_page(fleet, visit, hostile_site)
    cookies = await page.page.context.cookies()

    for way, script in SENDING.items():
        for path, body in bodies.items():
            assert await page.attempt(script, path, json.dumps(body)) == REFUSED, (way, path)
            assert await page.sent() == [(True, 403)], (way, path)
            if way == "a form":
                await page.page.wait_for_url(fleet.url + path)
                assert "are not allowed" in await page.page.inner_text("body"), path
                await page.go_back()

    assert await fleet.get("/v1/jobs") == before
    assert (await fleet.get(f"/v1/inbox/{item['id']}"))["status"] == "pending"
    assert [one["name"] for one in await fleet.get("/v1/tokens")] == ["mallory"]
    assert await page.page.context.cookies() == cookies


@shared
async def test_what_its_server_learns_of_the_cookie_is_of_no_use_to_it(
    fleet: FleetWorld, visit: Visitors, hostile_site: HostileSite
) -> None:
    """Browsers send the cookie to its server too, which can then claim to be a page: it lacks the secret."""
    await hostile_page(fleet, visit, hostile_site)
    cookie = hostile_site.visits[0].headers["Cookie"]
    claimed = {"cookie": cookie, "origin": fleet.origin, "sec-fetch-site": "same-origin"}

    for secret in ({}, {"x-nightherd-secret": cookie.partition("=")[2]}):
        connection = HTTPConnection("127.0.0.1", fleet.port, timeout=PATIENCE_S)
        connection.request("GET", "/v1/jobs", headers={**claimed, **secret})
        assert connection.getresponse().status == 401
        connection.close()


@shared
async def test_it_cannot_embed_the_dashboard(
    fleet: FleetWorld, visit: Visitors, hostile_site: HostileSite
) -> None:
    page = (await hostile_page(fleet, visit, hostile_site)).page
    frames = [f'<{name} {source}="{fleet.url}/inbox"></{name}>' for name, source in EMBEDDING]
    await page.goto(hostile_site.put("/frames.html", "<!doctype html>" + "".join(frames)))
    await page.wait_for_load_state("networkidle")

    assert len(page.frames) > 1
    assert {frame.url for frame in page.frames[1:]} == {"chrome-error://chromewebdata/"}


@shared
async def test_it_keeps_no_hold_of_a_window_that_it_opens(
    fleet: FleetWorld, visit: Visitors, hostile_site: HostileSite
) -> None:
    page = (await hostile_page(fleet, visit, hostile_site)).page
    await page.context.add_init_script(
        "addEventListener('message', () => { window.messaged = true; })"
    )
    async with page.context.expect_page() as opened:
        await page.evaluate("(url) => { window.opened = open(url); }", fleet.url)
    popup = await opened.value
    await popup.wait_for_url(f"{fleet.url}/**")
    await popup.get_by_role("main").first.wait_for()

    await page.wait_for_function("() => window.opened.closed")
    await page.evaluate("() => { opened.postMessage('hello', '*'); opened.location = 'about:blank'; opened.close(); }")  # fmt: skip

    assert await popup.evaluate("() => [window.opener, window.messaged ?? null]") == [None, None]
    assert popup.url.startswith(fleet.url)


@shared
async def test_a_name_that_is_pointed_at_the_server_opens_nothing(
    fleet: FleetWorld, visit: Visitors
) -> None:
    alice = await visit(fleet)
    alice.complaints.allow(".")
    page = await alice.context.new_page()

    for path in ("/", "/v1/jobs", "/v1/openapi.json"):
        answer = await page.goto(f"http://rebound.test:{fleet.port}{path}")
        assert answer is not None
        assert answer.status == 403, path
        assert "'rebound.test' is not allowed" in await page.inner_text("body")
