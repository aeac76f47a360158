"""What of the host's files a container sees, and what in them is hidden or read-only. Every path is the same on both sides."""

from __future__ import annotations

import posixpath
from collections.abc import Callable, Iterable, Mapping, Sequence

import msgspec

from nightherd.model.containers.mounts import WORKSPACE, is_within
from nightherd.model.containers.policy import Mount

CLOSED = ("/root",)
"""Directories that images keep to root: what is mounted below is not reached through them."""
PASSABLE = "size=64k,mode=0755,nosuid,nodev"
"""A directory in memory that holds nothing but the way to what is mounted below it."""
SYSTEM = frozenset(
    ("/", "/bin", "/boot", "/dev", "/etc", "/lib", "/lib64", "/opt", "/proc", "/run", "/sbin", "/sys", "/usr", "/var")
)  # fmt: skip
"""What a mount would hide of the image."""


class SharedFiles(msgspec.Struct, frozen=True, kw_only=True):
    """What a run may use of the host's files."""

    working_directory: str
    is_read_only: bool = False
    directories: tuple[str, ...] = ()
    """More directories that it may change, and directories of the run itself."""
    read_only: tuple[str, ...] = ()
    """Directories and files that it may read."""
    protected: tuple[str, ...] = ()
    """Files that it may not change where it sees them. None is seen for being protected."""
    hidden_directories: tuple[str, ...] = ()
    """Directories of which nothing is seen."""
    hidden_files: tuple[str, ...] = ()
    """Files that are empty inside."""
    volumes: tuple[Mount, ...] = ()
    """What is mounted besides: what is protected or hidden is so under its names there too."""


class Layout(msgspec.Struct, frozen=True, kw_only=True):
    """Mounts, and directories in memory with their options."""

    mounts: tuple[Mount, ...]
    tmpfs: Mapping[str, str]


def lay_out(
    shared: SharedFiles,
    *,
    nothing: str,
    exists: Callable[[str], bool],
    real_path: Callable[[str], str] = posixpath.normpath,
) -> Layout:
    """The mounts for `shared`; `nothing` is an empty file of the host.

    What is protected inside a mounted directory is protected under each of its names. An agent can put a link to any file
    of the host there, and the engine would follow it: what a link leads to is not mounted.
    """
    own = shared.working_directory
    writable = [
        Mount(source=own, target=target, is_read_only=shared.is_read_only)
        for target in (own, WORKSPACE)
    ]
    writable += [
        Mount(source=path, target=path) for path in _once(shared.directories) if path != own
    ]
    alone = [
        path for path in _once(shared.read_only) if exists(path) and not _names(path, writable)
    ]
    mounts = writable + [Mount(source=path, target=path, is_read_only=True) for path in alone]
    shown = [*writable, *shared.volumes]
    for path in _once((*shared.read_only, *shared.protected)):
        mounts += [
            Mount(source=path, target=name, is_read_only=True)
            for name in _names(path, shown)
            if exists(path) and real_path(path) == path
        ]
    for path in _once(shared.hidden_files):
        names = _names(path, shown) if exists(path) else ()
        mounts += [Mount(source=nothing, target=name, is_read_only=True) for name in names]
    hidden = {
        name: PASSABLE
        for path in _once(shared.hidden_directories)
        if exists(path)
        for name in _names(path, shown)
    }
    closed = {
        path: PASSABLE
        for path in CLOSED
        if any(mount.target.startswith(f"{path}/") for mount in mounts)
    }
    return Layout(mounts=tuple(mounts), tmpfs={**closed, **hidden})


def leading_out(
    paths: Iterable[str], *, writable: Iterable[str], real_path: Callable[[str], str]
) -> list[str]:
    """Those of `paths`, absolute ones, that are named below a directory which an agent can write, and lie elsewhere.

    The agent could have put a link there, to be given what it leads to.
    """
    directories = {(posixpath.normpath(one), real_path(one)) for one in writable}
    return [
        path
        for path in map(posixpath.normpath, paths)
        for named, real in directories
        if any(is_within(path, one) and path != one for one in (named, real))
        and not is_within(real_path(path), real)
    ]


def hides_system(path: str) -> bool:
    """Whether a container with `path` of the host at the same place would miss a part of its image."""
    return posixpath.normpath(path) in SYSTEM


def _names(path: str, mounts: Sequence[Mount]) -> list[str]:
    """Under which names `path` is seen through `mounts`, but not where it is mounted itself."""
    return [
        mount.target.rstrip("/") + path[len(mount.source.rstrip("/")) :]
        for mount in mounts
        if path.startswith(mount.source.rstrip("/") + "/")
    ]


def _once(paths: Iterable[str]) -> list[str]:
    return list(dict.fromkeys(posixpath.normpath(path) for path in paths))
