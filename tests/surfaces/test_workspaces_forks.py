"""Forked sessions and their files: whatever becomes of their first job, they begin with the files of the fork."""

from __future__ import annotations

from pathlib import Path

import pytest

from components import Components
from surfaces.drivers import Cli
from workspace_fleet import make_project, say


@pytest.fixture
def project(fleet: Path, components: Components) -> Path:
    components.program("git")
    return make_project(fleet)


@pytest.fixture
def fork(cli: Cli, project: Path) -> str:
    """A fork of a session that has written `mine`; nothing has run in the fork."""
    say(cli, "echo work > mine")
    session = cli("session", "list", "--json").data[0]["id"]
    return str(cli("session", "fork", session, "--json").data["id"])


def files_of(cli: Cli, project: Path, fork: str) -> list[str]:
    """The files that the next job of the fork sees."""
    job = str(cli("run", "chat", "--resume", fork, "-p", "ls > seen", "--json").data["job_id"])
    where = cli("workspace", "show", job, "--json").data["directory"]
    return Path(where, "seen").read_text().split()


def test_a_fork_has_its_files_when_its_first_job_was_cancelled_in_the_queue(
    cli: Cli, project: Path, fork: str
) -> None:
    job = cli("run", "chat", "--resume", fork, "-d", "-p", "true", "--json").data["job_id"]
    assert cli("jobs", "cancel", job).code == 0

    assert "mine" in files_of(cli, project, fork)


def test_a_fork_has_its_files_when_the_workspace_of_its_first_job_could_not_be_made(
    cli: Cli, project: Path, fork: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        patch.setenv("PATH", str(project / "nothing"))
        assert cli("run", "chat", "--resume", fork, "-p", "true").code == 1

    assert "mine" in files_of(cli, project, fork)


def test_a_fork_whose_jobs_have_workspaces_of_their_own_hands_its_files_to_the_first_only(
    cli: Cli, project: Path
) -> None:
    fleet = project / "nightherd.yaml"
    fleet.write_text(fleet.read_text().replace(", scope: session", ""))
    say(cli, "echo work > mine")
    session = cli("session", "list", "--json").data[0]["id"]
    fork = str(cli("session", "fork", session, "--json").data["id"])
    assert cli("session", "use", fork).code == 0

    jobs = [say(cli, "ls > seen") for _ in range(2)]

    places = [cli("workspace", "show", job, "--json").data["directory"] for job in jobs]
    seen = [Path(place, "seen").read_text().split() for place in places]
    assert ["mine" in names for names in seen] == [True, False]
