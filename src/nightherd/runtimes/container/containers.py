"""The containers of one worker: made for an execution or kept for a session, leased while a run uses them."""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import time
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import Any

import anyio
import msgspec
from anyio import from_thread, lowlevel, to_thread
from msgspec.structs import replace

from nightherd.errors import NightherdError, RefusedError
from nightherd.host.system import random_text
from nightherd.model.containers.hardening import create_body, unsafe_mounts
from nightherd.model.containers.image import EXECUTION_LABEL, FLEET_LABEL
from nightherd.model.containers.layout import Layout
from nightherd.model.containers.mounts import HOME, KEEPER_DIRECTORY
from nightherd.model.containers.policy import ContainerPolicy, Mount
from nightherd.model.containers.user import Ids
from nightherd.runtimes.container.engine import Engine
from nightherd.runtimes.container.init import SOCKET
from nightherd.runtimes.container.library import LIBRARY, command, provide_library
from nightherd.runtimes.container.ownership import give
from nightherd.runtimes.container.place import ContainerGoneError, ContainerPlace
from nightherd.runtimes.container.rescue import ContainerRecord, remove_folders, write_record
from nightherd.runtimes.keeper.keepers import Keepers

IDLE = timedelta(hours=1)
"""How long a container that is kept for a session waits for the next job."""
STARTED_S = 60.0
"""How long process 1 may take until it listens."""
POLL_S = 0.005
ASK_S = 0.5
"""How often the engine is asked whether a container that does not listen yet still runs."""
SESSION_LABEL, AGENT_LABEL, TERMS_LABEL, FOLDER_LABEL = (
    f"nightherd.{name}" for name in ("session", "agent", "terms", "folder")
)
ABANDONED_S = 600.0
"""What was made this long before the last one has lost its worker: a container that never started, a directory without one."""
REMOVE_S = 20.0
"""How long the end of a run waits for the engine to remove containers; nothing runs in them by then."""
IN_USE = ("running", "paused", "restarting")
ENDED = ("exited", "dead")
KEEPER_MARK = "NIGHTHERD_KEEPER"
FOLDER, NO_FOLDER = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*"), "-"
"""Names of containers' directories, and one that none has."""


class Wanted(msgspec.Struct, frozen=True, kw_only=True):
    """The container that a run needs."""

    policy: ContainerPolicy
    agent: str
    execution: str
    session: str
    user: Ids
    """Inside."""
    owner: Ids | None
    """Whom its files belong to out here; None for a number that is nobody's."""
    working_directory: str
    layout: Layout
    grace: timedelta


@dataclass(slots=True, kw_only=True)
class Running:
    """A container that runs, and what is known about it."""

    id: str
    place: ContainerPlace
    image_id: str
    unlimited: tuple[str, ...] = ()
    """What the engine does not limit."""
    is_reused: bool = False
    is_done: bool = False
    """Whether the run has come to its end, so that the next one may use the container, even if the block is left early."""


