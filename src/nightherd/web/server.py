"""The server: every path of the API (`/v1/openapi.json`), on its unix socket and on the ports of the fleet file.

The socket is its owner's alone. A port needs a token; one that other machines can reach needs one that
somebody chose. The port of webhooks takes nothing but webhooks.
"""

from __future__ import annotations

import socket
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import anyio
import uvicorn
from anyio.abc import TaskStatus
from fastapi import FastAPI
from starlette.types import ASGIApp

from nightherd.errors import ConfigError, RefusedError
from nightherd.model.agents.agent import Fleet
from nightherd.model.ids import RandomText
from nightherd.model.inbox.token import WEB_PERSON
from nightherd.model.webhooks import LOOPBACK, is_loopback
from nightherd.web import (
    answer_page,
    downloads,
    hooks,
    inbox,
    job_events,
    jobs,
    metrics,
    operations,
    outlines,
    problem,
    runs,
    search,
    sessions,
    stream,
    workflows,
    workspaces,
)
from nightherd.web import fleet as fleet_paths
from nightherd.web.api_context import ApiContext
from nightherd.web.guard import LARGEST_HEAD, Door, Guard, host_of
from nightherd.web.openapi import describe
from nightherd.web.protocol import PatientProtocol
from nightherd.web.socket_file import inode_of, listen, remove
from nightherd.wiring.machine import user_name
from nightherd.wiring.stores import ensure_web_token

SHORTEST_TOKEN = 16
"""Characters of a token that other machines can try to guess."""
CLOSING_S = 2
"""How long answers that are under way may still take when the server ends."""
KEEP_ALIVE_S = 15
MOST_CONNECTIONS = 2_000

OPENAPI = "/v1/openapi.json"
DESCRIPTION = (
    "A fleet of agents over HTTP. Answers are the documents that the command line prints with --json; "
    "errors are problems (RFC 9457)."
)


ROOMS = (
    fleet_paths, jobs, job_events, downloads, workflows, runs, sessions, workspaces, inbox, answer_page, hooks, metrics,
    operations, outlines, search, stream,
)  # fmt: skip


class Api(FastAPI):
    """The app, whose description has the types of all answers."""

    def openapi(self) -> dict[str, Any]:
        """Return the OpenAPI document, made once."""
        if self.openapi_schema is None:
            self.openapi_schema = describe(self, [room.router for room in ROOMS])
        return self.openapi_schema


def make_app(site: ApiContext) -> FastAPI:
    """The API on `site`. Who may come in is decided by the door that it is served behind."""
    app = make_api(site.context.version)
    app.state.site = site
    return app


def make_api(version: str) -> FastAPI:
    """The API without anything behind it: enough to describe it."""
    app = Api(
        title="nightherd",
        version=version,
        description=DESCRIPTION,
        openapi_url=OPENAPI,
        docs_url=None,
        redoc_url=None,
    )
    problem.install(app)
    for room in ROOMS:
        app.include_router(room.router)
    return app


@dataclass(frozen=True, slots=True, kw_only=True)
class Port:
    """A port to listen on, and who may come in by it."""

    host: str
    port: int
    door: Door


