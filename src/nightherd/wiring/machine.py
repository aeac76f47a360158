"""What the surfaces ask about the machine: which processes are alive, and who started them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from nightherd.errors import RefusedError
from nightherd.host.process import boot_id, is_alive, is_at_work, this_process

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import tzinfo
    from pathlib import Path

    from nightherd.host.machine import Connected
    from nightherd.model.disk_space import DiskSpace

__all__ = [
    "agent_above_here",
    "boot_id",
    "disk_space",
    "find_agent_above",
    "is_alive",
    "is_at_work",
    "is_lingering",
    "local_zone",
    "peer_pid",
    "refuse_agents",
    "since_boot",
    "stop_processes",
    "this_process",
    "user_name",
]


def since_boot() -> float:
    """Return the seconds since the machine started, also those in which it slept."""
    from nightherd.host.system import SystemClock

    return SystemClock().since_boot()


def local_zone() -> tuple[str, tzinfo]:
    """Return the time zone of this machine, and its name."""
    from nightherd.host import timezone

    return timezone.local_zone()


def disk_space(path: Path) -> DiskSpace | None:
    """Return how full the disk of a directory is; None where that cannot be found out."""
    from nightherd.host import disk

    return disk.disk_space(path)


def find_agent_above(pid: int, directory: str) -> str | None:
    """Return the mark of the agent that started `pid`; None for a person. `directory` is the identity of the state."""
    from nightherd.host import machine

    return machine.find_agent_above(pid, directory)


def agent_above_here(state_dir: Path) -> str | None:
    """Return the mark of the agent of this state directory that started this process; None for a person."""
    import os

    from nightherd.files.paths import directory_identity

    directory = directory_identity(state_dir) if state_dir.is_dir() else ""
    return find_agent_above(os.getpid(), directory)


def refuse_agents(state_dir: Path, what: str, does: str = "gives agents more permissions") -> None:
    """`RefusedError` when an agent of this fleet started this process: only a person may do what `what` does."""
    execution = agent_above_here(state_dir)
    if execution is not None:
        raise RefusedError(
            f"{what} {does}, and an agent started this process (execution {execution})",
            hint="run it from a shell of your own",
        )


def is_lingering(user: str) -> bool | None:
    """Return whether the user's services run while the user is not logged in; None where that is unknown."""
    from nightherd.host import machine

    return machine.is_lingering(user)


def peer_pid(connection: Connected) -> int | None:
    """Return the pid of the other end of a connection; None when it is unknown."""
    from nightherd.host import machine

    return machine.peer_pid(connection)


def peer_user(connection: Connected) -> str | None:
    """Return the name of the user at the other end of a unix socket; None when it is unknown."""
    from nightherd.host import machine

    return machine.peer_user(connection)


def user_name() -> str:
    """Return the name of the user that runs this process."""
    from nightherd.host import machine

    return machine.user_name()


async def stop_processes(marks: Mapping[str, str], *, grace_s: float) -> None:
    """End every process that carries all `marks`, and its descendants."""
    from nightherd.runtimes.keeper import attendant

    await attendant.stop_processes(marks, grace_s=grace_s)
