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
  - name: talker
    session: {{mode: persistent}}
    limits: {{turns: 1}}
    script:
      - tool: Bash
        input: {{command: "echo begun >> log"}}
      - tool: Bash
        input: {{command: "echo again >> log"}}
      - say: two
  - name: builder
    working_directory:
      setup:
        - {{run: "mkdir -p made && git log --format=%s > made/log && touch {mark}", paths: [made]}}
    script: [{{tool: Bash, input: {{command: "echo more > made/more"}}}}, {{say: done}}]
  - name: outsider
    docker: {{enabled: false}}
    working_directory:
      setup: [{{run: "mkdir -p made && git log --format=%s > made/log && touch {mark}", paths: [made]}}]
    script: [{{say: never said}}]
  - name: hooked
    hooks:
      after_run: [{{type: shell, command: "./notify.sh"}}]
    script:
      - tool: Bash
        input:
          command: >-
            echo '#!/bin/sh' > notify.sh; chmod +x notify.sh;
            echo 'cat > payload; id -u > ran; git log --format=%s >> ran; touch {mark}' >> notify.sh
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
    fleet = FLEET.format(
        socket=docker_engine.socket_path, image=container_image, mark=tmp_path / "escaped"
    )
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


def lines(path: Path) -> list[str]:
    return path.read_text().split()


def test_setup_runs_inside_and_its_result_is_shared_under_the_same_terms_only(
    cli: Cli, place: Path
) -> None:
    first = cli("run", "builder", "--json").data
    # It cannot touch what is outside of the workspace.
    assert first["status"] == "failed"
    assert not (place / "escaped").exists()
    config = place / "nightherd.yaml"
    config.write_text(config.read_text().replace(f" && touch {place / 'escaped'}", ""))

    second = cli("run", "builder", "--json").data
    assert second["status"] == "completed", second
    made = place / ".nightherd-workspaces" / second["job_id"] / "made"
    assert lines(made / "log") == ["first"]
    assert lines(made / "more") == ["more"]
    third = cli("run", "builder", "--json").data
    assert third["status"] == "completed", third
    journal = (place / ".nightherd" / "jobs" / f"{third['job_id']}.jsonl").read_text()
    assert "copied from an earlier workspace" in journal
    made = place / ".nightherd-workspaces" / third["job_id"] / "made"
    assert lines(made / "more") == ["more"]
    other = cli("run", "outsider", "--json").data
    journal = (place / ".nightherd" / "jobs" / f"{other['job_id']}.jsonl").read_text()
    assert "copied from an earlier workspace" not in journal
    assert other["status"] == "completed", other
    made = place / ".nightherd-workspaces" / other["job_id"] / "made"
    assert [path.name for path in made.iterdir()] == ["log"]


def test_hook_that_the_agent_wrote_runs_inside(cli: Cli, place: Path) -> None:
    job = cli("run", "hooked", "--json").data
    top = place / ".nightherd-workspaces" / job["job_id"]
    assert not (place / "escaped").exists()
    assert lines(top / "ran") == ["1000", "first"]
    assert job["job_id"] in (top / "payload").read_text()


def test_job_that_began_in_a_container_continues_on_the_host_in_a_new_workspace_only(
    cli: Cli, place: Path
) -> None:
    cli("run", "talker", "--json")
    (first,) = cli("jobs", "list", "--json").data
    assert first["status"] == "suspended", first
    config = place / "nightherd.yaml"
    config.write_text(config.read_text().replace("{enabled: true,", "{enabled: false,"))
    cli("jobs", "resume", first["id"], "--raise", "turns=9")
    error = cli("jobs", "show", first["id"], "--json").data["error"]
    assert "began in a workspace of a container" in error["message"]

    cli("jobs", "resume", first["id"], "-p", "go on")
    second, _ = cli("jobs", "list", "--json").data
    made = place / ".nightherd-workspaces" / second["id"]
    assert (made / ".git").is_file(), "a worktree"
    assert "begun" in (made / "log").read_text()
