"""Sessions and jobs saved as files over HTTP: the same bytes that the command line writes."""

from __future__ import annotations

import json
from pathlib import Path

import anyio
import pytest

from nightherd.model.access.role import Role
from nightherd.web.access.guard import API_BODY_LIMIT
from surfaces.drivers import Shell
from web.browser import named_token, on_port
from web.session_world import memory_fleet, session_of
from web.web_world import served


@pytest.mark.parametrize(
    ("format", "media", "ending"),
    [
        ("json", "application/json", ".json"),
        ("claude", "application/x-ndjson", ".jsonl"),
        ("markdown", "text/markdown; charset=utf-8", ".md"),
        ("html", "text/html; charset=utf-8", ".html"),
    ],
)
def test_a_session_is_saved_in_every_format(
    tmp_path: Path, format: str, media: str, ending: str
) -> None:
    async def main() -> None:
        async with served(tmp_path, fleet=memory_fleet(tmp_path)) as world:
            session = await session_of(world, await world.run("memory", "<script>one</script>"))

            answer = await world.get(f"/v1/sessions/{session}/export?format={format}")

            assert (answer.status, answer.headers["content-type"]) == (200, media)
            disposition = answer.headers["content-disposition"]
            assert disposition.startswith("attachment; filename=")
            assert disposition.endswith(f'{ending}"')
            assert "sandbox" in answer.headers["content-security-policy"]
            assert answer.headers["x-content-type-options"] == "nosniff"
            text = answer.body.decode()
            assert "answer 1 to" in text
            assert format != "html" or "<script>one" not in text
            if format == "json":
                assert json.loads(text)["data"]["session"]["id"] == session

    anyio.run(main)


def test_a_saved_session_can_be_imported_elsewhere(tmp_path: Path) -> None:
    (tmp_path / "here").mkdir()
    (tmp_path / "there").mkdir()

    async def main() -> None:
        directory = tmp_path / "here"
        async with served(directory, fleet=memory_fleet(directory)) as world:
            session = await session_of(world, await world.run("memory", "one"))
            answer = await world.get(f"/v1/sessions/{session}/export")
            (tmp_path / "there" / "session.json").write_bytes(answer.body)
            expected = (await world.get(f"/v1/sessions/{session}/messages")).data

            memory_fleet(tmp_path / "there")
            shell = Shell(tmp_path / "there")
            assert shell.run("session", "import", "session.json").code == 0
            shown = shell.run("session", "show", session, "--history", "--json")
            history = json.loads(shown.out)["data"]["history"]
            assert [row["text"] for row in history] == [row["text"] for row in expected]

    anyio.run(main)


def test_a_saved_session_is_imported_once(tmp_path: Path) -> None:
    (tmp_path / "here").mkdir()
    (tmp_path / "there").mkdir()

    async def main() -> None:
        here, there = tmp_path / "here", tmp_path / "there"
        async with served(here, fleet=memory_fleet(here)) as world:
            session = await session_of(world, await world.run("memory", "one"))
            exported = json.loads((await world.get(f"/v1/sessions/{session}/export")).body)
            expected = (await world.get(f"/v1/sessions/{session}/messages")).data
        async with served(there, fleet=memory_fleet(there)) as world:
            dry = await world.post("/v1/sessions/import", {"document": exported, "dry_run": True})
            nothing = await world.get(f"/v1/sessions/{session}")
            first = await world.post("/v1/sessions/import", {"document": exported})
            again = await world.post("/v1/sessions/import", {"document": exported})
            shown = await world.get(f"/v1/sessions/{session}/messages")
            resumed = await world.post(f"/v1/sessions/{session}/resume", {"prompt": "two"})

        assert (dry.status, dry.data["id"], dry.document["is_new"]) == (200, session, True)
        assert (dry.document["jobs_imported"], dry.document["is_dry_run"]) == (1, True)
        assert nothing.status == 404
        assert (first.status, first.data["id"], first.document["jobs_imported"]) == (201, session, 1)  # fmt: skip
        assert first.headers["location"] == f"/v1/sessions/{session}"
        assert (again.status, again.document["is_new"], again.document["jobs_imported"]) == (200, False, 0)  # fmt: skip
        assert shown.data == expected
        assert resumed.status == 200

    anyio.run(main)


def test_a_session_that_is_larger_than_other_bodies_is_imported_as_a_file(tmp_path: Path) -> None:
    (tmp_path / "here").mkdir()
    (tmp_path / "there").mkdir()
    path = "/v1/sessions/import/file"

    async def main() -> None:
        here, there = tmp_path / "here", tmp_path / "there"
        async with served(here, fleet=memory_fleet(here)) as world:
            session = await session_of(world, await world.run("memory", "one"))
            exported = (await world.get(f"/v1/sessions/{session}/export")).body
        large = exported + b" " * (API_BODY_LIMIT + 1)
        async with on_port(there, memory_fleet(there)) as world:
            token = f"Bearer {await named_token(world, 'olga', Role.OPERATOR)}"
            refused = await world.ask("POST", path, large, port=world.ports[0], authorization=token)
            dry = await world.post(f"{path}?dry_run=true", large)
            first = await world.post(path, large)
            again = await world.post(path, exported)
            other = await world.post("/v1/sessions/import", large)
            broken = await world.post(path, large[: len(exported) // 2])

        assert (dry.status, dry.document["is_dry_run"], dry.data["id"]) == (200, True, session)
        assert (first.status, first.data["id"], first.document["jobs_imported"]) == (201, session, 1)  # fmt: skip
        assert (again.status, again.document["is_new"]) == (200, False)
        assert (refused.status, other.status, broken.status) == (403, 413, 400)
        assert "is not an exported session" in broken.document["detail"]

    anyio.run(main)


@pytest.mark.parametrize(
    ("document", "said"),
    [
        ({}, "is not an exported session"),
        ({"schema": "nightherd/v1/job", "data": {}}, "is not an exported session"),
        ({"schema": "nightherd/v1/session_export", "data": {"version": 9}}, "session"),
    ],
)
def test_what_is_no_exported_session_is_refused(
    tmp_path: Path, document: dict[str, object], said: str
) -> None:
    async def main() -> None:
        async with served(tmp_path, fleet=memory_fleet(tmp_path)) as world:
            answer = await world.post("/v1/sessions/import", {"document": document})

            assert (answer.status, answer.document["code"]) == (400, "usage")
            assert said in answer.document["detail"]
            assert (await world.get("/v1/sessions")).data == []

    anyio.run(main)


def test_a_job_is_saved_as_its_journal_or_a_page(tmp_path: Path) -> None:
    async def main() -> None:
        async with served(tmp_path, fleet=memory_fleet(tmp_path)) as world:
            job = await world.run("memory", "one")

            lines = await world.get(f"/v1/jobs/{job}/export")
            page = await world.get(f"/v1/jobs/{job}/export?format=html")
            wrong = await world.get(f"/v1/jobs/{job}/export?format=pdf")
            none = await world.get("/v1/jobs/job-none/export")
            written = Shell(tmp_path).run("jobs", "export", job)

            assert lines.body.decode() == written.out
            assert lines.headers["content-disposition"] == f'attachment; filename="{job}.jsonl"'
            assert [json.loads(line)["seq"] for line in lines.body.splitlines()][:2] == [1, 2]
            assert page.body.startswith(b"<!doctype html>")
            assert (wrong.status, none.status) == (422, 404)

    anyio.run(main)
