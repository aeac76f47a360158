"""A conversation in openai-agents' SQLiteSession: as many messages of a kilobyte as the first argument says, one by one.

It syncs each commit. Runs in an environment of its own that has openai-agents. Prints the milliseconds of adding
one near the end (the median of the last twentieth), the bytes it left, and the least milliseconds of loading
the conversation: by the clock, and of the processor.
"""

from __future__ import annotations

import asyncio
import statistics
import sys
import tempfile
import time
from pathlib import Path

from agents import SQLiteSession  # type: ignore[import-not-found]  # only its own environment has it

TEXT = "x" * 1_000
LOADS = 5


async def load(path: Path, count: int) -> tuple[float, float]:
    session = SQLiteSession("bench", path)
    begun, used = time.perf_counter(), time.process_time()
    found = len(await session.get_items())
    took = time.perf_counter() - begun, time.process_time() - used
    session.close()
    if found != count:
        raise SystemExit(f"{found} messages are there, not {count}")
    return took


async def measure(path: Path, count: int) -> tuple[float, int, float, float]:
    session = SQLiteSession("bench", path)
    times: list[float] = []
    for _ in range(count):
        begun = time.perf_counter()
        await session.add_items([{"role": "assistant", "content": TEXT}])
        times.append(time.perf_counter() - begun)
    session.close()
    size = sum(one.stat().st_size for one in path.parent.iterdir())
    loads = [await load(path, count) for _ in range(LOADS)]
    last = statistics.median(times[-max(count // 20, 5) :])
    return last, size, min(one for one, _ in loads), min(one for _, one in loads)


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        found = asyncio.run(measure(Path(folder) / "session.db", int(sys.argv[1])))
    step, size, took, used = found
    print(f"{step * 1e3:.3f} {size} {took * 1e3:.3f} {used * 1e3:.3f}")


if __name__ == "__main__":
    main()
