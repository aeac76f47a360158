"""The daemon as a process: who owns a directory, draining, cancelling, reloading, and a lease that was lost."""

from __future__ import annotations

import json
import signal
import socket
import time
from collections.abc import Callable
from pathlib import Path

import anyio
import pytest

from daemon.pasture import QUIET, Pasture, wait_for
from nightherd.daemon.record import LOCK, RECORD, SOCKET, find_daemon
from nightherd.engine.operations.new_job import JobDraft, record_job
from nightherd.mirror.fleet_state import FleetState, read_fleet_state
from nightherd.model.ids import JobId
from nightherd.model.jobs.job import JobStatus
from nightherd.web.socket_file import connect
from nightherd.wiring.fleets import load_fleet
from nightherd.wiring.running import open_worker
from nightherd.wiring.stores import open_reader

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]

MakePasture = Callable[..., Pasture]


def hand_in(pasture: Pasture, agent: str = "calm") -> JobId:
    """A job that waits."""

    async def work() -> JobId:
        fleet = load_fleet(pasture.file, environ={}, cwd=pasture.folder).fleet
        async with open_worker(pasture.state, fleet, {}) as context:
            request = JobDraft(agent=fleet.agents[agent])
            return (await record_job(request, context)).job.id

    return anyio.run(work)


def mirrored(pasture: Pasture) -> FleetState:
    return read_fleet_state(pasture.state / "state.yaml")


def began(pasture: Pasture) -> bool:
    return (pasture.folder / "began").exists()


def test_a_daemon_says_who_it_is_and_leaves_nothing_behind(make_pasture: MakePasture) -> None:
    pasture = make_pasture(QUIET)
    trial = pasture.daemon()

    record = find_daemon(pasture.state)
    assert record is not None
    assert (record.pid, record.config) == (trial.pid, str(pasture.file))
    assert (pasture.state / SOCKET).stat().st_mode & 0o777 == 0o600
    assert (pasture.state / RECORD).stat().st_mode & 0o777 == 0o600
    wait_for(
        lambda: any(agent.schedules for agent in mirrored(pasture).agents.values()), "the mirror"
    )
    calm = mirrored(pasture).agents["calm"]
    assert (calm.status, calm.next_schedule) == ("idle", "yearly")
    assert calm.next_trigger_at == calm.schedules["yearly"].next_run_at
    assert mirrored(pasture).fleet.started_at is not None
    trial.send(signal.SIGTERM)

    assert trial.wait().said[-1] == "done"
    assert find_daemon(pasture.state) is None
    assert not (pasture.state / RECORD).exists()
    assert not (pasture.state / SOCKET).exists()
    reader = open_reader(pasture.state)
    assert reader.live_workers() == []
    reader.close()


def test_told_to_stop_it_finishes_what_it_runs_and_takes_no_more(make_pasture: MakePasture) -> None:
    pasture = make_pasture(QUIET)
    trial = pasture.daemon()
    first = hand_in(pasture)
    wait_for(lambda: began(pasture), "the job")

    trial.send(signal.SIGTERM)
    pasture.wait_until_said(trial, "told finishing")
    second = hand_in(pasture)
    (pasture.folder / "go").touch()
    ended = trial.wait()

    assert ended.said[-1] == "done"
    jobs = {job.id: job.status for job in pasture.jobs()}
    assert jobs == {first: JobStatus.COMPLETED, second: JobStatus.PENDING}


def test_told_twice_it_cancels_what_it_runs(make_pasture: MakePasture) -> None:
    pasture = make_pasture(QUIET)
    trial = pasture.daemon()
    job_id = hand_in(pasture)
    wait_for(lambda: began(pasture), "the job")

    trial.send(signal.SIGTERM)
    pasture.wait_until_said(trial, "told finishing")
    trial.send(signal.SIGTERM)
    ended = trial.wait()

    assert ended.said[-1] == "done"
    (job,) = pasture.jobs()
    assert (job.id, job.status) == (job_id, JobStatus.CANCELLED)


def test_a_job_of_a_killed_daemon_goes_on_with_the_next(make_pasture: MakePasture) -> None:
    pasture = make_pasture(QUIET)
    trial = pasture.daemon()
    job_id = hand_in(pasture)
    wait_for(lambda: began(pasture), "the job")
    trial.send(signal.SIGKILL)
    trial.wait()
    assert find_daemon(pasture.state) is None
    (pasture.folder / "go").touch()

    again = pasture.daemon()
    pasture.wait_until_said(again, f"ended {job_id} completed")
    again.send(signal.SIGTERM)
    again.wait()

    assert any(line == f"rescued {job_id}" for line in again.said())


