"""What an append costs: against a bare write of the same bytes, a synced one, and Node's way of doing it.

Rounds of all contestants are interleaved and the least time of each counts, so that a busy machine changes
the ratios little. Lines are those of a typical run, some 440 bytes on average.

A bare `os.write` loop only moves bytes that are there already. A line has to be made first: the event
stamped with number and time, and put into JSON. What that costs with nothing of ours round it is the third
contestant, "made and written"; the fourth is the least that could be called a line: the event's JSON with a number
and the clock's nanoseconds put before it as bytes. The journal's own share comes on top: it reads the line
back before it promises anything, and looks afterwards whether another writer came in between.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from collections.abc import Callable
from pathlib import Path
from statistics import median
from time import perf_counter, time_ns

import msgspec

from nightherd.host.system import SystemClock
from nightherd.journal.files import JournalFiles
from nightherd.model.agents.agent import Durability
from nightherd.model.ids import JobId, generate_execution_id
from nightherd.model.journal.event import AssistantEvent, Event, ToolResultEvent, ToolUseEvent

JOB = JobId("job-2026-01-02-bench1")
EXECUTION = generate_execution_id(JOB, 1)
EVENTS: tuple[Event, ...] = (
    AssistantEvent(content="some words " * 23, turn=1, message=2, index=0, uuid="u" * 36),
    ToolUseEvent(tool_name="Bash", tool_use_id="toolu_01", input={"command": "ls"}, message=2),
    ToolResultEvent(tool_use_id="toolu_01", result="a file\n" * 57, success=True, message=3),
)
BATCH = 999
ROUNDS = 60
SYNCED_ROUNDS = 400
NODE_EVENTS = 2_000
NODE = """
const { appendFile } = require("node:fs/promises");
const [file, count, ...texts] = process.argv.slice(1);
(async () => {
  const lines = texts.map((text) => JSON.parse(text));
  const begun = process.hrtime.bigint();
  for (let n = 0; n < Number(count); n++) {
    const stamped = { ...lines[n % lines.length], timestamp: new Date().toISOString() };
    await appendFile(file, JSON.stringify(stamped) + "\\n", "utf8");
  }
  console.log(Number(process.hrtime.bigint() - begun) / 1e9);
})();
"""

Contestant = Callable[[], None]


def least(contestants: dict[str, Contestant], rounds: int) -> dict[str, float]:
    """The least seconds each took, all of them once per round."""
    times = dict.fromkeys(contestants, float("inf"))
    for _ in range(rounds):
        for name, run in contestants.items():
            begun = perf_counter()
            run()
            times[name] = min(times[name], perf_counter() - begun)
    return times


def medians(contestants: dict[str, Contestant], rounds: int) -> dict[str, float]:
    """The middle of the seconds each took: a disk that is idle for once answers in no time at all."""
    times: dict[str, list[float]] = {name: [] for name in contestants}
    order = list(contestants.items())
    for _ in range(rounds):
        order.reverse()  # who goes second finds a disk that has just been woken
        for name, run in order:
            begun = perf_counter()
            run()
            times[name].append(perf_counter() - begun)
    return {name: median(seconds) for name, seconds in times.items()}


def appender(folder: Path, durability: Durability, count: int) -> Contestant:
    """Appends `count` events to a journal of its own."""
    folder.mkdir()
    journals = JournalFiles(folder, folder / "blobs", clock=SystemClock(), durability=durability)
    journal = journals.open(JOB, epoch=1, execution=EXECUTION)

    def run() -> None:
        for number in range(count):
            journal.append(EVENTS[number % 3])

    return run


def bare_writer(path: Path, lines: list[bytes], *, is_synced: bool) -> Contestant:
    """Writes the lines, made beforehand."""
    descriptor = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)

    def run() -> None:
        for line in lines:
            os.write(descriptor, line)

    def run_synced() -> None:
        for line in lines:
            os.write(descriptor, line)
            os.fdatasync(descriptor)

    return run_synced if is_synced else run


def maker(path: Path) -> Contestant:
    """Stamps, encodes and writes, with nothing kept, checked or promised."""
    descriptor = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
    encode, replace, now = msgspec.json.Encoder().encode, msgspec.structs.replace, SystemClock().now

    def run() -> None:
        for number in range(BATCH):
            event = replace(
                EVENTS[number % 3],
                v=1,
                seq=number,
                epoch=1,
                timestamp=now(),
                execution=EXECUTION,
            )
            os.write(descriptor, encode(event) + b"\n")

    return run


def sketcher(path: Path) -> Contestant:
    """Puts a number and the time before the event's JSON as bytes: nothing in Python makes a line for less."""
    descriptor = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
    encode = msgspec.json.Encoder().encode
    stamp = b'{"v":1,"seq":%d,"epoch":1,"at":%d,"execution":"' + EXECUTION.encode() + b'",%b\n'

    def run() -> None:
        for number in range(BATCH):
            event = EVENTS[number % 3]
            os.write(descriptor, stamp % (number, time_ns(), encode(event)[1:]))

    return run


def node_seconds(folder: Path) -> float | None:
    """Seconds per event of `fs.appendFile`; None without Node."""
    node = shutil.which("node")
    if node is None:
        return None
    texts = [msgspec.json.encode(event).decode() for event in EVENTS]
    command = [node, "-e", NODE, str(folder / "node.jsonl"), str(NODE_EVENTS), *texts]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    return float(done.stdout) / NODE_EVENTS


def main() -> None:
    """Prints the ratios."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        append = appender(folder / "append", Durability.PROCESS, BATCH)
        append()
        lines = (folder / "append" / f"{JOB}.jsonl").read_bytes().splitlines(keepends=True)
        bare = bare_writer(folder / "bare", lines, is_synced=False)
        contestants = {
            "append": append,
            "bare": bare,
            "made": maker(folder / "made"),
            "sketched": sketcher(folder / "sketched"),
        }
        times = least(contestants, ROUNDS)
        synced = medians(
            {
                "append": appender(folder / "synced", Durability.FSYNC, 1),
                "bare": bare_writer(folder / "bare-synced", lines[:1], is_synced=True),
            },
            SYNCED_ROUNDS,
        )
        node = node_seconds(folder)
    for name, seconds in times.items():
        print(f"{name} takes {seconds / BATCH * 1e6:.2f} us an event")
    for name, seconds in synced.items():
        print(f"{name} synced takes {seconds * 1e6:.0f} us")
    print(f"append, against made and written: {times['append'] / times['made']:.2f}x (limit 2.5x)")
    print(f"append, against a bare write of the same bytes: {times['append'] / times['bare']:.2f}x")
    print(f"the least line, against the same bare write: {times['sketched'] / times['bare']:.2f}x")
    print(
        f"append synced, against write and fdatasync: {synced['append'] / synced['bare']:.2f}x (limit 1.2x)"
    )
    if node is not None:
        faster = node / (times["append"] / BATCH)
        print(f"faster than Node's fs.appendFile: {faster:.1f}x (at least 5x)")


if __name__ == "__main__":
    main()
