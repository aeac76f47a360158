"""The image that agents run in: build it, and check whether one that others built will do."""

from __future__ import annotations

import re
import tarfile
from collections import deque
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from datetime import UTC, datetime
from importlib import resources
from pathlib import Path
from typing import Any, Protocol

import anyio
import msgspec

from nightherd.errors import NightherdError, NotFoundError, RefusedError
from nightherd.model.containers.image import (
    EXECUTION_LABEL,
    FLEET_LABEL,
    ClaudeSource,
    ImageReport,
    claude_skew,
    requirements,
)

DEFAULT_BASE = "python:3.12-slim-bookworm"
CHUNK = 1024 * 1024
LAST_LINES = 3
PROBE_S = 120.0
"""How long a container may take to say what it has."""
ELF = b"\x7fELF"
FACT = re.compile(r"^nightherd-fact ([a-z0-9.]+) (.*)$")
VERSION = re.compile(r"\d+(?:\.\d+)+")
SCRIPT_FILES = ("Dockerfile", "install.sh")
MODULES = "_signal, base64, collections.abc, ctypes, errno, json, re, select, signal, socket, stat, struct, time, typing"
"""What our programs inside import (`library.FILES`)."""
PROBE = r"""
fact() { printf 'nightherd-fact %s %s\n' "$1" "$2"; }
for name in python3 sh bash git rg claude; do
    if place=$(command -v "$name"); then
        fact "$name" "$place"
        [ "$name" = sh ] || [ "$name" = bash ] || fact "$name.version" "$("$name" --version </dev/null 2>/dev/null | { read -r line; echo "$line"; })"
    fi
done
if command -v python3 >/dev/null; then
    fact python3.lacks "$(python3 -I -S -c 'import MODULES' 2>&1 | { last=; while read -r line; do last=$line; done; echo "$last"; })"
fi
while read -r key value _; do [ "$key" != Uid: ] || fact uid "$value"; done </proc/self/status
while IFS=: read -r name _ uid _; do
    case $uid in '' | *[!0-9]* | 0 | 65534) ;; *) [ "$uid" -lt 1000 ] || { fact user "$name ($uid)"; break; } ;; esac
done </etc/passwd
for file in /etc/ssl/certs/ca-certificates.crt /etc/ssl/cert.pem /etc/pki/tls/certs/ca-bundle.crt; do
    [ ! -s "$file" ] || { fact certificates "$file"; break; }
done
""".replace("MODULES", MODULES)
"""Only what every POSIX shell has built in: an image may have little else."""


class ImageEngine(Protocol):
    """What images need of a container engine."""

    async def create(self, name: str, body: Mapping[str, Any]) -> str: ...
    async def start(self, container: str) -> None: ...
    async def wait(self, container: str) -> int: ...
    async def logs(self, container: str) -> str: ...
    async def remove(self, container: str, *, force: bool = False) -> bool: ...
    async def inspect_image(self, image: str) -> dict[str, Any]: ...
    async def list(self, labels: Mapping[str, str | None]) -> list[dict[str, Any]]: ...
    def build(
        self, tar: BuildContext, tag: str, *, arguments: Mapping[str, str] | None = None
    ) -> AsyncIterator[str]: ...


class BuildContext:
    """The tar stream that an image is built from. Large files are read while they are sent, and never held."""

    def __init__(self, files: Mapping[str, bytes | Path]) -> None:
        self._pieces = _archive(files)

    def read(self, _length: int = -1, /) -> bytes:
        """Return the next piece, however long it is; none at the end."""
        return next(self._pieces, b"")


def _archive(files: Mapping[str, bytes | Path]) -> Iterator[bytes]:
    """Yield an archive with these files, all of them programs, and the empty directory `bin`."""
    directory = tarfile.TarInfo("bin")
    directory.type, directory.mode = tarfile.DIRTYPE, 0o755
    yield directory.tobuf(tarfile.GNU_FORMAT)
    for name, content in files.items():
        entry = tarfile.TarInfo(name)
        entry.mode = 0o755
        entry.size = len(content) if isinstance(content, bytes) else content.stat().st_size
        yield entry.tobuf(tarfile.GNU_FORMAT)
        if isinstance(content, bytes):
            yield content
        else:
            with content.open("rb") as file:
                while piece := file.read(CHUNK):
                    yield piece
        yield b"\0" * (-entry.size % tarfile.BLOCKSIZE)
    yield b"\0" * (2 * tarfile.BLOCKSIZE)


class ImagePlan(msgspec.Struct, frozen=True, kw_only=True):
    """An image that is to be built."""

    tag: str
    base: str = DEFAULT_BASE
    claude: ClaudeSource = ClaudeSource.NONE
    claude_program: Path | None = None
    """The `claude` to copy."""
    claude_version: str | None = None
    nightherd_version: str


