"""A fleet for pages: a real daemon with scripted agents, its API on a port, and jobs in every state people meet."""

from __future__ import annotations

import asyncio
import json
import signal
from collections.abc import Awaitable, Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import anyio
import pytest
from anyio import to_thread

from daemon.pasture import PATIENCE_S, TARGET, Pasture
from nightherd.daemon.record import SOCKET
from nightherd.model.access.role import Role
from nightherd.testing.fork_server import ForkServer, Trial
from web.web_world import UnixConnection, free_port

AGENTS = """\
  - name: hello
    runtime: scripted
    allowed_tools: [Bash]
    default_prompt: everybody
    script:
      - think: Somebody wants a greeting.
      - say: Hello, **${prompt}**.
      - usage: {input_tokens: 120, output_tokens: 35, cost_usd: 0.0011}
      - tool: Bash
        input: {command: "printf 'one\\\\ntwo\\\\n'"}
      - say: Done.
    schedules:
      nightly: {type: cron, cron: "0 3 1 1 *", prompt: the night}
      hourly: {type: interval, interval: 720h, enabled: false, prompt: the hour}
  - name: talker
    runtime: scripted
    session: {mode: persistent}
    default_prompt: go
    script: [{repeat: 50, steps: [{say: "turn ${turn}: ${prompt}"}, {end: true}]}]
  - name: writer
    runtime: scripted
    default_prompt: go
    script: [{say: "one two three four five six seven eight nine ten", over: 4s}]
  - name: held
    runtime: scripted
    allowed_tools: [Bash]
    default_prompt: go
    script:
      - say: I wait for a file.
      - tool: Bash
        input: {command: "touch held-begun; while [ ! -e held-go ]; do sleep 0.05; done; echo gone on"}
      - say: It is there.
  - name: pusher
    runtime: scripted
    default_prompt: go
    permission_mode: bypassPermissions
    approvals: [{tool: "Bash(echo:*)"}]
    script:
      - tool: Bash
        input: {command: echo pushed >> pushed}
      - say: Pushed.
  - name: asker
    runtime: scripted
    default_prompt: go
    questions: true
    script: [{tool: ask_person, input: {question: "Which server?"}}, {say: Thank you.}]
  - name: capped
    runtime: scripted
    default_prompt: go
    limits: {turns: 1}
    script: [{repeat: 4, steps: [{say: word}, {usage: {output_tokens: 1, cost_usd: 0.001}}]}]
  - name: broken
    runtime: scripted
    allowed_tools: [Bash]
    default_prompt: go
    script:
      - tool: Bash
        input: {command: "echo out of luck >&2; exit 3"}
      - fail: {code: bad_luck, message: No luck today.}
"""
"""Every agent needs nothing but its name: each has a prompt of its own."""

FLEET = """\
fleet: {{name: {name}}}
reload: auto
lease: 5s
heartbeat: 500ms
web: {web}
agents:
{agents}"""
SHORTEST_PAUSE_S, LONGEST_PAUSE_S = 0.01, 0.15
OVER = ("completed", "failed", "cancelled")
shared = pytest.mark.shared_fleet
"""For tests that look at their own jobs only and leave the daemon alone: one fleet does for all of a module."""


