"""A fleet served for a test: real files, a real server on a real socket, and a client that keeps to itself."""

from __future__ import annotations

import http.client
import json
import os
import secrets
import socket
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import anyio
import anyio.abc
from anyio import to_thread

from nightherd.daemon.record import SOCKET
from nightherd.engine.jobs.runner import run_job
from nightherd.engine.operations.new_job import JobDraft, record_job
from nightherd.model.agents.agent import Fleet
from nightherd.model.ids import JobId
from nightherd.web.api_context import ApiContext, open_api_context
from nightherd.web.page import UI
from nightherd.web.ports import Port
from nightherd.web.server import make_app, serve
from nightherd.web.socket_file import address_of, connect
from nightherd.wiring.fleets import load_fleet
from nightherd.wiring.running import open_worker

FLEET = """\
fleet: {name: served}
webhooks:
  secret_env: HOOK_SECRET
  endpoints:
    issues:
      agent: hello
      prompt: "Issue ${payload.issue.number}: ${payload.issue.title}"
      events: [issues.opened]
    standard:
      agent: hello
      signature: standard
      prompt: ${payload.text}
    fired:
      agent: hello
      signature: standard
      schedule: fired
    rooms:
      agent: talker
      signature: standard
      prompt: ${payload.text}
      channel: ${payload.room}
agents:
  - name: hello
    runtime: scripted
    default_prompt: everybody
    script:
      - say: Hello, ${prompt}.
      - usage: {input_tokens: 10, output_tokens: 2, cost_usd: 0.001}
    schedules:
      nightly: {type: cron, cron: "0 3 * * *", prompt: the night}
      fired: {type: webhook, prompt: "fired by ${payload.text}"}
      rarely: {type: interval, interval: 30d, enabled: false}
  - name: topical
    runtime: scripted
    default_prompt: about ${inputs.topic}
    script: [{say: "${prompt}"}]
  - name: talker
    runtime: scripted
    session: {mode: per_channel}
    script: [{say: "${prompt}"}]
  - name: chatty
    runtime: scripted
    default_prompt: go
    script:
      - repeat: 100
        steps: [{say: word}, {usage: {output_tokens: 1}}]
  - name: loud
    runtime: scripted
    script:
      - repeat: 200
        steps: [{say: "${prompt}"}, {usage: {output_tokens: 1}}]
  - name: slow
    runtime: scripted
    default_prompt: go
    script:
      - say: working
      - sleep: 600s
"""
SECRET = "whsec_" + "c2VjcmV0LXNlY3JldC1zZWNyZXQ="
ENVIRON = {"HOOK_SECRET": SECRET, "PATH": os.environ["PATH"]}
PATIENCE_S = 60.0
PORTS = (20_000, 32_000)


@dataclass(frozen=True)
class Answer:
    """What the server said."""

    status: int
    headers: Mapping[str, str]
    body: bytes

    @property
    def document(self) -> dict[str, Any]:
        """The body as JSON."""
        found = json.loads(self.body)
        assert isinstance(found, dict)
        return found

    @property
    def data(self) -> Any:
        """What the document says."""
        return self.document["data"]


class UnixConnection(http.client.HTTPConnection):
    """HTTP over the server's socket."""

    def __init__(self, path: Path) -> None:
        super().__init__("localhost", timeout=PATIENCE_S)
        self._path = path

    def connect(self) -> None:
        self.sock = connect(self._path, PATIENCE_S)


@dataclass
class World:
    """A served fleet."""

    directory: Path
    site: ApiContext
    ports: list[int] = field(default_factory=list)
    doors: list[Port] = field(default_factory=list)

    @property
    def socket_path(self) -> Path:
        return self.directory / ".nightherd" / SOCKET

    async def ask(
        self,
        method: str,
        path: str,
        body: bytes | dict[str, Any] | None = None,
        *,
        port: int | None = None,
        **headers: str,
    ) -> Answer:
        """One request, in a thread: the server runs in this event loop."""
        return await to_thread.run_sync(self._ask, method, path, body, port, headers)

    async def get(self, path: str, **headers: str) -> Answer:
        return await to_thread.run_sync(self._ask, "GET", path, None, None, headers)

    async def post(
        self, path: str, body: bytes | dict[str, Any] | None = None, **headers: str
    ) -> Answer:
        return await to_thread.run_sync(self._ask, "POST", path, body, None, headers)

    async def run(self, agent: str = "hello", prompt: str = "world") -> JobId:
        """A job, done."""
        job_id = await self.submit(agent, prompt)
        await self.execute(job_id, agent)
        return job_id

    async def submit(self, agent: str = "hello", prompt: str = "world") -> JobId:
        """A job that waits."""
        request = JobDraft(agent=self.site.fleet().agents[agent], prompt=prompt)
        return (await record_job(request, self.site.context)).job.id

    async def execute(self, job_id: JobId, agent: str = "hello") -> None:
        """Run a job that waits."""
        await run_job(
            job_id,
            self.site.fleet().agents[agent],
            self.site.context,
            on_event=lambda event: None,
        )

    def _ask(
        self,
        method: str,
        path: str,
        body: bytes | dict[str, Any] | None,
        port: int | None,
        headers: Mapping[str, str],
    ) -> Answer:
        connection = (
            UnixConnection(self.socket_path)
            if port is None
            else http.client.HTTPConnection("127.0.0.1", port, timeout=PATIENCE_S)
        )
        sent = {name.replace("_", "-"): value for name, value in headers.items()}
        if isinstance(body, dict):
            body = json.dumps(body).encode()
            sent.setdefault("content-type", "application/json")
        try:
            connection.request(method, path, body=body, headers=sent)
            answer = connection.getresponse()
            found = {name.lower(): value for name, value in answer.getheaders()}
            return Answer(answer.status, found, answer.read())
        finally:
            connection.close()


