"""A project under git with scripted agents that work in workspaces: for tests of every surface that shows them."""

from __future__ import annotations

import subprocess
from pathlib import Path

import anyio

from nightherd.model.change import Applied, Change
from nightherd.model.workspaces.changes import LandWorkspace
from nightherd.model.workspaces.workspace import Landed, Workspace
from nightherd.wiring.stores import open_reader, open_store, system_clock
from surfaces.drivers import Cli

WORKSPACE_AGENTS = """\
agents:
  - name: coder
    runtime: scripted
    default_prompt: go
    permission_mode: bypassPermissions
    working_directory: {root: ., mode: worktree}
    script:
      - say: I edit.
      - tool: Bash
        input: {command: "echo three >> app.txt"}
      - usage: {output_tokens: 1}
      - say: I look.
      - tool: Read
        input: {file_path: app.txt}
      - usage: {output_tokens: 1}
      - say: I add.
      - tool: Write
        input: {file_path: "new file.txt", content: "hello\\n"}
      - usage: {output_tokens: 1}
      - say: Done.
  - name: shell
    runtime: scripted
    permission_mode: bypassPermissions
    working_directory: {root: ., mode: worktree}
    script: [{tool: Bash, input: {command: "${prompt}"}}, {say: done}]
  - name: chat
    runtime: scripted
    permission_mode: bypassPermissions
    session: {mode: persistent}
    limits: {turns: 1}
    working_directory: {root: ., mode: worktree, scope: session}
    script: [{repeat: 9, steps: [{tool: Bash, input: {command: "${prompt}"}}]}]
  - name: waiting
    runtime: scripted
    default_prompt: go
    permission_mode: bypassPermissions
    approvals: [{tool: "Bash(touch:*)"}]
    working_directory: {root: ., mode: worktree}
    script:
      - tool: Bash
        input: {command: "echo four >> app.txt"}
      - usage: {output_tokens: 1}
      - tool: Bash
        input: {command: touch pushed}
      - say: done
  - name: keeper
    runtime: scripted
    permission_mode: bypassPermissions
    working_directory: {root: ., mode: worktree, keep: always}
    script: [{tool: Bash, input: {command: "${prompt}"}}, {say: done}]
  - name: plain
    runtime: scripted
    permission_mode: bypassPermissions
    script: [{tool: Bash, input: {command: "${prompt}"}}, {say: done}]
"""


def git(directory: Path, *arguments: str) -> str:
    """Run git as the user would; return what it prints."""
    done = subprocess.run(["git", *arguments], cwd=directory, check=True, capture_output=True)
    return done.stdout.decode().removesuffix("\n")


def make_project(directory: Path) -> Path:
    """A repository with one commit, and the fleet file beside it."""
    git(directory, "init", "--quiet", "--initial-branch=main")
    (directory / "app.txt").write_text("one\ntwo\n")
    (directory / ".gitignore").write_text(".nightherd*\n*.ignored\nnightherd.yaml\n")
    git(directory, "add", "app.txt", ".gitignore")
    git(directory, "commit", "--quiet", "-m", "first")
    (directory / "nightherd.yaml").write_text(WORKSPACE_AGENTS)
    return directory


def say(cli: Cli, text: str) -> str:
    """Run one turn in the session of `chat`; return the job, which has ended."""
    job = str(cli("run", "chat", "-p", text, "--json").data["job_id"])
    assert cli("jobs", "cancel", job).code == 0
    return job


def apply(directory: Path, *changes: Change) -> None:
    """Change the state of the project directly."""

    async def main() -> None:
        store = open_store(directory / ".nightherd", system_clock())
        for answer in await store.apply(changes):
            assert isinstance(answer, Applied), answer
        await store.close()

    anyio.run(main)


def row(directory: Path, workspace_id: str) -> Workspace:
    """The row of a workspace."""
    reader = open_reader(directory / ".nightherd")
    try:
        found = reader.find_workspace(workspace_id)
    finally:
        reader.close()
    assert found is not None
    return found


def land(directory: Path, workspace_id: str) -> None:
    """Record that the changes of a workspace were merged."""
    known = row(directory, workspace_id)
    assert known.tree is not None
    apply(
        directory,
        LandWorkspace(
            workspace_id=known.id, tree=known.tree, how=Landed.MERGED, at=known.last_used_at
        ),
    )
