"""As whom the processes of a container run: not as root, and able to use the working directory."""

from __future__ import annotations

import msgspec

UNPRIVILEGED = 1000
"""The first user of most systems, and `agent` in the image of ours."""


class Ids(msgspec.Struct, frozen=True):
    """A user and a group."""

    uid: int
    gid: int

    def __str__(self) -> str:
        return f"{self.uid}:{self.gid}"


def ids_of(text: str) -> Ids:
    """The ids that `UID` or `UID:GID` names."""
    uid, _, gid = text.partition(":")
    return Ids(int(uid), int(gid or uid))


def choose_user(configured: str | None, *, worker: Ids, owner: Ids) -> Ids:
    """The user of a container: the configured one, else the worker's, else who owns the directory, but never root.

    `owner` is that of the working directory.
    """
    if configured is not None:
        return ids_of(configured)
    for ids in (worker, owner):
        if ids.uid != 0:
            return ids
    return Ids(UNPRIVILEGED, UNPRIVILEGED)
