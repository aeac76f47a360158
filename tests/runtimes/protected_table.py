"""Calls by which an agent would take over its fleet: one list for every runtime, and the place they are tried in."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from typing import Any

from nightherd.model.agents.agent import Agent, Fleet
from nightherd.model.agents.mcp import McpServer, McpTransport
from nightherd.model.hooks import Hook, HookPoint, ShellCommand
from nightherd.model.permissions.protected import ProtectedPaths, protected_paths
from nightherd.model.workspaces.policy import SetupCommand, WorkspaceMode, WorkspacePolicy
from nightherd.runtimes.scripted.capabilities import SCRIPTED

NAME = "w (a),[b] c!x{1}"
"""A directory that reads like a rule."""
UNTOUCHED = (
    "nightherd.yaml",
    "agents/other.yaml",
    ".env",
    ".nightherd/web-token",
    "notify.sh",
    "tools/server.py",
    "prepare.sh",
)
CONTENT = "as it was\n"


def prepare(place: Path) -> ProtectedPaths:
    """A fleet in `place`, with links to its files; what its agents may not change."""
    for name in UNTOUCHED:
        (place / name).parent.mkdir(parents=True, exist_ok=True)
        (place / name).write_text(CONTENT)
    (place / "sub").mkdir()
    (place / "evil").mkdir()
    for name in ("evil/nightherd.yaml", "evil/x", "mine.txt"):
        (place / name).write_text("evil\n")
    (place / "link.yaml").symlink_to("nightherd.yaml")
    (place / "state").symlink_to(".nightherd")
    (place / "hard.yaml").hardlink_to(place / "nightherd.yaml")
    server = McpServer(
        name="tools", transport=McpTransport.STDIO, command="python3", args=("tools/server.py",)
    )
    hook = Hook(
        id="after_run[0]",
        point=HookPoint.AFTER_RUN,
        action=ShellCommand(command="sh ./notify.sh --now", timeout=timedelta(seconds=1)),
    )
    other = Agent(
        name="other",
        runtime=SCRIPTED,
        working_directory=str(place),
        mcp_servers=(server,),
        hooks=(hook,),
        workspace=WorkspacePolicy(
            mode=WorkspaceMode.COPY,
            setup=(SetupCommand(run="./prepare.sh ./mine.txt", files=("mine.txt",)),),
        ),
    )
    file = str(place / "nightherd.yaml")
    fleet = Fleet(
        file=file, files=(file, str(place / "agents/other.yaml")), agents={"other": other}
    )
    return protected_paths(fleet, str(place / ".nightherd"))


def written(place: Path) -> list[tuple[str, dict[str, Any]]]:
    """Writes that are denied: by every name of a file, there or not."""
    names = (
        *UNTOUCHED,
        str(place / "nightherd.yaml"),
        "sub/../nightherd.yaml",
        "link.yaml",
        "state/new",
        ".nightherd/jobs/deep/new.jsonl",
        "agents/.env",
        ".claude/settings.json",
        ".claude/settings.local.json",
        "sub/.claude/settings.json",
        ".claude/skills/mine/SKILL.md",
        ".claude/hooks/run.sh",
        ".mcp.json",
    )
    return [("Write", {"file_path": name, "content": "evil\n"}) for name in names]


COMMANDS = (
    "cp mine.txt nightherd.yaml",
    "mv mine.txt nightherd.yaml",
    "cp evil/nightherd.yaml .",
    "rm -f .nightherd/web-token",
    "rm -rf .nightherd",
    "mv .nightherd gone",
    "mkdir -p .nightherd/made",
    "cp mine.txt link.yaml",
    "cp mine.txt .mcp.json",
    "rm notify.sh",
    "rm -r agents",
    "mv agents gone",
    "cp -r evil/. .",
    "cp evil/* .",
    "cp -t . evil/nightherd.yaml",
    "cp -rT evil .",
    "cp mine.txt hard.yaml",
    "rm *.yaml",
    "rm -r .night*",
    "mv evil .claude",
    "cp evil/nightherd.yaml night*",
)
"""File commands that are denied, in every mode; Claude's own rules leave some of them to the gate."""


def is_untouched(place: Path) -> bool:
    """Whether every protected file is as it was, and none is new."""
    names = {str(one.relative_to(place)) for one in place.rglob("*") if one.is_file()}
    made = [one for one in names if one.startswith((".nightherd", ".claude", ".mcp", "sub/"))]
    return made == [".nightherd/web-token"] and all(
        (place / name).read_text() == CONTENT for name in UNTOUCHED
    )
