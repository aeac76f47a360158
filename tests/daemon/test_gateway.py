"""Commands through the running fleet and without it: the same answers, and nothing lost or doubled in between."""

from __future__ import annotations

import re
import signal
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from daemon.pasture import PATIENCE_S, QUIET, TARGET, Pasture, wait_for
from daemon.test_daemon_process import began
from daemon.test_reloading import ask
from nightherd.cli import operations
from nightherd.cli.operations import FleetClient
from nightherd.daemon.record import SOCKET
from nightherd.engine.operations.fork import AtMessage
from nightherd.engine.operations.requests import (
    Cancel,
    ForkOf,
    InSession,
    Resume,
    ResumeSession,
    Retry,
    RunSchedule,
    SetSchedule,
    Submit,
    decode_request,
)
from nightherd.model.jobs.job import JobStatus
from nightherd.model.schedules.schedule import ScheduleStatus
from nightherd.web.socket_file import listen
from nightherd.wiring.fleets import load_fleet
from nightherd.wiring.stores import open_reader
from surfaces.drivers import Cli, submit_pending

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]

MakePasture = Callable[..., Pasture]

COMMANDS = (
    "run calm -d -p first",
    "run calm -d -p a-hidden-value --input topic=a-hidden-value",
    "run calm -d -p x --limit spend=0.5 --limit duration=90s --model m --max-turns 3 --job-timeout 5m",
    "run calm -d -p x --session persistent --priority 4",
    "run calm -d -p x --limit spend=never",
    "run nobody -d -p x",
    "jobs cancel JOB0",
    "jobs cancel JOB0",
    "jobs cancel job-1999-01-01-aaaaaa",
    "jobs retry JOB0",
    "jobs retry JOB1",
    "jobs resume JOB0 -d -p again --raise turns=9",
    "jobs resume JOB1 -d",
    "jobs show JOB1",
    "jobs show JOB2",
    "jobs show JOB3",
    "schedule run calm/yearly",
    "schedule run calm/never",
    "schedule disable calm/yearly",
    "schedule set calm/yearly 30m",
    "schedule set calm/yearly nonsense",
    "schedule enable calm/yearly",
    "schedule reset calm/yearly",
    "agent reset calm",
    "agent reset nobody",
    "run calm -d -p on --resume SESSION3 --limit turns=7 --priority 2 --input topic=a-hidden-value",
    "run calm -d -p a-hidden-value --fork SESSION3 --model m",
    "run calm -d --resume @last",
    "run calm -d --resume sess-nowhere",
    "run calm -d --fork SESSION3 --resume SESSION3",
    "session resume SESSION3 -d -p a-hidden-value",
    "session resume SESSION0 -d",
    "session resume sess-nowhere -d",
    "agent resume calm -d -p again",
    "agent resume nobody -d",
    "jobs show JOB4",
    "jobs show JOB5",
    "jobs fork JOB3 -d -p a-hidden-value",
    "jobs fork CUT -d",
    "jobs fork CUT -d --at-message 1 -p x",
    "jobs fork CUT -d --at-seq 3",
    "jobs fork CUT -d --at-checkpoint 1",
    "jobs fork CUT -d --at-message 99",
    "jobs fork CUT -d --at-message 1 --at-seq 1",
    "session fork SESSION4 --run -d",
    "session fork @last --run -d --at-message 0 -p a-hidden-value",
    "session fork @last --run -d --at-message -1",
    "session fork @last --run -d --at-checkpoint 99",
    "jobs resume CUT -d --at-checkpoint 1 -p x --raise turns=9",
    "jobs resume CUT -d --at-checkpoint 99",
    "jobs resume JOB1 -d --at-checkpoint 1",
    "jobs resume CUT -d --at-checkpoint 3 --raise turns=9",
    "jobs resume CUT -d --at-checkpoint 3",
    "jobs list --limit 50",
)
PLACES = (
    (re.compile(r"job-\d{4}-\d\d-\d\d-\w{6}"), "JOB"),
    (re.compile(r"sess-\w{8}"), "SESSION"),
    (re.compile(r"\d{4}-\d\d-\d\dT[\d:.]+Z"), "INSTANT"),
    (re.compile(r"worker-\w+"), "WORKER"),
    (re.compile(r'"(duration_seconds|pid)":[\d.]+'), "NUMBER"),
)