class _Server(uvicorn.Server):
    """Leaves signals to the process it is part of, says when it is ready, and sleeps without requests."""

    def __init__(self, config: uvicorn.Config) -> None:
        super().__init__(config)
        self.is_ready = anyio.Event()
        self._ending = anyio.Event()

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Begin to listen."""
        await super().startup(sockets)
        self.is_ready.set()

    async def main_loop(self) -> None:
        """Nothing is to be done until the end: connections keep their own time, and say what time it is."""
        await self._ending.wait()

    def end(self) -> None:
        """Answer what was asked, and return."""
        self.should_exit = True
        self._ending.set()

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield


def ports_of(
    fleet: Fleet, site: ApiContext, state_dir: Path, random_text: RandomText
) -> list[Port]:
    """The ports the fleet file asks for. `ConfigError` for one that could be reached without leave."""
    ports = []
    if fleet.web.enabled:
        web = fleet.web
        hosts = {web.host.lower(), *(host.lower() for host in web.hosts)}
        if is_loopback(web.host):
            hosts |= LOOPBACK
        if web.public_url is not None:
            hosts.add(host_of(urlsplit(web.public_url).netloc))
        door = Door(
            counters=site.counters,
            hook_limit=lambda: site.fleet().webhooks.body_limit,
            hosts=frozenset(hosts),
            token=_token(fleet, site.environ, state_dir, random_text),
            person=WEB_PERSON,
            name_of=site.name_of,
        )
        ports.append(Port(host=web.host, port=web.port, door=door))
    if fleet.webhooks.enabled:
        door = Door(
            counters=site.counters,
            hook_limit=lambda: site.fleet().webhooks.body_limit,
            only_hooks=True,
        )
        ports.append(Port(host=fleet.webhooks.host, port=fleet.webhooks.port, door=door))
    return ports


async def serve(
    app: ASGIApp,
    site: ApiContext,
    socket_path: Path,
    ports: Sequence[Port] = (),
    *,
    task_status: TaskStatus[list[int]] = anyio.TASK_STATUS_IGNORED,
) -> None:
    """Serve until cancelled. Once started, it passes on the ports it really listens on.

    `RefusedError` when the socket or a port is taken. When it returns, nothing listens any more.
    """
    door = Door(
        counters=site.counters,
        hook_limit=lambda: site.fleet().webhooks.body_limit,
        takes_operations=True,
        person=user_name(),
        name_of=site.name_of,
    )
    listeners: list[socket.socket] = []
    try:
        # Ports first: one that is taken leaves no socket behind.
        listeners += [_bind(port) for port in ports]
        listeners.insert(0, listen(socket_path))
        inode = inode_of(socket_path)
        doors = [door, *(port.door for port in ports)]
        servers = [_make(Guard(app, one)) for one in doors]
        async with anyio.create_task_group() as tasks:
            for server, listener in zip(servers, listeners, strict=True):
                tasks.start_soon(_run, server, listener)
            try:
                for server in servers:
                    await server.is_ready.wait()
                task_status.started([one.getsockname()[1] for one in listeners[1:]])
                await anyio.sleep_forever()
            finally:
                remove(socket_path, inode)
                for server in servers:
                    server.end()
    finally:
        for listener in listeners:
            listener.close()


async def _run(server: _Server, listener: socket.socket) -> None:
    # Not cancelled half-way: it is asked to end, and finishes its responses within its own limit.
    with anyio.CancelScope(shield=True):
        await server.serve(sockets=[listener])


def _make(app: ASGIApp) -> _Server:
    return _Server(
        uvicorn.Config(
            app,
            http=PatientProtocol,
            ws="none",
            lifespan="off",
            loop="none",
            log_config=None,
            log_level="critical",
            access_log=False,
            server_header=False,
            proxy_headers=False,
            timeout_keep_alive=KEEP_ALIVE_S,
            timeout_graceful_shutdown=CLOSING_S,
            limit_concurrency=MOST_CONNECTIONS,
            h11_max_incomplete_event_size=LARGEST_HEAD,
        )
    )


def _bind(port: Port) -> socket.socket:
    family = socket.AF_INET6 if ":" in port.host else socket.AF_INET
    listener = socket.socket(family, socket.SOCK_STREAM)
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind((port.host, port.port))
        listener.listen(512)
        listener.setblocking(False)
    except OSError as error:
        listener.close()
        raise RefusedError(
            f"cannot listen on {port.host} port {port.port}: {error.strerror or error}",
            hint="choose another port in the fleet file",
        ) from error
    return listener


def _token(
    fleet: Fleet, environ: Mapping[str, str], state_dir: Path, random_text: RandomText
) -> str:
    """The token to show: the configured one, else, for this machine alone, one that is made."""
    name = fleet.web.token_env
    chosen = {**fleet.environment, **environ}.get(name, "").strip()
    is_open = not is_loopback(fleet.web.host)
    if is_open and 0 < len(chosen) < SHORTEST_TOKEN:
        raise ConfigError(
            f"the API on {fleet.web.host} can be reached from other machines, and the token in {name} has only"
            f" {len(chosen)} characters; it needs at least {SHORTEST_TOKEN}",
            hint=f"set {name} to a long random text (openssl rand -hex 20), or listen on localhost",
        )
    if chosen:
        return chosen
    if is_open:
        raise ConfigError(
            f"the API on {fleet.web.host} can be reached from other machines, and {name} has no token",
            hint=f"set {name} to a long random text, or listen on localhost",
        )
    return ensure_web_token(state_dir, random_text)
