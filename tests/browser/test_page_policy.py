"""The policy of the page in a real browser: markup and scripts that an agent could smuggle in load and run nothing."""

from __future__ import annotations

from browser.hostile_site import HostileSite
from browser.probe_site import ProbeSite
from browser.visitor import Visitors

INLINE = {
    "a script": "<script>window.ran = 1</script>",
    "an event handler": '<img src="data:," onerror="window.ran = 1">',
    "a handler of a link": '<a href="#" onclick="window.ran = 1">x</a>',
    "a link that is a script": '<a href="javascript:window.ran = 1">x</a>',
    "a script in a picture": '<svg onload="window.ran = 1"><script>window.ran = 1</script></svg>',
}
"""By what it is, markup that runs a script of its own, at once or when its link is pressed."""

REMOTE = {
    "a picture": '<img src="{other}/x.png">',
    "a picture in a picture": '<svg><image href="{other}/x.svg" /></svg>',
    "a style sheet": '<link rel="stylesheet" href="{other}/x.css">',
    "a script": '<script src="{other}/x.js"></script>',
    "a frame": '<iframe src="{other}/x.html"></iframe>',
    "an object": '<object data="{other}/x.html"></object>',
    "an embedded file": '<embed src="{other}/x.html">',
    "a film": '<video src="{other}/x.mp4"></video>',
    "what is fetched ahead": '<link rel="prefetch" href="{other}/x.html">',
    "what is loaded ahead": '<link rel="preload" as="image" href="{other}/x.png">',
}
"""By what it is, markup that asks another server for something."""

SENDING = """
async (other) => {
  const settle = (promise) => promise.then(() => "sent", () => "refused");
  const answers = [
    await settle(fetch(other)),
    await settle(fetch(other, { method: "POST", mode: "no-cors", body: "x" })),
    await settle(new Promise((done, fail) => {
      const socket = new WebSocket(other.replace("http", "ws"));
      socket.onopen = done;
      socket.onerror = fail;
    })),
    await settle(new Promise((done, fail) => {
      const source = new EventSource(other);
      source.onopen = done;
      source.onerror = fail;
    })),
  ];
  navigator.sendBeacon(other, "x");
  const form = document.createElement("form");
  form.action = other;
  document.body.append(form);
  form.submit();
  const base = document.createElement("base");
  base.href = other;
  document.head.prepend(base);
  return [...answers, document.baseURI];
}
"""

EVALUATED = {
    "eval": "eval('window.ran = 1')",
    "a function": "new Function('window.ran = 1')()",
    "a timer": "setTimeout('window.ran = 1')",
    "innerHTML": "document.body.innerHTML = '<img src=data:, onerror=\"window.ran = 1\"><p>x</p>'",
    "outerHTML": "document.body.outerHTML = '<p>x</p>'",
    "insertAdjacentHTML": "document.body.insertAdjacentHTML('beforeend', '<p>x</p>')",
    "document.write": "document.write('<p>x</p><script>window.ran = 1</script>')",
    "a parser": "new DOMParser().parseFromString('<p>x</p>', 'text/html')",
    "the text of a script": "document.createElement('script').text = 'window.ran = 1'",
    "the address of a script": "document.createElement('script').src = 'data:,window.ran=1'",
    "the document of a frame": "document.createElement('iframe').srcdoc = '<p>x</p>'",
    "a worker": "new Worker('/assets/probe.js')",
    "a service worker": "navigator.serviceWorker.register('/assets/probe.js')",
    "a policy of its own": "trustedTypes.createPolicy('evil', { createHTML: (text) => text })",
    "a default policy": "trustedTypes.createPolicy('default', { createHTML: (text) => text })",
}
"""By what it is, a script of the page itself that takes a text for a script or for markup."""
TRYING = """
addEventListener("load", async () => {
  try {
    await (%s);
    window.done = "no error";
  } catch (error) {
    window.done = error.name;
  }
});
"""
POLICY_IN_CONSOLE = (
    r"^console: .*(Content Security Policy|Fetch API cannot load|requires '?Trusted)"
)