def choose_claude(asked: ClaudeSource | None, program: Path | None) -> ClaudeSource:
    """Return where the image's `claude` comes from: the program of this machine, if it can run in a container.

    Refused when a copy was asked for, and there is none that Linux runs.
    """
    can_copy = program is not None and _is_for_linux(program)
    if asked is ClaudeSource.BUNDLED and not can_copy:
        where = "there is none" if program is None else f"{program} is not for Linux"
        raise RefusedError(
            f"the claude of the Claude Agent SDK cannot be copied: {where}",
            hint="pip install 'nightherd[claude]', or use --claude npm",
        )
    if asked is not None:
        return asked
    return ClaudeSource.BUNDLED if can_copy else ClaudeSource.NPM


def _is_for_linux(program: Path) -> bool:
    try:
        with program.open("rb") as file:
            return file.read(len(ELF)) == ELF
    except OSError:
        return False


async def build_image(
    engine: ImageEngine, plan: ImagePlan, on_line: Callable[[str], object]
) -> None:
    """Build the image of `plan` from the Dockerfile of this package; `on_line` gets the progress.

    `NightherdError` ends with the last lines of a build that failed: they say why.
    """
    data = resources.files("nightherd.runtimes.container") / "data"
    files: dict[str, bytes | Path] = {name: (data / name).read_bytes() for name in SCRIPT_FILES}
    if plan.claude is ClaudeSource.BUNDLED and plan.claude_program is not None:
        files["bin/claude"] = plan.claude_program
    unknown = "none" if plan.claude is ClaudeSource.NONE else "latest"
    arguments = {
        "BASE": plan.base,
        "CLAUDE": plan.claude.value,
        "CLAUDE_VERSION": plan.claude_version or unknown,
        "NIGHTHERD_VERSION": plan.nightherd_version,
    }
    last = deque[str](maxlen=LAST_LINES)
    try:
        async for line in engine.build(BuildContext(files), plan.tag, arguments=arguments):
            if not line.startswith("Removing intermediate container"):
                last.append(line)
            on_line(line)
    except RefusedError:
        raise
    except NightherdError as error:
        said = "; ".join(last)
        raise NightherdError(f"{plan.tag} was not built: {error.message} ({said})") from error


async def check_image(
    engine: ImageEngine, image: str, *, name: str, host_claude: str | None, needs_claude: bool
) -> ImageReport:
    """Run a container of `image`, called `name`, without network and rights, and say what it has."""
    known = await engine.inspect_image(image)
    facts = await _probe(engine, image, name)
    return ImageReport(
        image=image,
        image_id=str(known["Id"]),
        size_bytes=int(known.get("Size", 0)),
        requirements=tuple(requirements(facts, needs_claude=needs_claude)),
        skew=claude_skew(facts.get("claude.version"), host_claude),
    )


async def _probe(engine: ImageEngine, image: str, name: str) -> dict[str, str]:
    """Return the facts; none when the image has no shell that runs."""
    body = {
        "Image": image,
        "Entrypoint": ["sh"],
        "Cmd": ["-c", PROBE],
        "Env": ["DISABLE_AUTOUPDATER=1", "HOME=/tmp"],
        "WorkingDir": "/",
        "HostConfig": {
            "NetworkMode": "none",
            "ReadonlyRootfs": True,
            "CapDrop": ["ALL"],
            "SecurityOpt": ["no-new-privileges"],
            "Tmpfs": {"/tmp": "rw,nosuid,nodev,size=256m"},  # noqa: S108 inside the container
            "PidsLimit": 256,
            "Memory": 2 * 1024**3,
        },
    }
    container = await engine.create(name, body)
    try:
        try:
            await engine.start(container)
        except (RefusedError, NotFoundError):
            raise
        except NightherdError:
            return {}
        with anyio.move_on_after(PROBE_S) as scope:
            await engine.wait(container)
        if scope.cancelled_caught:
            raise NightherdError(f"a container of {image} did not end within {PROBE_S:g} s")
        return dict(_facts(await engine.logs(container)))
    finally:
        with anyio.CancelScope(shield=True):
            await engine.remove(container, force=True)


def _facts(output: str) -> Iterator[tuple[str, str]]:
    for line in output.splitlines():
        matched = FACT.match(line)
        if matched is None:
            continue
        name, text = matched.groups()
        number = VERSION.search(text)
        if not name.endswith(".version"):
            yield name, text.strip()
        elif number is not None:
            yield name, number.group()


async def list_containers(engine: ImageEngine) -> list[dict[str, Any]]:
    """Return the containers of every fleet on this machine, running or not, newest first."""
    listed = await engine.list({FLEET_LABEL: None})
    return [_row(one) for one in sorted(listed, key=lambda one: -int(one.get("Created", 0)))]


def _row(listed: Mapping[str, Any]) -> dict[str, Any]:
    labels = listed.get("Labels") or {}
    return {
        "id": listed["Id"],
        "name": next(iter(listed.get("Names") or ()), "").lstrip("/"),
        "image": listed.get("Image"),
        "state": listed.get("State"),
        "status": listed.get("Status"),
        "created_at": datetime.fromtimestamp(int(listed.get("Created", 0)), UTC),
        "fleet": labels.get(FLEET_LABEL),
        "execution": labels.get(EXECUTION_LABEL),
    }
