"""Removed workspaces that are used again: their files are the last ones that anybody saw."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from components import Components
from surfaces.drivers import Cli
from workspace_fleet import make_project, say


@pytest.fixture
def project(fleet: Path, components: Components) -> Path:
    components.program("git")
    return make_project(fleet)


def test_what_a_person_added_before_a_forced_removal_is_there_when_the_session_goes_on(
    cli: Cli, project: Path
) -> None:
    job = say(cli, "echo agent > agent.txt")
    directory = Path(cli("workspace", "show", job, "--json").data["directory"])
    (directory / "person.txt").write_text("person\n")
    assert cli("workspace", "clean", job, "--force").code == 0

    say(cli, "ls > seen")

    assert {"agent.txt", "person.txt"} <= set((directory / "seen").read_text().split())


def test_setup_runs_again_in_a_workspace_whose_directory_was_lost(cli: Cli, project: Path) -> None:
    fleet = project / "nightherd.yaml"
    scoped = "mode: worktree, scope: session"
    fleet.write_text(
        fleet.read_text().replace(scoped, f"{scoped}, setup: ['echo built > made.ignored']")
    )
    job = say(cli, "cp made.ignored first")
    directory = Path(cli("workspace", "show", job, "--json").data["directory"])
    shutil.rmtree(directory)

    say(cli, "cp made.ignored second")

    assert (directory / "first").read_text() == "built\n"
    assert (directory / "second").read_text() == "built\n"
