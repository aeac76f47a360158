"""Scripted agents, and others, in real containers with `network: egress`."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable, Sequence
from contextlib import aclosing
from datetime import timedelta
from pathlib import Path
from typing import Any

import anyio
from msgspec.structs import replace

from docker_engine import DockerEngine
from nightherd.model.agents.script import Say, UseTool, compile_script
from nightherd.model.containers.policy import ContainerNetwork, ContainerPolicy
from nightherd.model.journal.event import Event, SystemEvent, ToolResultEvent, is_terminal
from nightherd.model.journal.system import SystemSubtype
from nightherd.ports import Runtime, RuntimeRequest
from nightherd.runtimes.claude.installation import InstalledClaude
from nightherd.runtimes.container.containers import Containers
from nightherd.runtimes.container.runtime import ContainerRuntime, Make
from nightherd.runtimes.keeper.keepers import Keepers
from nightherd.runtimes.scripted.runtime import ScriptedRuntime
from runtimes.container.origin import here
from runtimes.stage import Stage

GRACE = timedelta(seconds=2)
PROBE = """
import json, os, socket, ssl, sys, urllib.request

def tried(work):
    try:
        return work()
    except Exception as error:
        return f"{type(error).__name__}: {error}"

def get(url):
    context = ssl.create_default_context(cafile="cert.pem") if os.path.exists("cert.pem") else None
    with urllib.request.urlopen(url, timeout=20, context=context) as answer:
        return answer.read().decode()

def connect(host, port):
    socket.create_connection((host, int(port)), timeout=5).close()
    return "connected"

def environment(name):
    return os.environ.get(name)

what = {"get": get, "connect": connect, "environment": environment}
print(json.dumps([tried(lambda: what[name](*given)) for name, *given in json.loads(sys.argv[1])]))
"""


class Inside:
    """Runs scripted agents in containers of one engine."""

    def __init__(self, engine: DockerEngine, image: str, folder: Path) -> None:
        self.work = folder / "work"
        self.work.mkdir()
        (self.work / "probe.py").write_text(PROBE)
        os.chown(self.work, 1000, 1000)
        self.state = folder / "state"
        self.state.mkdir()
        self.policy = ContainerPolicy(
            image=image, socket=engine.socket_path, network=ContainerNetwork.EGRESS
        )
        self.resolve: Callable[[str, int], Sequence[str]] = here
        self.allow_private = True
        self.make: Make = scripted

    def request(self, *steps: Any, **more: Any) -> RuntimeRequest:
        request = Stage(self.work).request(compile_script(steps), **more)
        return replace(request, agent=replace(request.agent, container=self.policy))

    def run(self, request: RuntimeRequest) -> list[Event]:
        """The events of the run."""

        async def run() -> list[Event]:
            events: list[Event] = []
            await self.execute(request, events)
            return events

        return anyio.run(run)

    async def execute(self, request: RuntimeRequest, events: list[Event]) -> None:
        """Run it as a worker does: up to its terminal event."""
        keepers = Keepers(directory="x")
        keepers.send_heartbeat(time.monotonic() + 120)
        containers = Containers(
            root=self.state / "containers", fleet="tests", keepers=keepers, find_socket=str
        )
        runtime = ContainerRuntime(
            containers,
            self.make,
            self.state,
            GRACE,
            resolve=self.resolve,
            allow_private=self.allow_private,
        )
        try:
            async with aclosing(runtime.execute(request)) as stream:
                async for event in stream:
                    events.append(event)
                    if is_terminal(event):
                        return
        finally:
            with anyio.CancelScope(shield=True):
                await containers.close()

    def probe(self, *calls: tuple[Any, ...]) -> tuple[list[Any], list[Event]]:
        """What each of the calls of PROBE returns inside, and all events."""
        command = f"python3 probe.py '{json.dumps(calls)}'"
        events = self.run(self.request(UseTool("Bash", {"command": command}), Say("done")))
        (result,) = [one for one in events if isinstance(one, ToolResultEvent)]
        assert result.success, result
        return json.loads(str(result.result)), events


def scripted(keepers: Keepers, _claude: InstalledClaude | None) -> Runtime:
    return ScriptedRuntime(keepers=keepers, grace=GRACE)


def warnings(events: Sequence[Event]) -> list[str]:
    return [
        str(event.content)
        for event in events
        if isinstance(event, SystemEvent)
        and event.subtype is SystemSubtype.WARNING
        and (event.extra or {})["code"] == "egress_refused"
    ]
