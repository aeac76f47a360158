"""Jobs that nobody runs any more: found, and ended as their record says."""

from __future__ import annotations

import os
import signal
import subprocess
from datetime import UTC, datetime
from pathlib import Path

import pytest
from msgspec import structs

from engine.doctor.ward import Ward, killed, lines, running
from nightherd.files.paths import directory_identity
from nightherd.host.process import boot_id
from nightherd.model.jobs.outcome import SILENT_END
from nightherd.model.journal.event import describe
from nightherd.model.journal.recollection import recollect
from nightherd.model.journal.system import End, ExecutionStarted
from nightherd.model.sessions.session import SessionQuery
from nightherd.state.reader import SqliteReader
from surfaces.drivers import Shell

FLEET = """\
agents:
  - name: slow
    runtime: scripted
    allowed_tools: [Bash]
    default_prompt: go
    script:
      - say: first
      - usage: {input_tokens: 100, output_tokens: 20, cost_usd: 0.0012}
      - tool: Bash
        input: {command: "touch started; sleep 60"}
  - name: keeper
    runtime: scripted
    allowed_tools: [Bash]
    default_prompt: go
    session: {mode: persistent}
    script:
      - say: first
      - usage: {input_tokens: 100, output_tokens: 20, cost_usd: 0.0012}
      - tool: Bash
        input: {command: "test -e calm || { touch started; sleep 60; }"}
      - say: done
"""

KILLED_AT_SETTLE = """
import os, signal, sys
from msgspec.structs import replace
from pathlib import Path
import anyio
from nightherd.engine.jobs.runner import run_job
from nightherd.engine.operations.new_job import JobDraft, record_job
from nightherd.model.jobs.changes import SettleExecution
from nightherd.wiring.fleets import load_fleet
from nightherd.wiring.running import open_worker

class Killed:
    def __init__(self, state):
        self.state = state
    async def apply(self, changes):
        if any(isinstance(change, SettleExecution) for change in changes):
            os.kill(os.getpid(), signal.SIGKILL)
        return await self.state.apply(changes)

async def main():
    here = Path.cwd()
    fleet = load_fleet(here / "nightherd.yaml", environ={}, cwd=here).fleet
    async with open_worker(here / ".nightherd", fleet, os.environ) as context:
        context = replace(context, state=Killed(context.state))
        agent = fleet.agents["AGENT"]
        job = (await record_job(JobDraft(agent=agent), context)).job
        await run_job(job.id, agent, context, on_event=lambda event: None)

anyio.run(main)
"""

TOLD = (
    "status",
    "exit_reason",
    "summary",
    "error",
    "turns",
    "messages",
    "usage",
    "cost_usd",
)


@pytest.fixture
def small_fleet(fleet: Path) -> Path:
    (fleet / "nightherd.yaml").write_text(FLEET)
    return fleet


def test_job_of_a_killed_worker_is_found_and_ends_as_interrupted_with_what_it_used(
    small_fleet: Path, shell: Shell, ward: Ward
) -> None:
    killed(shell, "slow", small_fleet / "started")
    (job,) = ward.jobs()
    assert job["status"] == "running"
    record = ward.journal(job["id"]).read_bytes()

    found = ward.doctor()
    assert found.result.code == 1
    assert [one["job_id"] for one in found.of("stuck")] == [job["id"]]
    assert ward.show(job["id"])["status"] == "running"

    repaired = ward.doctor("--fix")
    assert (repaired.result.code, repaired.all) == (0, [])

    shown = ward.show(job["id"])
    assert (shown["status"], shown["exit_reason"]) == ("failed", "error")
    assert shown["error"] == {
        "code": "interrupted",
        "message": "interrupted: its worker is gone",
    }
    assert shown["cost_usd"] == 0.0012
    assert shown["turns"] == 1
    assert ward.journal(job["id"]).read_bytes() == record
    ward.clean("--verify")


def test_what_a_killed_job_left_running_is_ended_with_it_and_nothing_else_is(
    small_fleet: Path, shell: Shell, ward: Ward
) -> None:
    killed(shell, "slow", small_fleet / "started")
    (job,) = ward.jobs()
    execution, here = f"{job['id']}.1", directory_identity(ward.root)
    of_an_older_version = execution
    marks = (
        f"{execution}@{here}",
        of_an_older_version,
        f"{execution}@1:2",
        f"{job['id']}.2@{here}",
    )
    processes = [
        subprocess.Popen(["sleep", "60"], env={**os.environ, "NIGHTHERD_EXECUTION": mark})
        for mark in marks
    ]
    left, older, of_a_copy, of_another_execution = processes
    try:
        ward.doctor("--verify")
        assert left.poll() is None

        ward.doctor("--fix")
        assert left.wait() == -signal.SIGKILL
        assert older.wait() == -signal.SIGKILL
        assert of_a_copy.poll() is None
        assert of_another_execution.poll() is None
    finally:
        for process in processes:
            process.kill()
            process.wait()


