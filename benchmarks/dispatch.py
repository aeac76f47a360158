"""What it takes to run jobs, from submit to done: alone, after a long history, and beside DBOS on SQLite.

Empty scripted jobs in one process, through the real worker, with everything on: durability `checkpoint`
(every submit and every end of a job is synced: WAL, `synchronous = FULL`), the journal, the ledger and the
mirror. The same in a state directory with 100,000 jobs of history: rows and ledger lines that went through
the store, and as many files beside them. DBOS runs empty workflows through its queue in the same run, in
rollback journal mode with `synchronous = FULL`, the only level it has on SQLite.

A job makes several files. An ext4 without a journal, as many virtual machines have it, looks at every inode that
was freed in the last minutes before it gives one: where tests or another benchmark have just deleted
thousands of files, that alone makes jobs slower by a tenth or more. What a new file costs is printed too.
"""

from __future__ import annotations

import os
import shutil
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import anyio
import anyio.lowlevel
from benchmarks.peers.asked import ask, environment
from msgspec.structs import replace

from nightherd.db.ledger import Ledger
from nightherd.engine.contexts import WorkerContext
from nightherd.engine.operations.new_job import JobDraft, record_job
from nightherd.engine.workers.worker import WorkerReports
from nightherd.mirror.behind import VERSION
from nightherd.mirror.position import Memory, save_memory
from nightherd.model.agents.agent import Fleet
from nightherd.model.change import AdoptRows, Row
from nightherd.model.ids import JobId, SessionId, generate_execution_id
from nightherd.model.jobs.job import Execution, Job, JobQuery, JobStatus, JobTexts
from nightherd.model.sessions.session import Session
from nightherd.ports import StateReader, no_probe
from nightherd.wiring.fleets import load_fleet
from nightherd.wiring.running import make_worker_loop, open_worker
from nightherd.wiring.stores import open_reader, open_repair

JOBS = 1_000
IN_FLIGHT = 64
HISTORY = 100_000
ADOPTED_AT_ONCE = 500
ROUNDS = 4
PEER = "dbos==3.3.0"
PEER_JOBS = 300
NEW_FILES = 500

FLEET = """\
fleet:
  name: dispatch
agents:
  - name: empty
    runtime: scripted
    default_prompt: go
    instances: {max_concurrent: 64}
    script:
      - say: done
"""


def make_fleet(folder: Path) -> Fleet:
    folder.mkdir()
    (folder / "nightherd.yaml").write_text(FLEET)
    return load_fleet(folder / "nightherd.yaml", environ={}, cwd=folder).fleet


def silent() -> WorkerReports:
    def nothing(*_: object) -> None:
        """Nobody watches."""

    return WorkerReports(
        on_start=nothing, on_event=nothing, on_end=nothing, on_rescue=nothing, on_trouble=print
    )


async def submit_many(fleet: Fleet, context: WorkerContext, count: int) -> None:
    request = JobDraft(agent=fleet.agents["empty"])

    async def lane(share: int) -> None:
        for _ in range(share):
            await record_job(request, context)

    async with anyio.create_task_group() as tasks:
        for place in range(IN_FLIGHT):
            tasks.start_soon(lane, len(range(place, count, IN_FLIGHT)))


async def dispatch_seconds(folder: Path, fleet: Fleet) -> tuple[float, float]:
    """From the first submit until the last job has ended, a worker beside the submitters; and the CPU it took.

    The CPU is that of all threads, the mirror's to the end: what a busy machine hides in the other figure.
    """
    begun_cpu = time.process_time()
    state = folder / ".nightherd"
    async with open_worker(state, fleet, os.environ) as context:
        shift = make_worker_loop(fleet, context, silent(), leaves_when_idle=True)
        all_in = anyio.Event()

        async def hand_in() -> None:
            await submit_many(fleet, context, JOBS)
            all_in.set()

        begun = time.perf_counter()
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(hand_in)
            while not all_in.is_set() or context.reader.has_waiting_job(["empty"]):
                await anyio.lowlevel.checkpoint()
                await shift.work()
        elapsed = time.perf_counter() - begun
    spent = time.process_time() - begun_cpu
    reader = open_reader(state)
    newest = reader.list_jobs(JobQuery(limit=JOBS))
    reader.close()
    if {(job.status, job.epoch) for job in newest} != {(JobStatus.COMPLETED, 1)}:
        raise SystemExit("a job was not run, or not once")
    return elapsed, spent


