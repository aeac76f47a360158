"""What lists and changes cost as history grows.

Lists: the newest 20 jobs, unfiltered, by agent and by status, in stores of 1,000 and 100,000 jobs (and of
1,000,000 with `--full`), minima over interleaved rounds. Changes: durable submits with 16 in flight,
beside a bare insert and commit of the same bytes per transaction, at the same `synchronous` level.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from pathlib import Path

import anyio
import apsw
from msgspec.structs import replace

from nightherd.db.connection import open_for_writing
from nightherd.host.system import SystemClock
from nightherd.model.ids import JobId
from nightherd.model.jobs.job import Job, JobQuery, JobStatus
from nightherd.state.directory import StateDirectory, init_state_directory
from nightherd.state.reader import SqliteReader
from nightherd.state.store import SqliteStore
from nightherd.state.tables import table_of
from nightherd.testing.state_values import submit

SIZES = (1_000, 100_000)
FULL_SIZES = (*SIZES, 1_000_000)
ROUNDS = 40
REPEATS = 10
AGENTS = 10
IN_FLIGHT = 16
CHANGES = 800

QUERIES = {
    "unfiltered": JobQuery(),
    "by agent": JobQuery(agent="agent-3"),
    "by status": JobQuery(status=JobStatus.FAILED),
    "by agent and status": JobQuery(agent="agent-3", status=JobStatus.COMPLETED),
}


def fill(directory: StateDirectory, count: int) -> None:
    """A store with `count` jobs: most completed, every fiftieth failed, spread over the agents."""
    anyio.run(submit_first, directory)
    table = table_of(Job)
    template = replace(submit(1).job, session_id=submit(1).session.id, summary="x" * 200)
    database = open_for_writing(directory.database)
    database.execute("BEGIN IMMEDIATE")
    for number in range(2, count + 1):
        job = replace(
            template,
            id=JobId(f"job-2026-03-01-{number:06x}"),
            number=number,
            agent=f"agent-{number % AGENTS}",
            status=JobStatus.FAILED if number % 50 == 0 else JobStatus.COMPLETED,
        )
        database.execute(table.upsert, tuple(table.image(job).values()))
    database.execute("COMMIT")
    database.close()


async def submit_first(directory: StateDirectory) -> None:
    store = SqliteStore(directory.root, SystemClock())
    await store.apply([submit(1)])
    await store.close()


def least_list_seconds(readers: dict[int, SqliteReader]) -> dict[tuple[int, str], float]:
    """Per size and query, the least time one list took."""
    least = {(size, name): float("inf") for size in readers for name in QUERIES}
    for _ in range(ROUNDS):
        for size, reader in readers.items():
            for name, query in QUERIES.items():
                begun = time.perf_counter()
                for _ in range(REPEATS - 1):
                    reader.list_jobs(query)
                found = reader.list_jobs(query)
                least[size, name] = min(least[size, name], (time.perf_counter() - begun) / REPEATS)
                if len(found) != query.limit:
                    raise SystemExit(f"{name}: {len(found)} jobs")
    return least


def report_lists(root: Path, sizes: tuple[int, ...]) -> None:
    readers = {}
    for size in sizes:
        directory = init_state_directory(root / str(size))
        fill(directory, size)
        readers[size] = SqliteReader(directory.root)
    least = least_list_seconds(readers)
    for reader in readers.values():
        reader.close()
    smallest = sizes[0]
    for (size, name), seconds in least.items():
        limit = " (limit 200 us)" if size == 100_000 else ""
        print(f"list 20 of {size:,} jobs {name}: {seconds * 1e6:.0f} us{limit}")
    for size in sizes[1:]:
        for name in QUERIES:
            ratio = least[size, name] / least[smallest, name]
            print(f"list {name}, {size:,} against {smallest:,} jobs: {ratio:.2f}x (limit 2x)")


def bare_seconds(path: Path, row: str) -> float:
    """One insert and one commit per change, nothing else."""
    connection = apsw.Connection(str(path))
    connection.execute("PRAGMA journal_mode = WAL").fetchall()
    connection.execute("PRAGMA synchronous = FULL")
    connection.execute("CREATE TABLE jobs (number INTEGER PRIMARY KEY, row TEXT)")
    begun = time.perf_counter()
    for number in range(CHANGES):
        connection.execute("BEGIN IMMEDIATE")
        connection.execute("INSERT INTO jobs VALUES (?, ?)", (number, row))
        connection.execute("COMMIT")
    elapsed = time.perf_counter() - begun
    connection.close()
    return elapsed


async def apply_seconds(directory: StateDirectory) -> float:
    """So many durable submits by so many callers, each waiting for its answer before the next."""
    store = SqliteStore(directory.root, SystemClock())
    await store.apply([submit(1)])

    async def call(first: int) -> None:
        for number in range(first, CHANGES + 2, IN_FLIGHT):
            await store.apply([submit(number)])

    begun = time.perf_counter()
    async with anyio.create_task_group() as group:
        for lane in range(IN_FLIGHT):
            group.start_soon(call, lane + 2)
    elapsed = time.perf_counter() - begun
    await store.close()
    return elapsed


def report_changes(root: Path) -> None:
    directory = init_state_directory(root / "apply")
    ours = anyio.run(apply_seconds, directory)
    line = next(directory.ledger.iterdir()).read_text().splitlines()[0]
    bare = bare_seconds(root / "bare.db", line)
    print(f"{CHANGES / ours:,.0f} durable changes a second with {IN_FLIGHT} in flight")
    print(f"{CHANGES / bare:,.0f} bare inserts and commits a second")
    each = ours / CHANGES * 1e6
    print(f"one durable change with {IN_FLIGHT} in flight: {each:.0f} us (limit 2500 us)")
    print(f"durable change against a bare insert and commit: {ours / bare:.2f}x")


def main() -> None:
    """Prints every time and ratio."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--full", action="store_true", help="also with 1,000,000 jobs")
    sizes = FULL_SIZES if parser.parse_args().full else SIZES
    with tempfile.TemporaryDirectory() as root:
        report_lists(Path(root), sizes)
        report_changes(Path(root))


if __name__ == "__main__":
    main()
