"""Sessions over HTTP: filtered lists, conversations in pages, families, forks and comparisons."""

from __future__ import annotations

from pathlib import Path
from typing import Any
from urllib.parse import quote

import anyio

from web.session_world import made, memory_fleet, session_of
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


def test_a_conversation_is_read_in_pages_from_either_side(tmp_path: Path) -> None:
    async def main() -> None:
        async with served(tmp_path, fleet=memory_fleet(tmp_path)) as world:
            jobs = [await world.run("memory", prompt) for prompt in ("one", "two", "three")]
            session = await session_of(world, jobs[0])
            path = f"/v1/sessions/{session}/messages"

            def numbers(page: dict[str, Any]) -> list[int]:
                return [row["message"] for row in page["data"]]

            whole = (await world.get(path)).document
            total = whole["total"]
            assert total == (await world.get(f"/v1/sessions/{session}")).data["message_count"]
            assert numbers(whole) == list(range(1, total + 1))
            assert [row["text"] for row in whole["data"] if row["speaker"] == "user"] == [
                "one",
                "two",
                "three",
            ]
            assert (whole["first"], whole["last"], whole["next_before"]) == (1, total, None)
            assert (whole["next_after"], whole["cut_off"], whole["unreadable"]) == (None, None, [])

            last = (await world.get(path + "?limit=3")).document
            assert numbers(last) == [total - 2, total - 1, total]
            back = (await world.get(f"{path}?limit=3&before={last['next_before']}")).document
            assert numbers(back) == [total - 5, total - 4, total - 3]
            assert back["next_after"] == total - 3

            seen: list[int] = []
            page = (await world.get(path + "?after=0&limit=4")).document
            while page["data"]:
                seen += numbers(page)
                page = (await world.get(f"{path}?after={seen[-1]}&limit=4")).document
            assert seen == numbers(whole)
            assert (page["first"], page["next_before"], page["next_after"]) == (None, None, None)
            assert (await world.get(path + "?after=1&before=5")).status == 400

    anyio.run(main)


def test_long_texts_of_messages_are_cut_and_whole_messages_have_them(tmp_path: Path) -> None:
    async def main() -> None:
        async with served(tmp_path, fleet=memory_fleet(tmp_path)) as world:
            text = "é" * 10_000
            job = await world.run("loud", text)
            session = await session_of(world, job)

            rows = (await world.get(f"/v1/sessions/{session}/messages")).data

            called = next(
                row for row in rows if row["calls"] and row["calls"][0]["tool"] == "Write"
            )
            printed = next(row for row in rows if row["text"].startswith("xxx"))
            said = rows[-1]
            for row, field in (
                (rows[0], "text"),
                (called, "calls/0/input/content"),
                (printed, "text"),
                (said, "text"),
            ):
                size = 20_000 if row is not printed else len(printed["text"])
                (cut,) = row["cut"]
                whole = (await world.get(cut["url"])).data
                assert (cut["field"], cut["size"] >= size) == (field, True), row["cut"]
                assert "cut" not in whole
                assert whole["message"] == row["message"]
            assert rows[0]["text"] == "é" * 1024
            assert called["calls"][0]["input"]["content"] == "é" * 1024
            assert (await world.get(rows[0]["cut"][0]["url"])).data["text"] == text
            assert (await world.get(said["cut"][0]["url"])).data["text"] == text
            assert (await world.get(called["cut"][0]["url"])).data["calls"][0]["input"][
                "content"
            ] == text
            assert len((await world.get(printed["cut"][0]["url"])).data["text"]) == 20_000
            gone = await world.get(f"/v1/sessions/{session}/messages/99")
            assert (gone.status, "there is no message 99" in gone.document["detail"]) == (404, True)

    anyio.run(main)


def test_bodies_beside_the_journal_are_named_and_not_read(tmp_path: Path) -> None:
    async def main() -> None:
        async with served(tmp_path, fleet=memory_fleet(tmp_path)) as world:
            text = "long " * 200_000
            session = await session_of(world, await world.run("loud", text))

            rows = (await world.get(f"/v1/sessions/{session}/messages")).data

            by_field = {cut["field"]: (row, cut) for row in rows for cut in row.get("cut", ())}
            said, cut = by_field["text"]
            called, inner = by_field["calls/0/input"]
            assert (said["text"], cut["size"]) == ("", len(text))
            assert called["calls"][0]["input"] is None
            assert inner["size"] > len(text)
            assert (await world.get(cut["url"])).data["text"] == text
            whole = (await world.get(inner["url"])).data
            assert whole["calls"][0]["input"]["content"] == text

    anyio.run(main)


