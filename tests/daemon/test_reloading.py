"""A daemon that reloads works with the new configuration in everything, and loses nothing of what runs."""

from __future__ import annotations

import json
import signal
import socket
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from daemon.pasture import QUIET, TARGET, Pasture, wait_for
from daemon.test_daemon_process import began, hand_in
from nightherd.daemon.output import logging_notices
from nightherd.daemon.record import SOCKET, find_daemon
from nightherd.model.jobs.job import JobStatus
from nightherd.model.secrets import find_secrets
from nightherd.model.webhooks import sign_github
from nightherd.testing.fork_server import Trial
from nightherd.wiring.stores import open_reader
from surfaces.drivers import Shell, submit_pending
from web.web_world import UnixConnection, free_port

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]

MakePasture = Callable[..., Pasture]

HOOKS = """\
webhooks:
  endpoints:
    in: {agent: calm, prompt: "${payload.text}", secret_env: HOOK_SECRET}
"""


def ask(pasture: Pasture, method: str, path: str, body: bytes = b"", **headers: str) -> Any:
    connection = UnixConnection(pasture.state / SOCKET)
    try:
        sent = {name.replace("_", "-"): value for name, value in headers.items()}
        connection.request(method, path, body, {"content-type": "application/json", **sent})
        return json.loads(connection.getresponse().read())
    finally:
        connection.close()


def rewrite(pasture: Pasture, trial: Trial, text: str, said: str = "told reloaded") -> None:
    """Another fleet file, taken in."""
    before = sum(line.startswith(said) for line in trial.said())
    pasture.rewrite(text)
    pasture.wait_until_said(trial, said, before + 1)


def workers(pasture: Pasture) -> set[str]:
    reader = open_reader(pasture.state)
    try:
        return {worker.id for worker in reader.live_workers()}
    finally:
        reader.close()


def test_secrets_webhooks_and_limits_are_the_new_ones(make_pasture: MakePasture) -> None:
    pasture = make_pasture(QUIET)
    trial = pasture.daemon()
    before = workers(pasture)

    (pasture.folder / ".env").write_text("HOOK_SECRET=first-secret\nA_TOKEN=hidden-value\n")
    pasture.wait_until_said(trial, "told reloaded")
    rewrite(pasture, trial, HOOKS + QUIET.replace("default_prompt", "limits: {turns: 1}\n    default_prompt"))  # fmt: skip
    (pasture.folder / "go").touch()
    body = json.dumps({"text": "say hidden-value"}).encode()
    signed = {"x_github_delivery": "1", "x_hub_signature_256": sign_github("first-secret", body)}
    taken = ask(pasture, "POST", "/v1/hooks/in", body, **signed)
    job_id = taken["data"]["job_id"]
    pasture.wait_until_said(trial, f"ended {job_id} suspended")
    shown = ask(pasture, "GET", f"/v1/jobs/{job_id}")
    (pasture.folder / ".env").write_text("HOOK_SECRET=other-secret\n")
    pasture.wait_until_said(trial, "told reloaded", 3)
    refused = ask(pasture, "POST", "/v1/hooks/in", body, **{**signed, "x_github_delivery": "2"})
    after = workers(pasture)
    trial.send(signal.SIGTERM)
    trial.wait()

    assert shown["data"]["prompt"] == "say [secret:A_TOKEN]"
    assert shown["data"]["suspend_reason"] == "limit"
    assert refused["code"] == "forbidden"
    assert before == after, "nothing in this needs another worker"


def test_lost_jobs_are_rescued_as_the_new_configuration_says(make_pasture: MakePasture) -> None:
    quiet = QUIET.replace("lease: 5s", "lease: 15s")  # none that runs out while it lives
    pasture = make_pasture(quiet)
    job_id = hand_in(pasture)
    orders = [pasture.order(is_worker=True), pasture.order(waits_for="began")]
    worker, daemon = pasture.server.begin(TARGET, *orders)
    pasture.wait_until_ready(daemon)

    never = "default_prompt: go\n    session: {auto_resume: false}"
    rewrite(pasture, daemon, quiet.replace("default_prompt: go", never))
    worker.send(signal.SIGKILL)
    worker.wait()
    pasture.wait_until_said(daemon, f"rescued {job_id}")
    daemon.send(signal.SIGTERM)
    daemon.wait()

    (job,) = pasture.jobs()
    assert job.status is JobStatus.FAILED
    assert (job.error or "").startswith("interrupted: its worker is gone; the agent's session")


