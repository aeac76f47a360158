"""`nightherd api`: the running fleet asked from the command line, over its socket."""

from __future__ import annotations

import json
from functools import partial
from pathlib import Path

import anyio
from anyio import to_thread

from surfaces.drivers import Result, Shell
from web.web_world import served, write_fleet


def test_answers_problems_and_streams_are_printed(tmp_path: Path) -> None:
    async def main() -> None:
        async with served(tmp_path) as world:
            shell = Shell(tmp_path)

            async def api(*words: str, stdin: bytes = b"") -> Result:
                return await to_thread.run_sync(partial(shell.run, "api", *words, stdin=stdin))

            health = await api("GET", "/healthz")
            body = json.dumps({"agent": "hello", "prompt": "Grüße"}).encode()
            made = await api("post", "/v1/jobs", "-d", "@-", "-H", "Idempotency-Key: a", stdin=body)
            job_id = json.loads(made.out)["data"]["id"]
            await world.execute(job_id)
            accept = "accept:text/event-stream"
            followed = await api("GET", f"/v1/jobs/{job_id}/events", "-H", accept)
            missing = await api("GET", "/v1/jobs/nothing")

            assert (health.code, health.out) == (0, '{"status":"ok"}\n')
            assert made.code == followed.code == 0
            assert "Hello, Grüße." in followed.out
            assert missing.code == 3
            assert json.loads(missing.out)["code"] == "job_not_found"

    anyio.run(main)


def test_nobody_to_ask_and_headers_that_are_none_are_told(tmp_path: Path) -> None:
    write_fleet(tmp_path)
    shell = Shell(tmp_path)

    nobody = shell.run("api", "GET", "/healthz", "--json")
    wrong = shell.run("api", "GET", "/healthz", "-H", "nonsense")

    assert (nobody.code, nobody.data["code"]) == (69, "no_daemon")
    assert (wrong.code, "write NAME:VALUE" in wrong.err) == (2, True)
