"""Engine: the Docker Engine API, through a unix socket of this machine. Podman answers the same API."""

from __future__ import annotations

import errno
import json
import re
import struct
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager
from typing import Any, Protocol, Self

import aiodocker
import aiohttp
import anyio

from nightherd.errors import (
    ContainerEngineError,
    InvalidValueError,
    NightherdError,
    NotFoundError,
    RefusedError,
)
from nightherd.model.containers.engine_traits import EngineTraits, traits_of
from nightherd.model.containers.podman import is_podman, podman_body
from nightherd.next_step import Action, NextStep
from nightherd.runtimes.container.sockets import PERMISSION

CALL_S = 120.0
"""How long a call may take: removing a large container from a busy disk takes a while."""
REMOVE_ATTEMPTS, REMOVE_PAUSE_S = 5, 0.1
ENDED_MEANWHILE = "container state improper"
LOG_LIMIT = 1024 * 1024
"""The most that is read of a container's output."""
CHUNK = 1024 * 1024
REFERENCE = re.compile(r"[A-Za-z0-9][A-Za-z0-9._/:@-]*")
CONTAINER = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]*")
SIGNAL = re.compile(r"[A-Z0-9+]+")
COLOR = re.compile(r"\x1b\[[0-9;]*m")
"""With which the engine marks the errors of a step."""
STOPPED = "start it (systemctl start docker), and try again"
HANGS = "it hangs or is busy: wait or restart it (systemctl restart docker), and try again"
NO_CONNECTION = 900
"""The status that aiodocker gives to a connection that failed."""
LISTED = (
    "Id",
    "Names",
    "Image",
    "ImageID",
    "Command",
    "Created",
    "State",
    "Status",
    "Labels",
    "Mounts",
)
"""What a list says about a container."""
FRAME = struct.Struct(">BxxxL")
"""Before each piece of a container's output: the stream, and its length."""


class SupportsRead(Protocol):
    """A file of bytes. It may return more than it is asked for."""

    def read(self, length: int = -1, /) -> bytes:
        """Return the next bytes; none at the end."""
        ...


