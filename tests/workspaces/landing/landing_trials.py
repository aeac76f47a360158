"""What the processes of tests about killed landings do. Each is a function that the fork server can run."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec

from nightherd.errors import WorkspaceError
from nightherd.model.workspaces.workspace import Workspace
from nightherd.ports import Probe
from nightherd.testing.ending import Ending
from nightherd.testing.fork_process import Say
from workspaces.landing.landing_ground import Ground

LAND = "workspaces.landing.landing_trials:land"
FINISH = "workspaces.landing.landing_trials:finish"


def land(order: Any, say: Say) -> None:
    """Apply, merge or push; killed at a point, or saying every point it comes to."""
    ground = _ground(order, _probe(order, say))
    workspace = msgspec.convert(order["workspace"], Workspace)
    verb: Callable[..., object] = getattr(ground, order["verb"])
    try:
        verb(workspace, **order.get("terms", {}))
    except WorkspaceError as error:
        if "full_at" not in order or not error.can_pass:
            raise


def finish(order: Any, say: Say) -> None:
    """Finish what another process left; killed at a point as well, or saying what was done."""
    for line in _ground(order, _probe(order, lambda point: None)).finish():
        say(line)


def _ground(order: Any, probe: Probe) -> Ground:
    program = order.get("program", "git")
    return Ground(Path(order["folder"]), Path(order["project"]), probe=probe, program=program)


def _probe(order: Any, say: Say) -> Probe:
    killed = Ending(nth=order["nth"]) if "nth" in order else say
    if "full_at" not in order:
        return killed
    left = [order["full_at"]]

    def fill(point: str) -> None:
        """The disk is full when a file is to be written for the n-th time, and once only."""
        killed(point)
        left[0] -= point == "landing.before_file"
        if left[0] == 0:
            left[0] = -1
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    return fill
