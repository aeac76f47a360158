"""Workspaces for programs: listed, shown, compared and removed as the command line does it."""

from __future__ import annotations

import sys
from pathlib import Path

import anyio
import pytest

from components import Components
from nightherd import (
    Order,
    WorkspaceNotFoundError,
    WorkspaceQuery,
    open_fleet,
)
from nightherd.errors import RefusedError
from surfaces.drivers import Cli
from surfaces.test_agents_may_not_widen import BARE
from workspace_fleet import git, make_project


@pytest.fixture
def project(tmp_path: Path, components: Components) -> Path:
    components.program("git")
    return make_project(tmp_path)


def test_a_program_lists_shows_and_compares(project: Path) -> None:
    directories = project / ".nightherd-workspaces"

    async def main() -> None:
        async with open_fleet(project / "nightherd.yaml") as fleet:
            done = await fleet.execute(Order(agent="coder"))
            other = await fleet.execute(Order(agent="plain", prompt="true"))
            (listed,) = fleet.workspaces.list().workspaces
            shown = fleet.workspaces.show(done.job_id)
            diff = fleet.workspaces.diff(done.job_id)
            turn = fleet.workspaces.diff(done.job_id, turn=1)
            with pytest.raises(WorkspaceNotFoundError, match="mode: shared"):
                fleet.workspaces.diff(other.job_id)
            none = fleet.workspaces.list(WorkspaceQuery(agent="plain"))

        assert (str(listed.workspace.id), listed.state) == (done.job_id, "dirty")
        assert (shown.is_there, shown.directory) == (True, str(directories / done.job_id))
        assert [one.path for one in diff.files] == ["app.txt", "new file.txt"]
        assert [one.path for one in turn.files] == ["app.txt"]
        assert none.workspaces == []
        (project / "job.patch").write_bytes(diff.patch)
        git(project, "apply", "job.patch")
        assert (project / "new file.txt").read_text() == "hello\n"

    anyio.run(main)


def test_a_program_removes_what_is_merged_or_what_it_insists_on(project: Path) -> None:
    async def main() -> None:
        async with open_fleet(project / "nightherd.yaml") as fleet:
            done = await fleet.execute(Order(agent="coder"))
            with pytest.raises(RefusedError, match="2 changed files not merged"):
                await fleet.workspaces.remove(done.job_id)
            row = await fleet.workspaces.remove(done.job_id, is_forced=True)

        assert row.status == "removed"
        assert not (project / ".nightherd-workspaces" / done.job_id).exists()

    anyio.run(main)


PROGRAM = """\
import anyio, nightherd
async def main():
    async with nightherd.open_fleet("PROJECT/nightherd.yaml") as fleet:
        await fleet.workspaces.remove("JOB", is_forced=True)
anyio.run(main)
"""


def test_a_program_of_an_agent_cannot_remove_one(
    cli: Cli, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(project)
    job = cli("run", "coder", "--json").data["job_id"]
    program = PROGRAM.replace("PROJECT", str(project)).replace("JOB", job)
    (project / "program.py").write_text(program)

    result = cli("run", "plain", "-p", f"{BARE} {sys.executable} program.py")

    assert "only a person may remove workspaces" in result.out
    assert (project / ".nightherd-workspaces" / job).exists()