class Engine:
    """One connection pool to the engine that listens at `socket`. Use it in one event loop, and close it.

    `ContainerEngineError` when the engine cannot be reached, `NotFoundError` when it has no such
    container or image, `RefusedError` when the state of a container does not allow a call, and
    `NightherdError` with the engine's own words for anything else.
    """

    def __init__(self, socket: str, *, call_s: float = CALL_S) -> None:
        self.socket = socket
        self._call_s = call_s
        self._client: aiodocker.Docker | None = None
        self._is_podman: bool | None = None
        self._traits: EngineTraits | None = None

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def version(self, *, call_s: float | None = None) -> dict[str, Any]:
        """Return the engine's version, as `GET /version` has it; the answer may take `call_s`."""
        async with self._call(call_s=call_s) as docker:
            return dict(await docker.version())

    async def info(self) -> dict[str, Any]:
        """Return what the engine says about itself and its machine, as `GET /info` has it."""
        async with self._call() as docker:
            return dict(await docker.system.info())

    async def traits(self) -> EngineTraits:
        """Return what decides how containers are made; asked once."""
        if self._traits is None:
            self._traits = traits_of(await self.info())
        return self._traits

    async def create(self, name: str, body: Mapping[str, Any]) -> str:
        """Create a container and return its id. It does not run yet. No image is ever pulled."""
        image = str(body.get("Image", ""))
        if self._is_podman is None:
            self._is_podman = is_podman(await self.version())
        asked = podman_body(body) if self._is_podman else dict(body)
        async with self._call(image=image) as docker:
            created = await docker.containers.create(asked, name=_container(name))
            return str(created.id)

    async def start(self, container: str) -> None:
        """Start a container. One that runs already stays as it is."""
        async with self._call() as docker:
            await docker.containers.container(_container(container)).start()

    async def inspect(self, container: str) -> dict[str, Any]:
        """Return everything about a container, as `GET /containers/ID/json` has it."""
        async with self._call() as docker:
            return dict(await docker.containers.container(_container(container)).show())

    async def wait(self, container: str) -> int:
        """Wait until a container has ended, however long that takes, and return its exit code."""
        async with self._call(is_bounded=False) as docker:
            ended = await docker.containers.container(_container(container)).wait()
            return int(ended["StatusCode"])

    async def kill(self, container: str, signal: str = "SIGKILL") -> bool:
        """Send a signal to the container's first process; False if the container does not run any more."""
        if not SIGNAL.fullmatch(signal):
            raise InvalidValueError(f"{signal!r} is not the name of a signal")
        try:
            async with self._call() as docker:
                await docker.containers.container(_container(container)).kill(signal=signal)
        except ContainerEngineError:
            raise
        except (NotFoundError, RefusedError):
            return False
        return True

    async def remove(self, container: str, *, force: bool = False) -> bool:
        """Remove a container and its anonymous volumes; False if there is none, or it is being removed.

        A running container is refused without `force`, which kills it.
        """
        for attempt in range(REMOVE_ATTEMPTS):
            try:
                async with self._call() as docker:
                    found = docker.containers.container(_container(container))
                    await found.delete(force=force, v=True)
                return True
            except NotFoundError:
                return False
            except RefusedError as error:
                if "already in progress" in error.message:
                    return False
                raise
            except NightherdError as error:
                # Podman kills what it believes to run; a container that ends just then is an error to it.
                if ENDED_MEANWHILE not in error.message or attempt + 1 == REMOVE_ATTEMPTS:
                    raise
            await anyio.sleep(REMOVE_PAUSE_S)
        return False

    async def list(self, labels: Mapping[str, str | None]) -> list[dict[str, Any]]:
        """Return the containers that have all these labels, running or not. None stands for any value."""
        wanted = [name if value is None else f"{name}={value}" for name, value in labels.items()]
        async with self._call() as docker:
            found = await docker.containers.list(all=True, filters=json.dumps({"label": wanted}))
        return [{key: one[key] for key in LISTED if key in one} for one in found]

    async def logs(self, container: str, *, limit: int = LOG_LIMIT) -> str:
        """Return what a container has written to stdout and stderr, at most the first `limit` bytes."""
        is_tty = bool((await self.inspect(container))["Config"].get("Tty"))
        async with self._call() as docker:
            url = f"{docker.docker_host}/{docker.api_version}/containers/{container}/logs"
            async with docker.session.get(url, params={"stdout": "1", "stderr": "1"}) as response:
                await _raise_refusal(response)
                raw = await _read(response, limit)
        return (raw if is_tty else b"".join(_frames(raw)))[:limit].decode(errors="replace")

    async def build(
        self, tar: SupportsRead, tag: str, *, arguments: Mapping[str, str] | None = None
    ) -> AsyncIterator[str]:
        """Build an image from a tar stream with a Dockerfile in it; yields the engine's progress by line.

        When the iterator ends, the image exists under `tag`. Closing the engine stops an unfinished build.
        """
        query = {"t": image_reference(tag), "forcerm": "1", "rm": "1"}
        query["buildargs"] = json.dumps(dict(arguments or {}))
        is_built = False
        async with self._call(is_bounded=False) as docker:
            # aiodocker takes a connection that breaks for the end of the build, and leaves it open.
            await docker.version()
            async with docker.session.post(
                f"{docker.docker_host}/{docker.api_version}/build",
                params=query,
                data=_pieces(tar),
                headers={"Content-Type": "application/x-tar"},
                timeout=aiohttp.ClientTimeout(),
            ) as response:
                await _raise_refusal(response)
                async for raw in response.content:
                    step = json.loads(raw)
                    if step.get("error"):
                        raise aiodocker.DockerError(response.status, str(step["error"]))
                    text = COLOR.sub("", str(step.get("stream") or step.get("status") or ""))
                    is_built = is_built or "ID" in (step.get("aux") or {})
                    is_built = is_built or text.startswith("Successfully built")
                    for line in text.rstrip().splitlines():
                        yield line
        if not is_built:
            raise self._unavailable("the connection broke during the build")

    async def image_exists(self, image: str) -> bool:
        """Return whether the engine has this image."""
        try:
            await self.inspect_image(image)
        except NotFoundError:
            return False
        return True

    async def inspect_image(self, image: str) -> dict[str, Any]:
        """Return everything about an image, as `GET /images/NAME/json` has it."""
        async with self._call(image=image) as docker:
            return dict(await docker.images.inspect(image_reference(image)))

    async def close(self) -> None:
        """Close every connection; calls that are under way end."""
        client, self._client = self._client, None
        if client is not None:
            await client.close()

    @asynccontextmanager
    async def _call(
        self, *, image: str | None = None, is_bounded: bool = True, call_s: float | None = None
    ) -> AsyncIterator[aiodocker.Docker]:
        """Give the client for one call, and translate every way in which the call can fail."""
        if self._client is None:
            self._client = aiodocker.Docker(url=f"unix://{self.socket}")
        patience = self._call_s if call_s is None else call_s
        try:
            with anyio.fail_after(patience if is_bounded else None):
                yield self._client
        except aiodocker.DockerError as error:
            raise self._translated(error, image) from error
        except TimeoutError as error:
            what = f"no answer within {patience:g} s"
            raise self._unavailable(what, HANGS) from error
        except (aiohttp.ClientError, OSError) as error:
            raise self._unavailable(str(error) or type(error).__name__) from error

    def _translated(self, error: aiodocker.DockerError, image: str | None) -> NightherdError:
        text = error.message.strip()
        if error.status == NO_CONNECTION:
            cause = error.__context__
            number = getattr(cause, "errno", None) or getattr(
                getattr(cause, "os_error", None), "errno", None
            )
            if number in (errno.EACCES, errno.EPERM):
                return ContainerEngineError(
                    f"permission denied on the socket of the container engine, {self.socket}",
                    hint=PERMISSION,
                )
            return self._unavailable(str(cause or text))
        if image and error.status == 404 and "image" in text.lower():
            return NotFoundError(
                f"the container engine has no image {image}",
                hint=f"docker pull {image}, or build the image that agents run in",
                next_step=NextStep(Action.BUILD_IMAGE),
            )
        if error.status == 404:
            return NotFoundError(f"the container engine: {text}")
        if error.status == 409:
            return RefusedError(f"the container engine refused: {text}")
        return NightherdError(f"the container engine failed: {text}")

    def _unavailable(self, why: str, hint: str = STOPPED) -> ContainerEngineError:
        return ContainerEngineError(
            f"the container engine at {self.socket} cannot be reached: {why}", hint=hint
        )


