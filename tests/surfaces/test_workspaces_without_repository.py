"""Workspaces that are no repository, inside of one: what an agent does with git there does not reach the user's."""

from __future__ import annotations

from pathlib import Path

import pytest

from components import Components
from surfaces.drivers import Cli
from workspace_fleet import git, make_project

FLEET = """\
agents:
  - name: careless
    runtime: scripted
    permission_mode: bypassPermissions
    default_prompt: go
    working_directory: {root: ROOT, mode: MODE, setup: ["git stash; true"]}
    script:
      - {tool: Bash, input: {command: "git commit -qam stolen; git reset -q --hard; git init -q .; git add -A; git status > seen"}}
      - say: done
"""


@pytest.fixture
def project(fleet: Path, components: Components) -> Path:
    components.program("git")
    return make_project(fleet)


@pytest.mark.parametrize(("mode", "root"), [("empty", "."), ("copy", "below")])
def test_git_in_a_workspace_does_not_reach_the_repository_around_it(
    cli: Cli, project: Path, mode: str, root: str
) -> None:
    (project / "below").mkdir()
    (project / "below" / "file").write_text("file\n")
    git(project, "add", "below")
    git(project, "commit", "--quiet", "-m", "below")
    (project / "nightherd.yaml").write_text(FLEET.replace("MODE", mode).replace("ROOT", root))
    (project / "app.txt").write_text("edited by the user\n")
    before = git(project, "for-each-ref")

    job = cli("run", "careless", "--json").data["job_id"]

    assert (project / "app.txt").read_text() == "edited by the user\n"
    assert git(project, "for-each-ref") == before
    directory = Path(cli("workspace", "show", job, "--json").data["directory"])
    assert "No commits yet" in (directory / "seen").read_text()
