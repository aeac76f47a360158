"""Git in containers: in a workspace with a repository of its own, and in a directory of the user's, which stays as it is."""

from __future__ import annotations

import os
import time
from datetime import timedelta
from pathlib import Path

import anyio
import pytest
from msgspec.structs import replace

from docker_engine import DockerEngine
from nightherd.config.load import load_fleet
from nightherd.model.agents.agent import Agent
from nightherd.model.containers.policy import ContainerNetwork, ContainerPolicy
from nightherd.model.ids import ExecutionId, JobId
from nightherd.model.journal.event import ErrorEvent, Event
from nightherd.model.workspaces.policy import WorkspaceMode, WorkspacePolicy
from nightherd.ports import Made, RuntimeRequest
from nightherd.runtimes.keeper.keepers import Keepers
from nightherd.wiring.runtimes import KNOWN_RUNTIMES, Runtimes
from workspaces.scene import Scene, git, new_repository, noted

FLEET = """
agents:
  - name: hello
    runtime: scripted
    permission_mode: bypassPermissions
    script: [{{tool: Bash, input: {{command: {command!r}}}}}, {{say: done}}]
"""
GIT = "git config user.name a && git config user.email a@example.com && "


def agent_that_runs(command: str, directory: Path, image: str, engine: DockerEngine) -> Agent:
    file = directory.parent / "nightherd.yaml"
    file.write_text(FLEET.format(command=command))
    fleet = load_fleet(file, environ={}, cwd=file.parent, runtimes=KNOWN_RUNTIMES).fleet
    policy = ContainerPolicy(image=image, socket=engine.socket_path, network=ContainerNetwork.NONE)
    return replace(fleet.agents["hello"], container=policy, working_directory=str(directory))


def run(agent: Agent, state: Path, made: Made | None = None, top: Path | None = None) -> str:
    """Run the agent; return the result of its command."""
    state.mkdir(exist_ok=True)

    async def main() -> list[Event]:
        keepers = Keepers(directory=str(state))
        keepers.send_heartbeat(time.monotonic() + 120)
        runtimes = Runtimes(keepers, state, timedelta(seconds=5), {})
        request = RuntimeRequest(
            job_id=JobId("job-2026-01-01-aaaaaa"),
            execution=ExecutionId("job-2026-01-01-aaaaaa.1"),
            agent=agent,
            prompt="go",
            environment={"PATH": os.environ["PATH"]},
            workspace=str(top) if top is not None else None,
            borrowed=made.borrowed if made is not None else (),
        )
        try:
            return [event async for event in runtimes(agent.runtime.name).execute(request)]
        finally:
            await runtimes.close()

    events = anyio.run(main)
    errors = [event.message for event in events if isinstance(event, ErrorEvent)]
    assert errors == []
    return next(str(found) for event in events if (found := getattr(event, "result", None)))


@pytest.mark.parametrize("prefix", ["", "src/lib"])
def test_agent_commits_in_its_workspace_and_cannot_write_into_the_users_repository(
    tmp_path: Path, docker_engine: DockerEngine, container_image: str, prefix: str
) -> None:
    scene = Scene(new_repository(tmp_path / "repo"), WorkspacePolicy(mode=WorkspaceMode.CLONE))
    row = scene.row(root=str(scene.root / prefix))
    made = scene.make(row)
    objects = scene.root / ".git" / "objects"
    command = (
        f"{GIT} git status --porcelain && git log --format=%s main && echo new > new.txt && git add -A "
        f"&& git commit -qm inside && git log --format=%s; touch {objects}/x; ls {scene.root}"
    )
    agent = agent_that_runs(command, Path(made.directory), container_image, docker_engine)
    agent = replace(agent, workspace=WorkspacePolicy(mode=WorkspaceMode.CLONE))
    said = run(agent, scene.state, made, scene.top())
    assert "first\ninside\nfirst\n" in said
    assert "Read-only file system" in said
    assert not (objects / "x").exists()
    assert "README.md" not in said  # the user's files are not there
    head = scene.snapshot(noted(row, made)).head
    assert head is not None
    assert git(scene.root, "log", "--format=%s", str(made.branch)) == "inside\nfirst"
    assert git(scene.root, "show", f"{head}:{prefix + '/' if prefix else ''}new.txt") == "new"


def test_worktree_of_the_user_is_a_repository_inside_that_cannot_be_written(
    tmp_path: Path, docker_engine: DockerEngine, container_image: str
) -> None:
    root = new_repository(tmp_path / "repo")
    git(root, "worktree", "add", "--quiet", "-b", "side", str(tmp_path / "side"))
    for path in (tmp_path / "side", *(tmp_path / "side").rglob("*")):
        os.chown(path, 1000, 1000)
    common = root / ".git"
    command = (
        "git -c safe.directory='*' status --porcelain=v2 --branch; echo x > changed; "
        f"echo gitdir: /tmp > .git; echo x > {common}/config; echo x > {common}/worktrees/side/commondir; "
        f"mkdir -p {common}/hooks/x; git -c safe.directory='*' status --porcelain"
    )
    agent = agent_that_runs(command, tmp_path / "side", container_image, docker_engine)
    before = (common / "config").read_bytes()
    said = run(agent, tmp_path / "state")
    assert "# branch.head side" in said
    assert "?? changed" in said
    assert said.count("Read-only file system") >= 3
    assert (common / "config").read_bytes() == before
    seen = git(tmp_path / "side", "-c", "safe.directory=*", "status", "--porcelain")
    assert seen == "?? changed"
