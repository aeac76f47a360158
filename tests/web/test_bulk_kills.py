"""The daemon killed while it retries many jobs: the repeated request does the rest, and no job is retried twice."""

from __future__ import annotations

import http.client
import json
import os
import signal
import threading
from collections import Counter
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from time import monotonic, sleep
from typing import Any

import anyio

from nightherd.model.jobs.job import Job, JobQuery
from nightherd.wiring.stores import open_reader
from soak import often
from surfaces.drivers import Shell
from web.test_webhook_kills import start
from web.web_world import UnixConnection, served, write_fleet

FLEET = """\
lease: 60s
heartbeat: 1s
agents:
  - name: broken
    runtime: scripted
    default_prompt: go
    instances: {max_concurrent: 2}
    script: [{say: trying}, {fail: {message: it broke}}]
"""
JOBS = often(30, soak=400)
PATIENCE_S = 60
BODY = json.dumps({"verb": "retry", "q": "agent:broken"}).encode()


def jobs_in(directory: Path) -> Sequence[Job]:
    with closing(open_reader(directory / ".nightherd")) as reader:
        return reader.list_jobs(JobQuery(limit=5_000))


def ask(socket: Path) -> dict[str, Any] | None:
    """The answer; None when the daemon went away."""
    connection = UnixConnection(socket)
    headers = {"content-type": "application/json", "idempotency-key": "night"}
    try:
        connection.request("POST", "/v1/jobs/bulk", body=BODY, headers=headers)
        answer = connection.getresponse()
        data = json.loads(answer.read())
    except (OSError, http.client.HTTPException, ValueError):
        return None
    finally:
        connection.close()
    assert answer.status == 200, data
    found = data["data"]
    assert isinstance(found, dict)
    return found


def test_a_killed_bulk_retry_is_finished_by_the_same_request(tmp_path: Path) -> None:
    fleet = write_fleet(tmp_path, FLEET)

    async def fail() -> None:
        async with served(tmp_path, fleet=fleet) as world:
            for _ in range(JOBS):
                await world.run("broken")

    anyio.run(fail)
    failed = {job.id for job in jobs_in(tmp_path)}
    socket, shell = tmp_path / ".nightherd/daemon.sock", Shell(tmp_path)
    try:
        daemon = start(shell, socket)
        asking = threading.Thread(target=ask, args=(socket,))
        asking.start()
        begun = monotonic()
        while len(jobs_in(tmp_path)) < len(failed) + 3:
            assert monotonic() - begun < PATIENCE_S
            sleep(0.005)
        os.kill(daemon.pid, signal.SIGKILL)
        daemon.wait()
        asking.join()
        daemon = start(shell, socket)
        answers = [ask(socket), ask(socket)]
        daemon.terminate()
        daemon.wait()
    finally:
        shell.close()

    made = [job for job in jobs_in(tmp_path) if job.id not in failed]
    retried = Counter((job.dedupe_key or "").split(":")[1] for job in made)
    assert retried == Counter(failed)
    for answer in answers:
        assert answer is not None
        rows = {row["job_id"]: row["new_job_id"] for row in answer["jobs"]}
        assert rows.keys() == failed
        assert set(rows.values()) == {job.id for job in made}
