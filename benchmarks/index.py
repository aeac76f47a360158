"""What the index costs, and what it saves.

Outlines: read from the index for jobs of 100, 1,000 and 100,000 events, interleaved, minima; beside folding the whole
journal. Indexing: events of long journals into an empty index, beside plainly reading the same journals. Appends: the
rate at which an execution appends to its journal, alone and while the daemon's thread indexes a long backlog in the same
process; rounds alternate, medians.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from pathlib import Path
from statistics import median
from time import perf_counter

from nightherd.host.system import SystemClock
from nightherd.index.file import FILE, discard_index
from nightherd.index.follower import IndexFollower
from nightherd.index.indexer import Indexer
from nightherd.index.outlines import IndexedOutlines
from nightherd.journal.files import JournalFiles
from nightherd.model.agents.agent import Durability
from nightherd.model.ids import JobId, generate_execution_id
from nightherd.model.index.fold import extend
from nightherd.model.index.outline import EMPTY
from nightherd.model.journal.event import (
    AssistantEvent,
    Event,
    ToolResultEvent,
    ToolUseEvent,
    describe,
)
from nightherd.model.journal.system import ExecutionStarted
from nightherd.state.outbox import LedgerFeed

SIZES = (100, 1_000, 100_000)
ROUNDS = 40
INDEXED = 30_000
APPENDS = 30_000
APPEND_ROUNDS = 10
WORDS = ("quick", "brown", "fox", "lazy", "dog", "herd", "cow", "grazes", "green", "grass", "barn")


def job_of(size: int) -> JobId:
    """The job whose journal has so many events."""
    return JobId(f"job-2026-01-02-{size:06x}")


def text(number: int, count: int) -> str:
    """Some words, different ones for each number."""
    return " ".join(f"{WORDS[(number * 7 + n) % len(WORDS)]}{number % 997}" for n in range(count))


def event(number: int) -> Event:
    """A typical event: an answer, a tool's call, or its result."""
    match number % 3:
        case 0:
            return AssistantEvent(content=text(number, 25), turn=number // 3 + 1, message=number)
        case 1:
            command = {"command": text(number, 4)}
            return ToolUseEvent(tool_name="Bash", tool_use_id=f"t{number}", input=command)
        case _:
            return ToolResultEvent(
                tool_use_id=f"t{number - 1}", result=text(number, 50), success=number % 50 != 2
            )


def fill(journals: JournalFiles, job_id: JobId, count: int) -> None:
    """Write a journal of `count` events."""
    journal = journals.open(job_id, epoch=1, execution=generate_execution_id(job_id, 1))
    journal.append(describe(ExecutionStarted(worker="worker-00000001")))
    for number in range(count - 1):
        journal.append(event(number))
    journal.close()


def least(works: dict[str, Callable[[], object]], rounds: int) -> dict[str, float]:
    """The least seconds of each, all of them once per round."""
    times = dict.fromkeys(works, float("inf"))
    for _ in range(rounds):
        for name, work in works.items():
            begun = perf_counter()
            work()
            times[name] = min(times[name], perf_counter() - begun)
    return times


def index_all(indexer: Indexer, job_id: JobId) -> None:
    """Index a job to the end of its journal."""
    while indexer.index_job(job_id):
        pass


def outlines(root: Path, journals: JournalFiles, open_indexer: Callable[[], Indexer]) -> None:
    """Reading outlines of short and long jobs."""
    indexer = open_indexer()
    for size in SIZES:
        fill(journals, job_of(size), size)
        index_all(indexer, job_of(size))
    indexer.close()
    reader = IndexedOutlines(root, journals, open_indexer)

    def looking_at(size: int) -> Callable[[], object]:
        return lambda: reader.outline(job_of(size))

    times = least({str(size): looking_at(size) for size in SIZES}, ROUNDS)
    whole = least({"fold": lambda: extend(EMPTY, journals.read(job_of(SIZES[-1])))}, 1)["fold"]
    for name, seconds in times.items():
        print(f"the outline of {name} events takes {seconds * 1e3:.2f} ms")
    print(
        f"outline of 100,000 events, against 1,000: {times['100000'] / times['1000']:.2f}x (limit 1.5x)"
    )
    print(
        f"outline of 100,000 events, against 100: {times['100000'] / times['100']:.2f}x (limit 2x)"
    )
    print(
        f"outline of 100,000 events, faster than without the index: {whole / times['100000']:.0f}x (at least 50x)"
    )


def throughput(root: Path, journals: JournalFiles, open_indexer: Callable[[], Indexer]) -> None:
    """Indexing beside reading."""
    job_id = job_of(INDEXED)
    fill(journals, job_id, INDEXED)

    def index() -> None:
        discard_index(root)
        indexer = open_indexer()
        index_all(indexer, job_id)
        indexer.close()

    def read() -> None:
        for _ in journals.read(job_id):
            pass

    def fold() -> None:
        extend(EMPTY, journals.read(job_id))

    times = least({"read": read, "fold": fold, "index": index}, 3)
    size = (root / FILE).stat().st_size / journals.path(job_id).stat().st_size
    print(
        f"indexing takes {times['index'] / INDEXED * 1e6:.0f} us an event, {INDEXED / times['index']:,.0f} events a second"
    )
    print(f"folding, against reading the journal: {times['fold'] / times['read']:.1f}x (limit 30x)")
    print(
        f"indexing, against reading the journal: {times['index'] / times['read']:.1f}x (limit 150x)"
    )
    print(f"size of the index, against the journal: {size:.2f}x (limit 1x)")


def appends(root: Path, journals: JournalFiles, open_indexer: Callable[[], Indexer]) -> None:
    """Appending with and without the daemon's thread at work."""
    backlog = [JobId(f"job-2026-01-03-{n:06x}") for n in range(4)]
    for job_id in backlog:
        fill(journals, job_id, 20_000)
    own = JobId("job-2026-01-04-000001")
    journal = journals.open(own, epoch=1, execution=generate_execution_id(own, 1))
    times: dict[bool, list[float]] = {False: [], True: []}
    made = [event(number) for number in range(300)]

    def append_some() -> float:
        begun = perf_counter()
        for number in range(APPENDS):
            journal.append(made[number % 300])
        return perf_counter() - begun

    for number in range(APPEND_ROUNDS):
        is_on = number % 2 == 1
        if not is_on:
            times[False].append(append_some())
            continue
        discard_index(root)
        indexer = Backlog(root, LedgerFeed(root / "ledger"), journals)
        indexer.backlog = backlog
        follower = IndexFollower(indexer, SystemClock(), print)
        follower.start()
        while not (root / FILE).exists():
            pass
        times[True].append(append_some())
        follower.stop()
    alone, beside = median(times[False]), median(times[True])
    print(
        f"an append takes {alone / APPENDS * 1e6:.1f} us alone, {beside / APPENDS * 1e6:.1f} us beside the indexer"
    )
    print(
        f"append beside an indexer with a backlog, against alone: {beside / alone:.2f}x (limit 2x)"
    )


class Backlog(Indexer):
    """An indexer for which these jobs are due."""

    backlog: list[JobId]

    def sweep(self) -> int:
        return 0

    def due_jobs(self, limit: int) -> list[JobId]:
        return self.backlog


def main() -> None:
    """Prints the ratios."""
    with tempfile.TemporaryDirectory() as name:
        root = Path(name)
        for folder in ("jobs", "blobs", "ledger"):
            (root / folder).mkdir()
        journals = JournalFiles(
            root / "jobs", root / "blobs", clock=SystemClock(), durability=Durability.PROCESS
        )

        def open_indexer() -> Indexer:
            return Indexer(root, LedgerFeed(root / "ledger"), journals)

        outlines(root, journals, open_indexer)
        throughput(root, journals, open_indexer)
        appends(root, journals, open_indexer)


if __name__ == "__main__":
    main()
