"""Writing below directories that an agent can change: no part of a path is a link, also not one that comes meanwhile."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path

from nightherd.files.atomic import temp_name_for, write_all
from nightherd.files.regular import open_directory

NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC


def replace_without_links(
    path: Path,
    data: bytes,
    *,
    mode: int,
    is_durable: bool = True,
    times: tuple[int, int] | None = None,
) -> None:
    """Replace the file at the absolute `path`, whole or not at all; a link in its place is replaced, never followed.

    It belongs to the owner of its directory, as far as that can be. `OSError` where a directory on the way is missing or a link. `times` are those of its last use and change, in ns.
    """
    directory = open_directory(path.parent)
    temp = temp_name_for(path.name)
    try:
        handle = os.open(temp, NEW, mode, dir_fd=directory)
        try:
            _give_to_owner(handle, directory)
            write_all(handle, data)
            if times is not None:
                os.utime(handle, ns=times)
            if is_durable:
                os.fsync(handle)
        finally:
            os.close(handle)
        os.rename(temp, path.name, src_dir_fd=directory, dst_dir_fd=directory)
        if is_durable:
            _sync(directory)
    except BaseException:
        with suppress(OSError):
            os.unlink(temp, dir_fd=directory)
        raise
    finally:
        os.close(directory)


def make_directories(root: Path, name: str) -> None:
    """Make the directory `name` below `root`, and those on the way to it; `OSError` where one of them is a link.

    Those that are made belong to the owner of the directory they are in, as far as that can be.
    """
    directory = open_directory(root)
    try:
        for part in Path(name).parts:
            is_new = False
            with suppress(FileExistsError):
                os.mkdir(part, dir_fd=directory)
                is_new = True
            inner = os.open(
                part, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=directory
            )
            try:
                if is_new:
                    _give_to_owner(inner, directory)
            except BaseException:
                os.close(inner)
                raise
            os.close(directory)
            directory = inner
    finally:
        os.close(directory)


def _give_to_owner(handle: int, directory: int) -> None:
    """Where root writes, a file or directory is of whom its directory is of: an agent that runs as another user can go on with it."""
    if os.geteuid() == 0:
        status = os.stat(".", dir_fd=directory)
        os.fchown(handle, status.st_uid, status.st_gid)


def _sync(directory: int) -> None:
    handle = os.open(".", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC, dir_fd=directory)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
