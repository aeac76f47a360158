"""The doctor of a fleet with workspaces: what is sound is sound for it, and its repairs break nothing."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from pathlib import Path

import pytest

from components import Components
from surfaces.drivers import Cli
from workspace_fleet import git, make_project

FLEET = """\
agents:
  - name: builder
    runtime: scripted
    permission_mode: bypassPermissions
    default_prompt: go
    working_directory:
      root: .
      mode: worktree
      setup:
        - run: "mkdir deps; printf '#!/bin/sh\\\\necho it runs\\\\n' > deps/tool; chmod 755 deps/tool; ln -s /gone deps/log.jsonl"
          files: [app.txt]
          paths: [deps]
    script: [{tool: Bash, input: {command: "echo more >> app.txt; deps/tool > out.txt"}}, {say: done}]
"""


@pytest.fixture
def project(fleet: Path, components: Components) -> Path:
    components.program("git")
    return make_project(fleet)


@pytest.fixture
def usual_umask() -> Iterator[None]:
    before = os.umask(0o022)
    yield
    os.umask(before)


def problems(cli: Cli, *options: str) -> list[str]:
    checks = cli("doctor", *options, "--json").data["checks"]
    found = [one for check in checks for one in check["findings"]]
    return [one["message"] for one in found if one["level"] != "ok"]


@pytest.mark.usefixtures("usual_umask")
def test_a_fleet_with_workspaces_is_sound(cli: Cli, project: Path) -> None:
    cli("run", "coder")

    assert problems(cli) == []
    assert cli("doctor").code == 0


@pytest.mark.usefixtures("usual_umask")
def test_what_is_kept_of_workspaces_is_for_its_owner_only(cli: Cli, project: Path) -> None:
    cli("run", "coder")

    state = project / ".nightherd"
    kept = [path for name in ("snapshots", "workspaces") for path in (state / name).rglob("*")]
    assert kept
    open_to_others = [path for path in kept if stat.S_IMODE(path.lstat().st_mode) & 0o077]
    assert open_to_others == []


@pytest.mark.usefixtures("usual_umask")
def test_repairs_leave_the_results_of_setup_commands_alone(cli: Cli, project: Path) -> None:
    (project / ".gitignore").write_text(".nightherd*\nnightherd.yaml\ndeps\n")
    git(project, "commit", "--quiet", "--all", "-m", "ignore what setup makes")
    (project / "nightherd.yaml").write_text(FLEET)
    cli("run", "builder")

    assert problems(cli, "--fix") == []
    job = cli("run", "builder", "--json").data["job_id"]

    assert "+it runs" in cli("jobs", "diff", job).out
    assert "copied from an earlier workspace" in cli("jobs", "tail", job).out


def test_a_workspace_that_could_not_be_made_is_not_called_lost(
    cli: Cli, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        patch.setenv("PATH", str(project / "nothing"))
        job = cli("run", "coder", "--json").data["job_id"]

    assert problems(cli) == [f"workspace {job} of agent 'coder' was never made"]
    cli("doctor", "--fix")

    assert problems(cli) == []
    assert cli("run", "coder").code == 0
