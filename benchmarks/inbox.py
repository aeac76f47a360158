"""What waiting for people costs: answers beside plain resumes, a fleet where thousands of items wait, and lists.

Answers and resumes go through a running daemon, in turn; the time is until the job's next execution has begun. At rest:
the CPU time of a fleet with 10,000 jobs that wait for approval. Lists: the 20 items that wait among 100,000 that were
answered, least of many rounds.
"""

from __future__ import annotations

import os
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path

import anyio
from benchmarks.idle import cpu_seconds
from benchmarks.job_list import submit_first
from msgspec.structs import replace

from nightherd.cli.operations import FleetClient
from nightherd.daemon.record import find_daemon
from nightherd.db.connection import open_for_writing
from nightherd.engine.operations.requests import Answer, Resume, Submit
from nightherd.model.ids import JobId
from nightherd.model.inbox.item import (
    InboxItem,
    InboxQuery,
    InboxTexts,
    ItemKind,
    ItemStatus,
    Verdict,
    item_id,
)
from nightherd.model.jobs.job import Job, JobStatus, JobTexts, SuspendReason
from nightherd.ports import StateReader
from nightherd.state.directory import StateDirectory, init_state_directory
from nightherd.state.tables import table_of
from nightherd.testing.state_values import submit
from nightherd.wiring.fleets import load_fleet
from nightherd.wiring.stores import open_reader

ANSWERED, WAITING, PAGE = 100_000, 10_000, 20
PAIRS = 40
ROUNDS = 200
SETTLING, SECONDS = 6.0, 10.0
LOOK_S = 0.000_2
PATIENCE_S = 60.0
NOW = datetime(2026, 3, 1, tzinfo=UTC)

FLEET = """\
fleet: {name: inbox}
agents:
  - name: asker
    runtime: scripted
    default_prompt: go
    allowed_tools: [Edit]
    approvals: [{tool: Edit}]
    instances: {max_concurrent: 100}
    script:
      - tool: Edit
        input: {file_path: no-such-file, old_string: a, new_string: b}
      - say: done
  - name: limited
    runtime: scripted
    default_prompt: go
    limits: {turns: 1}
    instances: {max_concurrent: 100}
    script:
      - say: one
      - say: two
"""


def fill(directory: StateDirectory, *, answered: int, waiting: int) -> None:
    """A store with items that were answered, and then jobs that wait, each for its own item."""
    anyio.run(submit_first, directory)
    jobs, texts = table_of(Job), table_of(JobTexts)
    items, bodies = table_of(InboxItem), table_of(InboxTexts)
    template = replace(submit(1).job, session_id=submit(1).session.id)
    database = open_for_writing(directory.database)
    database.execute("BEGIN IMMEDIATE")
    for number in range(1, answered + waiting + 1):
        is_waiting = number > answered
        job_id = JobId(f"job-2026-03-01-{number:06x}") if is_waiting else template.id
        if is_waiting:
            job = replace(
                template,
                id=job_id,
                number=number + 1,
                epoch=1,
                status=JobStatus.SUSPENDED,
                suspend_reason=SuspendReason.APPROVAL,
                error_code="approval",
            )
            database.execute(jobs.upsert, tuple(jobs.image(job).values()))
            prompt = JobTexts(job_id=job_id, prompt="go")
            database.execute(texts.upsert, tuple(texts.image(prompt).values()))
        key = f"call:{number}"
        item = InboxItem(
            id=item_id(key),
            kind=ItemKind.APPROVAL,
            status=ItemStatus.PENDING if is_waiting else ItemStatus.APPROVED,
            created_at=NOW,
            subject=job_id,
            title=f"Bash: git push origin branch-{number} " + "x" * 100,
            dedupe_key=key,
            hash="0" * 64,
            epoch=1,
            job_id=job_id,
            agent="asker",
            tool="Bash",
            expires_at=NOW + timedelta(days=3_650),
            number=number,
        )
        database.execute(items.upsert, tuple(items.image(item).values()))
        body = InboxTexts(item_id=item.id, body={"preview": "x" * 500})
        database.execute(bodies.upsert, tuple(bodies.image(body).values()))
    database.execute("COMMIT")
    database.close()


def list_seconds(reader: StateReader, query: InboxQuery) -> float:
    """The least time one list took."""
    least = float("inf")
    for _ in range(ROUNDS):
        begun = time.perf_counter()
        found = reader.list_items(query)
        least = min(least, time.perf_counter() - begun)
        if len(found) != PAGE:
            raise SystemExit(f"{len(found)} items instead of {PAGE}")
    return least


