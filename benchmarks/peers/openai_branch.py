"""A branch in the middle of a conversation in openai-agents' AdvancedSQLiteSession, of as many messages as the first argument says.

Runs in an environment of its own that has openai-agents; prints the least milliseconds of a few branches and the
bytes that one adds to the database.
"""

from __future__ import annotations

import asyncio
import sys
import tempfile
import time
from pathlib import Path

from agents.extensions.memory import (  # type: ignore[import-not-found]  # only its own environment has it
    AdvancedSQLiteSession,
)

TEXT = "x" * 1_000
ROUNDS = 5


async def measure(folder: str, count: int) -> tuple[float, float]:
    path = Path(folder) / "session.db"
    session = AdvancedSQLiteSession(session_id="bench", db_path=path, create_tables=True)
    roles = ("user", "assistant")
    await session.add_items([{"role": roles[n % 2], "content": TEXT} for n in range(count)])
    before = path.stat().st_size
    best = float("inf")
    for number in range(ROUNDS):
        begun = time.perf_counter()
        await session.create_branch_from_turn(count // 4 + 1, f"branch-{number}")
        best = min(best, time.perf_counter() - begun)
        await session.switch_to_branch("main")
    session.close()
    return best, (path.stat().st_size - before) / ROUNDS


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        seconds, size = asyncio.run(measure(folder, int(sys.argv[1])))
    print(f"{seconds * 1e3:.3f} {size:.0f}")


if __name__ == "__main__":
    main()