def test_what_a_worker_is_opened_with_is_changed_by_another_worker(
    make_pasture: MakePasture,
) -> None:
    pasture = make_pasture(QUIET.replace("default_prompt", "instances: {max_concurrent: 2}\n    default_prompt"))  # fmt: skip
    trial = pasture.daemon()
    first = hand_in(pasture)
    wait_for(lambda: began(pasture), "the first job")
    (old,) = workers(pasture)

    text, port = pasture.file.read_text().replace("lease: 5s", "lease: 9s"), free_port()
    pasture.rewrite(f"web: {{enabled: true, port: {port}}}\n{text}")
    wait_for(lambda: record_of(pasture).ports == [port], "the port")
    assert len(workers(pasture)) == 2, "the old one still runs its job"
    (pasture.folder / "began").unlink()
    second = hand_in(pasture)
    wait_for(lambda: began(pasture), "the second job")
    (pasture.folder / "go").touch()
    pasture.wait_until_said(trial, "ended", 2)
    wait_for(lambda: old not in workers(pasture), "the end of the old worker")
    trial.send(signal.SIGTERM)

    assert trial.wait().said[-1] == "done"
    jobs = {job.id: job for job in pasture.jobs()}
    assert {job.status for job in jobs.values()} == {JobStatus.COMPLETED}
    assert (jobs[first].restart_count, jobs[second].restart_count) == (0, 0)


def test_a_port_that_is_taken_leaves_everything_as_it_was(make_pasture: MakePasture) -> None:
    pasture = make_pasture(QUIET)
    trial = pasture.daemon()

    taken = socket.create_server(("127.0.0.1", 0))
    port = taken.getsockname()[1]
    web = f"web: {{enabled: true, port: {port}}}\n"
    rewrite(pasture, trial, web + QUIET, "told the configuration is unchanged")
    record = record_of(pasture)
    wait_for((pasture.state / SOCKET).exists, "the socket")
    answer = ask(pasture, "GET", "/v1/status")
    (pasture.folder / "go").touch()
    job_id = hand_in(pasture)
    pasture.wait_until_said(trial, f"ended {job_id} completed")
    trial.send(signal.SIGTERM)

    assert trial.wait().said[-1] == "done"
    taken.close()
    assert f"port {port}:" in record.problems[0]["message"]
    assert answer["data"]["daemon"]["config_error"] is not None


def test_the_daemons_log_masks_what_it_learns_later(tmp_path: Path) -> None:
    heard: list[str] = []
    (tmp_path / "logs").mkdir()

    with logging_notices(tmp_path, find_secrets({"A_TOKEN": "first-one"}), heard.append) as log:
        log.know(find_secrets({"A_TOKEN": "second-one"}))
        log.report("first-one and second-one")

    assert heard == ["[secret:A_TOKEN] and [secret:A_TOKEN]"]
    assert "-one" not in (tmp_path / "logs/nightherd.log").read_text()


def record_of(pasture: Pasture) -> Any:
    record = find_daemon(pasture.state)
    assert record is not None
    return record


def test_a_worker_works_for_the_fleet_as_its_file_says_now(make_pasture: MakePasture) -> None:
    pasture = make_pasture(QUIET)
    said, shell = pasture.folder / "said", Shell(pasture.folder)
    try:
        with said.open("wb") as file:
            worker = shell.start("worker", stderr=file)
        wait_for(lambda: "is running for 1 agent" in said.read_text(), "the worker")
        more = "- {name: new, runtime: scripted, script: [{say: hello}]}\n  - name: calm"
        pasture.rewrite(QUIET.replace("- name: calm", more))
        wait_for(lambda: "reloaded: 2 agents" in said.read_text(), "the new fleet")
        submit_pending(pasture.folder, "new")
        wait_for(lambda: pasture.jobs(JobStatus.COMPLETED) != [], "a job of the new agent")
        pasture.rewrite("agents: [\x00garbage")
        wait_for(lambda: "the configuration is unchanged" in said.read_text(), "a refusal")
        worker.terminate()

        assert worker.wait(60) == 0
    finally:
        shell.close()


def test_a_worker_changes_its_lease_without_being_started_again(make_pasture: MakePasture) -> None:
    pasture = make_pasture(QUIET)
    said, shell = pasture.folder / "said", Shell(pasture.folder)
    try:
        with said.open("wb") as file:
            worker = shell.start("worker", stderr=file)
        wait_for(lambda: "is running for 1 agent" in said.read_text(), "the worker")
        (old,) = workers(pasture)
        first = hand_in(pasture)
        wait_for(lambda: began(pasture), "the job")

        pasture.rewrite(QUIET.replace("lease: 5s", "lease: 9s"))
        wait_for(lambda: said.read_text().count("is running for 1 agent") == 2, "another worker")
        assert len(workers(pasture)) == 2, "the old one still runs its job"
        (pasture.folder / "go").touch()
        wait_for(lambda: workers(pasture).isdisjoint({old}), "the end of the old worker")
        second = hand_in(pasture)
        wait_for(lambda: len(pasture.jobs(JobStatus.COMPLETED)) == 2, "a job of the new one")
        worker.terminate()

        assert worker.wait(60) == 0
        assert f"{old} finishes its running jobs; another worker starts" in said.read_text()
        jobs = {job.id: job for job in pasture.jobs()}
        assert (jobs[first].restart_count, jobs[second].restart_count) == (0, 0)
    finally:
        shell.close()
