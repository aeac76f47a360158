"""What it takes to run jobs: from submit to done, after a long history, after a crash, and doing nothing.

Empty scripted jobs in one process, through the real worker, with everything on: durability `checkpoint`
(every submit and every end of a job is synced), the journal, the ledger and the mirror. The same again in
a state directory with 20,000 jobs of history. A thousand jobs whose worker is gone, from the beginning of
the rescue until all of them wait again. And the CPU time of a worker that has nothing to do.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from dataclasses import replace
from pathlib import Path

import anyio
import anyio.lowlevel

from nightherd.config.load import load_fleet
from nightherd.db.connection import open_for_writing
from nightherd.engine.rescue import rescue
from nightherd.engine.submit import SubmitRequest, submit
from nightherd.engine.worker import WorkerReports
from nightherd.engine.workshop import Workshop
from nightherd.model.agent import Fleet
from nightherd.model.change import StartExecution
from nightherd.model.ids import JobId, SessionId, WorkerId
from nightherd.model.job import Job, JobQuery, JobStatus
from nightherd.model.session import Session
from nightherd.state.tables import Table
from nightherd.wiring import make_shift, open_reader, open_record, open_workshop, rescue_terms

JOBS = 1_000
IN_FLIGHT = 64
HISTORY = 20_000
LOST = 1_000
ROUNDS = 3
IDLE_S = 5.0

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


async def submit_many(fleet: Fleet, workshop: Workshop, count: int) -> None:
    request = SubmitRequest(agent=fleet.agents["empty"])

    async def lane(share: int) -> None:
        for _ in range(share):
            await submit(request, workshop)

    async with anyio.create_task_group() as tasks:
        for place in range(IN_FLIGHT):
            tasks.start_soon(lane, len(range(place, count, IN_FLIGHT)))


async def dispatch_seconds(folder: Path, fleet: Fleet) -> float:
    """From the first submit until the last job has ended, a worker beside the submitters."""
    state = folder / ".nightherd"
    async with open_workshop(state, fleet, os.environ) as workshop:
        shift = make_shift(fleet, workshop, silent(), leaves_when_idle=True)
        begun = time.perf_counter()
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(submit_many, fleet, workshop, JOBS)
            while not workshop.reader.has_waiting_job(["empty"]):
                await anyio.lowlevel.checkpoint()
            await shift.work()
        elapsed = time.perf_counter() - begun
    reader = open_reader(state)
    newest = reader.list_jobs(JobQuery(limit=JOBS))
    reader.close()
    if {(job.status, job.epoch) for job in newest} != {(JobStatus.COMPLETED, 1)}:
        raise SystemExit("a job was not run, or not once")
    return elapsed


def add_history(folder: Path, count: int) -> None:
    """As many finished jobs and sessions as rows, made from the newest of each."""
    state = folder / ".nightherd"
    reader = open_reader(state)
    (job,) = reader.list_jobs(JobQuery(limit=1))
    session = reader.find_session(job.session_id or SessionId(""))
    reader.close()
    assert session is not None
    jobs, sessions = Table(Job), Table(Session)
    database = open_for_writing(state / "nightherd.db")
    database.execute("BEGIN IMMEDIATE")
    for place in range(1, count + 1):
        old = replace(session, id=SessionId(f"sess-h{place:07d}"), number=session.number + place)
        row = replace(
            job,
            id=JobId(f"job-2026-01-01-h{place:05x}"),
            number=job.number + place,
            session_id=old.id,
        )
        database.execute(sessions.upsert, tuple(sessions.image(old).values()))
        database.execute(jobs.upsert, tuple(jobs.image(row).values()))
    database.execute("COMMIT")
    database.close()


def report_dispatch(root: Path) -> None:
    fleets = {name: (root / name, make_fleet(root / name)) for name in ("young", "old")}
    anyio.run(dispatch_seconds, *fleets["old"])
    add_history(fleets["old"][0], HISTORY)
    least = dict.fromkeys(fleets, float("inf"))
    for _ in range(ROUNDS):
        for name, (folder, fleet) in fleets.items():
            least[name] = min(least[name], anyio.run(dispatch_seconds, folder, fleet))
            print(f"{name}: {JOBS / least[name]:,.0f} jobs a second so far")
    each = least["young"] / JOBS * 1e6
    print(f"{JOBS / least['young']:,.0f} empty jobs a second, submit to done, full durability")
    print(
        f"one empty job from submit to done, {IN_FLIGHT} in flight: {each:.0f} us (limit 2500 us)"
    )
    ratio = least["old"] / least["young"]
    print(f"the same after {HISTORY:,} jobs of history: {ratio:.2f}x (limit 1.1x)")


async def lose_many(folder: Path, fleet: Fleet) -> None:
    """Jobs that a worker had begun which is not there any more."""
    async with open_workshop(folder / ".nightherd", fleet, os.environ) as workshop:
        await submit_many(fleet, workshop, LOST)
        waiting = workshop.reader.list_jobs(JobQuery(limit=LOST))
        at = workshop.clock.now()
        gone = WorkerId("worker-gonegone")
        await workshop.state.apply(
            [StartExecution(job_id=job.id, worker=gone, at=at) for job in waiting]
        )


async def rescue_seconds(folder: Path) -> float:
    async with open_record(folder / ".nightherd") as record:
        begun = time.perf_counter()
        rescued = await rescue(record, rescue_terms(5))
        elapsed = time.perf_counter() - begun
        waiting = record.reader.list_jobs(JobQuery(status=JobStatus.PENDING, limit=2 * LOST))
    if len(rescued) != LOST or {job.restart_count for job in waiting} != {1}:
        raise SystemExit(f"{len(rescued)} of {LOST} jobs were rescued")
    return elapsed


def report_rescue(root: Path) -> None:
    least = float("inf")
    for number in range(ROUNDS):
        folder = root / f"lost-{number}"
        fleet = make_fleet(folder)
        anyio.run(lose_many, folder, fleet)
        least = min(least, anyio.run(rescue_seconds, folder))
    print(f"{LOST:,} interrupted jobs wait again: {least:.2f} s (limit 1 s)")


def report_idle(root: Path) -> None:
    """The CPU time a worker takes for doing nothing, after it has settled down."""
    folder = root / "idle"
    make_fleet(folder)
    process = subprocess.Popen(
        [sys.executable, "-m", "nightherd", "worker"],
        cwd=folder,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stderr is not None
    process.stderr.readline()
    time.sleep(1.0)
    before = cpu_seconds(process.pid)
    time.sleep(IDLE_S)
    spent = (cpu_seconds(process.pid) - before) / IDLE_S
    process.send_signal(signal.SIGTERM)
    process.communicate()
    print(f"an idle worker takes {spent:.2%} of a core")
    print(f"CPU of an idle worker in a second: {spent * 1e3:.2f} ms (limit 5 ms)")


def cpu_seconds(pid: int) -> float:
    """The CPU time of all threads of a process."""
    tasks = Path(f"/proc/{pid}/task").iterdir()
    return sum(int((task / "schedstat").read_text().split()[0]) for task in tasks) / 1e9


def main() -> None:
    """Prints every time and ratio."""
    root = Path(tempfile.mkdtemp(prefix="nightherd-dispatch-"))
    try:
        for report in (report_dispatch, report_rescue, report_idle):
            report(root)
    finally:
        shutil.rmtree(root, ignore_errors=True)


if __name__ == "__main__":
    main()
