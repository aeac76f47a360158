"""What the processes of tests about killed landings do. Each is a function that the fork server can run."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec

from nightherd.model.workspaces.workspace import Workspace
from nightherd.ports import Probe
from nightherd.testing.ending import Ending
from nightherd.testing.fork_process import Say
from workspaces.landing.ground import Ground

LAND = "workspaces.landing.trials:land"
FINISH = "workspaces.landing.trials:finish"


def land(order: Any, say: Say) -> None:
    """Apply, merge or push; killed at a point, or saying every point it comes to."""
    ground = _ground(order, _probe(order, say))
    workspace = msgspec.convert(order["workspace"], Workspace)
    verb: Callable[..., object] = getattr(ground, order["verb"])
    verb(workspace, **order.get("terms", {}))


def finish(order: Any, say: Say) -> None:
    """Finish what another process left; killed at a point as well, or saying what was done."""
    for line in _ground(order, _probe(order, lambda point: None)).finish():
        say(line)


def _ground(order: Any, probe: Probe) -> Ground:
    return Ground(Path(order["folder"]), Path(order["project"]), probe=probe)


def _probe(order: Any, say: Say) -> Probe:
    if "nth" in order:
        return Ending(nth=order["nth"])
    return say