async def test_no_inline_script_runs(probe: ProbeSite, visit: Visitors) -> None:
    visitor = await visit.arrive(probe)
    visitor.complaints.allow(POLICY_IN_CONSOLE, r"^policy: script-src-(elem|attr) refused inline")
    for what, markup in INLINE.items():
        probe.put(markup)
        page = await visitor.open()
        for link in await page.locator("a").all():
            await link.click()

        await visitor.complaints.until(r"^policy: script-src")
        assert await page.evaluate("() => window.ran") is None, what
        await page.close()
        visitor.complaints.heard.clear()


async def test_nothing_is_asked_of_another_server(
    probe: ProbeSite, visit: Visitors, hostile_site: HostileSite
) -> None:
    visitor = await visit.arrive(probe)
    refused = rf"^policy: \S+ refused {hostile_site.origin}"
    visitor.complaints.allow(POLICY_IN_CONSOLE, refused, r" csp$", r"^elsewhere: ")
    for what, markup in REMOTE.items():
        probe.put(markup.format(other=hostile_site.origin))
        page = await visitor.open()

        assert await visitor.complaints.until(refused) != [], what
        await page.close()
        visitor.complaints.heard.clear()
    assert hostile_site.visits == []


async def test_scripts_of_the_page_cannot_send_anything_to_another_server(
    probe: ProbeSite, visit: Visitors, hostile_site: HostileSite
) -> None:
    visitor = await visit.arrive(probe)
    place = hostile_site.origin.removeprefix("http")
    refused = rf"^policy: (connect-src|form-action|base-uri) refused (http|ws){place}"
    visitor.complaints.allow(POLICY_IN_CONSOLE, refused, r" csp$", r"^elsewhere: ")
    page = await visitor.open()

    answers = await page.evaluate(SENDING, hostile_site.origin)

    assert answers == [*["refused"] * 4, f"{probe.origin}/"]
    await visitor.complaints.until(r"^policy: form-action ")
    await visitor.complaints.until(r"^policy: base-uri ")
    assert len(visitor.complaints.of(r"^policy: connect-src ")) == 5
    assert hostile_site.visits == []


async def test_markup_cannot_style_itself(probe: ProbeSite, visit: Visitors) -> None:
    visitor = await visit.arrive(probe)
    visitor.complaints.expect(r"^policy: style-src-attr ", r"^policy: style-src-elem ")
    visitor.complaints.allow(POLICY_IN_CONSOLE)
    probe.put('<p style="position: fixed">over everything</p><style>p { display: none }</style>')

    page = await visitor.open()
    style = await page.locator("p").evaluate(
        "(element) => [getComputedStyle(element).position, getComputedStyle(element).display]"
    )

    assert style == ["static", "block"]


async def test_no_text_becomes_a_script_or_markup(probe: ProbeSite, visit: Visitors) -> None:
    visitor = await visit.arrive(probe)
    refused = r"^policy: (script-src|require-trusted-types-for|trusted-types) "
    visitor.complaints.allow(POLICY_IN_CONSOLE, refused)
    for what, script in EVALUATED.items():
        probe.put(script=TRYING % script)
        page = await visitor.open()
        await page.wait_for_function("() => window.done")

        assert await page.evaluate("() => window.done") in ("TypeError", "EvalError"), what
        assert await page.evaluate("() => window.ran") is None, what
        assert await page.locator("p").count() == 0, what
        await visitor.complaints.until(refused)
        await page.close()
        visitor.complaints.heard.clear()


async def test_the_page_has_the_two_policies_that_its_sanitiser_needs(
    probe: ProbeSite, visit: Visitors
) -> None:
    visitor = await visit.arrive(probe)
    probe.put(
        script="addEventListener('load', () => { for (const name of ['nightherd', 'dompurify']) {"
        " const policy = trustedTypes.createPolicy(name, { createHTML: (text) => text });"
        " document.body.append(document.createElement('p'));"
        " document.body.lastChild.innerHTML = policy.createHTML(`<b>${name}</b>`); } });"
    )

    page = await visitor.open()

    assert await page.locator("b").all_inner_texts() == ["nightherd", "dompurify"]
