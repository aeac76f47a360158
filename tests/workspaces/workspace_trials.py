"""Workspaces made, snapshotted and removed in processes that are killed."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import anyio
import msgspec

from nightherd.errors import WorkspaceError
from nightherd.model.workspaces.policy import WorkspacePolicy
from nightherd.model.workspaces.workspace import Workspace
from nightherd.ports import BeginsWith, Probe
from nightherd.testing.ending import Ending
from nightherd.testing.fork_process import Say
from nightherd.workspaces.files import LocalWorkspaceFiles
from nightherd.workspaces.git import Git
from nightherd.workspaces.removing import remove
from nightherd.workspaces.stores import Stores
from nightherd.workspaces.taking import snapshot
from nightherd.workspaces.tools import Tools

ACT = f"{__name__}:act"
ACT_AS_NOBODY = f"{__name__}:act_as_nobody"
NOBODY = 65534


def act(order: dict[str, Any], say: Say) -> None:
    """Do one thing to a workspace; end at the `nth` point, or say each of them."""

    def tell(point: str, /) -> None:
        say(point)

    probe: Probe = Ending(nth=order["nth"]) if order.get("nth") else tell
    git = Git(program=order["program"]) if order.get("program") else None
    files = LocalWorkspaceFiles(Path(order["state"]), git=git, probe=probe)
    row = msgspec.convert(order["row"], Workspace)
    policy = msgspec.convert(order["policy"], WorkspacePolicy)
    try:
        match order["verb"]:
            case "make":
                given = order.get("begins_with")
                begins_with = msgspec.convert(given, BeginsWith) if given else None
                anyio.run(files.make, row, policy, begins_with)
            case "snapshot":
                anyio.run(files.snapshot, row, policy)
            case _:
                anyio.run(files.remove, row)
    except WorkspaceError as error:
        say(f"refused: {error.message}")


def act_as_nobody(order: dict[str, Any], say: Say) -> None:
    """Take a snapshot or remove the workspace, as a user for whom permissions count."""
    if os.geteuid() == 0:
        os.setgid(NOBODY)
        os.setuid(NOBODY)
    state = Path(order["state"])
    tools = Tools(state_dir=state, git=Git(), stores=Stores(state))
    row = msgspec.convert(order["row"], Workspace)
    # Not through an event loop: its modules may be where this user cannot read them.
    if order["verb"] == "remove":
        remove(tools, row)
        return
    taken = snapshot(tools, row, msgspec.convert(order["policy"], WorkspacePolicy))
    say(f"tree {taken.tree}")
    for path in taken.left_out:
        say(f"left out {path}")
