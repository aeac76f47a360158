"""No process that an agent started can bring the changes of a job home through the daemon, whichever way it asks."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from components import Components
from nightherd.daemon.record import find_daemon
from surfaces.drivers import Cli, Shell
from surfaces.test_agents_may_not_answer import ASK
from surfaces.test_agents_may_not_widen import BARE, NIGHTHERD
from web.web_world import free_port
from workspace_fleet import git, make_project, row


@pytest.fixture
def project(fleet: Path, components: Components, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A repository with agents that work in worktrees of it, served on a port too."""
    components.program("git")
    home = fleet / ".nightherd-home"
    home.mkdir()
    monkeypatch.setenv("HOME", str(home))
    project = make_project(fleet)
    file = project / "nightherd.yaml"
    file.write_text(f"web: {{enabled: true, port: {free_port()}}}\n{file.read_text()}")
    (project / "ask.py.ignored").write_text(ASK)
    return project


def test_an_agent_cannot_bring_changes_home_through_the_daemon(
    cli: Cli, shell: Shell, project: Path
) -> None:
    job = str(cli("run", "coder", "--json").data["job_id"])
    assert shell.run("start", "--detach").code == 0
    record = find_daemon(project / ".nightherd")
    assert record is not None
    lines = [
        f"{BARE} {NIGHTHERD} api POST /v1/jobs/{job}/{verb} -d '{{}}'"
        for verb in ("apply", "merge", "push")
    ]
    lines += [
        f"{BARE} {sys.executable} ask.py.ignored {where} /v1/jobs/{job}/{verb} '{{}}'"
        for where in ("socket", *map(str, record.ports))
        for verb in ("apply", "merge", "push")
    ]
    command = f"cd {project}; " + "; ".join(lines)
    try:
        said = cli("run", "plain", "-p", f"({command}) > said.ignored 2>&1; cat said.ignored")
        of_a_person = shell.run("api", "POST", f"/v1/jobs/{job}/apply", "-d", '{"dry_run": true}')
    finally:
        shell.run("stop")

    answers = (project / "said.ignored").read_text()
    for what in ("apply changes to files", "merge changes", "push changes"):
        refusal = f"only a person may {what}, and an agent sent the request"
        assert answers.count(refusal) == 3, (answers, said)
    assert of_a_person.code == 0, of_a_person
    assert row(project, job).landed is None
    assert git(project, "status", "--porcelain") == ""
