"""Whatever an agent writes stays text: prompts, answers, thoughts, tools, file names, errors, images, questions and names."""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from itertools import cycle
from pathlib import Path

from playwright.async_api import Page, expect

from browser.fleet_world import FleetWorld
from browser.large_history import Story, beginning_of, stamped, write_journals
from browser.rich_job import Script
from browser.visitor import Visitor, Visitors
from nightherd.model.ids import JobId
from nightherd.model.journal.event import ErrorEvent, Event, describe
from nightherd.model.journal.system import Denied, End, HookRan, Warned

CORPUS = Path(__file__).resolve().parents[2] / "web-ui/src/transcript/xss_corpus.json"
"""The attacks that the page's own tests take for its sanitiser."""
ATTACKS: list[str] = json.loads(CORPUS.read_text("utf-8"))
MARKED = '<img src=x onerror="window.__xss=1">'
DRAWN = '<svg xmlns="http://www.w3.org/2000/svg" onload="top.__xss=1"><script>top.__xss=1</script></svg>'
DRAWING = {"type": "base64", "media_type": "image/svg+xml", "data": base64.b64encode(DRAWN.encode()).decode()}  # fmt: skip
OPEN_ALL = """
(element) => {
  const closed = element.querySelectorAll('[aria-expanded=false], [aria-pressed=false], summary');
  for (const one of closed) if (!one.dataset.opened) { one.dataset.opened = 1; one.click(); }
}
"""
HOSTILE = (
    """\
  - name: asker
    runtime: scripted
    default_prompt: 'MARKED'
    questions: true
    script: [{tool: ask_person, input: {question: 'Which? MARKED', options: ['MARKED', b]}}, {say: Thanks.}]
  - name: pusher
    runtime: scripted
    default_prompt: go
    permission_mode: bypassPermissions
    approvals: [{tool: "Bash(echo:*)"}]
    script:
      - say: 'I want to. MARKED'
      - tool: Bash
        input: {command: 'echo MARKED'}
  - name: broken
    runtime: scripted
    default_prompt: go
    script: [{fail: {code: bad_luck, message: 'No luck. MARKED'}}]
  - name: hello
    runtime: scripted
    default_prompt: go
    session: {mode: persistent}
    script: [{say: 'MARKED'}]
workflows:
  news:
    phases:
      - {name: draft, agent: hello, prompt: 'MARKED'}
      - {name: approve, gate: {summary: 'MARKED', artifact: {phase: draft}}}
"""
).replace("MARKED", MARKED.replace("'", "''"))


def events_of(story: Story) -> Iterator[Event]:
    """Every attack as an answer, and in every field of a call of some tool."""
    yield from beginning_of(story)
    script = Script()
    kinds = cycle(("Bash", "Read", "Edit", "Write", "Grep", "Task", "mcp__desk__look", "TodoWrite"))
    for attack, tool in zip(ATTACKS, kinds, strict=False):
        yield from script.says(attack, thinking=attack)
        given = {
            "command": f"\x1b[31m{attack}\x1b[0m",
            "description": attack,
            "file_path": attack,
            "old_string": attack,
            "new_string": f"{attack}\n{MARKED}",
            "content": attack,
            "pattern": attack,
            "prompt": attack,
            "subagent_type": attack,
            "todos": [{"content": attack, "status": attack}],
        }
        yield from script.calls(tool, given, f"\x1b]8;;javascript:window.__xss=1\x07{attack}\n")
        yield from script.calls(tool, given, error=f"exit code 3\n{attack}")
    yield from script.calls(MARKED, {"to": MARKED}, {"at": MARKED})
    drawing = [{"type": "text", "text": MARKED}, {"type": "image", "source": DRAWING}]
    yield from script.calls("mcp__<b>__<i>", {"drawer": MARKED}, drawing)
    yield describe(Denied(tool_name=MARKED, reason=MARKED, tool_use_id=script.last_call))
    yield describe(HookRan(name=MARKED, event="after_run", success=False, error=MARKED))
    yield describe(Warned(code=MARKED), MARKED)
    yield ErrorEvent(message=MARKED, code="bad_luck", stack=MARKED)
    yield describe(End(status="failed", exit_reason="error"))


async def write_hostile_jobs(state: Path) -> JobId:
    """One job with everything in it, which is returned, and one for each attack as its prompt."""
    now = datetime.now(UTC)
    whole = Story(number=900_000, at=now - timedelta(minutes=1), prompt=MARKED)
    short = [
        Story(number=number, at=now - timedelta(minutes=100 - number), prompt=attack)
        for number, attack in enumerate(ATTACKS)
    ]
    stories = [(story, [*stamped(story, brief(story))]) for story in short]
    await write_journals(state, [*stories, (whole, [*stamped(whole, events_of(whole))])])
    return whole.job


