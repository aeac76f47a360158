"""How long after it is recorded an event reaches those who follow its job over HTTP, and that none is missed.

Three processes, as in life: one serves, one writes a running job's journal (200 events a second), one is all
the followers. The clock they compare is the machine's own.
"""

from __future__ import annotations

import asyncio
import os
import re
import subprocess
import sys
import tempfile
import time
from functools import partial
from pathlib import Path

import anyio

from nightherd.daemon.record import SOCKET
from nightherd.engine.operations.new_job import JobDraft, record_job
from nightherd.model.ids import JobId, WorkerId, generate_execution_id
from nightherd.model.jobs.changes import StartExecution
from nightherd.model.journal.event import AssistantEvent, describe
from nightherd.model.journal.system import End, ExecutionStarted
from nightherd.web.api_context import open_api_context
from nightherd.web.server import make_app, serve
from nightherd.web.socket_file import address_of
from nightherd.wiring.fleets import load_fleet
from nightherd.wiring.running import open_worker
from nightherd.wiring.stores import open_journals

RATE = 200
SECONDS = 5
COUNT = RATE * SECONDS
TIME = re.compile(rb'"content":"([0-9.]+) ')
FLEET = "agents: [{name: a, runtime: scripted, default_prompt: go, script: [{say: hi}]}]\n"


def write(state: Path, job_id: JobId) -> None:
    """Record the job's events at an even pace, each with the time it is recorded."""
    journal = open_journals(state).open(job_id, epoch=1, execution=generate_execution_id(job_id, 1))
    journal.append(describe(ExecutionStarted(worker="worker-bench")))
    begun = time.monotonic()
    for number in range(COUNT):
        due = begun + number / RATE
        time.sleep(max(0.0, due - time.monotonic()))
        journal.append(AssistantEvent(content=f"{time.monotonic()} {'x' * 200}", turn=1, index=0))
    journal.append(describe(End(status="completed", exit_reason="success")))
    journal.close()


class Follower(asyncio.Protocol):
    """One follower, as light as can be: it notes when the time in each event comes in."""

    def __init__(self, job_id: str, delays: list[float]) -> None:
        request = f"GET /v1/jobs/{job_id}/events HTTP/1.0\r\nAccept: text/event-stream\r\n\r\n"
        self._request = request.encode()
        self._delays = delays
        self._rest = b""
        self.got = 0
        self.ready = asyncio.Event()
        self.ended = asyncio.Event()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.WriteTransport)
        transport.write(self._request)

    def data_received(self, data: bytes) -> None:
        now = time.monotonic()
        self.ready.set()
        whole, _, self._rest = (self._rest + data).rpartition(b"\n\n")
        for told in TIME.findall(whole):
            self._delays.append(now - float(told))
            self.got += 1

    def connection_lost(self, exc: Exception | None) -> None:
        self.ended.set()


def _same(follower: Follower) -> Follower:
    return follower


async def follow_all(path: Path, job_id: str, followers: int) -> None:
    """Every follower; prints the delays that matter."""
    delays: list[float] = []
    loop = asyncio.get_running_loop()
    all_of_them = [Follower(job_id, delays) for _ in range(followers)]
    for one in all_of_them:
        with address_of(path) as address:
            await loop.create_unix_connection(partial(_same, one), address)
        await one.ready.wait()
    print("ready", flush=True)
    for one in all_of_them:
        await one.ended.wait()
    missed = sum(COUNT - one.got for one in all_of_them)
    delays.sort()
    p95, p99 = (delays[int(len(delays) * share)] * 1_000 for share in (0.95, 0.99))
    print(f"{p95} {p99} {missed}", flush=True)


async def measure(directory: Path, followers: int) -> tuple[float, float, int]:
    """p95 and p99 of the delay in milliseconds, and how many events were missed."""
    (directory / "nightherd.yaml").write_text(FLEET)
    fleet = load_fleet(directory / "nightherd.yaml", environ={}, cwd=directory).fleet
    state = directory / ".nightherd"
    async with (
        open_worker(state, fleet, os.environ) as context,
        open_api_context(state, lambda: fleet, lambda: context, os.environ) as site,
        anyio.create_task_group() as tasks,
    ):
        await tasks.start(serve, make_app(site), site, state / SOCKET)
        job = (await record_job(JobDraft(agent=fleet.agents["a"]), context)).job
        worker = WorkerId(context.worker)
        start = StartExecution(job_id=job.id, worker=worker, at=context.clock.now())
        await context.state.apply([start])
        script = [sys.executable, __file__]
        client = await asyncio.create_subprocess_exec(
            *script, "follow", str(state / SOCKET), job.id, str(followers), stdout=subprocess.PIPE
        )
        assert client.stdout is not None
        assert (await client.stdout.readline()).strip() == b"ready"
        writer = await asyncio.create_subprocess_exec(*script, "write", str(state), job.id)
        p95, p99, missed = (await client.stdout.readline()).split()
        await writer.wait()
        await client.wait()
        tasks.cancel_scope.cancel()
    return float(p95), float(p99), int(missed)


def main() -> int:
    """Prints the findings; 1 when an event was missed."""
    missed = 0
    for followers in (200, 500):
        with tempfile.TemporaryDirectory() as directory:
            p95, p99, lost = anyio.run(measure, Path(directory), followers)
        missed += lost
        print(f"{followers} followers, {RATE} events a second: {lost} missed")
        if followers == 200:
            print(f"200 followers, p95 of the delay: {p95:.1f} ms (limit 50 ms)")
        else:
            print(f"500 followers, p99 of the delay: {p99:.1f} ms (limit 500 ms)")
    return 1 if missed else 0


if __name__ == "__main__":
    match sys.argv[1:]:
        case ["write", state, job_id]:
            write(Path(state), JobId(job_id))
        case ["follow", path, job_id, followers]:
            asyncio.run(follow_all(Path(path), job_id, int(followers)))
        case _:
            sys.exit(main())
