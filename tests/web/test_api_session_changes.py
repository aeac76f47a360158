"""Sessions changed over HTTP: forked once per key, with or without a job, chosen, named and cleaned up."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import anyio
import pytest

from nightherd.model.access.role import Role
from web.browser import named_token, on_port
from web.session_world import made, memory_fleet, session_of
from web.web_world import World, served


async def sessions(world: World) -> list[dict[str, Any]]:
    return list((await world.get("/v1/sessions?limit=200")).data)


@pytest.mark.parametrize(
    ("place", "messages"),
    [
        ({}, 4),
        ({"at_message": 2}, 2),
        ({"at_message": 0}, 0),
        ({"at_seq": "SEQ", "at_job": "JOB"}, 3),
        ({"at_seq": "SEQ"}, 3),
    ],
)
def test_a_session_is_forked_where_it_is_asked(
    tmp_path: Path, place: dict[str, Any], messages: int
) -> None:
    async def main() -> None:
        async with served(tmp_path, fleet=memory_fleet(tmp_path)) as world:
            job = await world.run("memory", "one")
            session = await session_of(world, job)
            third = (await world.get(f"/v1/sessions/{session}/messages/3")).data["seq"]
            words = {"SEQ": third, "JOB": job}
            body = {key: words.get(value, value) for key, value in place.items()}

            answer = await world.post(f"/v1/sessions/{session}/fork", {**body, "name": " a  b "})

            assert (answer.status, answer.document["job"]) == (201, None)
            assert answer.headers["location"] == f"/v1/sessions/{answer.data['id']}"
            assert answer.data["parent_session_id"] == session
            assert (answer.data["base_messages"], answer.data["name"]) == (messages, "a b")
            assert (answer.data["status"], answer.data["job_count"]) == ("created", 0)
            assert len(await sessions(world)) == 2

    anyio.run(main)


def test_one_key_makes_one_fork_also_after_a_restart(tmp_path: Path) -> None:
    found: list[str] = []

    async def first() -> None:
        async with served(tmp_path, fleet=memory_fleet(tmp_path)) as world:
            session = await session_of(world, await world.run("memory", "one"))
            answers = []

            async def ask() -> None:
                path = f"/v1/sessions/{session}/fork"
                answers.append(await world.post(path, {"at_message": 2}, idempotency_key="k"))

            async with anyio.create_task_group() as tasks:
                for _ in range(12):
                    tasks.start_soon(ask)

            assert sorted(answer.status for answer in answers) == [200] * 11 + [201]
            assert len({answer.data["id"] for answer in answers}) == 1
            found.extend([session, answers[0].data["id"]])

    async def second() -> None:
        async with served(tmp_path, fleet=memory_fleet(tmp_path)) as world:
            session, fork = found
            await world.run("memory", "more")
            path = f"/v1/sessions/{session}/fork"

            again = await world.post(path, {"at_message": 2}, idempotency_key="k")
            elsewhere = await world.post(path, {"at_message": 3}, idempotency_key="k")
            of_fork = await world.post(f"/v1/sessions/{fork}/fork", {}, idempotency_key="k")
            other_key = await world.post(path, {"at_message": 2}, idempotency_key="k2")

            assert (again.status, again.data["id"]) == (200, fork)
            assert elsewhere.status == 409
            assert f"used for another fork, session {fork}" in elsewhere.document["detail"]
            assert of_fork.status == other_key.status == 201
            assert len(await sessions(world)) == 4

    anyio.run(first)
    anyio.run(second)


def test_a_fork_with_a_prompt_starts_a_job_in_it(tmp_path: Path) -> None:
    async def main() -> None:
        async with served(tmp_path, fleet=memory_fleet(tmp_path)) as world:
            first = await world.run("memory", "one")
            session = await session_of(world, first)
            path = f"/v1/sessions/{session}/fork"
            body = {"at_message": 2, "prompt": "other", "name": "another way"}

            answer = await world.post(path, body, idempotency_key="k")
            fork, job = answer.data, answer.document["job"]
            await made(world, f"/v1/sessions/{fork['id']}/use")
            renamed = await world.ask("PATCH", f"/v1/sessions/{fork['id']}", {"name": "mine"})
            again = await world.post(path, body, idempotency_key="k")
            other = await world.post(path, {**body, "prompt": "third"}, idempotency_key="k")

            assert (answer.status, fork["name"], renamed.data["name"]) == (
                201,
                "another way",
                "mine",
            )
            assert (job["status"], job["session_id"], job["agent"]) == (
                "pending",
                fork["id"],
                "memory",
            )
            assert (job["trigger_type"], job["forked_from"]) == ("fork", first)
            assert (again.status, again.document["job"]["id"]) == (200, job["id"])
            assert again.data["name"] == "mine"
            assert (other.status, "used for other work" in other.document["detail"]) == (409, True)
            assert len(await sessions(world)) == 2

    anyio.run(main)


@pytest.mark.parametrize(
    ("body", "said"),
    [
        ({"at_message": 1, "at_seq": 1}, "cannot be used together"),
        ({"at_job": "@last"}, "give at_seq or at_checkpoint"),
        ({"agent": "memory"}, "agent is for a fork with a prompt"),
        ({"at_message": 99}, "there is no message 99"),
        ({"at_checkpoint": 7}, "has no checkpoint 7"),
        ({"at_seq": 3, "at_job": "OTHER"}, "has no part in it"),
    ],
)
def test_a_place_that_is_not_there_makes_no_fork(
    tmp_path: Path, body: dict[str, Any], said: str
) -> None:
    async def main() -> None:
        async with served(tmp_path, fleet=memory_fleet(tmp_path)) as world:
            other = await world.run("fresh", "x")
            session = await session_of(world, await world.run("memory", "one"))
            asked = {key: other if value == "OTHER" else value for key, value in body.items()}

            refused = await world.post(f"/v1/sessions/{session}/fork", asked)

            assert refused.status == 400, refused.body
            assert said in refused.document["detail"]
            assert len(await sessions(world)) == 2

    anyio.run(main)


def test_a_chosen_session_is_the_one_that_the_next_job_continues(tmp_path: Path) -> None:
    async def main() -> None:
        async with served(tmp_path, fleet=memory_fleet(tmp_path)) as world:
            session = await session_of(world, await world.run("memory", "one"))
            fork = (await made(world, f"/v1/sessions/{session}/fork"))["id"]

            used = await world.post(f"/v1/sessions/{fork}/use")
            next_job = await made(world, "/v1/jobs", {"agent": "memory", "prompt": "two"})
            tree = (await world.get(f"/v1/sessions/{fork}/tree")).data

            assert (used.status, used.data["id"]) == (200, fork)
            assert next_job["session_id"] == fork
            assert {node["id"]: node["is_current"] for node in tree["nodes"]} == {
                session: False,
                fork: True,
            }
            fresh = await session_of(world, await world.run("fresh", "x"))
            refused = await world.post(f"/v1/sessions/{fresh}/use")
            assert (refused.status, refused.document["code"]) == (409, "refused")

    anyio.run(main)


def test_a_session_is_named_on_one_line_and_its_name_removed(tmp_path: Path) -> None:
    async def main() -> None:
        async with served(tmp_path, fleet=memory_fleet(tmp_path)) as world:
            session = await session_of(world, await world.run("memory", "one"))

            async def name(text: str | None) -> Any:
                path = f"/v1/sessions/{session}"
                return (await world.ask("PATCH", path, {"name": text})).data["name"]

            assert await name("the\n parser") == "the parser"
            assert await name("x" * 1_000) == "x" * 100
            assert await name("") is None
            assert await name("again") == "again"
            assert await name(None) is None
            assert (await world.ask("PATCH", f"/v1/sessions/{session}", {})).status == 422

    anyio.run(main)


def test_ended_sessions_are_cleaned_up_one_by_one_or_by_age(tmp_path: Path) -> None:
    async def main() -> None:
        async with served(tmp_path, fleet=memory_fleet(tmp_path)) as world:
            ended = [await session_of(world, await world.run("fresh", "x")) for _ in range(2)]
            kept = await session_of(world, await world.run("memory", "one"))
            used = await session_of(world, await world.submit("memory", "two"))
            assert used == kept

            removed = await world.ask("DELETE", f"/v1/sessions/{ended[0]}")
            busy = await world.ask("DELETE", f"/v1/sessions/{kept}")
            wrong = await world.post("/v1/sessions/cleanup", {"older_than": "soon"})
            listed = [row["id"] for row in await sessions(world)]
            done = await world.post("/v1/sessions/cleanup", {"older_than": "0s"})
            again = await world.post("/v1/sessions/cleanup")

            assert (removed.status, removed.data["removed_at"] is not None) == (200, True)
            assert (busy.status, "is in use" in busy.document["detail"]) == (409, True)
            assert wrong.status == 400
            assert listed == [kept, ended[1]]
            assert done.data == {"is_dry_run": False, "removed": [ended[1]], "kept": []}
            assert again.data == {"is_dry_run": False, "removed": [], "kept": []}
            assert [row["id"] for row in await sessions(world)] == [kept]
            shown = await world.get(f"/v1/sessions/{ended[0]}")
            assert shown.status == 200

    anyio.run(main)


def test_a_dry_cleanup_names_sessions_and_changes_nothing(tmp_path: Path) -> None:
    async def main() -> None:
        async with served(tmp_path, fleet=memory_fleet(tmp_path)) as world:
            ended = await session_of(world, await world.run("fresh", "x"))

            dry = await world.post("/v1/sessions/cleanup", {"older_than": "0s", "dry_run": True})

            assert dry.data == {"is_dry_run": True, "removed": [ended], "kept": []}
            assert [row["id"] for row in await sessions(world)] == [ended]

    anyio.run(main)


def test_operators_fork_and_choose_and_only_admins_clean_up(tmp_path: Path) -> None:
    async def main() -> None:
        async with on_port(tmp_path, memory_fleet(tmp_path)) as world:
            session = await session_of(world, await world.run("memory", "one"))
            token = f"Bearer {await named_token(world, 'olga', Role.OPERATOR)}"

            async def ask(method: str, path: str, body: dict[str, Any] | None = None) -> int:
                answer = await world.ask(
                    method,
                    f"/v1/sessions/{path}",
                    body,
                    port=world.ports[0],
                    authorization=token,
                )
                return int(answer.status)

            assert await ask("POST", f"{session}/fork") == 201
            assert await ask("POST", f"{session}/use") == 200
            assert await ask("PATCH", session, {"name": "x"}) == 200
            assert await ask("DELETE", session) == 403
            assert await ask("POST", "cleanup", {"dry_run": True}) == 403

    anyio.run(main)
