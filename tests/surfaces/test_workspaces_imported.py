"""Sessions that were exported and imported elsewhere: their files stayed behind, and everything says so."""

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
def imported(
    cli: Cli,
    project: Path,
    tmp_path_factory: pytest.TempPathFactory,
    monkeypatch: pytest.MonkeyPatch,
) -> tuple[str, str]:
    """The job and session of another project, imported into this one; the test stands there."""
    job = say(cli, "echo work > mine")
    session = str(cli("session", "list", "--json").data[0]["id"])
    exported = project / "session.json"
    assert cli("session", "export", session, "-o", str(exported)).code == 0
    monkeypatch.chdir(make_project(tmp_path_factory.mktemp("other")))
    assert cli("session", "import", str(exported)).code == 0
    return job, session


def test_the_diff_of_an_imported_job_says_where_its_files_are_not(
    cli: Cli, imported: tuple[str, str]
) -> None:
    job, session = imported
    before = cli("jobs", "diff", job)
    cli("run", "chat", "--resume", session, "-p", "echo more > other")
    after = cli("jobs", "diff", job)

    assert (before.code, after.code) == (3, 3)
    assert f"the files of job {job} are not here: it was imported" in before.err
    assert after.err == before.err
    assert "+more" in cli("jobs", "diff", "@last").out


def test_an_imported_session_can_be_forked_at_a_message_of_the_import(
    cli: Cli, imported: tuple[str, str]
) -> None:
    _, session = imported
    assert say_in(cli, session, "echo more > other") == "ready"

    cli("session", "fork", session, "--at-message", "3", "--run", "-p", "echo fork > forked")

    shown = cli("workspace", "show", "@last", "--json").data
    assert [changed["path"] for changed in shown["changes"]] == ["forked"]


def say_in(cli: Cli, session: str, text: str) -> str:
    """Run one turn in a session; return the status of its workspace."""
    job = cli("run", "chat", "--resume", session, "-p", text, "--json").data["job_id"]
    cli("jobs", "cancel", job)
    return str(cli("workspace", "show", job, "--json").data["status"])
