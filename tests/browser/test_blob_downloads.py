"""What an agent wrote, opened in a real browser: it is saved, and never shown or run, even to who may read everything."""

from __future__ import annotations

from pathlib import Path

import pytest
from playwright.async_api import Page

from browser.probe_site import ProbeSite
from browser.visitor import Visitor, Visitors
from nightherd.journal.blobs import Blobs
from web.web_world import token_of

MARK = "window.ran = 1"
HTML = f"<!doctype html><script>{MARK}</script>"
SVG = f'<svg xmlns="http://www.w3.org/2000/svg" onload="{MARK}"><script>{MARK}</script></svg>'
HARMFUL = {
    "html": HTML,
    "svg": SVG,
    "script": MARK,
    "xml": f'<?xml version="1.0"?><html xmlns="http://www.w3.org/1999/xhtml"><script>{MARK}</script></html>',
    "a picture that is also a page": f"GIF89a/*{HTML}*/=1;{MARK}",
    "text that is also a page": " " * 600 + HTML,
}
USES = {
    "a script": 'loaded(make("script", { src: policy.createScriptURL(url) }))',
    "a module": "import(url)",
    "a style sheet": 'loaded(make("link", { rel: "stylesheet", href: url }))',
    "a worker": """new Promise((done, fail) => {
      const worker = new Worker(policy.createScriptURL(url));
      worker.onmessage = done;
      worker.onerror = fail;
    })""",
    "a service worker": "navigator.serviceWorker.register(policy.createScriptURL(url))",
}
"""By what a page of the dashboard takes the blob for, how it does; a policy lets all of it pass as text."""
USING = """
async (url) => {
  window.policy ??= trustedTypes.createPolicy("nightherd", { createScriptURL: (text) => text });
  const make = (name, properties) => Object.assign(document.createElement(name), properties);
  const loaded = (element) => new Promise((done, fail) => {
    element.onload = done;
    element.onerror = fail;
    document.body.append(element);
  });
  return (%s).then(() => "loaded", () => "refused");
}
"""


@pytest.fixture
async def visitor(probe: ProbeSite, visit: Visitors) -> Visitor:
    """A browser whose every request has the token of an admin: the most that a link to a blob could have."""
    token = token_of(probe.world.directory)
    headers = {"authorization": f"Bearer {token}"}
    return await visit.arrive(probe, extra_http_headers=headers, accept_downloads=True)


def put(probe: ProbeSite, text: str) -> str:
    """The address of a blob with the text."""
    state = probe.world.directory / ".nightherd"
    return f"{probe.url}/v1/blobs/{Blobs(state / 'blobs').put([text.encode()]).sha256}"


async def has_run(page: Page) -> bool:
    return bool(await page.evaluate("() => 'ran' in window"))


@pytest.mark.parametrize("what", HARMFUL)
async def test_a_link_to_a_blob_saves_it(
    probe: ProbeSite, visitor: Visitor, tmp_path: Path, what: str
) -> None:
    url = put(probe, HARMFUL[what])
    probe.put(f'<a href="{url}">this tab</a> <a href="{url}" target="_blank">other tab</a>')
    page = await visitor.open()

    for name in ("this tab", "other tab"):
        async with visitor.context.expect_event("download") as saved:
            await page.get_by_text(name).click()
        download = await saved.value
        await download.save_as(tmp_path / "saved")

        assert (tmp_path / "saved").read_text() == HARMFUL[what]
        assert download.suggested_filename.endswith((".bin", ".gif"))
        assert page.url == f"{probe.url}/"
        assert not await has_run(page)


async def test_the_page_itself_cannot_run_a_blob(probe: ProbeSite, visitor: Visitor) -> None:
    visitor.complaints.allow(
        r"^console: ", r"/v1/blobs/\w+ 401$"
    )  # a service worker is sent for without the token
    page = await visitor.open()

    for what, script in USES.items():
        for name, text in HARMFUL.items():
            assert await page.evaluate(USING % script, put(probe, text)) == "refused", (what, name)
    assert not await has_run(page)
    assert page.workers == []


async def test_a_blob_is_shown_in_no_frame(probe: ProbeSite, visitor: Visitor) -> None:
    visitor.complaints.allow(r"^console: ", r" csp$")
    visitor.complaints.expect(r"^policy: frame-src ", r"^policy: object-src ")
    url = put(probe, HTML)
    probe.put(f'<iframe src="{url}"></iframe><object data="{url}"></object>')

    page = await visitor.open()

    await visitor.complaints.until(r"^policy: frame-src ")
    await visitor.complaints.until(r"^policy: object-src ")
    assert not any(frame.url == url for frame in page.frames)
    assert not await has_run(page)


async def test_a_link_to_a_blob_shows_nothing_to_a_browser_that_only_has_the_cookie(
    probe: ProbeSite, visit: Visitors
) -> None:
    """A page of another origin can lead a browser to any address; the secret is not sent then."""
    visitor = await visit.arrive(probe)
    visitor.complaints.expect(r" 401")
    await visitor.log_in(token=token_of(probe.world.directory))
    page = await visitor.context.new_page()

    answer = await page.goto(put(probe, HTML))

    assert answer is not None
    assert (answer.status, await has_run(page)) == (401, False)
