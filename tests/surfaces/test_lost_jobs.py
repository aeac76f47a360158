"""A job whose worker was killed is `lost` in every surface, and its duration stands still."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import anyio
import pytest
import yaml

from cli.jobs.test_run_processes import wait_for
from nightherd import Lost, ObservedJob, open_fleet
from surfaces.drivers import FLEET, Cli, Shell

NEXT = "it resumes when a worker starts"
SHOWN = f"{NEXT}: nightherd start"


def kill_worker(shell: Shell, *words: str) -> str:
    """The id of a job whose worker was killed in the middle of a tool."""
    command = words or ("run", "slow", "--quiet")
    process = shell.start(*command, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    wait_for(shell.directory / "started", process)
    process.send_signal(signal.SIGKILL)
    process.communicate()
    (journal,) = (shell.directory / ".nightherd" / "jobs").glob("*.jsonl")
    return journal.stem


@pytest.fixture(scope="module")
def killed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A fleet whose one job lost its worker; the tests that share it change nothing."""
    directory = tmp_path_factory.mktemp("lost")
    (directory / "nightherd.yaml").write_text(FLEET)
    shell = Shell(directory)
    kill_worker(shell)
    shell.close()
    return directory


@pytest.fixture
def job_id(killed: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """The lost job; the test stands in its fleet's directory."""
    monkeypatch.chdir(killed)
    (journal,) = (killed / ".nightherd" / "jobs").glob("*.jsonl")
    return journal.stem


def test_every_command_says_that_a_job_lost_its_worker(cli: Cli, job_id: str) -> None:
    (listed,) = cli("jobs", "--json").data
    shown = cli("jobs", "show", job_id, "--json").data
    agent = cli("agent", "show", "slow", "--json").data
    status = cli("status", "--json").data

    lost = listed["lost"]
    assert (listed["status"], lost["next"]) == ("running", NEXT)
    assert listed["created_at"] <= lost["since"] <= cli("jobs", "--json").document["as_of"]
    assert shown["lost"] == lost
    assert (agent["status"], agent["current_job"], agent["lost_job"]) == ("idle", None, job_id)
    assert agent["lost_since"] == lost["since"]
    assert status["jobs"]["lost"] == 1
    assert "lost" in cli("jobs").out
    assert f"lost its worker; {SHOWN}" in cli("jobs", "show", job_id).out
    assert f"{job_id} lost its worker; {SHOWN}" in cli("agent", "show", "slow").out
    assert f"{job_id} lost its worker" in cli("status").out


def test_sessions_say_that_their_job_lost_its_worker(cli: Cli, job_id: str) -> None:
    (listed,) = cli("session", "list", "--json").data
    shown = cli("session", "show", listed["id"], "--json").data
    tree = cli("session", "tree", listed["id"], "--json").data
    (job,) = cli("jobs", "--json").data

    assert (listed["status"], listed["lost"]) == ("active", {"job": job_id, **job["lost"]})
    assert shown["lost"] == tree["lost"] == listed["lost"]
    assert "lost" in cli("session", "list").out
    assert f"{job_id} lost its worker; {SHOWN}" in cli("session", "show", listed["id"]).out
    assert "lost, " in cli("session", "tree", listed["id"]).out


SCHEDULED = FLEET.replace(
    "  - name: slow\n",
    "  - name: slow\n    schedules: {nightly: {type: interval, interval: 1s}}\n",
)


@pytest.mark.timeout(120)
def test_schedules_say_that_their_job_lost_its_worker(shell: Shell, cli: Cli, fleet: Path) -> None:
    (fleet / "nightherd.yaml").write_text(SCHEDULED)
    job_id = kill_worker(shell, "start")

    (listed,) = cli("schedule", "list", "--json").data
    state = yaml.safe_load((fleet / ".nightherd" / "state.yaml").read_text())
    agent = cli("agent", "show", "slow", "--json").data
    (job,) = cli("jobs", "--json").data
    lost = {"job": job_id, **job["lost"]}

    assert (listed["status"], listed["lost"]) == ("idle", lost)
    assert agent["schedules"] == [listed]
    nightly = state["agents"]["slow"]["schedules"]["nightly"]
    assert (nightly["status"], nightly["lost"]) == ("idle", lost)
    assert "lost" in cli("schedule", "list").out
    assert f"{job_id} lost its worker; {SHOWN}" in cli("schedule", "why", "slow/nightly").out


def test_the_duration_of_a_lost_job_does_not_grow(cli: Cli, job_id: str) -> None:
    first = [cli("jobs", "--json").data[0], cli("jobs", "show", job_id, "--json").data]
    again = [cli("jobs", "--json").data[0], cli("jobs", "show", job_id, "--json").data]

    durations = [one["duration_seconds"] for one in (*first, *again)]
    assert len(set(durations)) == 1
    assert first[1]["worked_seconds"] == again[1]["worked_seconds"] == durations[0]


def test_files_say_it_after_the_next_command(cli: Cli, killed: Path, job_id: str) -> None:
    (listed,) = cli("jobs", "--json").data

    job = yaml.safe_load((killed / ".nightherd" / "jobs" / f"{job_id}.yaml").read_text())
    state = yaml.safe_load((killed / ".nightherd" / "state.yaml").read_text())

    assert (job["status"], job["lost"]) == ("running", listed["lost"])
    agent = state["agents"]["slow"]
    assert (agent["status"], agent["current_job"]) == ("idle", None)
    assert agent["lost"] == {"job": job_id, **listed["lost"]}


def test_state_json_has_everything_on_record_after_the_next_command(
    shell: Shell, cli: Cli, fleet: Path
) -> None:
    limited = FLEET.replace("  - name: slow\n", "  - name: slow\n    limits: {turns: 9}\n")
    (fleet / "nightherd.yaml").write_text(limited)
    job_id = kill_worker(shell)
    path = fleet / ".nightherd" / "threads" / job_id / "state.json"
    path.unlink(missing_ok=True)  # its worker may have died before or after it wrote the call

    cli("jobs")

    document = json.loads(path.read_text())
    assert document["status"] == "running"
    assert '"tool_use":"Bash"' in document["messages"][-1]["content"]
    written = path.stat().st_mtime_ns
    cli("jobs")
    assert path.stat().st_mtime_ns == written


def test_files_forget_it_once_a_worker_has_the_job(shell: Shell, cli: Cli, fleet: Path) -> None:
    job_id = kill_worker(shell)
    cli("jobs")
    (fleet / "nightherd.yaml").write_text(FLEET.replace("touch started; sleep 60", "true"))

    assert cli("worker", "--until-idle").code == 0
    job = yaml.safe_load((fleet / ".nightherd" / "jobs" / f"{job_id}.yaml").read_text())
    state = yaml.safe_load((fleet / ".nightherd" / "state.yaml").read_text())
    assert (job["status"], "lost" in job) == ("completed", False)
    assert "lost" not in state["agents"]["slow"]


def test_a_follower_is_told_that_the_worker_is_gone(shell: Shell, fleet: Path) -> None:
    process = shell.start("run", "slow", "--quiet", stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    wait_for(fleet / "started", process)
    tail = shell.start(
        "jobs", "tail", "@last", "-f", stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    assert tail.stdout is not None
    assert tail.stderr is not None
    tail.stdout.readline()

    process.send_signal(signal.SIGKILL)
    process.communicate()

    assert f"lost its worker; {SHOWN}" in tail.stderr.readline().decode()


def test_the_library_says_it(killed: Path, job_id: str) -> None:
    async def ask() -> tuple[Any, Any]:
        async with open_fleet(killed / "nightherd.yaml") as opened:
            return opened.job(job_id), opened.jobs()[0]

    one, listed = anyio.run(ask)

    assert isinstance(one, ObservedJob)
    assert isinstance(one.lost, Lost)
    assert one.lost == listed.lost
    assert one.status == "running"


def test_a_list_with_running_jobs_loads_nothing_heavy(shell: Shell, fleet: Path) -> None:
    process = shell.start("run", "slow", "--quiet", stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    wait_for(fleet / "started", process)
    program = (
        "import sys; from nightherd.cli.main import main; main(sys.argv[1:]);"
        "print({'anyio', 'pydantic', 'yaml', 'asyncio'} & set(sys.modules))"
    )
    done = subprocess.run(
        [sys.executable, "-c", program, "jobs", "--json"], cwd=fleet, capture_output=True, text=True
    )
    process.send_signal(signal.SIGINT)
    process.communicate()

    document, modules = done.stdout.splitlines()
    (job,) = json.loads(document)["data"]
    assert (job["status"], job["lost"], modules) == ("running", None, "set()")