class FleetWorld:
    """One fleet, its directory and its daemon."""

    def __init__(
        self,
        folder: Path,
        server: ForkServer,
        *,
        agents: str = AGENTS,
        name: str = "night-shift",
        environ: Mapping[str, str] | None = None,
        stays: bool = False,
        **web: Any,
    ) -> None:
        settings = {"enabled": True, "host": "127.0.0.1", "port": free_port(), **web}
        self.port: int = settings["port"]
        self.origin = f"http://{settings['host']}:{self.port}"
        self.url = f"{self.origin}{settings.get('base_path', '')}"
        """Without a last slash: `fleet.url + "/inbox"` is a page."""
        text = FLEET.format(name=name, web=json.dumps(settings), agents=agents)
        self.pasture = Pasture(folder, server, text)
        self.shows_dashboard = True
        self._environ = dict(environ or {})
        self._stays = stays
        self._tokens: dict[tuple[str, Role], str] = {}
        self._daemon: Trial | None = None

    @property
    def folder(self) -> Path:
        """Where its agents work."""
        return self.pasture.folder

    @property
    def state(self) -> Path:
        """Its state directory."""
        return self.pasture.state

    # The daemon

    async def start(self) -> None:
        """Start the daemon, on the port it always has; it serves when this returns."""
        begin = partial(self.pasture.daemon, environ=self._environ, stays=self._stays)
        self._daemon = await to_thread.run_sync(begin)
        await self.until(self._is_serving)

    async def start_beside_worker(self) -> Trial:
        """Start the daemon once a worker of its own, which is returned, is in the middle of a job of `held`."""
        orders = (
            self.pasture.order(is_worker=True),
            self.pasture.order(waits_for="held-begun", environ=self._environ),
        )
        begin = partial(self.pasture.server.begin, TARGET, *orders)
        worker, self._daemon = await to_thread.run_sync(begin)
        await self.until(self._is_serving)
        return worker

    async def kill(self) -> None:
        """SIGKILL: nothing is finished, nothing is said. Its state is as the kill left it."""
        await self._end(signal.SIGKILL, -signal.SIGKILL)

    async def stop(self) -> None:
        """Stop it as `nightherd stop` does."""
        await self._end(signal.SIGTERM, 0)

    async def close(self) -> None:
        """End the daemon, if there still is one: for a fleet of many tests."""
        if self._daemon is not None:
            await to_thread.run_sync(self.pasture.server.end, self._daemon)
            self._daemon = None

    async def _end(self, number: int, status: int) -> None:
        assert self._daemon is not None
        self._daemon.send(number)
        ended = await to_thread.run_sync(self._daemon.wait)
        assert ended.status == status, ended
        self._daemon = None

    async def _is_serving(self) -> bool:
        try:
            _, writer = await asyncio.open_connection("127.0.0.1", self.port)
        except OSError:
            return False
        writer.close()
        await writer.wait_closed()
        return True

    # Its API, over the socket, as the user of this machine

    async def get(self, path: str) -> Any:
        """The `data` of an answer."""
        return (await self.ask("GET", path))["data"]

    async def post(self, path: str, **body: Any) -> Any:
        """The same for a request that changes something."""
        return (await self.ask("POST", path, body))["data"]

    async def ask(self, method: str, path: str, body: Any = None) -> dict[str, Any]:
        """A whole document; refusals fail the test."""
        found = json.loads(await to_thread.run_sync(self._ask, method, path, body))
        assert isinstance(found, dict)
        return found

    async def metric(self, name: str) -> float:
        """A number of `/metrics` that has no labels."""
        text = await to_thread.run_sync(self._ask, "GET", "/metrics", None)
        (line,) = [line for line in text.splitlines() if line.startswith(f"{name} ")]
        return float(line.partition(" ")[2])

    def _ask(self, method: str, path: str, body: Any) -> str:
        connection = UnixConnection(self.state / SOCKET)
        headers = {} if body is None else {"content-type": "application/json"}
        content = None if body is None else json.dumps(body).encode()
        try:
            connection.request(method, path, content, headers)
            answer = connection.getresponse()
            text = answer.read().decode()
        finally:
            connection.close()
        assert answer.status < 400, (method, path, answer.status, text)
        return text

    async def until(self, is_so: Callable[[], Awaitable[bool]]) -> None:
        """Return once it is so; the patience is generous, a loaded machine is no failure.

        It asks more and more seldom: what answers is what is waited for.
        """
        pause_s = SHORTEST_PAUSE_S
        with anyio.move_on_after(PATIENCE_S):
            while not await is_so():
                await anyio.sleep(pause_s)
                pause_s = min(pause_s * 1.3, LONGEST_PAUSE_S)
            return
        raise AssertionError("waited in vain")

    # Who comes in

    async def new_link(self, path: str = "/") -> str:
        """A page with a one-time login code in its fragment, as `nightherd open` makes it; for an admin."""
        code = (await self.post("/v1/login/codes"))["code"]
        return f"{self.url}{path}#code={code}"

    async def new_token(self, name: str, role: Role) -> str:
        """A named token: whoever logs in with it is called so and may do that. Asked for again, it is the same."""
        if (name, role) not in self._tokens:
            made = await self.post("/v1/tokens", name=name, role=role.value)
            self._tokens[name, role] = str(made["token"])
        return self._tokens[name, role]

    # Jobs

    async def submit(self, agent: str, prompt: str | None = None, **more: Any) -> str:
        """The id of a new job."""
        prompted = {} if prompt is None else {"prompt": prompt}
        return str((await self.post("/v1/jobs", agent=agent, **prompted, **more))["id"])

    async def until_status(self, job: str, *statuses: str) -> None:
        """Until the job has one of these statuses."""

        async def is_so() -> bool:
            return (await self.get(f"/v1/jobs/{job}"))["status"] in statuses

        await self.until(is_so)

    async def run(self, agent: str = "hello", prompt: str | None = None, **more: Any) -> str:
        """A job that has ended, however it did."""
        job = await self.submit(agent, prompt, **more)
        await self.until_status(job, *OVER)
        return job

    async def running_job(self) -> str:
        """A job in the middle of a tool's call; it goes on after `release`."""
        await self._end_held_jobs()
        job = await self.submit("held")
        await self.until(anyio.Path(self.folder / "held-begun").exists)
        return job

    def release(self) -> None:
        """Let the running job go on."""
        (self.folder / "held-go").touch()

    async def rescued_job(self) -> str:
        """A job whose daemon was killed in the middle of it, and which the next one brought to its end."""
        job = await self.running_job()
        await self.kill()
        self.release()
        await self.start()
        await self.until_status(job, *OVER)
        return job

    async def waiting_job(self, agent: str = "pusher") -> dict[str, Any]:
        """The inbox item of a new job that waits for a person: `pusher`, `asker` or `capped`."""
        job = await self.submit(agent)
        await self.until_status(job, "suspended")
        return dict(await self.get(f"/v1/inbox/{job}"))

    async def _end_held_jobs(self) -> None:
        """One of an earlier test may still wait for its file, and the agent has one job at a time."""
        self.release()
        for row in await self.get("/v1/jobs?q=agent:held"):
            await self.until_status(row["id"], *OVER)
        for name in ("held-begun", "held-go"):
            (self.folder / name).unlink(missing_ok=True)