def image_reference(text: str) -> str:
    """Return `text` if it can be the name of an image; else `InvalidValueError`."""
    if not REFERENCE.fullmatch(text) or ".." in text or "//" in text:
        raise InvalidValueError(f"{text!r} is not the name of an image, such as name:tag")
    return text


def _container(text: str) -> str:
    if not CONTAINER.fullmatch(text):
        raise InvalidValueError(f"{text!r} is not the name or id of a container")
    return text


async def _pieces(tar: SupportsRead) -> AsyncIterator[bytes]:
    while piece := tar.read(CHUNK):
        yield piece


async def _raise_refusal(response: aiohttp.ClientResponse) -> None:
    if response.status < 400:
        return
    raw = await response.read()
    try:
        text = str(json.loads(raw)["message"])
    except (ValueError, KeyError, TypeError):
        text = raw.decode(errors="replace")
    raise aiodocker.DockerError(response.status, text)


async def _read(response: aiohttp.ClientResponse, limit: int) -> bytes:
    """Return the first bytes, enough for `limit` of output even if each byte has a header; the rest is not read."""
    pieces, left = list[bytes](), (FRAME.size + 1) * limit
    async for piece in response.content.iter_chunked(CHUNK):
        pieces.append(piece[:left])
        left -= len(pieces[-1])
        if left <= 0:
            response.close()
            break
    return b"".join(pieces)


def _frames(raw: bytes) -> Iterator[bytes]:
    """Return the pieces of output in a multiplexed stream; the last may be cut off."""
    at = 0
    while at + FRAME.size <= len(raw):
        _, length = FRAME.unpack_from(raw, at)
        at += FRAME.size
        yield raw[at : at + length]
        at += length
