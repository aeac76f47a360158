"""Giving directories to the user of a container, where the worker is root and the container is not."""

from __future__ import annotations

import os
from pathlib import Path

from nightherd.model.containers.user import Ids


def give_tree(top: Path, user: Ids) -> None:
    """Let `user` own a directory of ours with all that is in it; links are given, not followed.

    The directory itself comes last: a run that was cut off is then seen, and done again.
    """
    status = top.lstat()
    if os.geteuid() != 0 or (status.st_uid, status.st_gid) == (user.uid, user.gid):
        return
    for _, folders, files, directory in os.fwalk(top):
        for name in (*folders, *files):
            os.chown(name, user.uid, user.gid, dir_fd=directory, follow_symlinks=False)
    os.chown(top, user.uid, user.gid, follow_symlinks=False)


def give(path: Path, owner: Ids | None) -> None:
    """Let the container's user use a directory of ours."""
    if owner is not None and os.geteuid() == 0:
        os.chown(path, owner.uid, owner.gid)
    elif owner is None or os.geteuid() != owner.uid:
        path.chmod(0o777)  # the directory around it is ours alone
