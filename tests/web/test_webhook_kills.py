"""The daemon killed while messages come in: what was acknowledged is there, and what is sent again makes no second job."""

from __future__ import annotations

import http.client
import json
import os
import signal
import subprocess
from pathlib import Path
from time import monotonic, sleep

from nightherd.model.jobs.job import JobQuery
from nightherd.model.webhooks import sign_github
from nightherd.wiring.stores import open_reader
from surfaces.drivers import Shell
from web.web_world import UnixConnection

SECRET = "a-secret-for-tests"
PATIENCE_S = 60
FLEET = """\
lease: 60s
heartbeat: 1s
webhooks:
  endpoints:
    in: {agent: hello, prompt: "${payload.text}", secret_env: HOOK_SECRET}
agents:
  - name: hello
    runtime: scripted
    instances: {max_concurrent: 4}
    script: [{say: "${prompt}"}]
"""
KILLS = 3


def send(socket: Path, delivery: str) -> str | None:
    """The job that the delivery is; None when nobody could take it in."""
    body = json.dumps({"text": delivery}).encode()
    connection = UnixConnection(socket)
    headers = {
        "x-github-delivery": delivery,
        "x-hub-signature-256": sign_github(SECRET, body),
        "content-type": "application/json",
    }
    try:
        connection.request("POST", "/v1/hooks/in", body=body, headers=headers)
        answer = connection.getresponse()
        data = json.loads(answer.read())
    except (OSError, http.client.HTTPException, ValueError):
        return None
    finally:
        connection.close()
    if answer.status >= 500:
        return None  # it is just closing, or beginning anew
    assert answer.status == 202, data
    return str(data["data"]["job_id"])


def insist(socket: Path, delivery: str) -> str:
    """The job that the delivery is, sent as often as it takes: as a sender does."""
    begun = monotonic()
    while (job_id := send(socket, delivery)) is None:
        assert monotonic() - begun < PATIENCE_S
        sleep(0.05)
    return job_id


def start(shell: Shell, socket: Path) -> subprocess.Popen[bytes]:
    """A daemon that answers."""
    daemon = shell.start(
        "start", env={**os.environ, "HOOK_SECRET": SECRET}, stdout=subprocess.DEVNULL
    )
    begun = monotonic()
    while True:
        connection = UnixConnection(socket)
        try:
            connection.request("GET", "/healthz")
            if connection.getresponse().status == 200:
                return daemon
        except (OSError, http.client.HTTPException):
            pass
        finally:
            connection.close()
        assert daemon.poll() is None
        assert monotonic() - begun < PATIENCE_S
        sleep(0.05)


def test_nothing_acknowledged_is_lost_and_nothing_sent_again_is_doubled(tmp_path: Path) -> None:
    (tmp_path / "nightherd.yaml").write_text(FLEET)
    socket = tmp_path / ".nightherd/daemon.sock"
    shell = Shell(tmp_path)
    known: dict[str, str] = {}
    try:
        for kill in range(KILLS):
            daemon = start(shell, socket)
            for number in range(10 + 7 * kill):
                delivery = f"{kill}-{number}"
                known[delivery] = insist(socket, delivery)
            os.kill(daemon.pid, signal.SIGKILL)
            daemon.wait()
        daemon = start(shell, socket)
        again = {delivery: insist(socket, delivery) for delivery in known}
        daemon.terminate()
        daemon.wait()
    finally:
        shell.close()

    assert again == known
    reader = open_reader(tmp_path / ".nightherd")
    try:
        jobs = {job.trigger_id: job.id for job in reader.list_jobs(JobQuery(limit=1_000))}
    finally:
        reader.close()
    assert jobs == known