def test_what_a_damaged_journal_lost_is_said(tmp_path: Path) -> None:
    async def main() -> None:
        async with served(tmp_path, fleet=memory_fleet(tmp_path)) as world:
            job = await world.run("memory", "one")
            session = await session_of(world, job)
            journal = tmp_path / ".nightherd" / "jobs" / f"{job}.jsonl"
            lines = journal.read_bytes().splitlines(keepends=True)
            place = next(n for n, line in enumerate(lines) if b'"answer 1' in line)
            lines[place] = b"x" * (len(lines[place]) - 1) + b"\n"
            journal.write_bytes(b"".join(lines))

            page = (await world.get(f"/v1/sessions/{session}/messages")).document

            (lost,) = page["unreadable"]
            assert (lost["job_id"], lost["missing"]) == (job, 1)
            assert lost["bytes"] == [len(b"".join(lines[:place]))]

    anyio.run(main)


def test_the_family_of_a_session_is_a_graph_of_forks(tmp_path: Path) -> None:
    async def main() -> None:
        async with served(tmp_path, fleet=memory_fleet(tmp_path)) as world:
            first = await world.run("memory", "one")
            second = await world.run("memory", "two")
            root = await session_of(world, first)
            fork = await made(world, "/v1/jobs", {"agent": "memory", "fork": root, "at_message": 3})
            await world.execute(fork["id"], "memory")
            inner = await made(
                world, "/v1/jobs", {"agent": "memory", "fork": fork["session_id"], "at_message": 0}
            )

            family = (await world.get(f"/v1/sessions/{fork['session_id']}/tree")).data

            ids = [root, fork["session_id"], inner["session_id"]]
            nodes = {node["id"]: node for node in family["nodes"]}
            assert (family["root"], family["session"]) == (root, fork["session_id"])
            assert family["is_whole"] is True
            assert [node["id"] for node in family["nodes"]] == ids
            assert [nodes[one]["is_current"] for one in ids] == [True, False, False]
            assert [job["id"] for job in nodes[root]["jobs"]] == [first, second]
            counts = [job["messages"] for job in nodes[root]["jobs"]]
            assert [job["first_message"] for job in nodes[root]["jobs"]] == [1, counts[0] + 1]
            assert nodes[root]["message_count"] == sum(counts)
            assert nodes[fork["session_id"]]["jobs"][0]["first_message"] == 4
            shown = (await world.get(f"/v1/sessions/{fork['session_id']}")).data
            assert family["edges"] == [
                {
                    "session": ids[1],
                    "parent": root,
                    "job_id": first,
                    "seq": shown["base_seq"],
                    "message": 3,
                },
                {"session": ids[2], "parent": ids[1], "job_id": None, "seq": None, "message": 0},
            ]

    anyio.run(main)


def test_a_large_family_is_cut_to_what_is_nearest(tmp_path: Path) -> None:
    async def main() -> None:
        async with served(tmp_path, fleet=memory_fleet(tmp_path)) as world:
            root = await session_of(world, await world.run("memory", "one"))
            forks = []
            for _ in range(4):
                body = {"agent": "memory", "fork": root}
                forks.append((await made(world, "/v1/jobs", body))["session_id"])
            for number in range(3):
                await world.run("memory", str(number))

            family = (await world.get(f"/v1/sessions/{forks[2]}/tree?limit=3&jobs=2")).data

            assert [node["id"] for node in family["nodes"]] == [root, forks[0], forks[2]]
            assert (family["is_whole"], family["root"]) == (False, root)
            assert [node["forks_left_out"] for node in family["nodes"]] == [2, 0, 0]
            assert (len(family["nodes"][0]["jobs"]), family["nodes"][0]["jobs_left_out"]) == (2, 2)
            assert len(family["edges"]) == 2
            alone = (await world.get(f"/v1/sessions/{forks[2]}/tree?limit=1&jobs=0")).data
            assert [node["id"] for node in alone["nodes"]] == [forks[2]]
            assert alone["nodes"][0]["parent_session_id"] == root
            assert (alone["edges"], alone["nodes"][0]["jobs"]) == ([], [])

    anyio.run(main)
