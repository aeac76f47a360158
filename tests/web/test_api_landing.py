"""Changes of jobs brought home over HTTP: applied, merged and pushed by admins that agents cannot be."""

from __future__ import annotations

from pathlib import Path

import anyio
import pytest

from components import Components
from nightherd.model.access.role import Role
from web.browser import logged_in, named_token, on_port
from web.web_world import served, token_of, write_fleet
from workspace_fleet import WORKSPACE_AGENTS, git, make_project, row


@pytest.fixture
def project(tmp_path: Path, components: Components, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A repository with agents that work in worktrees of it, and a remote; git knows nobody."""
    components.program("git")
    home = tmp_path / "home"
    home.mkdir()
    monkeypatch.setenv("HOME", str(home))
    (tmp_path / "project").mkdir()
    project = make_project(tmp_path / "project")
    git(tmp_path, "init", "-q", "--bare", "remote.git")
    git(project, "remote", "add", "origin", f"file://{tmp_path}/remote.git")
    return project


def test_changes_are_applied_merged_and_pushed(project: Path) -> None:
    async def main() -> None:
        async with served(project, fleet=write_fleet(project, WORKSPACE_AGENTS)) as world:
            job = await world.run("coder", "go")
            path = f"/v1/jobs/{job}"

            dry = await world.post(path + "/apply", {"dry_run": True})
            assert (dry.status, dry.data["is_dry_run"], dry.data["how"]) == (200, True, "applied")
            assert dry.data["files"] == ["app.txt", "new file.txt"]
            assert git(project, "status", "--porcelain") == ""
            assert row(project, job).landed is None

            pushed = await world.post(path + "/push", {"message": "Three"})
            branch = f"nightherd/coder/{job}"
            assert (pushed.status, pushed.data["target"]) == (200, f"origin {branch}")
            remote = project.parent / "remote.git"
            assert git(remote, "log", "-1", "--format=%s", branch) == "Three"

            merged = await world.post(path + "/merge", {"fast_forward": False, "message": "Join"})
            assert (merged.data["how"], merged.data["target"]) == ("merged", "main")
            assert merged.data["is_fast_forward"] is False
            assert (project / "app.txt").read_text() == "one\ntwo\nthree\n"
            assert row(project, job).landed == "merged"

            again = await world.post(path + "/apply")
            assert (again.status, again.data["is_nothing"]) == (200, True)

    anyio.run(main)


def test_conflicts_are_named_and_nothing_is_changed(project: Path) -> None:
    async def main() -> None:
        async with served(project, fleet=write_fleet(project, WORKSPACE_AGENTS)) as world:
            job = await world.run("coder", "go")
            (project / "app.txt").write_text("one\ntwo\nIII\n")

            answer = await world.post(f"/v1/jobs/{job}/apply")

            assert (answer.status, answer.data["conflicts"]) == (200, ["app.txt"])
            assert not (project / "new file.txt").exists()
            assert row(project, job).landed is None

    anyio.run(main)


@pytest.mark.parametrize("remote", ["ext::sh -c id", "--exec=id", "../elsewhere", "file:///x", ""])
def test_a_remote_is_a_name_and_never_an_address(project: Path, remote: str) -> None:
    async def main() -> None:
        async with served(project, fleet=write_fleet(project, WORKSPACE_AGENTS)) as world:
            job = await world.run("coder", "go")

            refused = await world.post(f"/v1/jobs/{job}/push", {"remote": remote})

            assert (refused.status, refused.document["code"]) == (422, "malformed")

    anyio.run(main)


@pytest.mark.parametrize("verb", ["apply", "merge", "push"])
def test_only_admins_with_a_name_bring_changes_home(project: Path, verb: str) -> None:
    async def main() -> None:
        fleet = write_fleet(project, WORKSPACE_AGENTS)
        async with on_port(project, fleet) as world:
            job = await world.run("coder", "go")
            path = f"/v1/jobs/{job}/{verb}"

            async def ask(**headers: str) -> int:
                body = {"dry_run": True}
                answer = await world.ask("POST", path, body, port=world.ports[0], **headers)
                return int(answer.status)

            for name, role, status in (
                ("olga", Role.OPERATOR, 403),
                ("ada", Role.ADMIN, 200),
            ):
                token = await named_token(world, name, role)
                assert await ask(authorization=f"Bearer {token}") == status
            assert await ask(authorization=f"Bearer {token_of(project)}") == 403
            assert await ask(**await logged_in(world)) == 200

    anyio.run(main)
