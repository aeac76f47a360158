"""Workspaces of agents in containers, from the job to the merge, in real containers."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from docker_engine import DockerEngine
from surfaces.drivers import Cli

FLEET = """\
reload: auto
docker: {{enabled: true, socket: {socket}, image: {image}, network: none}}
defaults:
  runtime: scripted
  permission_mode: bypassPermissions
  default_prompt: go
  working_directory: {{root: shop, mode: worktree}}
agents:
  - name: painter
    script:
      - tool: Bash
        input: {{command: "printf red > colour; git add -A; git -c user.name=a -c user.email=a@b.c commit -qm colour"}}
      - tool: Bash
        input: {{command: "printf x > extra; git log --format=%s"}}
      - say: done
  - name: parent
    allowed_tools: [Bash, Spawn]
    working_directory: {{scope: run}}
    script:
      - tool: Spawn
        input: {{agent: child, prompt: go}}
      - say: done
  - name: child
    docker: {{enabled: false}}
    working_directory: {{scope: run}}
    script: [{{say: never said}}]
"""


def git(directory: Path, *words: str) -> str:
    done = subprocess.run(["git", *words], cwd=directory, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.fixture
def place(
    tmp_path: Path,
    docker_engine: DockerEngine,
    container_image: str,
    monkeypatch: pytest.MonkeyPatch,
) -> Path:
    shop = tmp_path / "shop"
    shop.mkdir()
    git(shop, "init", "-q", "-b", "main")
    (shop / "price").write_text("100\n")
    git(shop, "add", "-A")
    git(shop, "commit", "-qm", "first")
    fleet = FLEET.format(socket=docker_engine.socket_path, image=container_image)
    (tmp_path / "nightherd.yaml").write_text(fleet)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_work_of_a_container_is_snapshotted_forked_and_merged(cli: Cli, place: Path) -> None:
    job = cli("run", "painter", "--json").data
    assert job["status"] == "completed", job
    shown = cli("workspaces", "show", job["job_id"], "--json").data
    assert shown["mode"] == "clone"
    assert git(place / "shop", "log", "--format=%s", shown["branch"]).split() == ["colour", "first"]
    assert "extra" in cli("jobs", "diff", job["job_id"]).out
    cli("jobs", "merge", job["job_id"])
    assert git(place / "shop", "show", "main:colour") == "red"
    assert git(place / "shop", "show", "main:extra") == "x"


def test_agent_on_the_host_does_not_work_in_the_workspace_of_a_container(
    cli: Cli, place: Path
) -> None:
    cli("run", "parent", "--json")
    jobs = cli("jobs", "list", "--json").data
    child = next(job for job in jobs if job["agent"] == "child")
    assert child["status"] == "failed"
    error = cli("jobs", "show", child["id"]).out
    assert "give all agents that share a workspace a container" in " ".join(error.split())