def add_history(folder: Path, count: int) -> None:
    """As many finished jobs, made from the newest one: in the rows, in the ledger, and as files."""
    state = folder / ".nightherd"
    reader = open_reader(state)
    (job,) = reader.list_jobs(JobQuery(limit=1))
    rows = rows_of(reader, job.id)
    reader.close()
    anyio.run(adopt, state, rows, count)
    for place in range(count):
        for name in (f"jobs/{old_job(place)}.jsonl", f"jobs/{old_job(place)}.yaml"):
            os.close(os.open(state / name, os.O_CREAT | os.O_WRONLY, 0o600))
        session = state / f"sessions/{old_session(place)}.json"
        os.close(os.open(session, os.O_CREAT | os.O_WRONLY, 0o600))
    # The files are there: the mirror goes on from here, and does not write a hundred thousand of them.
    last = Ledger(state / "ledger", no_probe).last_change()
    save_memory(state / "mirror.json", Memory(v=VERSION, change=last), b"")


def old_job(place: int) -> JobId:
    return JobId(f"job-2026-01-01-{place:06x}")


def old_session(place: int) -> SessionId:
    return SessionId(f"sess-{place:08x}")


def rows_of(reader: StateReader, job_id: JobId) -> tuple[Job, Session, JobTexts, Execution]:
    """Everything there is of one job."""
    job, texts = reader.find_job(job_id), reader.find_texts(job_id)
    (execution,) = reader.list_executions(job_id)
    session = reader.find_session(SessionId(job.session_id or "")) if job is not None else None
    if job is None or texts is None or session is None:
        raise SystemExit(f"{job_id} lacks rows")
    return job, session, texts, execution


async def adopt(state: Path, rows: tuple[Job, Session, JobTexts, Execution], count: int) -> None:
    """The same rows again and again under other ids."""
    job, session, texts, execution = rows

    def copies(place: int) -> Iterator[Row]:
        job_id, session_id = old_job(place), old_session(place)
        yield replace(session, id=session_id)
        yield replace(job, id=job_id, session_id=session_id)
        yield replace(texts, job_id=job_id)
        execution_id = generate_execution_id(job_id, execution.epoch)
        yield replace(execution, id=execution_id, job_id=job_id, session_id=session_id)

    async with open_repair(state) as record:
        for first in range(0, count, ADOPTED_AT_ONCE):
            places = range(first, min(first + ADOPTED_AT_ONCE, count))
            old = tuple(row for place in places for row in copies(place))
            await record.state.apply([AdoptRows(rows=old, source="bench")])


def creation_seconds(folder: Path) -> float:
    """The CPU time of creating a file there, whoever asks for it."""
    folder.mkdir()
    begun = time.thread_time()
    for place in range(NEW_FILES):
        os.close(os.open(folder / str(place), os.O_CREAT | os.O_WRONLY, 0o600))
    return (time.thread_time() - begun) / NEW_FILES


def peer_jobs_a_second(python: Path) -> float:
    (found,) = ask(python, "dbos_dispatch.py", PEER_JOBS)
    return found


def main() -> None:
    """Prints every time and ratio."""
    root = Path(tempfile.mkdtemp(prefix="nightherd-dispatch-"))
    python = environment(PEER, module="dbos")
    try:
        new_file = creation_seconds(root / "new")
        fleets = {name: (root / name, make_fleet(root / name)) for name in ("young", "old")}
        anyio.run(dispatch_seconds, *fleets["old"])
        add_history(fleets["old"][0], HISTORY)
        least = dict.fromkeys(fleets, float("inf"))
        cpu = dict.fromkeys(fleets, float("inf"))
        peer = 0.0
        for _ in range(ROUNDS):
            for name, (folder, fleet) in fleets.items():
                elapsed, spent = anyio.run(dispatch_seconds, folder, fleet)
                least[name], cpu[name] = min(least[name], elapsed), min(cpu[name], spent)
                print(f"{name}: {JOBS / least[name]:,.0f} jobs a second so far", flush=True)
            peer = max(peer, peer_jobs_a_second(python)) if python is not None else 0.0
            print(f"DBOS on SQLite: {peer:,.0f} workflows a second so far", flush=True)
    finally:
        shutil.rmtree(root, ignore_errors=True)
    each = least["young"] / JOBS * 1e6
    print(f"{JOBS / least['young']:,.0f} empty jobs a second, submit to done, full durability")
    print(
        f"one empty job from submit to done, {IN_FLIGHT} in flight: {each:.0f} us (limit 2500 us)"
    )
    ratio = least["old"] / least["young"]
    print(f"the same after {HISTORY:,} jobs of history: {ratio:.2f}x (limit 1.1x)")
    print(f"CPU of creating a file, before anything else: {new_file * 1e6:.0f} us")
    for name, seconds in cpu.items():
        print(f"CPU of one empty job, {name}: {seconds / JOBS * 1e6:.0f} us")
    if peer:
        print(
            f"jobs a second against DBOS on SQLite: {JOBS / least['young'] / peer:.1f}x (at least 2x)"
        )


if __name__ == "__main__":
    main()