@dataclass(slots=True)
class Containers:
    """All that one worker has to do with containers; its engines are connected when they are needed."""

    root: Path
    """Where containers have their directories: `containers` of the state directory."""
    fleet: str
    """The identity of the state directory."""
    keepers: Keepers
    find_socket: Callable[[str | None], str]
    """Returns where the engine listens; `ContainerEngineError` when there is none."""
    cpus: int = field(default_factory=lambda: os.cpu_count() or 1)
    provide: Callable[[Path], Path] = provide_library
    """Returns the directory below another one that has the files of ours which run inside."""
    _engines: dict[str, Engine] = field(default_factory=dict)

    @property
    def has_lease(self) -> bool:
        """Whether the worker's lease still runs, so that no other worker has its jobs."""
        return time.monotonic() < self.keepers.deadline

    async def engine(self, configured: str | None) -> Engine:
        """The engine that listens at `configured`, else where engines usually do."""
        socket = await to_thread.run_sync(self.find_socket, configured)
        engine = self._engines.get(socket)
        if engine is None:
            engine = self._engines[socket] = Engine(socket)
        return engine

    async def close(self) -> None:
        """Close the connections to engines."""
        for engine in self._engines.values():
            await engine.close()
        self._engines.clear()

    @asynccontextmanager
    async def open(self, wanted: Wanted) -> AsyncIterator[Running]:
        """A container for the run. When the block is left, nothing runs in it any more; an ephemeral one is removed."""
        engine = await self.engine(wanted.policy.socket)
        image_id = await self._image(engine, wanted.policy.image)
        running = None
        if not wanted.policy.is_ephemeral:
            running = await self._reuse(engine, wanted, image_id)
        if running is None:
            running = await self._create(engine, wanted, image_id)
        self.keepers.add(running.place)
        try:
            yield running
            running.is_done = True
        finally:
            with anyio.CancelScope(shield=True):
                is_kept = running.is_done and not wanted.policy.is_ephemeral
                is_kept = is_kept and await running.place.release(IDLE)
                self.keepers.discard(running.place)
                running.place.close()
                # One whose socket the agent has removed is of no use to the next job.
                if is_kept and await _is_idle(running.place) is not None:
                    # Where the engine is gone, the job is done all the same.
                    with suppress(NightherdError), anyio.move_on_after(REMOVE_S):
                        await self._remove_idle(engine, wanted)
                else:
                    await self._remove(engine, running.id, running.place.directory.parent)

    async def _create(self, engine: Engine, wanted: Wanted, image_id: str) -> Running:
        """Make a container and have it leased. What cannot be finished is removed again."""
        self._check_mounts(wanted)
        folder = await to_thread.run_sync(self._make_folder, wanted)
        body = self._body(wanted, folder, image_id)
        name = f"nightherd-{wanted.execution}-{random_text(6)}".replace(":", "-")
        container: str | None = None
        try:
            self._record(engine, name, wanted, folder)
            container = await engine.create(name, body)
            await engine.start(container)
            place = await self._leased(engine, container, wanted, folder)
            if place is None:
                raise RefusedError(f"container {name} is used by another worker")
            with suppress(NightherdError):
                await self._remove_ended(engine)
        except BaseException:
            with anyio.CancelScope(shield=True):
                await self._remove(engine, container or name, folder)
            raise
        unlimited = (await engine.traits()).unlimited
        return Running(id=container, place=place, image_id=image_id, unlimited=unlimited)

    def _record(self, engine: Engine, name: str, wanted: Wanted, folder: Path) -> None:
        write_record(
            folder, ContainerRecord(name=name, socket=engine.socket, execution=wanted.execution)
        )

    async def _image(self, engine: Engine, image: str) -> str:
        return str((await engine.inspect_image(image))["Id"])

    async def image_path(self, policy: ContainerPolicy) -> str | None:
        """The PATH that the image gives its processes."""
        engine = await self.engine(policy.socket)
        config = (await engine.inspect_image(policy.image)).get("Config") or {}
        entries = (entry.partition("=") for entry in config.get("Env") or ())
        return next((value for name, _, value in entries if name == "PATH"), None)

    def _make_folder(self, wanted: Wanted) -> Path:
        """The directory of a new container: `run` for its socket, `files` for files of the run."""
        self.root.mkdir(mode=0o700, exist_ok=True)
        folder = self.root / f"{wanted.execution}-{random_text(6)}"
        folder.mkdir(mode=0o700)
        for name in ("run", "files"):
            (folder / name).mkdir(mode=0o700)
            give(folder / name, wanted.owner)
        return folder

    def _terms(self, wanted: Wanted, image_id: str) -> str:
        """What a container must have in common with a run that uses it again, as a digest."""
        library = str(self._library())
        same = (wanted.policy, wanted.user, wanted.working_directory, wanted.layout)
        terms = msgspec.json.encode((*same, image_id, library), order="deterministic")
        return hashlib.sha256(terms).hexdigest()[:32]

    def _library(self) -> Path:
        return self.provide(self.root / "library")

    def _body(self, wanted: Wanted, folder: Path, image_id: str) -> dict[str, Any]:
        labels = {
            FLEET_LABEL: self.fleet,
            EXECUTION_LABEL: wanted.execution,
            AGENT_LABEL: wanted.agent,
            SESSION_LABEL: wanted.session,
            TERMS_LABEL: self._terms(wanted, image_id),
            FOLDER_LABEL: folder.name,
        }
        # The engine gives a directory in memory the mode of what it hides, which may be closed to others than its owner.
        owner = f"uid={wanted.user.uid},gid={wanted.user.gid}"
        ways = {path: f"{options},{owner}" for path, options in wanted.layout.tmpfs.items()}
        return create_body(
            replace(wanted.policy, tmpfs={**wanted.policy.tmpfs, **ways}),
            name=re.sub(r"[.:]", "-", wanted.agent),
            user=str(wanted.user),
            mounts=self._mounts(wanted, folder),
            working_directory="/",
            command=command(LIBRARY, KEEPER_DIRECTORY),
            labels=labels,
            environment={KEEPER_MARK: "self"},
            cpus=self.cpus,
        )

    def _check_mounts(self, wanted: Wanted) -> None:
        """Refuse what would give the machine away. Links were followed when the fleet was loaded, and may have changed."""
        mounts = (*wanted.layout.mounts, *wanted.policy.volumes)
        followed = [replace(one, source=os.path.realpath(one.source)) for one in mounts]
        for mount in unsafe_mounts(wanted.policy, followed):
            raise RefusedError(
                f"{mount.source} is not mounted into a container: it gives control of this machine",
                hint="docker.allow_unsafe in the fleet file allows it",
            )

    def _mounts(self, wanted: Wanted, folder: Path) -> tuple[Mount, ...]:
        files = str(folder / "files")
        return (
            *wanted.layout.mounts,
            *wanted.policy.volumes,
            Mount(source=str(self._library()), target=LIBRARY, is_read_only=True),
            Mount(source=str(folder / "run"), target=KEEPER_DIRECTORY),
            Mount(source=files, target=files),
        )

    async def _leased(
        self, engine: Engine, container: str, wanted: Wanted, folder: Path
    ) -> ContainerPlace | None:
        """The container's place once process 1 listens; None when another worker has it."""
        await self._wait_for_socket(engine, container, folder / "run" / SOCKET)
        state = (await engine.inspect(container))["State"]
        place = ContainerPlace(
            directory=folder / "run",
            init_pid=int(state["Pid"]),
            owner=wanted.owner,
            mounts=self._mounts(wanted, folder),
            hidden=(*wanted.layout.tmpfs, *wanted.policy.tmpfs, HOME, "/tmp"),  # noqa: S108 inside
            scratch=str(folder / "files"),
            destroy=partial(
                from_thread.run,
                partial(engine.remove, container, force=True),
                token=lowlevel.current_token(),
            ),
            margin_s=self.keepers.margin_s,
            grace_s=min(wanted.grace.total_seconds(), 5.0),
        )
        try:
            is_ours = await to_thread.run_sync(place.lease, self.keepers.deadline)
        except ContainerGoneError as error:
            text = (await engine.logs(container)).strip()[-500:]
            raise NightherdError(
                f"the container of {wanted.agent} does not start: {text or error}"
            ) from error
        return place if is_ours else None

    async def _wait_for_socket(self, engine: Engine, container: str, socket: Path) -> None:
        """Until process 1 listens; `NightherdError` with its last words when it has ended before."""
        began = asked = time.monotonic()
        while not await anyio.Path(socket).exists():
            await anyio.sleep(POLL_S)
            now = time.monotonic()
            if now - asked < ASK_S and now - began < STARTED_S:
                continue
            asked = now
            state = (await engine.inspect(container))["State"]
            if not state.get("Running") or now - began >= STARTED_S:
                text = (await engine.logs(container)).strip()[-500:]
                raise NightherdError(
                    f"the container does not start (exit code {state.get('ExitCode')}): {text}",
                    hint="the image needs python3 of version 3.9 or newer; checking the image lists all that it needs",
                )

    async def _reuse(self, engine: Engine, wanted: Wanted, image_id: str) -> Running | None:
        """A container that waits for this session, made on the same terms; others of the session are removed."""
        terms = await to_thread.run_sync(self._terms, wanted, image_id)
        for found in await engine.list({FLEET_LABEL: self.fleet, SESSION_LABEL: wanted.session}):
            labels, container = found.get("Labels") or {}, str(found["Id"])
            folder = self._folder(found)
            is_fit = labels.get(TERMS_LABEL) == terms and found.get("State") == "running"
            if is_fit:
                with suppress(NightherdError, OSError):
                    place = await self._leased(engine, container, wanted, folder)
                    if place is not None:
                        # Not before: the job that has it would lose it with ours.
                        self._record(engine, container, wanted, folder)
                        return Running(
                            id=container,
                            place=place,
                            image_id=image_id,
                            unlimited=(await engine.traits()).unlimited,
                            is_reused=True,
                        )
                    continue  # another job of the session has it
            await self._remove_unused(engine, found)
        return None

    async def _remove_idle(self, engine: Engine, wanted: Wanted) -> None:
        """Keep the newest `max_containers` of the agent that wait for a job, and none that has ended."""
        kept = 0
        found = await engine.list({FLEET_LABEL: self.fleet, AGENT_LABEL: wanted.agent})
        for one in sorted(found, key=lambda one: -int(one.get("Created", 0))):
            is_running = one.get("State") == "running"
            if is_running and await self._is_idle(engine, one):
                kept += 1
                if kept <= wanted.policy.max_containers:
                    continue
            await self._remove_unused(engine, one)

    async def _remove_ended(self, engine: Engine) -> None:
        """Remove what killed workers have left: containers that ended, or were never started."""
        listed = await engine.list({FLEET_LABEL: self.fleet})
        newest = max((int(found.get("Created", 0)) for found in listed), default=0)
        for found in listed:
            is_old = newest - int(found.get("Created", 0)) > ABANDONED_S
            if found.get("State") in ENDED or (found.get("State") == "created" and is_old):
                await self._remove(engine, str(found["Id"]), self._folder(found))
        names = {str(name).lstrip("/") for found in listed for name in found.get("Names") or ()}
        known = names | {str(found["Id"]) for found in listed}
        await to_thread.run_sync(remove_folders, self.root, engine.socket, known, ABANDONED_S)

    async def _remove_unused(self, engine: Engine, found: Mapping[str, Any]) -> None:
        """Remove a container that has ended, or that waits for a job: one that is leased first is nobody else's."""
        container = str(found["Id"])
        if found.get("State") in IN_USE:
            place = await self._place(engine, container, self._folder(found))
            try:
                if place is None or not await to_thread.run_sync(
                    place.lease, time.monotonic() + 60
                ):
                    return
            except ContainerGoneError:
                return  # it is about to listen, or to end
            place.close()
        elif found.get("State") not in ENDED:
            return  # it is being made, or removed
        await self._remove(engine, container, self._folder(found))

    async def _is_idle(self, engine: Engine, found: Mapping[str, Any]) -> bool:
        place = await self._place(engine, str(found["Id"]), self._folder(found))
        return place is not None and await _is_idle(place) is True

    async def _place(self, engine: Engine, container: str, folder: Path) -> ContainerPlace | None:
        """A container that some worker has made; None when it is gone."""
        try:
            state = (await engine.inspect(container))["State"]
        except NightherdError:
            return None
        return ContainerPlace(directory=folder / "run", init_pid=int(state["Pid"]))

    def _folder(self, found: Mapping[str, Any]) -> Path:
        name = str((found.get("Labels") or {}).get(FOLDER_LABEL, NO_FOLDER))
        # Others can make a container with our labels, or have them in an image.
        return self.root / (name if FOLDER.fullmatch(name) else NO_FOLDER)

    async def _remove(self, engine: Engine, container: str, folder: Path) -> None:
        """Remove a container with everything that runs in it, and its directory. What fails is left for the next sweep."""
        with suppress(NightherdError), anyio.move_on_after(REMOVE_S):
            await engine.remove(container, force=True)
            await to_thread.run_sync(lambda: shutil.rmtree(folder, ignore_errors=True))


async def _is_idle(place: ContainerPlace) -> bool | None:
    """Whether no worker has it leased; None when its process 1 cannot be asked."""
    try:
        return await to_thread.run_sync(place.is_idle)
    except ContainerGoneError:
        return None