@contextmanager
def daemon(folder: Path) -> Iterator[subprocess.Popen[bytes]]:
    """A started fleet."""
    process = subprocess.Popen(
        [sys.executable, "-m", "nightherd", "start"],
        cwd=folder,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        until = time.monotonic() + PATIENCE_S
        while (record := find_daemon(folder / ".nightherd")) is None or record.socket is None:
            if process.poll() is not None or time.monotonic() > until:
                raise SystemExit("the daemon did not start")
            time.sleep(0.05)
        yield process
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait()


def wait_for(reader: StateReader, job_id: JobId, *, epoch: int, status: JobStatus | None) -> None:
    """Until the job is that far."""
    until = time.monotonic() + PATIENCE_S
    while True:
        job = reader.find_job(job_id)
        if job is not None and job.epoch >= epoch and status in (None, job.status):
            return
        if time.monotonic() > until:
            raise SystemExit(f"{job_id} did not come to {epoch}, {status}")
        time.sleep(LOOK_S)


def continuing_seconds(folder: Path) -> tuple[list[float], list[float]]:
    """How long jobs took to continue after an answer, and after a plain resume."""
    (folder / "nightherd.yaml").write_text(FLEET)
    fleet = load_fleet(folder / "nightherd.yaml", environ=os.environ, cwd=folder).fleet
    state = folder / ".nightherd"
    answers, resumes = [], []
    with daemon(folder), closing(open_reader(state)) as reader:
        client = FleetClient(state_dir=state, environ=os.environ, fleet=fleet, asks_daemon=True)
        for _ in range(PAIRS):
            asking = client.perform(Submit(agent="asker", prompt="go")).id
            limited = client.perform(Submit(agent="limited", prompt="go")).id
            for one in (asking, limited):
                wait_for(reader, one, epoch=1, status=JobStatus.SUSPENDED)
            (item,) = reader.items_of_job(asking)
            answer = Answer(item_id=item.id, verdict=Verdict.APPROVE, by="bench", via="cli")
            begun = time.perf_counter()
            client.answer(answer)
            wait_for(reader, asking, epoch=2, status=None)
            answers.append(time.perf_counter() - begun)
            wait_for(reader, asking, epoch=2, status=JobStatus.COMPLETED)
            begun = time.perf_counter()
            client.perform(Resume(job_id=limited, limits={"turns": 9}))
            wait_for(reader, limited, epoch=2, status=None)
            resumes.append(time.perf_counter() - begun)
            wait_for(reader, limited, epoch=2, status=JobStatus.COMPLETED)
    return answers, resumes


def waiting_share(folder: Path) -> float:
    """How much of a core a fleet takes in which thousands of jobs wait for people."""
    (folder / "nightherd.yaml").write_text(FLEET)
    fill(init_state_directory(folder / ".nightherd"), answered=0, waiting=WAITING)
    with daemon(folder) as process:
        time.sleep(SETTLING)
        before = cpu_seconds(process.pid)
        time.sleep(SECONDS)
        return (cpu_seconds(process.pid) - before) / SECONDS


def p95(values: list[float]) -> float:
    return statistics.quantiles(values, n=20)[-1]


def main() -> None:
    """Prints each of the three beside its limit."""
    with tempfile.TemporaryDirectory() as folder:
        answers, resumes = continuing_seconds(Path(folder))
    answered, resumed = p95(answers), p95(resumes)
    print(f"median of an answer {statistics.median(answers) * 1e3:.1f} ms", end=", ")
    print(f"of a resume {statistics.median(resumes) * 1e3:.1f} ms")
    print(f"answer to continued job, p95: {answered * 1e3:.1f} ms")
    print(f"resume to continued job, p95: {resumed * 1e3:.1f} ms")
    more = max(0.0, answered - resumed) * 1e3
    print(f"an answer beside a plain resume, p95: {more:.1f} ms (limit 100 ms)")
    with tempfile.TemporaryDirectory() as folder:
        spent = waiting_share(Path(folder))
    print(f"a fleet with {WAITING:,} waiting items takes {spent:.2%} of a core")
    print(f"CPU of {WAITING} waiting items in a second: {spent * 1e3:.2f} ms (limit 5 ms)")
    with tempfile.TemporaryDirectory() as folder:
        directory = init_state_directory(Path(folder) / ".nightherd")
        fill(directory, answered=ANSWERED, waiting=PAGE)
        with closing(open_reader(directory.root)) as reader:
            waiting = list_seconds(reader, InboxQuery(limit=PAGE))
            decided = list_seconds(reader, InboxQuery(is_pending=False, limit=PAGE))
    print(f"list of 20 waiting among 100,000 answered: {waiting * 1e3:.3f} ms (limit 0.2 ms)")
    print(f"list of the last 20 answered of 100,000: {decided * 1e3:.3f} ms (limit 0.2 ms)")


if __name__ == "__main__":
    main()
