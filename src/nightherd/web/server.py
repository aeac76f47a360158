"""The server: every path of the API (`/v1/openapi.json`), on its unix socket and on the ports of the fleet file.

The socket is its owner's alone. A port needs a token; one that other machines can reach needs one that
somebody chose. The port of webhooks takes nothing but webhooks.
"""

from __future__ import annotations

import socket
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import anyio
import uvicorn
from anyio.abc import TaskStatus
from fastapi import Depends, FastAPI
from starlette.types import ASGIApp, Scope

from nightherd.errors import RefusedError
from nightherd.model.access.web import Tls
from nightherd.web import (
    config,
    costs,
    downloads,
    hooks,
    operations,
    page,
    problem,
    search,
    slack,
    work,
    workspaces,
)
from nightherd.web import fleet as fleet_paths
from nightherd.web.access import login, tokens
from nightherd.web.access.caller import check_role
from nightherd.web.access.guard import LARGEST_HEAD, Door, Guard
from nightherd.web.access.identify import Identify
from nightherd.web.api_context import ApiContext
from nightherd.web.health import doctor, logs, metrics, notify, reload, retention
from nightherd.web.jobs import (
    bulk,
    checkpoints,
    exports,
    job_events,
    job_forks,
    jobs,
    landing,
    outlines,
    settings,
)
from nightherd.web.openapi import describe
from nightherd.web.operations import PEER_USER
from nightherd.web.people import answer_page, home, inbox, push
from nightherd.web.ports import Port
from nightherd.web.protocol import PatientProtocol
from nightherd.web.schedules import schedules, slots
from nightherd.web.sessions import session_changes, session_files, session_reading, sessions
from nightherd.web.socket_file import inode_of, listen, remove
from nightherd.web.streams import stream
from nightherd.web.workflows import runs, workflows
from nightherd.wiring.machine import user_name

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
    fleet_paths, config, schedules, slots, jobs, job_events, downloads, workflows, runs, sessions, workspaces, inbox, answer_page, hooks, slack, metrics,
    operations, outlines, settings, search, stream,
    session_reading, session_changes, session_files, job_forks, bulk, landing, checkpoints, exports,
    costs, home,
    login, tokens, doctor, retention, notify, reload, logs,
    push, work,
)  # fmt: skip


class Api(FastAPI):
    """The app, whose description has the types of all answers."""

    def openapi(self) -> dict[str, Any]:
        """Return the OpenAPI document, made once."""
        if self.openapi_schema is None:
            self.openapi_schema = describe(self, [room.router for room in ROOMS])
        return self.openapi_schema


def make_app(site: ApiContext, ui: Path = page.UI) -> FastAPI:
    """The API on `site` and the dashboard of `ui`. Who may come in is decided by the door that it is served behind."""
    app = make_api(site.context.version)
    app.state.site = site
    page.install(app, ui)
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
        dependencies=[Depends(check_role)],
    )
    problem.install(app)
    for room in ROOMS:
        app.include_router(room.router)
    return app


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
        identify=Identify(credentials=site, person=user_name(), person_of=_user_of),
    )
    listeners: list[socket.socket] = []
    try:
        # Ports first: one that is taken leaves no socket behind.
        listeners += [_bind(port) for port in ports]
        listeners.insert(0, listen(socket_path))
        inode = inode_of(socket_path)
        doors = [(door, None), *((port.door, port.tls) for port in ports)]
        servers = [_make(Guard(app, one), tls) for one, tls in doors]
        async with anyio.create_task_group() as tasks:
            for server, listener in zip(servers, listeners, strict=True):
                tasks.start_soon(_run, server, listener)
            try:
                for server in servers:
                    await server.is_ready.wait()
                site.ports[:] = [one.getsockname()[1] for one in listeners[1:]]
                task_status.started(list(site.ports))
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


def _user_of(scope: Scope) -> str | None:
    """The user whose process is at the other end of the socket."""
    find_user = scope.get(PEER_USER)
    found = None if find_user is None else find_user()
    return None if found is None else str(found)


def _make(app: ASGIApp, tls: Tls | None = None) -> _Server:
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
            ssl_certfile=None if tls is None else tls.cert,
            ssl_keyfile=None if tls is None else tls.key,
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
