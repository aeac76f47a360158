"""What importing transcripts costs, against copying the files and decoding their lines and nothing else.

Both sides write private copies and sync each before it gets its name. Ours also keeps rows, ledger and the
readable files. 200 transcripts, about 50 MB; then once more with nothing to do, and one long transcript for
the memory it takes.
"""

from __future__ import annotations

import json
import os
import resource
import tempfile
from collections.abc import Callable
from pathlib import Path
from time import perf_counter

import anyio
import msgspec

from nightherd.engine.imports.context import Report
from nightherd.engine.imports.transcripts import import_transcripts
from nightherd.imports.claude import find_transcripts
from nightherd.wiring.repair import open_import

FILES = 200
ROUNDS = 80
LONG_MB = 200
RUNS = 3


def uuid(number: int) -> str:
    return f"{number:08x}-0000-4000-8000-{number:012x}"


def turn(number: int) -> list[dict[str, object]]:
    """A question, an answer with a call, and the call's result: 3 KB."""
    at = f"2026-01-02T03:{number // 60 % 60:02d}:{number % 60:02d}.000Z"
    shared = {"cwd": "/srv/shop", "sessionId": uuid(1), "version": "1.0.0", "timestamp": at}
    usage = {"input_tokens": 900, "output_tokens": 40, "cache_read_input_tokens": 12_000}
    call = {"type": "tool_use", "id": f"t{number}", "name": "Bash", "input": {"command": "ls -la"}}
    said = [{"type": "text", "text": "some words of an answer " * 20}, call]
    result = [{"type": "tool_result", "tool_use_id": f"t{number}", "content": "a file\n" * 250}]
    return [
        {"type": "user", "uuid": uuid(number), **shared, "message": {"content": "Go on " * 20}},
        {
            "type": "assistant",
            **shared,
            "message": {"id": f"m{number}", "content": said, "usage": usage},
        },
        {"type": "user", **shared, "message": {"content": result}, "toolUseResult": {"ok": True}},
    ]


def generate(projects: Path) -> int:
    """The transcripts; how many bytes they have."""
    text = "".join(json.dumps(line) + "\n" for number in range(ROUNDS) for line in turn(number))
    total = 0
    for number in range(FILES):
        path = projects / f"-srv-shop-{number % 10}" / f"{uuid(number)}.jsonl"
        path.parent.mkdir(parents=True, exist_ok=True)
        total += path.write_text(text)
    return total


def bare(projects: Path, target: Path) -> None:
    """Copy and decode, with the same care for the copies."""
    target.mkdir()
    decode = msgspec.json.Decoder().decode
    for path in sorted(projects.glob("*/*.jsonl")):
        data = path.read_bytes()
        for line in data.splitlines():
            decode(line)
        copy = target / path.name
        handle = os.open(copy.with_suffix(".tmp"), os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        os.write(handle, data)
        os.fsync(handle)
        os.close(handle)
        copy.with_suffix(".tmp").replace(copy)


async def adopt(root: Path, state: Path) -> Report:
    """Import everything there is."""
    report = Report()
    found = find_transcripts(root, report)
    async with open_import(state, None, {}, is_dry=False) as desk:
        await import_transcripts(found, desk, report, lambda _: None)
    return report


def seconds(run: Callable[[], object]) -> float:
    begun = perf_counter()
    run()
    return perf_counter() - begun


def memory_mb() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def grown_by_long_transcript(folder: Path) -> float:
    """Megabytes that one long transcript takes on top of what many short ones took."""
    path = folder / "long" / "projects" / "-srv-shop" / f"{uuid(1)}.jsonl"
    path.parent.mkdir(parents=True)
    block = "".join(json.dumps(line) + "\n" for number in range(300) for line in turn(number))
    with path.open("w") as file:
        for _ in range(LONG_MB * 1024 * 1024 // len(block)):
            file.write(block)
    before = memory_mb()
    anyio.run(adopt, folder / "long", folder / "long-state")
    return memory_mb() - before


def main() -> None:
    """Prints times and ratios."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        size = generate(folder / "claude" / "projects")
        least_bare = least_ours = float("inf")
        for number in range(RUNS):  # in turns: a machine's moods meet both
            copies, state = folder / f"copies-{number}", folder / f"state-{number}"
            run_bare, run_ours = (
                lambda copies=copies: bare(folder / "claude" / "projects", copies),
                lambda state=state: anyio.run(adopt, folder / "claude", state),
            )
            least_bare = min(least_bare, seconds(run_bare))
            least_ours = min(least_ours, seconds(run_ours))
        state = folder / "state-0"
        again = min(seconds(lambda: anyio.run(adopt, folder / "claude", state)) for _ in range(3))
        grown = grown_by_long_transcript(folder)
    print(
        f"{FILES} transcripts of {size / 1e6:.0f} MB: bare {least_bare:.2f} s, import {least_ours:.2f} s"
    )
    print(f"one of {LONG_MB} MB takes {grown:.1f} MB of memory on top")
    print(
        f"import of transcripts against copying and decoding them: {least_ours / least_bare:.2f}x (limit 3x)"
    )
    print(f"import with nothing new against the first: {again / least_ours:.2f}x (limit 1x)")


if __name__ == "__main__":
    main()
