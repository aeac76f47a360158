"""The daemon killed while streams are open: over all its connections, a client gets everything once."""

from __future__ import annotations

import http.client
import json
import os
import signal
import subprocess
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from time import monotonic, sleep
from typing import Any

import pytest

from nightherd.model.ids import JobId
from nightherd.views.streams.cursor import Place, parse_stream_cursor
from nightherd.views.streams.rows import touched_rows
from nightherd.wiring.stores import open_feed, open_journals
from surfaces.drivers import Shell
from web.stream_world import Heard, heard_in
from web.web_world import UnixConnection

PATIENCE_S = 60
KILLS = 3
FLEET = """\
lease: 2s
heartbeat: 500ms
agents:
  - name: long
    runtime: scripted
    default_prompt: go
    instances: {max_concurrent: 2}
    script:
      - repeat: 150
        steps: [{say: word}, {usage: {output_tokens: 1}}, {sleep: 20ms}]
  - name: short
    runtime: scripted
    default_prompt: go
    script: [{say: done}]
"""
KINDS = ("job", "session", "agent")


@dataclass
class Client:
    """Listens, and comes back with its cursor whenever the stream breaks."""

    socket: Path
    topics: str
    heard: list[Heard] = field(default_factory=list)
    connections: int = 0
    is_done: bool = False

    def run(self) -> None:
        """Listen until it is told to stop."""
        while not self.is_done:
            connection = UnixConnection(self.socket)
            ids = [one.id for one in self.heard if one.id is not None]
            headers = {"accept": "text/event-stream"} | ({"last-event-id": ids[-1]} if ids else {})
            try:
                connection.request("GET", f"/v1/stream?topics={self.topics}", headers=headers)
                answer = connection.getresponse()
                assert answer.status == 200
                self.connections += 1
                self.heard.extend(self._events(answer))
            except (OSError, http.client.HTTPException):
                sleep(0.02)
            finally:
                connection.close()

    def _events(self, answer: http.client.HTTPResponse) -> Iterator[Heard]:
        block = b""
        while not self.is_done and (line := answer.readline()):
            block += line
            if line == b"\n":
                found, block = heard_in(block.strip(b"\n")), b""
                if found is not None:
                    yield found


def ask(socket: Path, method: str, path: str, key: str | None = None) -> Any:
    """The data of an answer, asked for as often as it takes."""
    begun = monotonic()
    while True:
        connection = UnixConnection(socket)
        body = json.dumps({"agent": "short" if key else "long"}).encode()
        headers = {"content-type": "application/json"} | ({"idempotency-key": key} if key else {})
        try:
            connection.request(method, path, None if method == "GET" else body, headers)
            answer = connection.getresponse()
            data = json.loads(answer.read())
            if answer.status < 300:
                return data.get("data")
        except (OSError, http.client.HTTPException, ValueError):
            pass
        finally:
            connection.close()
        assert monotonic() - begun < PATIENCE_S
        sleep(0.05)


def start(shell: Shell, socket: Path) -> subprocess.Popen[bytes]:
    daemon = shell.start("start", stdout=subprocess.DEVNULL)
    ask(socket, "GET", "/healthz")
    return daemon


def wait_until_ended(socket: Path, jobs: list[str]) -> None:
    begun = monotonic()
    while any(ask(socket, "GET", f"/v1/jobs/{id}")["status"] != "completed" for id in jobs):
        assert monotonic() - begun < PATIENCE_S
        sleep(0.1)


def place_of(heard: Heard) -> Place:
    assert heard.id is not None
    return parse_stream_cursor(heard.id).place


@pytest.mark.timeout(240)
def test_nothing_is_missed_or_doubled_across_kills_of_the_daemon(tmp_path: Path) -> None:
    (tmp_path / "nightherd.yaml").write_text(FLEET)
    state = tmp_path / ".nightherd"
    socket = state / "daemon.sock"
    shell = Shell(tmp_path)
    clients: list[Client] = []
    threads: list[threading.Thread] = []
    try:
        daemon = start(shell, socket)
        followed = [ask(socket, "POST", "/v1/jobs")["id"] for _ in range(2)]
        jobs = list(followed)
        topics = ",".join(["jobs", "sessions", "agents", *(f"job:{id}@0" for id in followed)])
        clients = [Client(socket, topics) for _ in range(2)]
        threads = [threading.Thread(target=client.run) for client in clients]
        for thread in threads:
            thread.start()
        for kill in range(KILLS):
            jobs += [ask(socket, "POST", "/v1/jobs", f"{kill}-{n}")["id"] for n in range(5)]
            os.kill(daemon.pid, signal.SIGKILL)
            daemon.wait()
            daemon = start(shell, socket)
        wait_until_ended(socket, jobs)
        last = ask(socket, "POST", "/v1/jobs", "last")["id"]
        wait_until_ended(socket, [last])
        listed = {row["id"]: row for row in ask(socket, "GET", "/v1/jobs?limit=100")}
        begun = monotonic()
        while not all(_has_ended(client, last) for client in clients):
            assert monotonic() - begun < PATIENCE_S
            sleep(0.05)
        daemon.terminate()
        daemon.wait()
    finally:
        for client in clients:
            client.is_done = True
        shell.close()
        for thread in threads:
            thread.join()

    for client in clients:
        assert client.connections > KILLS
        assert not [one for one in client.heard if one.kind == "reset"]
        check_events(client, state, followed)
        check_rows(client, state)
        newest = {one.data["id"]: one.data for one in client.heard if one.kind == "job"}
        for id, row in newest.items():
            assert {**row, "duration_seconds": 0} == {**listed[id], "duration_seconds": 0}
        assert set(jobs) <= set(newest)


def _has_ended(client: Client, job_id: str) -> bool:
    rows = [one.data for one in client.heard if one.kind == "job" and one.data["id"] == job_id]
    return bool(rows) and rows[-1]["status"] == "completed"


def check_events(client: Client, state: Path, followed: list[str]) -> None:
    """Every event of the journals came once and in order."""
    for job_id in followed:
        recorded = [event.seq for event in open_journals(state).read(JobId(job_id))]
        heard = [
            one.data["event"]["seq"]
            for one in client.heard
            if one.kind == "event" and one.data["job_id"] == job_id
        ]
        assert heard == recorded
        assert len(recorded) > 150


def check_rows(client: Client, state: Path) -> None:
    """After every change of the ledger a row came that is as new, and none came twice for one change."""
    heard: dict[tuple[str, str], list[Place]] = {}
    for one in client.heard:
        if one.kind in KINDS:
            key = one.kind, one.data.get("id") or one.data["name"]
            heard.setdefault(key, []).append(place_of(one))
    first = place_of(client.heard[0])
    end = max(place.change for places in heard.values() for place in places)
    changed: dict[tuple[str, str], list[tuple[int, int]]] = {}
    for entry in open_feed(state).read(after=first.change):
        for row in touched_rows(entry):
            if row.kind in KINDS and entry.change <= end:
                changed.setdefault((row.kind, row.id), []).append((entry.change, row.index))
    assert set(heard) == set(changed)
    for key, places in heard.items():
        marks = [(place.change, place.sent or 0) for place in places]
        assert marks == sorted(set(marks))
        assert set(marks) <= set(changed[key])
        assert marks[-1] == changed[key][-1]
