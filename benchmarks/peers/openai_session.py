"""A conversation in openai-agents' SQLiteSession: as many messages of a kilobyte as the first argument says, one by one.

It syncs each commit. Runs in an environment of its own that has openai-agents. Prints the milliseconds of adding
one near the end (the least mean of a hundred in a row), by the clock and of the processor, the bytes it left, and
the least processor milliseconds of loading the conversation.
"""

from __future__ import annotations

import asyncio
import sys
import tempfile
import time
from pathlib import Path

from agents import SQLiteSession  # type: ignore[import-not-found]  # only its own environment has it

TEXT = "x" * 1_000
LOADS = 15
LAST, BLOCK = 500, 100


Moment = tuple[float, float]
"""By the clock, and of the processor."""


def moment() -> Moment:
    return time.perf_counter(), time.process_time()


def step_near_end(moments: list[Moment], clock: int) -> float:
    """The least mean of a hundred steps in a row among the last."""
    times = [one[clock] for one in moments]
    ends = range(len(times) - 1, max(len(times) - 1 - LAST, 0), -BLOCK)
    spans = [(max(end - BLOCK, 0), end) for end in ends]
    return min((times[end] - times[start]) / (end - start) for start, end in spans)


async def load(path: Path, count: int) -> float:
    session = SQLiteSession("bench", path)
    begun = time.process_time()
    found = len(await session.get_items())
    took = time.process_time() - begun
    session.close()
    if found != count:
        raise SystemExit(f"{found} messages are there, not {count}")
    return took


async def measure(path: Path, count: int) -> None:
    session = SQLiteSession("bench", path)
    times: list[Moment] = []
    for _ in range(count):
        times.append(moment())
        await session.add_items([{"role": "assistant", "content": TEXT}])
    times.append(moment())
    session.close()
    size = sum(one.stat().st_size for one in path.parent.iterdir())
    least = min([await load(path, count) for _ in range(LOADS)])
    clock, processor = (step_near_end(times, which) * 1e3 for which in (0, 1))
    print(f"{clock:.3f} {processor:.3f} {size} {least * 1e3:.3f}")


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        asyncio.run(measure(Path(folder) / "session.db", int(sys.argv[1])))


if __name__ == "__main__":
    main()
