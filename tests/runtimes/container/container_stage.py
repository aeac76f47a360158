"""Real containers for tests: made by `Containers` as a worker makes them, in the engine of the run."""

from __future__ import annotations

import os
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from typing import Any

from nightherd.model.containers.layout import SharedFiles, lay_out
from nightherd.model.containers.policy import ContainerNetwork, ContainerPolicy
from nightherd.model.containers.user import Ids
from nightherd.model.containers.variables import PATH
from nightherd.runtimes.container.containers import Containers, Running, Wanted
from nightherd.runtimes.container.library import provide_library
from nightherd.runtimes.keeper.attendant import Ending
from nightherd.runtimes.keeper.keepers import Keepers
from nightherd.runtimes.keeper.process import KeptProcess, kept_process

ENVIRONMENT = {"PATH": PATH, "HOME": "/home/agent"}
QUICK = timedelta(milliseconds=200)
LONG_S = 600.0
USER = Ids(1000, 1000)


@dataclass(frozen=True)
class Box:
    """A container that runs, and the keepers that start commands in it."""

    running: Running
    keepers: Keepers
    directory: Path

    @property
    def id(self) -> str:
        return self.running.id

    @asynccontextmanager
    async def kept(self, *argv: str, **more: Any) -> AsyncIterator[KeptProcess]:
        """A command inside, under its keeper."""
        options: dict[str, Any] = {
            "cwd": self.directory,
            "env": ENVIRONMENT,
            "execution": "job-2025-03-04-abc123.1",
            "grace": QUICK,
            "keepers": self.keepers,
            **more,
        }
        async with kept_process(argv, **options) as process:
            yield process

    async def run(self, command: str, **more: Any) -> tuple[str, Ending]:
        """What the shell printed, errors too, and how it ended."""
        argv = ("bash", "-c", f"exec 2>&1\n{command}")
        async with self.kept(*argv, **more) as process:
            output = bytearray()
            assert process.stdout is not None
            await process.stdout.drain(output.extend)
            return output.decode(errors="replace"), await process.wait()


@dataclass
class Boxes:
    """Makes containers below `root`, which stands for a state directory with its project."""

    root: Path
    socket: str
    image: str
    fleet: str = ""
    margin_s: float = 1.0
    keepers: Keepers = field(init=False)

    def __post_init__(self) -> None:
        self.fleet = self.fleet or f"fleet-of-{self.root}"
        self.work = self.root / "work"
        self.work.mkdir(exist_ok=True)
        os.chown(self.work, USER.uid, USER.gid)
        self.state = self.root / "state"
        self.state.mkdir(exist_ok=True)

    def policy(self, **more: Any) -> ContainerPolicy:
        options: dict[str, Any] = {
            "image": self.image,
            "socket": self.socket,
            "network": ContainerNetwork.NONE,
            **more,
        }
        return ContainerPolicy(**options)

    def wanted(self, *, agent: str = "tester", session: str = "session-1", **policy: Any) -> Wanted:
        nothing = self.state / "nothing"
        nothing.touch()
        shared = SharedFiles(working_directory=str(self.work))
        return Wanted(
            policy=self.policy(**policy),
            agent=agent,
            execution="job-2025-03-04-abc123.1",
            session=session,
            user=USER,
            owner=USER,
            working_directory=str(self.work),
            layout=lay_out(shared, nothing=str(nothing), exists=os.path.lexists),
            grace=QUICK,
        )

    def containers(self, *, lease_s: float = LONG_S, **more: Any) -> Containers:
        """Those of a new worker, whose lease ends in so many seconds."""
        keepers = Keepers(margin_s=self.margin_s, directory=self.fleet)
        keepers.send_heartbeat(time.monotonic() + lease_s)
        return Containers(
            root=self.state / "containers",
            fleet=self.fleet,
            keepers=keepers,
            find_socket=lambda configured: configured or self.socket,
            **more,
        )

    @asynccontextmanager
    async def opened(
        self,
        wanted: Wanted | None = None,
        *,
        lease_s: float = LONG_S,
        provide: Callable[[Path], Path] = provide_library,
        **policy: Any,
    ) -> AsyncIterator[Box]:
        """A container as a run has it."""
        containers = self.containers(lease_s=lease_s, provide=provide)
        try:
            async with containers.open(wanted or self.wanted(**policy)) as running:
                keepers = containers.keepers.branch(place=running.place)
                try:
                    yield Box(running=running, keepers=keepers, directory=self.work)
                finally:
                    await keepers.stop(QUICK)
                    containers.keepers.discard(keepers)
        finally:
            await containers.close()
