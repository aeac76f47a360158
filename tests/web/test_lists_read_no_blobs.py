"""Lists stay cheap whatever jobs have said: without its blobs, a fleet shows every list as before."""

from __future__ import annotations

import shutil
from pathlib import Path

import anyio

from web.web_world import served, write_fleet

LOUD = """\
agents:
  - name: loud
    runtime: scripted
    default_prompt: go
    allowed_tools: [Bash]
    script:
      - tool: Bash
        input: {command: "head -c 90000 /dev/zero | tr '\\\\0' x"}
      - say: "LONG"
      - {fail: {code: bad_luck, message: "LONG"}}
""".replace("LONG", "word " * 20_000)
PASSING = {"as_of", "since", "until", "rate_since", "burn", "disk", "uptime_seconds"}
PASSING |= {"heartbeat_at", "oldest_age_seconds"}
"""What an answer says of the time it was made at."""
LISTS = [
    "/v1/jobs?limit=50",
    "/v1/jobs?q=status:failed word",
    "/v1/sessions",
    "/v1/runs",
    "/v1/inbox",
    "/v1/home",
    "/v1/status",
    "/v1/agents",
    "/v1/schedules",
    "/v1/costs?by=agent",
]


def test_every_list_is_the_same_without_blobs(tmp_path: Path) -> None:
    async def main() -> None:
        async with served(tmp_path, fleet=write_fleet(tmp_path, LOUD)) as world:
            job = await world.run("loud", "go")
            blobs = tmp_path / ".nightherd" / "blobs"
            assert any(path.is_file() for path in blobs.rglob("*"))
            paths = [path.replace(" ", "%20") for path in LISTS]
            paths += [f"/v1/jobs/{job}/outline", f"/v1/jobs/{job}/events?bodies=short&limit=200"]
            before = [(await world.get(path)).data for path in paths]
            shutil.rmtree(blobs)

            for path, expected in zip(paths, before, strict=True):
                answer = await world.get(path)
                assert answer.status == 200, path
                assert without_times(answer.data) == without_times(expected), path

    anyio.run(main)


def without_times(data: object) -> object:
    """The answer without what passes with time."""
    if isinstance(data, dict):
        return {key: without_times(value) for key, value in data.items() if key not in PASSING}
    return [without_times(one) for one in data] if isinstance(data, list) else data
