"""Landings at the same time, by one fleet or two: no work is lost, and a killed process's last command is waited for."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import msgspec
import pytest

from components import Components
from nightherd.model.workspaces.workspace import Workspace
from nightherd.testing.fork_server import ForkServer
from soak import often
from workspaces.landing.landing_ground import Ground, git, write
from workspaces.landing.landing_trials import FINISH, LAND

ROUNDS = often(20, soak=200)
PATIENCE_S = 60.0
LOCKS = Path("/proc/locks")


def order(ground: Ground, workspace: Workspace, verb: str = "merge", **more: Any) -> dict[str, Any]:
    return {
        "folder": str(ground.folder),
        "project": str(ground.project),
        "workspace": msgspec.to_builtins(workspace),
        "verb": verb,
        **more,
    }


@pytest.mark.parametrize("fleets", [1, 2])
def test_two_processes_merge_at_once_and_all_work_is_there(
    ground: Ground, fork_server: ForkServer, fleets: int
) -> None:
    second = ground if fleets == 1 else replace(ground, folder=ground.folder / "second")
    grounds = [ground, second]
    workspaces = [ground.make("job-1"), second.make("job-2")]
    names = []
    for number in range(ROUNDS):
        for side, where in enumerate(grounds):
            name = f"file-{number}-{side}.txt"
            write(where.directory(workspaces[side]), {name: f"{name}\n"})
            workspaces[side] = where.snapshot(workspaces[side])
            names.append(name)
        orders = [order(where, workspaces[side]) for side, where in enumerate(grounds)]

        ended = fork_server.run_all(LAND, orders)

        assert [one.status for one in ended] == [0, 0], [one.error for one in ended]
    assert set(names) <= set(git(ground.project, "ls-tree", "--name-only", "main").splitlines())
    assert all((ground.project / name).is_file() for name in names)
    assert git(ground.project, "status", "--porcelain", "--untracked-files=no") == ""
    assert ground.leftovers == second.leftovers == []
    git(ground.project, "fsck", "--strict")


def test_two_processes_apply_at_once(ground: Ground, fork_server: ForkServer) -> None:
    workspaces = [ground.worked({f"{n}.txt": f"{n}\n"}, f"job-{n}") for n in range(3)]

    orders = [order(ground, workspace, "apply") for workspace in workspaces]
    ended = fork_server.run_all(LAND, orders)

    assert [one.status for one in ended] == [0, 0, 0]
    assert [ground.read(f"{n}.txt") for n in range(3)] == ["0\n", "1\n", "2\n"]


SLOW_GIT = """\
#!/bin/sh
if [ "$1" = update-ref ] && [ ! -e "{folder}/go-on" ]; then
    touch "{folder}/waiting"
    while [ ! -e "{folder}/go-on" ]; do sleep 0.01; done
fi
exec git "$@"
"""


def until(holds: Callable[[], bool]) -> None:
    """Wait for something that happens for certain; a minute is for ever."""
    deadline = time.monotonic() + PATIENCE_S
    while not holds():
        assert time.monotonic() < deadline
        time.sleep(0.01)


def is_waiting_for_a_lock(pid: int) -> bool:
    lines = LOCKS.read_text().splitlines()
    return any("->" in line and f" {pid} " in line for line in lines)


def test_command_that_outlives_its_killed_process_is_waited_for(
    ground: Ground, fork_server: ForkServer, components: Components
) -> None:
    """Else the branch would move after it was found not to have moved."""
    if not LOCKS.exists():
        components.absent("a list of who waits for a lock", "run on Linux")
    program = ground.folder / "slow-git"
    program.write_text(SLOW_GIT.format(folder=ground.folder))
    program.chmod(0o755)
    workspace = ground.worked({"a.txt": "new\n", "b.txt": "new\n"})
    with ForkServer() as other:
        (landing,) = other.begin(LAND, order(ground, workspace, program=str(program)))
        try:
            until((ground.folder / "waiting").exists)
            os.kill(landing.pid, signal.SIGKILL)
            landing.wait()
            (finishing,) = fork_server.begin(FINISH, order(ground, workspace))
            until(lambda: is_waiting_for_a_lock(finishing.pid))
        finally:  # nothing waits for ever, whatever fails here
            (ground.folder / "go-on").touch()
        ended = finishing.wait()

    assert (ended.status, ended.error) == (0, "")
    assert git(ground.project, "log", "-1", "--format=%s", "main") == "Do the work"
    assert git(ground.project, "status", "--porcelain") == ""
    assert ground.read("a.txt") == ground.read("b.txt") == "new\n"
