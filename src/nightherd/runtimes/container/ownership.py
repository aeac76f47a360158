"""Giving directories to the user of a container, where the worker is root and the container is not."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path

from nightherd.model.containers.user import Ids


def give_tree(top: Path, user: Ids) -> None:
    """Let `user` own a directory of ours with all that is in it; links are given, not followed.

    Also where it owns the directory already: what ran out here since may have made files in it.
    """
    if os.geteuid() != 0:
        return
    for _, folders, files, directory in os.fwalk(top):
        for name in (*folders, *files):
            with suppress(FileNotFoundError):  # another job works there
                _give(name, user, directory)
    _give(top, user)


def _give(path: str | Path, user: Ids, directory: int | None = None) -> None:
    status = os.stat(path, dir_fd=directory, follow_symlinks=False)
    if (status.st_uid, status.st_gid) != (user.uid, user.gid):
        os.chown(path, user.uid, user.gid, dir_fd=directory, follow_symlinks=False)


def give(path: Path, owner: Ids | None) -> None:
    """Let the container's user use a directory of ours."""
    if owner is not None and os.geteuid() == 0:
        os.chown(path, owner.uid, owner.gid)
    elif owner is None or os.geteuid() != owner.uid:
        path.chmod(0o777)  # the directory around it is ours alone
