"""Workspaces over HTTP: pages, one of them, the diff of a job, and removing one."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import anyio
import pytest

from components import Components
from nightherd.wiring.fleets import load_fleet
from web.web_world import ENVIRON, SECRET, World, served
from workspace_fleet import make_project


@pytest.fixture
def project(tmp_path: Path, components: Components) -> Path:
    components.program("git")
    return make_project(tmp_path)


def served_project(project: Path) -> Any:
    file = project / "nightherd.yaml"
    return served(project, fleet=load_fleet(file, environ=ENVIRON, cwd=project).fleet)


async def delete(world: World, path: str) -> Any:
    return await world.ask("DELETE", path)


def test_workspaces_are_listed_in_pages_and_shown(project: Path) -> None:
    async def main() -> None:
        async with served_project(project) as world:
            first = await world.run("coder", "go")
            second = await world.run("coder", "go")
            page = (await world.get("/v1/workspaces?limit=1")).document
            rest = (await world.get(f"/v1/workspaces?before={page['next_before']}")).document
            other = (await world.get("/v1/workspaces?agent=keeper")).document
            shown = await world.get(f"/v1/workspaces/{first}")
            missing = await world.get("/v1/workspaces/job-1999-01-01-aaaaaa")

        assert [one["id"] for one in page["data"]] == [second]
        assert [one["id"] for one in rest["data"]] == [first]
        assert rest["next_before"] is None
        assert page["total_size_bytes"] > 0
        assert (other["data"], other["total_size_bytes"]) == ([], 0)
        assert (shown.status, shown.document["schema"]) == (200, "nightherd/v1/workspace")
        assert [one["path"] for one in shown.data["changes"]] == ["app.txt", "new file.txt"]
        assert (missing.status, missing.document["code"]) == (404, "workspace_not_found")

    anyio.run(main)


def test_the_diff_of_a_job_is_a_document(project: Path) -> None:
    async def main() -> None:
        async with served_project(project) as world:
            job = await world.run("coder", "go")
            plain = await world.run("plain", "true")
            whole = (await world.get(f"/v1/jobs/{job}/diff")).data
            turn = (await world.get(f"/v1/jobs/{job}/diff?turn=1&patch=false")).data
            every = (await world.get(f"/v1/jobs/{job}/diff?all=true")).data
            both = await world.get(f"/v1/jobs/{job}/diff?turn=1&all=true")
            late = await world.get(f"/v1/jobs/{job}/diff?turn=9")
            none = await world.get(f"/v1/jobs/{plain}/diff")

        assert "+three\n" in whole["patch"]
        assert [one["path"] for one in turn["files"]] == ["app.txt"]
        assert "patch" not in turn
        assert every["files"] == whole["files"]
        assert (both.status, late.status, none.status) == (400, 404, 404)
        assert none.document["code"] == "workspace_not_found"

    anyio.run(main)


def test_a_workspace_is_removed_and_work_only_with_force(project: Path) -> None:
    async def main() -> None:
        async with served_project(project) as world:
            job = await world.run("coder", "go")
            refused = await delete(world, f"/v1/workspaces/{job}")
            there = (project / ".nightherd-workspaces" / job).exists()
            removed = await delete(world, f"/v1/workspaces/{job}?force=true")
            again = await delete(world, f"/v1/workspaces/{job}")
            listed = (await world.get("/v1/workspaces")).data
            every = (await world.get("/v1/workspaces?removed=true")).data
            diff = (await world.get(f"/v1/jobs/{job}/diff")).data

        assert (refused.status, there) == (409, True)
        assert "2 changed files not merged" in refused.document["detail"]
        assert (removed.status, removed.data["state"]) == (200, "removed")
        assert again.status == 200
        assert not (project / ".nightherd-workspaces" / job).exists()
        assert (listed, [one["id"] for one in every]) == ([], [job])
        assert "+three\n" in diff["patch"]

    anyio.run(main)


def test_one_that_a_job_works_in_stays(project: Path) -> None:
    async def main() -> None:
        async with served_project(project) as world:
            job = await world.run("waiting", "go")
            refused = await delete(world, f"/v1/workspaces/{job}?force=true")

        assert refused.status == 409
        assert f"job {job} (suspended) works in it" in refused.document["detail"]

    anyio.run(main)


def test_a_diff_over_http_is_bounded_in_size(project: Path) -> None:
    many = "for n in 1 2 3; do head -c 3000000 /dev/zero | tr '\\0' x > big$n; done"

    async def main() -> None:
        async with served_project(project) as world:
            job = await world.run("shell", many)
            small = await world.run("shell", "echo more > small")
            large = (await world.get(f"/v1/jobs/{job}/diff")).data
            other = (await world.get(f"/v1/jobs/{small}/diff")).data

        assert ("patch" in large, large["is_patch_left_out"]) == (False, True)
        assert [one["path"] for one in large["files"]] == ["big1", "big2", "big3"]
        assert ("patch" in other, other["is_patch_left_out"]) == (True, False)

    anyio.run(main)


def test_known_secrets_do_not_leave_in_a_diff(project: Path) -> None:
    command = f"s=$(printf %s%s {SECRET[:5]} {SECRET[5:]}); echo $s > $s.txt"

    async def main() -> None:
        async with served_project(project) as world:
            job = await world.run("shell", command)
            diff = await world.get(f"/v1/jobs/{job}/diff")
            shown = await world.get(f"/v1/workspaces/{job}")

        assert "+[secret:HOOK_SECRET]" in diff.data["patch"]
        assert SECRET not in str(diff.document)
        assert "[secret:HOOK_SECRET].txt" in str(shown.document)
        assert SECRET not in str(shown.document)

    anyio.run(main)
