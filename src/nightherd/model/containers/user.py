"""As whom the processes of a container run: not as root, and able to use the working directory."""

from __future__ import annotations

import msgspec

from nightherd.errors import RefusedError
from nightherd.model.containers.engine_traits import Users

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


ROOT = Ids(0, 0)


def choose_user(
    configured: str | None, *, worker: Ids, owner: Ids, users: Users = Users.SAME
) -> Ids:
    """The user of a container: the configured one, else the worker's, else who owns the directory, but never root.

    `owner` is that of the working directory. Root of a rootless engine's container is the worker's user.
    """
    if configured is not None:
        return ids_of(configured)
    if users is Users.ROOTLESS:
        return ROOT
    for ids in (worker, owner):
        if ids.uid != 0:
            return ids
    return Ids(UNPRIVILEGED, UNPRIVILEGED)


def owner_outside(user: Ids, *, worker: Ids, engine_owner: int, users: Users) -> Ids | None:
    """Whom the files of a container's user belong to on this machine; None for a number that is nobody's.

    `engine_owner` is whose socket the engine listens at. `RefusedError` where the worker can share no file.
    """
    if users is Users.REMAPPED:
        raise RefusedError(
            "the container engine gives users of containers other numbers (userns-remap): files of this machine"
            " cannot be shared with them",
            hint="use an engine without userns-remap, or a rootless one",
        )
    if users is Users.SAME:
        return user
    if engine_owner != worker.uid:
        raise RefusedError(
            f"the container engine is the rootless one of user {engine_owner}, and this worker is of user {worker.uid}",
            hint="run nightherd as the user whose engine it is, or use an engine of root",
        )
    return worker if user.uid == ROOT.uid else None


def check_readable(user: Ids, outside: Ids | None, worker: Ids) -> None:
    """`RefusedError` where the worker could not read what Claude writes as the container's user."""
    if worker.uid == ROOT.uid or (outside is not None and outside.uid == worker.uid):
        return
    raise RefusedError(
        f"this worker, of user {worker.uid}, cannot read what Claude writes in a container of user {user.uid}",
        hint="leave docker.user out, or run the worker as root",
    )
