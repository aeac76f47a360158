"""`worker` and `run --detach`: what is handed over, what is said, and what programs read."""

from __future__ import annotations

import json
import signal
import subprocess
from pathlib import Path

from cli.jobs.test_run_processes import wait_for
from surfaces.drivers import FLEET, Cli, Shell, submit_pending


def test_detached_job_waits_for_a_worker_and_is_run_by_one(cli: Cli, fleet: Path) -> None:
    launched = cli("run", "hello", "--detach")
    job_id = launched.out.strip()

    assert (launched.code, launched.err) == (
        0,
        "no worker is running; run it now: nightherd worker --until-idle\n",
    )
    assert cli("jobs", "show", job_id, "--json").data["status"] == "pending"
    assert not (fleet / "hello.txt").exists()

    worked = cli("worker", "--until-idle")

    assert worked.code == 0
    started, ended = worked.out.splitlines()
    assert started == f"started {job_id} hello"
    assert ended.startswith(f"ended {job_id} hello, completed, $0.002, ")
    assert "is running for " in worked.err
    assert (fleet / "hello.txt").read_text() == "Hello, everybody!\n"


def test_launch_for_programs_is_one_line_and_durable_when_it_comes(
    shell: Shell, cli: Cli, fleet: Path
) -> None:
    process = shell.start(
        "run", "hello", "--detach", "--json", stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    assert process.stdout is not None
    line = process.stdout.readline()

    process.kill()
    rest, _ = process.communicate()

    launch = json.loads(line)
    assert (launch["schema"], rest) == ("nightherd/v1/launch", b"")
    assert launch["data"]["status"] == "pending"
    job = cli("jobs", "show", launch["data"]["job_id"], "--json").data
    assert (job["status"], job["prompt"]) == ("pending", "everybody")


def test_refused_launch_records_nothing(cli: Cli, fleet: Path) -> None:
    assert cli("run", "nobody", "--detach").code == 3
    assert cli("run", "mute", "--detach").code == 2
    assert cli("run", "claude-that-is-not", "--detach").code == 3
    assert cli("jobs", "--json").data == []


def test_worker_tells_programs_what_started_ended_and_was_rescued(
    shell: Shell, cli: Cli, fleet: Path
) -> None:
    process = shell.start("run", "slow", stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    wait_for(fleet / "started", process)
    process.kill()
    process.communicate()
    (fleet / "nightherd.yaml").write_text(FLEET.replace("touch started; sleep 60", "true"))

    worked = cli("worker", "--until-idle", "--json")

    assert worked.code == 0
    assert {document["schema"] for document in worked.documents} == {"nightherd/v1/worker"}
    said = [(one["data"]["what"], one["data"]["job"]["status"]) for one in worked.documents]
    assert said == [("rescued", "pending"), ("started", "running"), ("ended", "completed")]
    assert worked.documents[-1]["data"]["job"]["restart_count"] == 1


def test_idle_worker_leaves_at_once_when_it_may(cli: Cli, fleet: Path) -> None:
    worked = cli("worker", "--until-idle")

    assert (worked.code, worked.out) == (0, "")


def test_waiting_worker_takes_what_comes_and_leaves_when_told(shell: Shell, cli: Cli) -> None:
    process = shell.start("worker", stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert process.stderr is not None
    assert process.stdout is not None
    notice, begun = process.stderr.readline(), process.stderr.readline()
    assert b"'idempotent_tools' is not used" in notice
    assert b"is running" in begun

    job_id = submit_pending(shell.directory)
    assert process.stdout.readline() == f"started {job_id} hello\n".encode()
    assert process.stdout.readline().startswith(f"ended {job_id} hello, completed".encode())
    process.send_signal(signal.SIGINT)

    _, talk = process.communicate()
    assert (process.returncode, talk) == (
        0,
        b"finishing running jobs; press again to cancel them\n",
    )


def test_jobs_of_agents_that_cannot_run_here_are_left_waiting(cli: Cli, fleet: Path) -> None:
    job_id = submit_pending(fleet)
    without = FLEET.replace("  - name: hello", "  - name: other")
    (fleet / "nightherd.yaml").write_text(without)

    assert cli("worker", "--until-idle").code == 0
    assert cli("jobs", "show", job_id, "--json").data["status"] == "pending"


def test_second_run_of_a_busy_agent_waits_and_says_so(shell: Shell, cli: Cli, fleet: Path) -> None:
    first = shell.start("run", "slow", stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    wait_for(fleet / "started", first)
    second = shell.start("run", "slow", stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert second.stderr is not None
    assert second.stderr.readline().startswith(b"job ")

    assert second.stderr.readline() == b"waiting: 1 of slow's jobs run already\n"
    second.send_signal(signal.SIGINT)
    second.communicate()
    first.send_signal(signal.SIGINT)
    first.communicate()

    assert (first.returncode, second.returncode) == (130, 130)
    newest, oldest = cli("jobs", "--json").data
    assert (newest["status"], newest["started_at"]) == ("cancelled", None)
    assert oldest["status"] == "cancelled"


def test_run_takes_over_from_a_worker_that_is_gone(shell: Shell, cli: Cli, fleet: Path) -> None:
    first = shell.start("run", "slow", stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    wait_for(fleet / "started", first)
    first.kill()
    first.communicate()
    (fleet / "nightherd.yaml").write_text(FLEET.replace("touch started; sleep 60", "true"))

    # The lost job keeps the agent busy until it is rescued; then this one has room.
    again = shell.run("run", "slow")

    assert again.code == 0
    assert "waiting: 1 of slow's jobs run already" in again.err
    newest, oldest = cli("jobs", "--json").data
    assert (newest["status"], oldest["status"]) == ("completed", "pending")
    assert oldest["restart_count"] == 1


def test_idle_worker_runs_a_suspended_job_whose_time_has_come_before_it_leaves(
    cli: Cli, fleet: Path
) -> None:
    (fleet / "nightherd.yaml").write_text("""\
retry: {attempts: 1, first_pause: 1ms, longest_pause: 1ms, max_wait: 1ms}
agents:
  - name: early
    runtime: scripted
    default_prompt: go
    script:
      - fail: {code: network, message: no route, recoverable: true}
""")
    assert cli("run", "early").code == 8

    worked = cli("worker", "--until-idle")

    job = cli("jobs", "show", "@last", "--json").data
    assert "started job-" in worked.err + worked.out
    assert (job["status"], job["resumes_at"], len(job["executions"])) == ("suspended", None, 2)