def played(
    cli: Cli, folder: Path, patch: pytest.MonkeyPatch, cut: str
) -> list[tuple[str, int, str]]:
    """Every command in that folder: what it ended with and said, but for ids and times."""
    patch.chdir(folder)
    made: list[str] = []
    sessions: list[str] = []
    found = []
    for command in COMMANDS:
        line = re.sub(r"JOB(\d)", lambda place: made[int(place[1])], command)
        line = line.replace("CUT", cut)
        line = re.sub(r"SESSION(\d)", lambda place: sessions[int(place[1])], line)
        result = cli(*line.split(), "--json")
        if line.startswith("run") and result.code == 0:
            made.append(result.data["job_id"])
            sessions.append(result.data["session_id"])
        out = result.out.replace(str(folder), "FOLDER")
        for pattern, word in PLACES:
            out = pattern.sub(word, out)
        found.append((command, result.code, out))
    return found


def test_every_command_says_the_same_with_the_running_fleet_and_without(
    make_pasture: MakePasture,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setenv("A_TOKEN", "a-hidden-value")
    # Nobody is taken for frozen who is only slow: every command is to go through the running fleet.
    monkeypatch.setattr(operations, "PATIENCE_S", PATIENCE_S)
    pasture = make_pasture(QUIET)
    (tmp_path / "alone").mkdir()
    alone = Pasture(tmp_path / "alone", pasture.server, QUIET)
    cli, cut = Cli(monkeypatch, capsys), []
    for one in (pasture, alone):
        cut.append(cut_off(cli, one.folder, monkeypatch))
        submit_pending(one.folder, "calm")
    orders = [pasture.order(), alone.order(is_worker=True)]
    daemon, worker = pasture.server.begin(TARGET, *orders)
    pasture.wait_until_ready(daemon)
    wait_for(lambda: began(pasture) and began(alone), "a job that keeps both agents busy")
    # Until then the session of that job may become the one that was used last at any moment.
    wait_for(lambda: is_counted(pasture) and is_counted(alone), "the progress of both jobs")

    with_it = played(cli, pasture.folder, monkeypatch, cut[0])
    counted = requests(pasture)
    without = played(cli, alone.folder, monkeypatch, cut[1])

    assert with_it == without
    assert "a-hidden-value" not in "".join(out for _, _, out in with_it)
    assert counted == {
        ("POST", "200"): 27,
        ("POST", "409"): 4,
        ("POST", "400"): 6,
    }
    for one, trial in ((pasture, daemon), (alone, worker)):
        (one.folder / "go").touch()
        trial.send(signal.SIGKILL)


def is_counted(pasture: Pasture) -> bool:
    """Whether what the running job has said so far is on its row."""
    return any(job.status is JobStatus.RUNNING and job.last_seq for job in pasture.jobs())


def cut_off(cli: Cli, folder: Path, patch: pytest.MonkeyPatch) -> str:
    """A job that waits at its limit in that folder, with checkpoints; it left nothing else behind."""
    patch.chdir(folder)
    (folder / "go").touch()
    result = cli("run", "calm", "-p", "before", "--limit", "turns=1", "--json")
    assert result.code == 6
    for name in ("go", "began"):
        (folder / name).unlink()
    return str(result.data["job_id"])


def requests(pasture: Pasture) -> dict[tuple[str, str], int]:
    """How often the API answered, by method and status."""
    pattern = re.compile(r'requests_total\{method="(\w+)",status="(\d+)"\} (\d+)')
    found = pattern.finditer(raw(pasture, "/metrics"))
    return {(one[1], one[2]): int(one[3]) for one in found}


def raw(pasture: Pasture, path: str) -> str:
    with socket.socket(socket.AF_UNIX) as channel:
        channel.settimeout(60)
        channel.connect(str(pasture.state / SOCKET))
        channel.sendall(f"GET {path} HTTP/1.0\r\n\r\n".encode())
        return b"".join(iter(lambda: channel.recv(65536), b"")).decode()


def client_of(pasture: Pasture, patience_s: float) -> FleetClient:
    fleet = load_fleet(pasture.file, environ={}, cwd=pasture.folder).fleet
    return FleetClient(
        state_dir=pasture.state,
        environ={},
        fleet=fleet,
        asks_daemon=True,
        patience_s=patience_s,
    )


def test_a_frozen_fleet_does_nothing_late_that_was_done_without_it(
    make_pasture: MakePasture,
) -> None:
    pasture = make_pasture(QUIET.replace("lease: 5s", "lease: 60s"))
    trial = pasture.daemon()
    client = client_of(pasture, patience_s=0.1)
    (pasture.folder / "go").touch()

    pasture.freeze(trial)
    job = client.perform(Submit(agent="calm", prompt="once"))
    client.perform(SetSchedule(agent="calm", schedule="yearly", by="me", enabled=False))
    client.perform_directly(SetSchedule(agent="calm", schedule="yearly", by="me", enabled=True))
    trial.send(signal.SIGCONT)
    pasture.wait_until_said(trial, f"ended {job.id} completed")
    answer = ask(pasture, "GET", "/v1/status")
    trial.send(signal.SIGTERM)
    trial.wait()

    assert answer["data"]["daemon"]["pid"] == trial.pid
    assert [one.id for one in pasture.jobs()] == [job.id]
    reader = open_reader(pasture.state)
    (state,) = reader.list_schedules("calm")
    reader.close()
    assert state.status is ScheduleStatus.IDLE, "what was said last counts"


@contextmanager
def hanging_up(pasture: Pasture, act: Callable[[Any], object]) -> Iterator[None]:
    """Somebody who takes each request, does what it asks, and is gone before saying so."""
    pasture.state.mkdir(mode=0o700, exist_ok=True)
    server = listen(pasture.state / SOCKET)
    server.setblocking(True)

    def serve() -> None:
        while True:
            try:
                channel, _ = server.accept()
            except OSError:
                return
            with channel:
                act(decode_request(_body(channel)))

    thread = threading.Thread(target=serve)
    thread.start()
    try:
        yield
    finally:
        server.shutdown(socket.SHUT_RDWR)
        server.close()
        thread.join()
        (pasture.state / SOCKET).unlink()


def _body(channel: socket.socket) -> bytes:
    data = b""
    while True:
        head, end, body = data.partition(b"\r\n\r\n")
        length = re.search(rb"content-length: (\d+)", head, re.IGNORECASE)
        if end and length is not None and len(body) >= int(length[1]):
            return body
        data += channel.recv(65536)


def test_what_was_done_by_one_who_died_before_saying_so_is_not_done_again(
    make_pasture: MakePasture,
) -> None:
    pasture = make_pasture(QUIET)
    client = client_of(pasture, patience_s=30)

    with hanging_up(pasture, client.perform_directly):
        job = client.perform(Submit(agent="calm", prompt="x"))
        cancelled = client.perform(Cancel(job_id=job.id))
        again = client.perform(Retry(job_id=job.id))
        assert again.session_id is not None
        session_id = again.session_id
        in_session = InSession(session_id=session_id)
        on = client.perform(Submit(agent="calm", prompt="more", session=in_session))
        fork = ForkOf(session_id=session_id, at=AtMessage(number=0))
        branched = client.perform(Submit(agent="calm", prompt="more", session=fork))
        further = client.perform(ResumeSession(session_id=session_id, prompt="more"))
        resumed = client.perform(Resume(job_id=job.id))
        run = client.perform(RunSchedule(agent="calm", schedule="yearly"))

    assert (cancelled.id, cancelled.status) == (job.id, JobStatus.CANCELLED)
    made = {job.id, again.id, on.id, branched.id, further.id, resumed.id, run.id}
    assert len(made) == 7
    assert {one.id for one in pasture.jobs()} == made


def test_daemons_killed_while_work_is_handed_in_neither_lose_nor_double_it(
    make_pasture: MakePasture,
) -> None:
    pasture = make_pasture(QUIET)
    client = client_of(pasture, patience_s=30)
    request = Submit(agent="calm", prompt="x")
    made: list[str] = []

    for round_ in range(2):
        trial = pasture.daemon()
        killing = threading.Timer(0.05 * round_, trial.send, [signal.SIGKILL])
        killing.start()
        made += [client.perform(request).id for _ in range(6)]
        killing.join()
        trial.wait()

    assert len(set(made)) == 12
    assert {job.id for job in pasture.jobs()} == set(made)
