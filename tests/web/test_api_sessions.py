"""Sessions over HTTP: filtered lists, conversations in pages, families, forks and comparisons."""

from __future__ import annotations

from pathlib import Path
from urllib.parse import quote

import anyio

from web.web_world import served


def test_lists_of_sessions_are_narrowed_by_a_filter_in_pages(tmp_path: Path) -> None:
    async def main() -> None:
        async with served(tmp_path) as world:
            done, waiting = await world.run(), await world.submit("slow")
            await world.run()

            async def listed(query: str) -> list[str]:
                return [row["agent"] for row in (await world.get("/v1/sessions" + query)).data]

            assert await listed("?agent=slow") == ["slow"]
            assert await listed("?mode=per_channel") == []
            assert await listed("?q=" + quote("agent:hello,slow cost:0 since:1d")) == ["slow"]
            first = (await world.get("/v1/sessions?limit=1&q=agent:hello")).document
            rest = (
                await world.get(f"/v1/sessions?q=agent:hello&before={first['next_before']}")
            ).document
            jobs = [(await world.get(f"/v1/jobs/{one}")).data for one in (done, waiting)]
            assert [row["id"] for row in rest["data"]] == [jobs[0]["session_id"]]
            assert rest["next_before"] is None
            refused = await world.get("/v1/sessions?q=" + quote("agent:hello run:x"))
            assert refused.status == 400
            assert "column 13 of the filter: 'run' is no filter" in refused.document["detail"]

    anyio.run(main)
