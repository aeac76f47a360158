"""The operator log over HTTP: pages of lines, newest first, masked."""

from __future__ import annotations

from pathlib import Path

import anyio
import pytest

from nightherd.model.log import LogLevel, LogLine
from nightherd.model.secrets import Secrets
from nightherd.wiring.stores import open_log
from surfaces.drivers import Cli
from web.web_world import SECRET, served


def test_lines_are_those_of_the_command_newest_first(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, cli: Cli
) -> None:
    monkeypatch.chdir(tmp_path)

    async def main() -> None:
        async with served(tmp_path) as world:
            job = await world.run()
            await world.run("topical")

            lines = (await world.get("/v1/logs")).data
            said = await anyio.to_thread.run_sync(cli, "logs", "--json")
            mine = (await world.get("/v1/logs?agent=hello")).data

            assert lines == [one["data"] for one in reversed(said.documents)]
            assert {"job.started", "job.ended"} <= {one["event"] for one in lines}
            assert {one["agent"] for one in mine} == {"hello"}
            ended = next(one for one in mine if one["event"] == "job.ended")
            assert (ended["job"], ended["level"]) == (job, "info")
            assert ended["data"]["status"] == "completed"

    anyio.run(main)


def test_pages_follow_each_other(tmp_path: Path) -> None:
    async def main() -> None:
        async with served(tmp_path) as world:
            for _ in range(3):
                await world.run()
            whole = (await world.get("/v1/logs")).document

            found, query = [], ""
            while True:
                page = (await world.get(f"/v1/logs?limit=2{query}")).document
                found += page["data"]
                if page["next_before"] is None:
                    break
                query = f"&before={page['next_before']}"

            assert whole["next_before"] is None
            assert found == whole["data"]

    anyio.run(main)


def test_secrets_that_are_known_now_are_masked(tmp_path: Path) -> None:
    async def main() -> None:
        async with served(tmp_path) as world:
            log = open_log(world.site.state_dir, Secrets({}, None))
            line = LogLine(
                at=world.site.now(),
                level=LogLevel.ERROR,
                event="trouble",
                message=f"it said {SECRET}",
                data={"key": SECRET},
            )
            log.write(line)
            log.close()

            answer = await world.get("/v1/logs?agent=nightherd")

            assert SECRET.encode() not in answer.body
            assert answer.data[0]["message"] == "it said [secret:HOOK_SECRET]"

    anyio.run(main)


def test_agent_without_a_log_is_empty_and_an_unknown_one_is_not_found(tmp_path: Path) -> None:
    async def main() -> None:
        async with served(tmp_path) as world:
            assert (await world.get("/v1/logs?agent=slow")).data == []
            assert (await world.get("/v1/logs?agent=ghost")).status == 404
            assert (await world.get("/v1/logs?agent=..%2Fweb-token")).status == 404
            assert (await world.get("/v1/logs?before=yesterday")).status == 400
            assert (await world.get("/v1/logs?limit=501")).status == 422

    anyio.run(main)
