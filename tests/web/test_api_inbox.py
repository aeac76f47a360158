"""The inbox over HTTP: pages, one item, answers under the name of a token, and who is refused."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import anyio

from nightherd.engine.operations.tokens import add_token, revoke_token
from nightherd.host.machine import user_name
from nightherd.web.ports import ports_of
from nightherd.wiring.stores import random_text
from waiting_fleet import WAITING_AGENTS
from web.browser import logged_in
from web.web_world import World, free_port, served, token_of, write_fleet

FLEET = "web: {enabled: true, port: PORT}\n" + WAITING_AGENTS


def served_inbox(tmp_path: Path) -> Any:
    fleet = write_fleet(tmp_path, FLEET.replace("PORT", str(free_port())))
    state = tmp_path / ".nightherd"
    return served(
        tmp_path,
        fleet=fleet,
        make_ports=lambda site: ports_of(fleet, site, state, random_text()),
    )


async def wait_for(world: World, agent: str) -> dict[str, Any]:
    """A job of the agent that waits for a person: the item about it."""
    job = await world.run(agent, "go")
    shown = await world.get(f"/v1/inbox/{job}")
    assert shown.status == 200, shown.body
    return dict(shown.data)


async def named_token(world: World, name: str) -> str:
    context = world.site.context
    _, secret = await add_token(
        name, context.state, by="owner", at=context.clock.now(), random_text=random_text()
    )
    return secret


def test_the_inbox_is_listed_in_pages_and_filtered(tmp_path: Path) -> None:
    async def main() -> None:
        async with served_inbox(tmp_path) as world:
            items = [
                await wait_for(world, name) for name in ("pusher", "asker", "capped", "pusher")
            ]

            page = (await world.get("/v1/inbox?limit=3")).document
            rest = (await world.get(f"/v1/inbox?limit=3&before={page['next_before']}")).document
            questions = (await world.get("/v1/inbox?kind=question")).data
            of_agent = (await world.get("/v1/inbox?agent=pusher")).data
            await world.post(f"/v1/inbox/{items[1]['id']}/answers", {"verdict": "reject"})
            decided = (await world.get("/v1/inbox?status=decided")).data
            nonsense = await world.get("/v1/inbox?kind=cow")

        ids = [item["id"] for item in items]
        assert page["schema"] == "nightherd/v1/inbox"
        assert [one["id"] for one in page["data"] + rest["data"]] == ids[::-1]
        assert rest["next_before"] is None
        assert [one["id"] for one in questions] == [ids[1]]
        assert [one["id"] for one in of_agent] == [ids[3], ids[0]]
        assert [(one["id"], one["status"]) for one in decided] == [(ids[1], "rejected")]
        assert nonsense.status == 422

    anyio.run(main)


def test_items_about_one_job_or_run_are_listed(tmp_path: Path) -> None:
    async def main() -> None:
        async with served_inbox(tmp_path) as world:
            items = [await wait_for(world, name) for name in ("pusher", "asker")]
            of_job = (await world.get(f"/v1/inbox?about={items[0]['job_id']}")).data
            other_kind = (
                await world.get(f"/v1/inbox?about={items[0]['job_id']}&kind=question")
            ).data
            await world.post(f"/v1/inbox/{items[0]['id']}/answers", {"verdict": "reject"})
            waiting = (await world.get(f"/v1/inbox?about={items[0]['job_id']}")).data
            decided = (await world.get(f"/v1/inbox?about={items[0]['job_id']}&status=decided")).data
            unknown = (await world.get("/v1/inbox?about=run-2026-01-01-aaaaaa")).document

        assert [one["id"] for one in of_job] == [items[0]["id"]]
        assert other_kind == []
        assert waiting == []
        assert [one["id"] for one in decided] == [items[0]["id"]]
        assert (unknown["data"], unknown["next_before"]) == ([], None)

    anyio.run(main)


def test_items_about_one_job_come_in_pages(tmp_path: Path) -> None:
    async def main() -> None:
        async with served_inbox(tmp_path) as world:
            item = await wait_for(world, "capped")
            path = f"/v1/inbox/{item['id']}/answers"
            await world.post(path, {"verdict": "raise", "limits": {"turns": "2"}})
            await world.execute(item["job_id"], "capped")
            about = f"/v1/inbox?about={item['job_id']}"
            again = (await world.get(about)).data[0]
            body = {"verdict": "raise", "limits": {"turns": "3"}}
            await world.post(f"/v1/inbox/{again['id']}/answers", body)
            page = (await world.get(f"{about}&status=decided&limit=1")).document
            cursor = page["next_before"]
            rest = (await world.get(f"{about}&status=decided&limit=1&before={cursor}")).document

        assert [one["id"] for one in page["data"] + rest["data"]] == [again["id"], item["id"]]
        assert rest["next_before"] is None

    anyio.run(main)


def test_an_item_says_all_that_is_needed_to_decide(tmp_path: Path) -> None:
    async def main() -> None:
        async with served_inbox(tmp_path) as world:
            item = await wait_for(world, "pusher")
            missing = await world.get("/v1/inbox/ask-000000000000")

        assert item["asks"]["input"] == {"command": "touch pushed"}
        assert item["verdicts"] == ["approve", "reject"]
        assert set(item["what_happens"]) == {"approve", "reject", "no answer"}
        assert missing.status == 404
        assert missing.document["hint"] == "GET /v1/inbox"
        assert missing.document["next"] == {"action": "list_inbox"}

    anyio.run(main)


def test_an_answer_is_recorded_under_the_name_of_who_sent_it(tmp_path: Path) -> None:
    async def main() -> None:
        async with served_inbox(tmp_path) as world:
            (port,) = world.ports
            named = await named_token(world, "alice")
            shown = []
            for token, where in (
                (None, None),
                (named, None),
                (token_of(tmp_path), port),
                (named, port),
            ):
                item = await wait_for(world, "pusher")
                head = {} if token is None else {"authorization": f"Bearer {token}"}
                body = {"verdict": "approve", "seen_hash": item["hash"]}
                path = f"/v1/inbox/{item['id']}/answers"
                answer = await world.ask("POST", path, body, port=where, **head)
                assert answer.status == 200, answer.body
                shown.append(answer.data)
            await world.execute(shown[0]["job_id"], "pusher")

        assert [one["decided_by"] for one in shown] == [user_name(), "alice", "web", "alice"]
        assert {one["decided_via"] for one in shown} == {"api"}
        assert {one["status"] for one in shown} == {"approved"}
        assert (tmp_path / "pushed").exists()

    anyio.run(main)


def test_an_answer_from_the_dashboard_says_so(tmp_path: Path) -> None:
    async def main() -> None:
        async with served_inbox(tmp_path) as world:
            (port,) = world.ports
            page = await logged_in(world)
            item = await wait_for(world, "asker")
            body = {"verdict": "reply", "text": "staging"}
            path = f"/v1/inbox/{item['id']}/answers"
            answer = await world.ask("POST", path, body, port=port, **page)

        assert (answer.data["decided_by"], answer.data["decided_via"]) == (user_name(), "dashboard")

    anyio.run(main)


def test_only_an_approver_can_answer_and_only_once(tmp_path: Path) -> None:
    async def main() -> None:
        async with served_inbox(tmp_path) as world:
            item = await wait_for(world, "guarded")
            path, yes = f"/v1/inbox/{item['id']}/answers", {"verdict": "approve"}
            alice = {"authorization": f"Bearer {await named_token(world, 'alice')}"}

            refused = await world.post(path, yes)
            stale = await world.post(path, {**yes, "seen_hash": "0" * 64}, **alice)
            comment = await world.post(path, {"verdict": "comment", "text": "soon"}, **alice)
            decided = await world.post(path, yes, **alice)
            late = await world.post(path, {"verdict": "reject"}, **alice)

        assert (refused.status, refused.document["detail"]) == (
            403,
            f"only alice may answer {item['id']}",
        )
        assert stale.status == 409
        assert (comment.status, comment.data["status"]) == (200, "pending")
        assert (decided.status, decided.data["status"]) == (200, "approved")
        assert late.status == 409
        assert f"{item['id']} was approved by alice (api)" in late.document["detail"]

    anyio.run(main)


def test_a_revoked_or_unknown_token_is_refused_on_every_way_in(tmp_path: Path) -> None:
    async def main() -> None:
        async with served_inbox(tmp_path) as world:
            (port,) = world.ports
            named = await named_token(world, "alice")
            accepted = await world.ask(
                "GET", "/v1/inbox", port=port, authorization=f"Bearer {named}"
            )
            context = world.site.context
            await revoke_token("alice", context.state, by="owner", at=context.clock.now())
            statuses = [
                (
                    await world.ask("GET", "/v1/inbox", port=where, authorization=f"Bearer {token}")
                ).status
                for token in (named, "nht_unknown")
                for where in (None, port)
            ]
            # The socket needs no token: one that is none of ours changes nothing there.
            without = [
                await world.ask("GET", "/v1/inbox", port=where, authorization="Bearer other")
                for where in (None, port)
            ]

        assert accepted.status == 200
        assert statuses == [401] * 4
        assert [one.status for one in without] == [200, 401]

    anyio.run(main)


def test_a_question_is_replied_to_and_a_limit_raised(tmp_path: Path) -> None:
    async def main() -> None:
        async with served_inbox(tmp_path) as world:
            question = await wait_for(world, "asker")
            limit = await wait_for(world, "capped")
            path = f"/v1/inbox/{limit['id']}/answers"

            empty = await world.post(f"/v1/inbox/{question['id']}/answers", {"verdict": "reply"})
            replied = await world.post(
                f"/v1/inbox/{question['id']}/answers", {"verdict": "reply", "text": "staging"}
            )
            nothing = await world.post(path, {"verdict": "raise"})
            raised = await world.post(path, {"verdict": "raise", "limits": {"turns": "9"}})
            wrong = await world.post(path, {"verdict": "moo"})
            jobs = [
                (await world.get(f"/v1/jobs/{one['job_id']}")).data["status"]
                for one in (question, limit)
            ]

        assert (empty.status, nothing.status, wrong.status) == (400, 400, 422)
        assert (replied.data["status"], replied.data["reply"]) == ("answered", "staging")
        assert raised.data["verdict"] == "raise"
        assert jobs == ["pending", "pending"]

    anyio.run(main)
