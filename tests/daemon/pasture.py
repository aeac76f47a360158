"""A directory with a fleet that daemons run, and what is on record afterwards."""

from __future__ import annotations

import fcntl
import signal
import time
from collections import Counter
from collections.abc import Callable, Iterable
from datetime import timedelta
from itertools import pairwise
from pathlib import Path

from nightherd.daemon.record import DaemonRecord, find_daemon
from nightherd.host.process import start_time
from nightherd.model.jobs.job import Job, JobQuery, JobStatus, TriggerType
from nightherd.model.schedules.schedule import Slot, SlotOutcome
from nightherd.state.agreement import differences
from nightherd.testing.fork_server import ForkServer, Trial
from nightherd.wiring.stores import open_reader, system_clock

PATIENCE_S = 90.0
TARGET = "daemon.daemon_trials:run"

FLEET = """\
lease: 5s
heartbeat: 500ms
max_restarts: 50
agents:
  - name: quick
    runtime: scripted
    allowed_tools: [Bash]
    default_prompt: go
    instances: {max_concurrent: 3}
    schedules:
      a: {interval: 1s, jitter: 900ms, max_overlap: 2}
      b: {cron: "* * * * * *", jitter: 900ms, catch_up: one}
    script:
      - tool: Bash
        input: {command: "echo x >> counted"}
      - say: done
  - name: other
    runtime: scripted
    default_prompt: go
    schedules:
      c: {interval: 1s, jitter: 900ms}
    script:
      - say: done
"""

QUIET = """\
reload: auto
lease: 5s
heartbeat: 500ms
agents:
  - name: calm
    runtime: scripted
    allowed_tools: [Bash]
    default_prompt: go
    schedules:
      yearly: {cron: "0 0 1 1 *"}
    script:
      - tool: Bash
        input: {command: "touch began; while [ ! -e go ]; do sleep 0.05; done"}
      - say: done
"""


def wait_for(is_so: Callable[[], bool], what: str) -> None:
    """Until it is so; the patience is generous, a loaded machine is no failure."""
    deadline = time.monotonic() + PATIENCE_S
    while not is_so():
        assert time.monotonic() < deadline, f"waited in vain: {what}"
        time.sleep(0.02)


class Pasture:
    """One fleet and the fork server that runs its daemons."""

    def __init__(self, folder: Path, server: ForkServer, text: str = FLEET) -> None:
        self.folder = folder
        self.state = folder / ".nightherd"
        self.server = server
        self.file = folder / "nightherd.yaml"
        self.rewrite(text)

    def rewrite(self, text: str) -> None:
        """Another fleet file, all of it at once: whoever reads it finds the old one or the new one."""
        whole = self.file.with_suffix(".whole")
        whole.write_text(text)
        whole.replace(self.file)

    def order(self, **more: object) -> dict[str, object]:
        return {"folder": str(self.folder), **more}

    def begin(self, count: int = 1, **more: object) -> list[Trial]:
        """Begin as many daemons at the same time."""
        return self.server.begin(TARGET, *[self.order(**more) for _ in range(count)])

    def daemon(self, *, stays: bool = False, **more: object) -> Trial:
        """One daemon, at work; one that stays does not end when the next test begins."""
        (trial,) = self.server.begin(TARGET, self.order(**more), stays=stays)
        self.wait_until_ready(trial)
        return trial

    def wait_until_ready(self, trial: Trial) -> DaemonRecord:
        def is_ready() -> bool:
            assert start_time(trial.pid) is not None, f"it ended: {trial.wait()}"
            return self.is_run_by(trial.pid)

        wait_for(is_ready, "the daemon's record")
        record = find_daemon(self.state)
        assert record is not None
        return record

    def is_run_by(self, pid: int) -> bool:
        record = find_daemon(self.state)
        return record is not None and record.pid == pid

    def freeze(self, trial: Trial) -> None:
        """Stop it at a moment at which it keeps nobody from writing: it would be killed for that."""
        while True:
            trial.send(signal.SIGSTOP)
            trial.wait_until_stopped()
            with (self.state / "write.lock").open("rb+") as lock:
                try:
                    fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                except BlockingIOError:
                    trial.send(signal.SIGCONT)
                    continue
            return

    def wait_until_said(self, trial: Trial, word: str, count: int = 1) -> None:
        def is_said() -> bool:
            is_over = start_time(trial.pid) is None
            found = sum(line.startswith(word) for line in trial.said())
            assert found >= count or not is_over, f"it ended: {trial.wait()}"
            return found >= count

        wait_for(is_said, f"{count} of {word!r}")

    def jobs(self, status: JobStatus | None = None) -> list[Job]:
        reader = open_reader(self.state)
        try:
            return list(reader.list_jobs(JobQuery(status=status, limit=100_000)))
        finally:
            reader.close()

    def slots(self, keys: Iterable[str]) -> dict[str, list[Slot]]:
        """Of each schedule, oldest first."""
        reader = open_reader(self.state)
        try:
            return {key: list(reversed(reader.list_slots(key, 100_000))) for key in keys}
        finally:
            reader.close()

    def check(self) -> None:
        """Every slot has one outcome and none is missing, every job one slot and an end; nothing runs."""
        jobs = self.jobs()
        assert [job.id for job in jobs if not job.is_terminal] == []
        assert {job.status for job in jobs} <= {JobStatus.COMPLETED}
        found = self.slots(("quick/a", "quick/b", "other/c"))
        fired: Counter[str] = Counter()
        for key, slots in found.items():
            instants = [slot.due_at for slot in slots]
            steps = {later - earlier for earlier, later in pairwise(instants)}
            assert steps <= {timedelta(seconds=1)}, key
            for slot in slots:
                assert (slot.outcome is SlotOutcome.JOB) == (slot.job_id is not None)
                assert (slot.outcome is SlotOutcome.SKIPPED) == (slot.reason is not None)
                fired.update([slot.job_id] if slot.job_id is not None else [])
        assert set(fired.values()) <= {1}
        assert set(fired) == {job.id for job in jobs}
        assert {job.trigger_type for job in jobs} == {TriggerType.SCHEDULE}
        reader = open_reader(self.state)
        try:
            assert [state.current_job for state in reader.list_agents()] == [None, None]
        finally:
            reader.close()
        assert differences(self.state, at=system_clock().now()) == []