def brief(story: Story) -> Iterator[Event]:
    """A job that says what it was told."""
    yield from beginning_of(story)
    yield from Script().says(story.prompt)
    yield describe(End(status="completed", exit_reason="success"))


async def nothing_ran(visitor: Visitor, page: Page) -> None:
    """No script of a text ran, and nothing was loaded; what the browser refused fails the test at its end."""
    assert await page.evaluate("() => window.__xss") is None, page.url
    for selector in ("main iframe", "main object", "main embed", "main form[action]", "main style"):
        assert await page.locator(selector).count() == 0, (page.url, selector)
    links = await page.locator("main a").evaluate_all("(all) => all.map((one) => one.protocol)")
    assert set(links) <= {"http:", "https:", "mailto:"}, page.url
    assert page.url.startswith(visitor.fleet.url)


async def test_no_text_of_a_job_does_anything(
    new_fleet: Callable[..., FleetWorld], visit: Visitors
) -> None:
    fleet = new_fleet(agents=HOSTILE)
    job = await write_hostile_jobs(fleet.state)
    await fleet.start()
    alice = await visit(fleet, "/agents")
    page = alice.page
    await page.goto(f"{fleet.url}/jobs/{job}#1")
    area, seen = page.get_by_role("log", name="Transcript"), set[int]()
    await expect(area.locator("article").first).to_be_visible()
    last = (await fleet.get(f"/v1/jobs/{job}/outline"))["last_seq"]
    while last not in seen:
        await area.evaluate(OPEN_ALL)
        await nothing_ran(alice, page)
        shown = await area.locator("article[data-seq]").evaluate_all(
            "(all) => all.map((one) => Number(one.dataset.seq))"
        )
        seen |= set(shown)
        await area.evaluate("(one) => (one.scrollTop += one.clientHeight * 0.7)")
        await page.evaluate("() => new Promise((done) => requestAnimationFrame(() => setTimeout(done, 50)))")  # fmt: skip
    assert len(seen) > 3 * len(ATTACKS)
    await expect(area.get_by_text("failed (error)")).to_be_visible()
    details = page.get_by_role("region", name="Details")
    await details.evaluate(OPEN_ALL)
    await expect(details).to_contain_text("onerror")
    await nothing_ran(alice, page)


async def test_no_text_of_a_list_a_question_or_a_search_does_anything(
    new_fleet: Callable[..., FleetWorld], visit: Visitors
) -> None:
    fleet = new_fleet(agents=HOSTILE)
    job = await write_hostile_jobs(fleet.state)
    await fleet.start()
    asked = [await fleet.waiting_job(name) for name in ("asker", "pusher")]
    failed = await fleet.run("broken")
    session = (await fleet.get(f"/v1/jobs/{await fleet.run('hello', MARKED)}"))["session_id"]
    await fleet.post(f"/v1/sessions/{session}/fork", name=MARKED)
    run = (await fleet.post("/v1/workflows/news/runs"))["id"]

    async def is_asked() -> bool:
        return bool(await fleet.get(f"/v1/inbox?about={run}"))

    await fleet.until(is_asked)
    items = [item["id"] for item in asked] + [(await fleet.get(f"/v1/inbox/{failed}"))["id"]]
    items.append((await fleet.get(f"/v1/inbox?about={run}"))[0]["id"])

    async def is_indexed() -> bool:
        return len(await fleet.get("/v1/search?q=onerror")) > 10

    await fleet.until(is_indexed)
    first = (await fleet.get(f"/v1/jobs/{job}"))["session_id"]
    alice = await visit(fleet, "/")
    page = alice.page
    paths = [
        "/",
        "/jobs",
        "/runs",
        "/sessions",
        "/inbox",
        "/search?q=onerror",
        "/health",
        "/agents",
    ]
    paths += ["/workflows/news", f"/runs/{run}", f"/sessions/{session}", f"/sessions/{first}"]
    paths += [f"/compare/{session}/{first}", "/agents/asker", "/costs", "/schedules"]
    paths += [f"/inbox/{item}" for item in items]
    shown: set[str] = set()
    for path in paths:
        await page.goto(fleet.url + path)
        await expect(page.locator("main h1, main h2").first).to_be_visible()
        await expect(page.get_by_text("loading …")).to_have_count(0)
        await page.locator("main details:not([open]) > summary").evaluate_all("(all) => all.map((one) => one.click())")  # fmt: skip
        await nothing_ran(alice, page)
        if "onerror" in await page.locator("main").inner_text():
            shown.add(path)
    assert set(paths) - shown <= {
        "/runs",
        "/workflows/news",
        "/health",
        "/agents",
        "/costs",
        "/schedules",
    }
    await page.keyboard.press("Control+k")
    await page.get_by_role("combobox", name="Command").fill(MARKED)
    await expect(page.get_by_role("option", name=re.compile("Search for"))).to_be_visible()
    await nothing_ran(alice, page)
