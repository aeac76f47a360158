"""A fleet of counting agents, workers as real processes, and what is left of both."""

from __future__ import annotations

import fcntl
import os
import signal
import subprocess
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import anyio

from nightherd.engine.operations.new_job import JobDraft, record_job
from nightherd.model.change import Change
from nightherd.model.ids import JobId
from nightherd.model.jobs.job import Execution, Job, JobQuery, JobStatus
from nightherd.model.journal.event import Event
from nightherd.model.worker import Worker
from nightherd.ports import Findings
from nightherd.wiring.fleets import load_fleet
from nightherd.wiring.running import open_worker
from nightherd.wiring.stores import open_journals, open_reader, open_repair
from surfaces.drivers import Shell

PATIENCE_S = 60.0
CALLS = 6

FLEET = """\
fleet:
  name: herd
{settings}
agents:
  - name: counter
    runtime: scripted
    allowed_tools: [Bash]
    default_prompt: count
    instances: {{max_concurrent: {at_once}}}
    script:
      - repeat: 6
        steps:
          - tool: Bash
            input: {{command: "echo ${{inputs.tag}}-${{turn}} >> counter; while [ -e hold-${{inputs.tag}}-${{turn}} ]; do sleep 0.02; done"}}
          - usage: {{input_tokens: 10, output_tokens: 2, cost_usd: 0.001}}

  - name: quick
    runtime: scripted
    default_prompt: go
    instances: {{max_concurrent: 8}}
    script:
      - say: here

  - name: tree
    runtime: scripted
    allowed_tools: [Bash]
    default_prompt: go
    script:
      - tool: Bash
        input: {{command: "setsid sh -c 'trap \\"\\" TERM INT; echo $$ >> pids; while :; do sleep 0.05; done' & sh -c 'echo $$ >> pids; sleep 600' & wait"}}

  - name: failing
    runtime: scripted
    default_prompt: go
    script:
      - fail: {{code: bad_luck, message: No luck today.}}
"""

QUICK_LEASE = "lease: 5s\nheartbeat: 100ms\n"
"""Runs out while a test waits for it; a worker that is only slow keeps it."""
QUICK_LOOKS = "lease: 12s\nheartbeat: 100ms\n"
"""Runs out for nobody who is there; who is gone is looked for every four seconds."""


class Herd:
    """A directory with a fleet, and every process a test has started in it."""

    def __init__(self, folder: Path, settings: str = "", at_once: int = 4) -> None:
        self.folder = folder
        self.state = folder / ".nightherd"
        self.shell = Shell(folder)
        text = FLEET.format(settings=settings, at_once=at_once)
        (folder / "nightherd.yaml").write_text(text)
        self.fleet = load_fleet(folder / "nightherd.yaml", environ={}, cwd=folder).fleet

    # What is asked for

    def submit(self, agent: str, *tags: str, count: int = 1) -> list[JobId]:
        """Jobs on record that nobody runs: one for each tag, else `count`."""

        async def work() -> list[JobId]:
            async with open_worker(self.state, self.fleet, os.environ) as context:
                inputs = [{"tag": tag} for tag in tags] or [{}] * count
                made = [
                    await record_job(
                        JobDraft(agent=self.fleet.agents[agent], inputs=values), context
                    )
                    for values in inputs
                ]
                return [one.job.id for one in made]

        return anyio.run(work)

    def apply(self, change: Change) -> None:
        """A change of state by hand."""

        async def work() -> None:
            async with open_repair(self.state) as record:
                await record.state.apply([change])

        anyio.run(work)

    def hold(self, *places: str) -> None:
        """Calls that go on until they are let go."""
        for place in places:
            (self.folder / f"hold-{place}").touch()

    def let_go(self, *places: str) -> None:
        for place in places:
            (self.folder / f"hold-{place}").unlink()

    # Workers

    def worker(self, *arguments: str) -> subprocess.Popen[bytes]:
        """A worker that is at work."""
        started = self.shell.start("worker", *arguments, stderr=subprocess.PIPE)
        assert started.stderr is not None
        line = started.stderr.readline().decode()
        assert "is running" in line, line + started.stderr.read().decode()
        return started

    def work_until_idle(self) -> None:
        """One more worker takes care of everything."""
        done = self.shell.run("worker", "--until-idle")
        assert done.code == 0, done.err

    def stop(self, process: subprocess.Popen[bytes]) -> None:
        """Freeze it, at a moment at which it keeps nobody from writing."""
        while True:
            process.send_signal(signal.SIGSTOP)
            with (self.state / "write.lock").open("rb+") as lock:
                try:
                    fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                except BlockingIOError:
                    process.send_signal(signal.SIGCONT)
                    continue
            return

    # What there is

    def read(self, ask: Callable[[Any], Any]) -> Any:
        reader = open_reader(self.state)
        try:
            return ask(reader)
        finally:
            reader.close()

    def job(self, job_id: JobId) -> Job:
        found = self.read(lambda reader: reader.find_job(job_id))
        assert isinstance(found, Job)
        return found

    def jobs(self) -> list[Job]:
        return list(self.read(lambda reader: reader.list_jobs(JobQuery(limit=1_000))))

    def executions(self, job_id: JobId) -> list[Execution]:
        return list(self.read(lambda reader: reader.list_executions(job_id)))

    def live_workers(self) -> list[Worker]:
        return list(self.read(lambda reader: reader.live_workers()))

    def journal(self, job_id: JobId) -> list[Event]:
        return list(open_journals(self.state).read(job_id))

    def findings(self, job_id: JobId) -> Findings:
        return open_journals(self.state).examine(job_id)

    def counted(self) -> Counter[str]:
        counter = self.folder / "counter"
        return Counter(counter.read_text().split()) if counter.exists() else Counter()

    def pids(self) -> list[int]:
        pids = self.folder / "pids"
        return [int(pid) for pid in pids.read_text().split()] if pids.exists() else []

    # Waiting

    def wait_until(self, condition: Callable[[], bool]) -> None:
        """Until it is so; fails when it never comes."""
        until = time.monotonic() + PATIENCE_S
        while not condition():
            assert time.monotonic() < until, [(job.id, job.status) for job in self.jobs()]
            time.sleep(0.02)

    def wait_for_call(self, place: str) -> None:
        self.wait_until(lambda: place in self.counted())

    def wait_for(self, job_id: JobId, status: JobStatus) -> Job:
        self.wait_until(lambda: self.job(job_id).status is status)
        return self.job(job_id)


def every_call_of(*tags: str) -> dict[str, int]:
    """What the counter holds when each call was made once."""
    return {f"{tag}-{turn}": 1 for tag in tags for turn in range(1, CALLS + 1)}