def test_a_changed_file_is_taken_in_and_garbage_is_not(make_pasture: MakePasture) -> None:
    pasture = make_pasture(QUIET)
    trial = pasture.daemon()

    pasture.rewrite("agents: [\x00garbage")
    pasture.wait_until_said(trial, "told the configuration is unchanged")
    broken = find_daemon(pasture.state)
    pasture.rewrite(QUIET.replace("yearly", "often").replace("0 0 1 1 *", "* * * * * *"))
    pasture.wait_until_said(trial, "told reloaded: 1 agent")
    pasture.wait_until_said(trial, "fired calm/often")
    more = "- {name: new, runtime: scripted, script: []}\n  - name: calm"
    two = pasture.file.read_text().replace("- name: calm", more)
    pasture.rewrite(two)
    wait_for(lambda: "new" in mirrored(pasture).agents, "the new agent in state.yaml")
    mended = find_daemon(pasture.state)
    (pasture.folder / "go").touch()
    trial.send(signal.SIGTERM)
    trial.wait()

    assert broken is not None
    assert mended is not None
    assert broken.problems
    assert (broken.problems[0]["file"], broken.problems[0]["line"]) == ("nightherd.yaml", 1)
    assert broken.loaded_at < mended.loaded_at
    assert (mended.problems, mended.failed_at) == ([], None)
    reader = open_reader(pasture.state)
    states = {state.name: state for state in reader.list_schedules("calm")}
    reader.close()
    assert (states["yearly"].status.value, states["yearly"].next_run_at) == ("disabled", None)


def test_a_hangup_reloads_also_what_looks_the_same(make_pasture: MakePasture) -> None:
    pasture = make_pasture(QUIET)
    trial = pasture.daemon()

    trial.send(signal.SIGHUP)
    pasture.wait_until_said(trial, "told reloaded")
    trial.send(signal.SIGTERM)

    assert trial.wait().said[-1] == "done"


def test_a_file_with_mistakes_at_the_start_is_refused_with_78(make_pasture: MakePasture) -> None:
    pasture = make_pasture("agents: [{name: a, runtime: never}]\n")

    (trial,) = pasture.begin()

    assert trial.wait().said == ["refused 78 1 problem in the configuration"]
    assert not (pasture.state / LOCK).exists()


def test_only_the_agents_that_were_asked_for_are_run(make_pasture: MakePasture) -> None:
    pasture = make_pasture()
    trial = pasture.daemon(agents=["other"])

    pasture.wait_until_said(trial, "ended", 2)
    trial.send(signal.SIGTERM)
    trial.wait()

    assert {job.agent for job in pasture.jobs()} == {"other"}


def test_a_frozen_daemon_that_wakes_begins_anew(make_pasture: MakePasture) -> None:
    pasture = make_pasture(QUIET.replace("lease: 5s", "lease: 3s"))
    trial = pasture.daemon()
    pasture.freeze(trial)
    helper = hand_in(pasture)
    wait_for(lambda: lease_is_over(pasture), "the end of the lease")
    trial.send(signal.SIGCONT)

    pasture.wait_until_said(trial, f"started {helper}")
    (pasture.folder / "go").touch()
    pasture.wait_until_said(trial, f"ended {helper} completed")
    trial.send(signal.SIGTERM)

    ended = trial.wait()
    assert ended.said[-1] == "done"
    assert any("starting a new worker" in line for line in ended.said)


def lease_is_over(pasture: Pasture) -> bool:
    reader = open_reader(pasture.state)
    try:
        now = time.monotonic()
        return all(worker.deadline < now for worker in reader.live_workers())
    finally:
        reader.close()


def test_the_api_answers_on_the_socket(make_pasture: MakePasture) -> None:
    pasture = make_pasture(QUIET)
    trial = pasture.daemon()

    with connect(pasture.state / SOCKET, timeout_s=90) as channel:
        channel.sendall(b"GET /v1/jobs HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
        answer = b"".join(iter(lambda: channel.recv(65536), b""))
    trial.send(signal.SIGTERM)
    trial.wait()

    head, _, body = answer.partition(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 200")
    assert json.loads(body)["schema"] == "nightherd/v1/jobs"


def test_a_webhook_without_its_secret_is_told_of_at_the_start(make_pasture: MakePasture) -> None:
    endpoints = "webhooks: {endpoints: {issues: {agent: calm, secret_env: HOOK_SECRET}}}\n"
    pasture = make_pasture(endpoints + QUIET)

    trial = pasture.daemon()
    trial.send(signal.SIGTERM)

    said = "told webhook issues accepts no deliveries: the variable HOOK_SECRET is not set"
    assert said in trial.wait().said


def test_a_corrupt_state_file_is_kept_aside_and_written_anew(make_pasture: MakePasture) -> None:
    pasture = make_pasture(QUIET)
    pasture.state.mkdir(mode=0o700)
    broken = pasture.state / "state.yaml"
    broken.write_text("agents: [unclosed\n")

    trial = pasture.daemon()
    wait_for(lambda: broken.exists() and "calm" in broken.read_text(), "the mirror")
    trial.send(signal.SIGTERM)
    ended = trial.wait()

    (kept,) = pasture.state.glob("state.yaml.*")
    assert kept.read_text() == "agents: [unclosed\n"
    assert any(kept.name in line for line in ended.said)


def test_systemd_is_told_when_it_is_ready_alive_and_stopping(
    make_pasture: MakePasture, tmp_path: Path
) -> None:
    pasture = make_pasture(QUIET)
    address = tmp_path / "n"
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as channel:
        channel.bind(str(address))
        channel.settimeout(90)
        environ = {"NOTIFY_SOCKET": str(address), "WATCHDOG_USEC": "200000"}
        trial = pasture.daemon(environ=environ)
        heard = {channel.recv(100)}
        while not heard >= {b"READY=1", b"WATCHDOG=1"}:
            heard.add(channel.recv(100))
        trial.send(signal.SIGTERM)
        while b"STOPPING=1" not in heard:
            heard.add(channel.recv(100))
        assert trial.wait().said[-1] == "done"
