"""The dashboard in a real browser: long jobs against short ones, how soon an event is painted, and what a browser costs.

A real daemon, Debian's Chromium through Playwright, and the history that the browser tests use. Memory of a tab is what its
renderer has for itself (private memory), which a shared library is no part of.
"""

from __future__ import annotations

import asyncio
import gzip
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from pathlib import Path

from playwright.async_api import Browser, BrowserContext, Page, async_playwright

TESTS = Path(__file__).resolve().parents[1] / "tests"
sys.path.insert(0, str(TESTS))
from browser.large_history import write_jobs, write_long_job  # noqa: E402

NIGHTHERD = [sys.executable, "-m", "nightherd"]
UI = Path(__file__).resolve().parents[1] / "src/nightherd/web/ui"
SHORT, LONG = 100, 100_000
ROUNDS = 5
TICKS, PAUSE_MS = 200, 50
FOLLOWERS = 19
BROWSERS = 10
PATIENCE_S = 60.0
FLAGS = ["--no-sandbox", "--disable-gpu", "--disable-quic", "--disable-background-networking"]
FLEET = """\
reload: auto
web: {enabled: true, host: 127.0.0.1, port: %d}
agents:
  - {name: hello, runtime: scripted, default_prompt: go, script: [{say: hi}]}
  - {name: talker, runtime: scripted, default_prompt: go, script: [{say: hi}]}
  - {name: writer, runtime: scripted, default_prompt: go, script: [{say: hi}]}
  - {name: held, runtime: scripted, default_prompt: go, script: [{say: hi}]}
  - name: ticker
    runtime: scripted
    default_prompt: go
    script:
      - {sleep: 3s}
      - repeat: %d
        steps: [{say: "tick ${turn} ."}, {sleep: %dms}]
"""
WATCH = """
() => {
  window.painted = {};
  const look = () => {
    const at = Date.now();
    for (const hit of document.body.innerText.matchAll(/tick (\\d+) \\./g)) window.painted[hit[1]] ??= at;
  };
  new MutationObserver(() => requestAnimationFrame(() => setTimeout(look, 0))).observe(
    document.body, { subtree: true, childList: true, characterData: true });
}
"""
"""Notes when each tick is first on the screen: after the frame that shows it."""


def free_port() -> int:
    import socket  # noqa: PLC0415

    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        port: int = listener.getsockname()[1]
        return port


def nightherd(folder: Path, *words: str) -> str:
    """What a command prints; it must succeed."""
    done = subprocess.run(
        [*NIGHTHERD, *words], check=False, cwd=folder, capture_output=True, text=True
    )
    if done.returncode != 0:
        raise SystemExit(f"{' '.join(words)}: {done.stderr}")
    return done.stdout


async def until(is_so: Callable[[], Awaitable[bool]]) -> None:
    deadline = time.monotonic() + PATIENCE_S
    while not await is_so():
        if time.monotonic() > deadline:
            raise SystemExit("it did not happen in time")
        await asyncio.sleep(0.05)


def private_mb(pid: int) -> float:
    """What a process has for itself."""
    lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
    return sum(int(line.split()[1]) for line in lines if line.startswith("Private_")) / 1024


def children_of(pid: int) -> list[int]:
    found: list[int] = []
    for task in Path(f"/proc/{pid}/task").iterdir():
        for child in (task / "children").read_text().split():
            found += [int(child), *children_of(int(child))]
    return found


def largest_renderer_mb(browser_pid: int) -> float:
    """The private memory of the largest renderer below a process."""
    sizes = [0.0]
    for pid in children_of(browser_pid):
        try:
            if b"--type=renderer" in Path(f"/proc/{pid}/cmdline").read_bytes():
                sizes.append(private_mb(pid))
        except OSError:
            continue
    return max(sizes)


def daemon_pid(folder: Path) -> int:
    status = json.loads(nightherd(folder, "status", "--json"))
    pid: int = status["data"]["daemon"]["pid"]
    return pid


