"""Fleets whose jobs change files in a workspace: a copy of a project, or a worktree of its repository."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from browser.fleet_world import AGENTS, FleetWorld
from workspace_fleet import git, make_project

CODER = """\
  - name: coder
    runtime: scripted
    session: {mode: persistent}
    allowed_tools: [Write]
    limits: {turns: 5}
    working_directory: {root: project, mode: copy}
    script:
      - repeat: 9
        steps:
          - tool: Write
            input: {file_path: plan.txt, content: "1. ${prompt}\\n"}
          - say: "Done with ${prompt}."
          - {end: true}
"""
"""An agent, for the list of a fleet file."""


def make_plain_project(folder: Path) -> None:
    """The directory that the coder works on."""
    (folder / "project").mkdir()
    (folder / "project" / "README").write_text("A project.\n")


async def start_coders(new_fleet: Callable[..., FleetWorld]) -> FleetWorld:
    """A fleet with a coder, at work."""
    fleet = new_fleet(agents=AGENTS + CODER)
    make_plain_project(fleet.folder)
    await fleet.start()
    return fleet


async def start_coders_with_repository(new_fleet: Callable[..., FleetWorld]) -> FleetWorld:
    """The same on a git repository, whose `origin` is `remote.git` beside it."""
    fleet = new_fleet(agents=AGENTS + CODER.replace("mode: copy", "mode: worktree"))
    project, remote = fleet.folder / "project", fleet.folder / "remote.git"
    project.mkdir()
    make_project(project)
    git(fleet.folder, "clone", "--quiet", "--bare", str(project), str(remote))
    git(project, "remote", "add", "origin", f"file://{remote}")
    await fleet.start()
    return fleet