def write_fleet(directory: Path, text: str = FLEET) -> Fleet:
    (directory / "nightherd.yaml").write_text(text)
    return load_fleet(directory / "nightherd.yaml", environ=ENVIRON, cwd=directory).fleet


@asynccontextmanager
async def served(
    directory: Path,
    *,
    fleet: Fleet | None = None,
    make_ports: Any = lambda site: (),
    ui: Path = UI,
    environ: Mapping[str, str] = ENVIRON,
    bot_requests: Any = lambda bot: None,
) -> AsyncIterator[World]:
    """A fleet served on its socket, and on the ports that `make_ports` gives."""
    found = fleet or write_fleet(directory)
    state = directory / ".nightherd"
    async with (
        open_worker(state, found, environ) as context,
        open_api_context(
            state, lambda: found, lambda: context, environ, bot_requests=bot_requests
        ) as site,
        anyio.create_task_group() as tasks,
    ):
        world = World(directory, site)
        ports: list[Port] = list(make_ports(site))
        world.doors = ports
        app = make_app(site, ui)

        async def run(*, task_status: Any = anyio.TASK_STATUS_IGNORED) -> None:
            await serve(app, site, world.socket_path, ports, task_status=task_status)

        world.ports = await tasks.start(run)
        yield world
        tasks.cancel_scope.cancel()


class Follower:
    """A stream of events, as a client sees it."""

    def __init__(self, stream: anyio.abc.SocketStream) -> None:
        self._stream = stream
        self._text = b""

    async def head(self) -> bytes:
        """Everything before the events."""
        while b"\r\n\r\n" not in self._text:
            self._text += await self._stream.receive()
        head, _, self._text = self._text.partition(b"\r\n\r\n")
        return head

    async def hear(self, words: bytes) -> bytes:
        """What has come by the time that `words` have."""
        while words not in self._text:
            self._text += await self._stream.receive()
        return self._text

    async def events(self) -> AsyncIterator[dict[str, Any]]:
        """Each event as it comes, until the server ends the stream."""
        while True:
            while b"\n\n" in self._text:
                block, _, self._text = self._text.partition(b"\n\n")
                fields = dict(line.split(": ", 1) for line in block.decode().split("\n"))
                if "id" in fields:
                    event = json.loads(fields["data"])
                    assert (fields["id"], fields["event"]) == (str(event["seq"]), event["type"])
                    yield event
            try:
                self._text += await self._stream.receive()
            except anyio.EndOfStream:
                return


@asynccontextmanager
async def following(world: World, job_id: str, **headers: str) -> AsyncIterator[Follower]:
    """Follow a job's events."""
    lines = [f"GET /v1/jobs/{job_id}/events HTTP/1.0", "Accept: text/event-stream"]
    lines += [f"{name.replace('_', '-')}: {value}" for name, value in headers.items()]
    with address_of(world.socket_path) as address:
        stream = await anyio.connect_unix(address)
    async with stream:
        await stream.send("\r\n".join([*lines, "", ""]).encode())
        follower = Follower(stream)
        head = await follower.head()
        assert b" 200 " in head.split(b"\r\n")[0], head
        yield follower


async def until(check: Callable[[], Awaitable[bool]]) -> None:
    """Returns once `check` holds; fails when it never does."""
    for _ in range(int(PATIENCE_S / 0.02)):
        if await check():
            return
        await anyio.sleep(0.02)
    raise AssertionError("it never happened")


def free_port() -> int:
    """A port that nobody listens on, and none of those that the system gives to connections meanwhile."""
    while True:
        # Not by `random`: tests that run side by side begin it with the same seed.
        port = PORTS[0] + secrets.randbelow(PORTS[1] - PORTS[0])
        try:
            with socket.create_server(("127.0.0.1", port)):
                return port
        except OSError:
            continue


def token_of(directory: Path) -> str:
    return (directory / ".nightherd" / "web-token").read_text().strip()