@asynccontextmanager
async def logged_in(browser: Browser, folder: Path) -> AsyncIterator[tuple[BrowserContext, str]]:
    """A context whose pages are logged in, and where the dashboard is."""
    link = nightherd(folder, "open", "--print").split()[0]
    base = link.split("#")[0].rstrip("/")
    context = await browser.new_context(viewport={"width": 1440, "height": 900})
    page = await context.new_page()
    await page.goto(link)
    await page.wait_for_selector("nav")
    await page.close()
    yield context, base
    await context.close()


async def opening_ms(context: BrowserContext, address: str) -> float:
    """From asking for a job's page until its transcript and its timeline are there and answer to a key."""
    page = await context.new_page()
    begun = time.perf_counter()
    await page.goto(address)
    await page.wait_for_selector("[data-testid=transcript] [data-index]")
    await page.wait_for_selector("[aria-label=Timeline]")
    await page.keyboard.press("k")
    await page.evaluate("new Promise((done) => requestAnimationFrame(() => setTimeout(done, 0)))")
    took = (time.perf_counter() - begun) * 1_000
    await page.close()
    return took


async def measure_opening(browser: Browser, folder: Path, short: str, long: str) -> None:
    async with logged_in(browser, folder) as (context, base):
        took: dict[str, list[float]] = {short: [], long: []}
        for job in (short, long):
            await opening_ms(context, f"{base}/jobs/{job}")  # the outline is made once
        for _ in range(ROUNDS):
            for job, times in took.items():
                times.append(await opening_ms(context, f"{base}/jobs/{job}"))
        few, many = (statistics.median(took[job]) for job in (short, long))
        print(f"  a job of {SHORT} events opens in {few:.0f} ms, one of {LONG:,} in {many:.0f} ms")
        print(f"open a job of {LONG} events, against {SHORT}: {many / few:.2f}x (limit 2x)")


async def measure_tab(browser: Browser, browser_pid: int, folder: Path, long: str) -> None:
    async with logged_in(browser, folder) as (context, base):
        page = await context.new_page()
        await page.goto(f"{base}/jobs/{long}")
        await page.wait_for_selector("[data-testid=transcript] [data-index]")
        for key in ("g", "g", "j", "j", "n", "n", "n", "G"):
            await page.keyboard.press(key)
            await page.wait_for_timeout(300)
        for _ in range(60):
            await page.mouse.move(700, 600)
            await page.mouse.wheel(0, -4_000)
            await page.wait_for_timeout(30)
        heap = await page.evaluate("performance.memory.usedJSHeapSize / 1048576")
        print(f"  JavaScript heap {heap:.0f} MB")
        print(f"memory of the tab: {largest_renderer_mb(browser_pid):.0f} MB (limit 150 MB)")


async def follow(base: str, token: str, job: str, ended: asyncio.Event) -> int:
    """A client of the stream that only counts what it gets."""
    host, port = base.removeprefix("http://").split("/")[0].split(":")
    reader, writer = await asyncio.open_connection(host, int(port))
    head = (
        f"GET /v1/stream?topics=jobs,job:{job} HTTP/1.1\r\nHost: {host}:{port}\r\n"
        f"Authorization: Bearer {token}\r\nAccept: text/event-stream\r\n\r\n"
    )
    writer.write(head.encode())
    await writer.drain()
    seen = 0
    while not ended.is_set():
        try:
            data = await asyncio.wait_for(reader.read(65_536), 0.5)
        except TimeoutError:
            continue
        if not data:
            break
        seen += data.count(b"event: event")
    writer.close()
    return seen


async def measure_painting(browser: Browser, folder: Path) -> None:
    token = (folder / ".nightherd/web-token").read_text().strip()
    async with logged_in(browser, folder) as (context, base):
        page = await context.new_page()
        started = json.loads(nightherd(folder, "run", "ticker", "--detach", "--json"))
        job = started["data"]["job_id"] if "job_id" in started["data"] else started["data"]["id"]
        ended = asyncio.Event()
        followers = [asyncio.create_task(follow(base, token, job, ended)) for _ in range(FOLLOWERS)]
        await page.goto(f"{base}/jobs/{job}")
        await page.wait_for_selector("[data-testid=transcript]")
        await page.evaluate(WATCH)
        last = f"tick {TICKS} ."

        async def is_painted() -> bool:
            return last in await page.inner_text("[data-testid=transcript]")

        await until(is_painted)
        await asyncio.sleep(0.5)
        ended.set()
        seen = await asyncio.gather(*followers)
        delays = delays_of(folder, job, await page.evaluate("window.painted"))
        p50, p95 = (delays[int(len(delays) * share)] for share in (0.5, 0.95))
        print(
            f"  {len(delays)} of {TICKS} events timed; median {p50:.0f} ms; followers got {set(seen)}"
        )
        print(
            f"event recorded to painted, p95, {FOLLOWERS} more followers: {p95:.0f} ms (limit 150 ms)"
        )


