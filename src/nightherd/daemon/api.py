"""The API of a daemon: served on its socket, and where the fleet file says so; left out when it is not installed."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import datetime
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import anyio
from anyio.abc import TaskStatus

from nightherd.daemon.control import daemon_row
from nightherd.daemon.record import SERVING, SOCKET, find_daemon
from nightherd.engine.contexts import WorkerContext
from nightherd.model.agents.agent import Fleet
from nightherd.model.webhooks import is_loopback
from nightherd.state.web_token import ensure_web_token
from nightherd.wiring.stores import random_text

NEEDED = ("fastapi", "uvicorn")


def make_token(state_dir: Path, fleet: Fleet, environ: Mapping[str, str]) -> None:
    """Make the token that the API will need before anything is masked: no agent prints one that is not known."""
    environment = {**fleet.environment, **environ}
    web = fleet.web
    if web.enabled and is_loopback(web.host) and not environment.get(web.token_env, "").strip():
        ensure_web_token(state_dir, random_text())


async def serve_api(
    state_dir: Path,
    fleet: Callable[[], Fleet],
    bench: Callable[[], WorkerContext],
    environ: Mapping[str, str],
    tell: Callable[[str], None],
    wake: Callable[[], None],
    *,
    task_status: TaskStatus[list[int] | None] = anyio.TASK_STATUS_IGNORED,
) -> None:
    """Serve until cancelled; started, it tells the ports it listens on, or None when there is no API."""
    from nightherd.web.api_context import open_api_context
    from nightherd.web.app import make_app
    from nightherd.web.hooks import tell_without_secret
    from nightherd.web.server import ports_of, serve

    if any(find_spec(name) is None for name in NEEDED):
        tell(f"the API is not served: {SERVING}")
        task_status.started(None)
        return

    def describe(now: datetime) -> Mapping[str, Any] | None:
        record = find_daemon(state_dir)
        return None if record is None else daemon_row(record, now)

    async with open_api_context(state_dir, fleet, bench, environ, tell, describe, wake) as site:
        ports = ports_of(fleet(), site, state_dir, bench().random_text)
        app = make_app(site)
        tell_without_secret(site)
        await serve(app, site, state_dir / SOCKET, ports, task_status=task_status)