def test_session_agent_worker_and_readable_files_are_right_after_mending(
    small_fleet: Path, shell: Shell, ward: Ward
) -> None:
    killed(shell, "slow", small_fleet / "started")
    killed(shell, "keeper", small_fleet / "started")

    ward.doctor("--fix")

    reader = SqliteReader(ward.root)
    try:
        statuses = {
            session.agent: session.status.value
            for session in reader.list_sessions(SessionQuery(limit=10))
        }
        agents = {agent.name: agent for agent in reader.list_agents()}
        workers = reader.live_workers()
    finally:
        reader.close()
    assert statuses == {"slow": "completed", "keeper": "paused"}
    assert {agent.status.value for agent in agents.values()} == {"error"}
    assert all(agent.current_job is None for agent in agents.values())
    assert workers == []
    state = (ward.root / "state.yaml").read_text()
    assert "status: running" not in state
    assert "interrupted: its worker is gone" in state


def test_session_that_a_killed_job_held_takes_the_next_job_after_mending(
    small_fleet: Path, shell: Shell, ward: Ward
) -> None:
    killed(shell, "keeper", small_fleet / "started")
    (lost,) = ward.jobs()
    (small_fleet / "calm").touch()

    ward.doctor("--fix")
    next_job = ward.show(ward.run("keeper"))

    assert next_job["status"] == "completed"
    assert next_job["session_id"] == ward.show(lost["id"])["session_id"]


@pytest.mark.parametrize("agent", ["hello", "failing", "late"])
def test_job_killed_between_its_records_end_and_its_row_is_settled_as_the_record_says(
    agent: str, fleet: Path, shell: Shell, ward: Ward
) -> None:
    assert shell.python(KILLED_AT_SETTLE.replace("AGENT", agent)).code == -9
    (job,) = ward.jobs()
    assert job["status"] == "running"
    assert lines(ward.journal(job["id"]))[-1]["subtype"] == "end"

    repaired = ward.doctor("--fix")

    assert repaired.result.code == 0
    usual = ward.show(ward.run(agent))
    shown = ward.show(job["id"])
    assert {key: shown.get(key) for key in TOLD} == {key: usual.get(key) for key in TOLD}
    assert shown["status"] != "running"
    ward.clean("--verify")


def test_running_job_whose_worker_lives_is_left_alone(
    small_fleet: Path, shell: Shell, ward: Ward
) -> None:
    with running(shell, "slow", small_fleet / "started"):
        found = ward.doctor("--fix", "--verify")
        (job,) = ward.jobs()

    assert (found.result.code, found.found) == (0, [])
    assert job["status"] == "running"


def test_job_that_ran_on_another_machine_or_before_a_restart_is_stuck(
    small_fleet: Path, shell: Shell, ward: Ward
) -> None:
    with running(shell, "slow", small_fleet / "started"):
        ward.alter("UPDATE workers SET host = 'elsewhere', boot_id = 'before'")
        elsewhere = ward.doctor()
        ward.alter("UPDATE workers SET host = 'container', boot_id = ?", boot_id())
        contained = ward.doctor()

    assert [one["check"] for one in elsewhere.found] == ["stuck", "workers"]
    assert contained.found == []


def test_worker_that_is_gone_without_a_job_is_given_up(ward: Ward, shell: Shell) -> None:
    program = """
import os, signal
from pathlib import Path
import anyio
from nightherd.wiring.fleets import load_fleet
from nightherd.wiring.running import open_worker
async def main():
    here = Path.cwd()
    fleet = load_fleet(here / "nightherd.yaml", environ={}, cwd=here).fleet
    async with open_worker(here / ".nightherd", fleet, os.environ):
        os.kill(os.getpid(), signal.SIGKILL)
anyio.run(main)
"""
    assert shell.python(program).code == -9

    found = ward.doctor()
    # The readable files may be behind too, by where their follower was killed.
    (gone,) = found.of("workers")
    assert (found.result.code, gone["level"]) == (0, "warning")
    assert "never signed off" in gone["message"]

    (fixed,) = ward.doctor("--fix").of("workers")
    assert fixed["is_fixed"]
    ward.clean()


def test_record_that_ends_without_a_result_is_the_error_it_was_settled_with() -> None:
    at = datetime(2026, 1, 2, tzinfo=UTC)
    said = [ExecutionStarted(worker="worker-1"), End(status="failed", exit_reason="error")]
    events = [
        structs.replace(describe(payload), seq=seq, epoch=1, timestamp=at)
        for seq, payload in enumerate(said, 1)
    ]

    assert recollect(events).outcome == SILENT_END
