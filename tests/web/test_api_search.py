"""Search over HTTP: the command line's document."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

import anyio
import pytest
from anyio import to_thread

from nightherd.wiring.index import open_indexer
from web.web_world import World, served


async def index(world: World) -> None:
    """Index what there is, as the daemon's thread does."""

    def work() -> None:
        with closing(open_indexer(world.directory / ".nightherd")) as indexer:
            indexer.catch_up()

    await to_thread.run_sync(work)


def test_what_was_said_is_found_in_pages_newest_first(tmp_path: Path) -> None:
    async def main() -> None:
        async with served(tmp_path) as world:
            first, second = await world.run(prompt="old barn"), await world.run(prompt="new barn")
            assert (await world.get("/v1/search?q=barn")).document["pending_jobs"] is None
            await index(world)

            page = (await world.get("/v1/search?q=Hello%20BARN&limit=1")).document
            rest = (
                await world.get(f"/v1/search?q=Hello%20BARN&before={page['next_before']}")
            ).document

            assert page["schema"] == "nightherd/v1/hits"
            (hit,) = page["data"]
            assert (hit["job_id"], hit["kind"], hit["agent"]) == (second, "answer", "hello")
            assert hit["snippet"] == "Hello, new barn."
            assert hit["ranges"] == [[0, 5], [11, 15]]
            assert [one["job_id"] for one in rest["data"]] == [first]
            assert (rest["next_before"], rest["pending_jobs"]) == (None, 0)
            events = (await world.get(f"/v1/jobs/{second}/events?after={hit['seq'] - 1}")).data
            assert events[0]["content"] == hit["snippet"]

    anyio.run(main)


def test_hits_are_narrowed_by_agent_and_age(tmp_path: Path) -> None:
    async def main() -> None:
        async with served(tmp_path) as world:
            await world.run(prompt="barn")
            await index(world)

            assert (await world.get("/v1/search?q=barn&agent=talker")).data == []
            assert (await world.get("/v1/search?q=barn&since=2999-01-01")).data == []
            assert len((await world.get("/v1/search?q=barn&since=2d&agent=hello")).data) == 2

    anyio.run(main)


@pytest.mark.parametrize("query", ["q=", "q=***", "", "q=barn&since=someday", "q=barn&limit=1000"])
def test_a_search_that_cannot_be_understood_is_refused(tmp_path: Path, query: str) -> None:
    async def main() -> None:
        async with served(tmp_path) as world:
            answer = await world.get(f"/v1/search?{query}")
            assert 400 <= answer.status < 500

    anyio.run(main)