def delays_of(folder: Path, job: str, painted: dict[str, int]) -> list[float]:
    """By tick, from its line in the journal to its frame; what was there before the page is left out."""
    delays = []
    for line in (folder / f".nightherd/jobs/{job}.jsonl").read_text().splitlines():
        event = json.loads(line)
        words = str(event.get("content") or "").split()
        if event["type"] == "assistant" and len(words) == 3 and words[1] in painted:
            at = datetime.fromisoformat(event["timestamp"]).timestamp() * 1_000
            delays.append(painted[words[1]] - at)
    return sorted(delays)[: len(delays)] if delays else [float("inf")]


async def measure_browsers(browser: Browser, folder: Path) -> None:
    pid = daemon_pid(folder)
    async with logged_in(browser, folder) as (context, base):
        warm = await context.new_page()
        await warm.goto(f"{base}/")
        await warm.wait_for_timeout(2_000)
        before = private_mb(pid)
        opened: list[tuple[BrowserContext, Page]] = []
        for _ in range(BROWSERS):
            link = nightherd(folder, "open", "--print").split()[0]
            other = await browser.new_context()
            page = await other.new_page()
            await page.goto(link)
            await page.wait_for_selector("nav")
            opened.append((other, page))
        await warm.wait_for_timeout(3_000)
        grown = max(0.0, private_mb(pid) - before) / BROWSERS
        print(f"memory of the daemon for each open browser: {grown:.2f} MB (limit 1 MB)")
        for other, _ in opened:
            await other.close()


def measure_first_page() -> None:
    """The page, and all that it loads before the first thing is shown: what its HTML and its entry import."""
    html = (UI / "index.html").read_text()
    names = {part.split('"')[0] for part in html.split("./assets/")[1:]}
    pending = list(names)
    while pending:
        name = pending.pop()
        if not name.endswith(".js"):
            continue
        text = (UI / "assets" / name).read_text()
        imports = {
            part.split("`")[0].split('"')[0].split("'")[0]
            for part in text.replace('from"./', "from`./").split("from`./")[1:]
        }
        for found in imports - names:
            names.add(found)
            pending.append(found)
    home = [path.name for path in (UI / "assets").glob("HomePage-*")]
    size = sum(
        len(gzip.compress((UI / "assets" / name).read_bytes(), 6)) for name in {*names, *home}
    )
    size += len(gzip.compress(html.encode(), 6))
    print(f"first page, compressed: {size / 1000:.0f} kB")
    print(f"first page, against 200 kB: {size / 200_000:.2f}x (limit 1x)")


async def main() -> None:
    program = shutil.which("chromium")
    if program is None:
        raise SystemExit("chromium is not installed")
    measure_first_page()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "nightherd.yaml").write_text(FLEET % (free_port(), TICKS, PAUSE_MS))
        state, now = folder / ".nightherd", datetime.now(UTC)
        long = await write_long_job(state, now, LONG)
        (short,) = (await write_jobs(state, now, 1))[:1]
        nightherd(folder, "start", "--detach")
        try:
            async with async_playwright() as playwright:
                browser = await playwright.chromium.launch(executable_path=program, args=FLAGS)
                try:
                    own = children_of(os.getpid())
                    await measure_opening(browser, folder, short, long)
                    await measure_tab(browser, own[0], folder, long)
                    await measure_painting(browser, folder)
                    await measure_browsers(browser, folder)
                finally:
                    await browser.close()
        finally:
            nightherd(folder, "stop")


if __name__ == "__main__":
    asyncio.run(main())
