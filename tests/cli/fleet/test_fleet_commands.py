"""`nightherd status`, `agent`, `start`, `stop`, `reload` and `service`: what a person asks of a whole fleet."""

from __future__ import annotations

import os
import signal
import socket
from pathlib import Path

import anyio
import pytest

from components import Components
from nightherd.daemon.record import find_daemon
from nightherd.daemon.systemd import unit_name
from nightherd.model.change import RegisterWorker
from nightherd.model.ids import WorkerId
from nightherd.model.jobs.changes import StartExecution
from nightherd.model.worker import Worker, WorkerStatus
from nightherd.wiring.stores import open_repair
from surfaces.drivers import Cli, Shell, submit_pending


def test_status_works_without_a_daemon_and_before_anything_happened(fleet: Path, cli: Cli) -> None:
    asked = cli("status", "--json")

    assert asked.document["schema"] == "nightherd/v1/status"
    assert asked.data["daemon"] is None
    assert asked.data["jobs"] == {"waiting": 0, "running": 0, "suspended": 0, "lost": 0}
    assert {one["status"] for one in asked.data["agents"]} == {"idle"}
    assert "no daemon is running" in cli("status").out
    assert not (fleet / ".nightherd").exists()


def test_status_counts_what_waits_and_shows_the_last_error(fleet: Path, cli: Cli) -> None:
    cli("run", "failing")
    submit_pending(fleet)

    data = cli("status", "--json").data
    shown = cli("status").out

    agents = {one["name"]: one for one in data["agents"]}
    assert data["jobs"]["waiting"] == agents["hello"]["waiting"] == 1
    assert (agents["failing"]["status"], agents["failing"]["error_message"]) == (
        "error",
        "No luck today.",
    )
    assert "No luck today." in shown


def test_status_tells_what_is_wrong_with_the_fleet_file(fleet: Path, cli: Cli) -> None:
    cli("run", "hello", "--quiet")
    (fleet / "nightherd.yaml").write_text("agents: [{name: hello, runtme: scripted}]\n")

    data = cli("status", "--json").data

    assert data["config_problems"][0]["line"] == 1
    assert "runtme" in data["config_problems"][0]["message"]
    assert [one["name"] for one in data["agents"]] == ["hello"]
    assert "runtme" in cli("status").out


def test_an_agent_whose_worker_is_gone_is_not_running(fleet: Path, cli: Cli) -> None:
    job_id = submit_pending(fleet)

    async def take() -> None:
        async with open_repair(fleet / ".nightherd") as record:
            now = record.clock.now()
            gone = Worker(
                id=WorkerId("worker-gone0000"),
                status=WorkerStatus.ALIVE,
                host=os.uname().nodename,
                pid=2**22 + 1,
                process_started="1",
                boot_id="another boot",
                deadline=1e12,
                started_at=now,
                heartbeat_at=now,
            )
            start = StartExecution(job_id=job_id, worker=gone.id, at=now)
            await record.state.apply([RegisterWorker(worker=gone), start])

    anyio.run(take)

    data = cli("status", "--json").data
    (hello,) = [one for one in data["agents"] if one["name"] == "hello"]
    assert (hello["status"], hello["current_job"], hello["lost_job"]) == ("idle", None, job_id)
    assert (hello["running"], hello["lost"]) == (0, 1)
    assert data["workers"] == []
    assert f"{job_id} lost its worker" in cli("status").out


def test_an_agent_is_shown_and_its_error_forgotten(fleet: Path, cli: Cli) -> None:
    cli("run", "failing")

    shown = cli("agent", "show", "failing", "--json").data
    reset = cli("agent", "reset", "failing", "--json").data

    assert (shown["status"], shown["schedules"]) == ("error", [])
    assert (reset["status"], reset["error_message"]) == ("idle", None)
    assert cli("agent", "reset", "hello").code == 5
    assert cli("agent", "show", "nobody").code == 3
    names = [one["name"] for one in cli("agent", "list", "--json").data]
    assert "hello" in names
    assert "hello" in cli("agent").out


def test_nothing_to_stop_or_reload_is_said(fleet: Path, cli: Cli) -> None:
    for command in ("stop", "reload"):
        refused = cli(command)
        assert (refused.code, "no daemon runs" in refused.err) == (69, True)


@pytest.mark.slow
def test_a_fleet_that_could_not_start_by_itself_ends_as_one_in_front_does(
    fleet: Path, cli: Cli
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with (fleet / "nightherd.yaml").open("a") as file:
            file.write(f"web: {{enabled: true, host: 127.0.0.1, port: {port}}}\n")
        refused = cli("start", "--detach")

    assert refused.code == 5
    assert f"it did not start: cannot listen on 127.0.0.1 port {port}" in refused.err
    assert "try: choose another port in the fleet file" in refused.err


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_a_detached_fleet_is_watched_reloaded_restarted_and_stopped(
    fleet: Path, cli: Cli, shell: Shell
) -> None:
    started = shell.run("start", "--detach", "--json").data
    try:
        again = cli("start", "--detach")
        status = cli("status", "--json").data
        reloaded = cli("reload", "--json").data
        (fleet / "nightherd.yaml").write_text("agents: nonsense\n")
        broken = cli("reload")
        kept = cli("status", "--json").data["daemon"]["config_error"]
        (fleet / "nightherd.yaml").write_text(
            "agents: [{name: a, runtime: scripted, script: []}]\n"
        )
        refused = shell.run("start")
        restarted = shell.run("restart", "--json").data
        stopped = cli("stop", "--json")
    finally:
        record = find_daemon(fleet / ".nightherd")
        if record is not None:
            os.kill(record.pid, signal.SIGKILL)

    assert status["daemon"]["pid"] == started["pid"]
    assert len(status["workers"]) == 1
    assert (again.code, f"process {started['pid']}" in again.err) == (5, True)
    assert reloaded["loaded_at"] > started["loaded_at"]
    assert (broken.code, "nightherd.yaml:1:" in broken.err) == (78, True)
    assert kept["problems"][0]["file"] == "nightherd.yaml"
    assert (refused.code, f"process {started['pid']}" in refused.err) == (5, True)
    assert "agents," not in refused.err, "nothing is said of what did not start"
    assert restarted["pid"] != started["pid"]
    assert stopped.code == 0
    assert find_daemon(fleet / ".nightherd") is None


@pytest.mark.slow
def test_a_fleet_that_cannot_start_says_why(fleet: Path, shell: Shell) -> None:
    (fleet / "nightherd.yaml").write_text("agents: nonsense\n")

    refused = shell.run("start")

    assert refused.code == 78
    assert "nightherd.yaml:1:9" in refused.err
    assert not (fleet / ".nightherd").exists()


def test_a_unit_is_printed_or_written(
    fleet: Path, cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))

    printed = cli("service", "install", "--user", "--dry-run")
    assert not (tmp_path / "config").exists()
    written = cli("service", "install", "--user", "--json").data

    path = tmp_path / "config" / "systemd" / "user" / unit_name(fleet / "nightherd.yaml")
    assert written["path"] == str(path)
    assert path.read_text() == written["unit"] == printed.out
    for line in ("Type=notify", "Restart=on-failure", "RestartPreventExitStatus=78"):
        assert line in printed.out.splitlines()
    assert f"--config {fleet / 'nightherd.yaml'}" in printed.out


def test_the_unit_is_one_that_systemd_takes(fleet: Path, cli: Cli, components: Components) -> None:
    components.program("systemd-analyze")

    assert cli("service", "install", "--user", "--dry-run", "--json").data["is_checked"]
