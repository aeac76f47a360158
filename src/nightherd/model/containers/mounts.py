"""Mounts, tmpfs, ports and users of a container: how the fleet file spells them, and which are refused or unsafe."""

from __future__ import annotations

import posixpath
import re

from nightherd.errors import InvalidValueError
from nightherd.model.containers.policy import Mount, PublishedPort

HOME = posixpath.join("/home", "agent")
"""The home directory of agents in a container."""
KEEPER_DIRECTORY = "/run/nightherd"
"""Where the keeper's files and its socket are mounted."""
WORKSPACE = "/workspace"
"""Where the working directory is mounted, besides its own path."""
SHARED_MEMORY = "/dev/shm"  # noqa: S108 (inside a container)
RESERVED_TREES = ("/proc", "/sys", "/dev", KEEPER_DIRECTORY)
"""Nothing is mounted here or below."""
RESERVED = ("/", WORKSPACE)
"""Nothing is mounted exactly here."""
ENGINE_PATHS = (
    "/proc",
    "/sys",
    "/dev",
    "/run/docker.sock",
    "/run/docker",
    "/run/podman",
    "/run/containerd",
    "/run/crio",
    "/var/lib/docker",
    "/var/lib/containerd",
    "/var/lib/containers",
)
"""What controls the machine or its containers: a mount of one, of what is in it, or of a directory above it is unsafe."""
SOCKET_NAMES = frozenset(
    {"docker.sock", "podman.sock", "containerd.sock", "crio.sock", "buildkitd.sock"}
)
USER_RUNTIME = re.compile(r"/run/user(/[^/]+)?")
"""Directories in which rootless engines put their sockets."""
VOLUME = re.compile(r"(?P<source>/.*|[^:]+):(?P<target>/[^:]*)(:(?P<mode>ro|rw))?", re.DOTALL)
PORT = re.compile(r"(?:(?P<host>[0-9]{1,5}):)?(?P<container>[0-9]{1,5})")
USER = re.compile(r"(?P<uid>[0-9]{1,10})(:(?P<gid>[0-9]{1,10}))?")
TMPFS = re.compile(r"(?P<target>/[^:]*)(:(?P<options>.+))?", re.DOTALL)
TMPFS_FLAGS = frozenset(
    {"rw", "ro", "exec", "noexec", "nosuid", "nodev", "noatime", "relatime", "nodiratime"}
)
TMPFS_VALUES = re.compile(
    r"(size=[0-9]+[kmg%]?|mode=[0-7]{1,4}|uid=[0-9]+|gid=[0-9]+|nr_inodes=[0-9]+[kmg]?|nr_blocks=[0-9]+[kmg]?)",
    re.IGNORECASE,
)
LARGEST_ID = 2**32 - 2
LARGEST_PORT = 65_535


def parse_volume(text: str) -> Mount:
    """The mount that `host:container`, `host:container:ro` or `host:container:rw` spells."""
    match = VOLUME.fullmatch(text)
    if match is None or "\0" in text:
        raise InvalidValueError(
            f"{text!r} is not a mount; write host:container or host:container:ro"
        )
    target = check_target(match["target"])
    return Mount(source=match["source"], target=target, is_read_only=match["mode"] == "ro")


def parse_tmpfs(text: str) -> tuple[str, str]:
    """The directory in memory and its options that `/path` or `/path:options` spells."""
    match = TMPFS.fullmatch(text)
    if match is None or "\0" in text:
        raise InvalidValueError(
            f"{text!r} is not a directory in memory; write /path or /path:options"
        )
    options = match["options"] or ""
    for option in options.split(",") if options else ():
        if not is_tmpfs_option(option):
            raise InvalidValueError(
                f"{option!r} is not an option of tmpfs; write size=64m, mode=1777, uid=, gid=, ro, exec or noexec"
            )
    return check_target(match["target"]), options


def is_tmpfs_option(option: str) -> bool:
    """Whether a directory in memory may have the option: `suid` and `dev` it may not."""
    return option in TMPFS_FLAGS or TMPFS_VALUES.fullmatch(option) is not None


def parse_port(text: str) -> PublishedPort:
    """The port that `host:container` or `container` spells."""
    match = PORT.fullmatch(text)
    if match is None:
        raise InvalidValueError(f"{text!r} is not a port; write host:container or container")
    host = None if match["host"] is None else int(match["host"])
    container = int(match["container"])
    if not 1 <= container <= LARGEST_PORT or (host is not None and not 1 <= host <= LARGEST_PORT):
        raise InvalidValueError(f"{text!r} is not a port: ports are from 1 to {LARGEST_PORT}")
    return PublishedPort(container=container, host=host)


def parse_user(text: str) -> str:
    """`UID` or `UID:GID`, without leading zeros."""
    match = USER.fullmatch(text)
    numbers = () if match is None else (match["uid"], match["gid"])
    if match is None or any(int(one) > LARGEST_ID for one in numbers if one is not None):
        raise InvalidValueError(f"{text!r} is not a user; write UID or UID:GID")
    return ":".join(str(int(one)) for one in numbers if one is not None)


def is_root(user: str | None) -> bool:
    """Whether the user of a container, as `parse_user` returns it, is root."""
    return user is not None and user.partition(":")[0] == "0"


def check_target(path: str) -> str:
    """The path in the container, normalised. `InvalidValueError` where a mount would hide what a container needs."""
    target = normal(path)
    place = without_alias(target)
    is_reserved = place in RESERVED or any(is_within(place, tree) for tree in RESERVED_TREES)
    if is_reserved and place != SHARED_MEMORY:
        raise InvalidValueError(f"{path!r} cannot be mounted over: the container needs it")
    return target


def is_unsafe_source(path: str, socket: str | None = None) -> bool:
    """Whether a mount of this host path gives the machine away: the engine's socket, `/`, or what is like them.

    `socket` is where the engine listens. Ask with symbolic links followed too: the engine follows them.
    """
    place = without_alias(normal(path))
    guarded = ENGINE_PATHS if socket is None else (*ENGINE_PATHS, without_alias(normal(socket)))
    return (
        posixpath.basename(place) in SOCKET_NAMES
        or USER_RUNTIME.fullmatch(place) is not None
        or any(is_within(place, one) or is_within(one, place) for one in guarded)
    )


def normal(path: str) -> str:
    """An absolute path without `.`, `..` and doubled slashes."""
    return posixpath.normpath("/" + path.lstrip("/"))


def without_alias(path: str) -> str:
    """The path with `/var/run` spelled `/run`: most images and machines have the one as a link to the other."""
    return path.removeprefix("/var") if is_within(path, "/var/run") else path


def is_within(path: str, directory: str) -> bool:
    """Whether `path` is `directory` or lies in it."""
    return path == directory or path.startswith(f"{directory.rstrip('/')}/")
