"""Sessions compared over HTTP: where they part, what each came to, and which files differ; imported ones too."""

from __future__ import annotations

import json
from pathlib import Path

import anyio
import pytest

from components import Components
from surfaces.drivers import Shell
from web.session_world import made, memory_fleet, session_of
from web.web_world import served, write_fleet
from workspace_fleet import WORKSPACE_AGENTS, make_project

UUID = "11111111-2222-4333-8444-555555555555"


def test_two_branches_are_compared_from_where_they_part(tmp_path: Path) -> None:
    async def main() -> None:
        async with served(tmp_path, fleet=memory_fleet(tmp_path)) as world:
            root = await session_of(world, await world.run("memory", "one"))
            body = {"agent": "memory", "fork": root, "at_message": 2, "prompt": "other"}
            job = await made(world, "/v1/jobs", body)
            await world.execute(job["id"], "memory")
            fork = job["session_id"]

            found = (await world.get(f"/v1/sessions/{root}/compare/{fork}")).data
            same = (await world.get(f"/v1/sessions/{root}/compare/{root}?patch=true")).data
            fresh = await session_of(world, await world.run("fresh", "x"))
            apart = (await world.get(f"/v1/sessions/{fresh}/compare/{fork}")).data

            assert found["common_messages"] == 2
            assert [side["id"] for side in found["sessions"]] == [root, fork]
            assert found["sessions"][1]["jobs_since"] == [job["id"]]
            assert found["sessions"][1]["outcome"]["status"] == "completed"
            assert (found["files"], found["is_patch_left_out"]) == (None, False)
            assert "patch" not in found
            assert [side["messages_since"] for side in same["sessions"]] == [0, 0]
            assert (apart["common_messages"], apart["job_id"]) == (0, None)
            unknown = await world.get(f"/v1/sessions/{fresh}/compare/sess-none")
            assert (unknown.status, unknown.document["code"]) == (404, "session_not_found")

    anyio.run(main)


def test_files_of_two_sessions_are_compared(
    tmp_path: Path, components: Components, monkeypatch: pytest.MonkeyPatch
) -> None:
    components.program("git")
    project = make_project(tmp_path)

    async def main() -> None:
        async with served(project, fleet=write_fleet(project, WORKSPACE_AGENTS)) as world:
            one = await session_of(world, await world.run("shell", "echo one > mine.txt"))
            two = await session_of(world, await world.run("shell", "echo two > mine.txt"))
            path = f"/v1/sessions/{one}/compare/{two}"

            listed = (await world.get(path)).data
            patched = (await world.get(path + "?patch=true")).data
            monkeypatch.setattr("nightherd.web.sessions.session_reading.LARGEST_PATCH", 1)
            large = (await world.get(path + "?patch=true")).data
            monkeypatch.setattr("nightherd.web.sessions.session_reading.MOST_FILES", 0)
            many = (await world.get(path)).data

            (file,) = listed["files"]
            assert (file["path"], file["added"], file["removed"]) == ("mine.txt", 1, 1)
            assert (listed["files_left_out"], "patch" in listed) == (0, False)
            assert "-one\n+two\n" in patched["patch"]
            assert ("patch" in large, large["is_patch_left_out"]) == (False, True)
            assert (many["files"], many["files_left_out"]) == ([], 1)

    anyio.run(main)


def write_transcript(home: Path, directory: Path) -> None:
    path = home / "projects" / "-srv-pasture" / f"{UUID}.jsonl"
    path.parent.mkdir(parents=True)
    lines = [
        {
            "type": kind,
            "uuid": f"u{number}",
            "parentUuid": f"u{number - 1}" if number else None,
            "cwd": str(directory),
            "timestamp": f"2026-03-01T12:00:0{number}.000Z",
            "message": {"id": f"m{number}", "role": kind, "content": text},
        }
        for number, (kind, text) in enumerate([("user", "hello"), ("assistant", "there")])
    ]
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))


def test_messages_of_an_imported_session_are_read_from_its_transcript(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CLAUDE_CONFIG_DIR", str(tmp_path / "claude"))
    fleet = memory_fleet(tmp_path)
    write_transcript(tmp_path / "theirs", tmp_path)
    assert Shell(tmp_path).run("import", "claude", str(tmp_path / "theirs")).code == 0

    async def main() -> None:
        async with served(tmp_path, fleet=fleet) as world:
            first = (await world.get(f"/v1/sessions/{UUID}/messages")).document
            again = (await world.get(f"/v1/sessions/{UUID}/messages?limit=1")).document
            whole = (await world.get(f"/v1/sessions/{UUID}/messages/2")).data
            jobs = (await world.get(f"/v1/sessions/{UUID}")).data["jobs"]

            assert [row["text"] for row in first["data"]] == ["hello", "there"]
            assert [row["text"] for row in again["data"]] == ["there"]
            assert (first["total"], whole["text"], len(jobs)) == (2, "there", 1)

    anyio.run(main)
