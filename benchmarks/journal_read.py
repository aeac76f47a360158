"""What reading costs: the last events of journals of any length, and all of them against a bare decode."""

from __future__ import annotations

import resource
import tempfile
from collections.abc import Callable
from pathlib import Path
from time import perf_counter

import msgspec

from nightherd.host.system import SystemClock
from nightherd.journal.files import JournalFiles
from nightherd.model.agents.agent import Durability
from nightherd.model.ids import JobId, generate_execution_id
from nightherd.model.journal.event import AssistantEvent, Event, ToolResultEvent, ToolUseEvent

SHORT, LONG = JobId("job-2026-01-02-short1"), JobId("job-2026-01-02-long01")
SIZES = {SHORT: 1_000, LONG: 100_000}
EVENTS: tuple[Event, ...] = (
    AssistantEvent(content="some words " * 23, turn=1, index=0, uuid="u" * 36),
    ToolUseEvent(tool_name="Bash", tool_use_id="toolu_01", input={"command": "ls"}),
    ToolResultEvent(tool_use_id="toolu_01", result="a file\n" * 57, success=True),
)


def least(run: Callable[[], int], rounds: int) -> float:
    """The least seconds it took."""
    times = []
    for _ in range(rounds):
        begun = perf_counter()
        run()
        times.append(perf_counter() - begun)
    return min(times)


def write(journals: JournalFiles) -> None:
    """One short and one long journal."""
    for job_id, count in SIZES.items():
        journal = journals.open(job_id, epoch=1, execution=generate_execution_id(job_id, 1))
        for number in range(count):
            event = EVENTS[number % 3]
            journal.append(msgspec.structs.replace(event, message=number + 1, end=True))
        journal.close()


def bare_decode(path: Path) -> int:
    """Every line of the file through msgspec, and nothing else."""
    decode = msgspec.json.Decoder(Event).decode
    with path.open("rb") as file:
        return sum(1 for line in file if decode(line) is not None)


def memory_mb() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def main() -> None:
    """Prints times and ratios."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        journals = JournalFiles(
            folder, folder / "blobs", clock=SystemClock(), durability=Durability.PROCESS
        )
        write(journals)
        short = least(lambda: len(journals.last(SHORT, 50)), 50)
        long = least(lambda: len(journals.last(LONG, 50)), 50)
        after = least(lambda: next(journals.read(LONG, after=50_000)).seq, 50)
        message = least(lambda: journals.seq_of_message(LONG, 50_000) or 0, 50)
        before = memory_mb()
        whole = least(lambda: sum(1 for _ in journals.read(LONG)), 7)
        bare = least(lambda: bare_decode(journals.path(LONG)), 7)
        grown = memory_mb() - before
    print(f"reading 100,000 events takes {whole * 1000:.0f} ms, a bare decode {bare * 1000:.0f} ms")
    print(f"and {grown:.1f} MB of memory on top")
    print(f"last 50 of 100,000: {long * 1000:.3f} ms (limit 1 ms)")
    print(f"last 50 of 100,000 against last 50 of 1,000: {long / short:.2f}x (limit 1.5x)")
    print(f"first event after the 50,000th of 100,000: {after * 1000:.3f} ms (limit 5 ms)")
    print(f"message 50,000 of 100,000: {message * 1000:.3f} ms (limit 5 ms)")
    print(f"speed of reading all, against a bare decode: {bare / whole:.2f}x (at least 0.6x)")


if __name__ == "__main__":
    main()
