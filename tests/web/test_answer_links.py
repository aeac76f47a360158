"""Answer links: the page shows what would run and decides nothing; a button answers once, for one person."""

from __future__ import annotations

from datetime import timedelta
from html import unescape
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import anyio
import pytest

from nightherd.errors import InvalidValueError
from nightherd.model.inbox.item import ItemId
from nightherd.model.inbox.token import AnswerLink, MakeLink, link_expiry, secret_hash
from nightherd.model.webhooks import check_public_url
from nightherd.web.ports import ports_of
from nightherd.wiring.stores import random_text
from web.test_api_inbox import FLEET, named_token, wait_for
from web.web_world import Answer, World, free_port, served, write_fleet

PUBLIC = "https://fleet.example/herd"
HOSTILE = 'touch "<script>alert(1)</script>" \u202e&'
LINKED = FLEET.replace("web: {", f"web: {{public_url: {PUBLIC}, ").replace(
    "command: touch guarded", "command: 'touch \"<script>alert(1)</script>\" \u202e&'"
)


def served_links(tmp_path: Path) -> Any:
    fleet = write_fleet(tmp_path, LINKED.replace("PORT", str(free_port())))
    state = tmp_path / ".nightherd"
    return served(
        tmp_path, fleet=fleet, make_ports=lambda site: ports_of(fleet, site, state, random_text())
    )


async def link_to(world: World, item: dict[str, Any], approver: str = "alice") -> str:
    """The path of a link to the item."""
    context, secret = world.site.context, random_text()(52)
    now = context.clock.now()
    found = context.reader.find_item(ItemId(item["id"]))
    assert found is not None
    link = AnswerLink(
        id=secret_hash(secret),
        item_id=found.id,
        approver=approver,
        created_at=now,
        expires_at=link_expiry(found, now),
    )
    await context.state.apply([MakeLink(link=link)])
    return f"/answer/{secret}"


async def press(world: World, path: str, item: dict[str, Any], verdict: str, **more: str) -> Answer:
    """Press a button of the page, as a browser does that tells nobody where it was."""
    (port,) = world.ports
    fields = {"seen": item["hash"], "verdict": verdict, **more}
    return await world.ask(
        "POST",
        path,
        urlencode(fields).encode(),
        port=port,
        host="fleet.example",
        origin="null",
        content_type="application/x-www-form-urlencoded",
    )


def test_looking_at_a_link_shows_what_would_run_and_decides_nothing(tmp_path: Path) -> None:
    async def main() -> None:
        async with served_links(tmp_path) as world:
            (port,) = world.ports
            item = await wait_for(world, "guarded")
            path = await link_to(world, item)
            looks = [
                await world.ask("GET", path, port=port, host="fleet.example") for _ in range(3)
            ]
            head = await world.ask("HEAD", path, port=port, host="fleet.example")
            after = (await world.get(f"/v1/inbox/{item['id']}")).data

        page = looks[-1].body.decode()
        assert {one.status for one in looks} == {200}
        assert head.status in (200, 405)
        assert after["status"] == "pending"
        assert after["answers"] == []
        assert "<script" not in page
        assert "\u202e" not in page
        assert HOSTILE.replace("\u202e", "\\u202e") in unescape(page)
        assert page.count("<button") == 2
        assert looks[0].headers["cache-control"] == "no-store"
        assert looks[0].headers["referrer-policy"] == "no-referrer"
        assert looks[0].headers["content-security-policy"].startswith("default-src 'none';")
        assert "script-src" not in looks[0].headers["content-security-policy"]

    anyio.run(main)


def test_a_button_answers_once_for_the_approver_of_the_link(tmp_path: Path) -> None:
    async def main() -> None:
        async with served_links(tmp_path) as world:
            (port,) = world.ports
            item = await wait_for(world, "guarded")
            path, second = await link_to(world, item), await link_to(world, item)

            done = await press(world, path, item, "approve", text="looks good")
            again = await press(world, path, item, "reject")
            other = await press(world, second, item, "reject")
            looked = await world.ask("GET", path, port=port, host="fleet.example")
            after = (await world.get(f"/v1/inbox/{item['id']}")).data

        assert done.status == 200, done.body
        assert [one.status for one in (again, other, looked)] == [410, 410, 410]
        assert b"was approved by alice (link)" in other.body
        assert after["status"] == "approved"
        assert [(one["by"], one["via"], one["text"]) for one in after["answers"]] == [
            ("alice", "link", "looks good")
        ]

    anyio.run(main)


def test_of_answers_that_race_one_decides(tmp_path: Path) -> None:
    async def main() -> None:
        async with served_links(tmp_path) as world:
            item = await wait_for(world, "pusher")
            people = [f"person{number}" for number in range(6)]
            paths = [await link_to(world, item, name) for name in people for _ in range(2)]
            answers: list[Answer] = []

            async def give(number: int, path: str) -> None:
                verdict = "approve" if number % 2 else "reject"
                answers.append(await press(world, path, item, verdict))

            async with anyio.create_task_group() as tasks:
                for number, path in enumerate(paths):
                    tasks.start_soon(give, number, path)
            after = (await world.get(f"/v1/inbox/{item['id']}")).data

        assert sum(one.status == 200 for one in answers) == 1
        assert len(after["answers"]) == 1
        assert after["decided_by"] == after["answers"][0]["by"]

    anyio.run(main)


def test_a_body_that_is_too_large_is_refused_before_it_is_read(tmp_path: Path) -> None:
    async def main() -> None:
        async with served_links(tmp_path) as world:
            item = await wait_for(world, "pusher")
            path = await link_to(world, item)
            large = await press(world, path, item, "reject", text="x" * 100_000)

        assert large.status == 413

    anyio.run(main)


def test_a_question_is_answered_by_its_text(tmp_path: Path) -> None:
    async def main() -> None:
        async with served_links(tmp_path) as world:
            item = await wait_for(world, "asker")
            path = await link_to(world, item, "phone")

            empty = await press(world, path, item, "reply")
            done = await press(world, path, item, "reply", text="staging")
            after = (await world.get(f"/v1/inbox/{item['id']}")).data

        assert (empty.status, done.status) == (400, 200)
        assert (after["reply"], after["decided_by"]) == ("staging", "phone")

    anyio.run(main)


def test_what_is_no_answer_is_refused_and_the_link_stays_good(tmp_path: Path) -> None:
    async def main() -> None:
        async with served_links(tmp_path) as world:
            (port,) = world.ports
            item = await wait_for(world, "guarded")
            path = await link_to(world, item)
            form = {"content_type": "application/x-www-form-urlencoded"}
            refused = [
                await press(world, path, {"hash": "0" * 64}, "approve"),
                await press(world, path, item, "moo"),
                await press(world, path, item, "retry"),
                await world.ask(
                    "POST", path, b"verdict=approve", port=port, host="fleet.example", **form
                ),
                await world.ask(
                    "POST", path, {"verdict": "approve"}, port=port, host="fleet.example"
                ),
                await world.ask("POST", path, b"", port=port, host="evil.example", **form),
                await press(world, "/answer/" + "a" * 52, item, "approve"),
            ]
            foreign = await world.ask(
                "POST", path, b"", port=port, host="fleet.example", origin="https://evil.example"
            )
            still = (await world.get(f"/v1/inbox/{item['id']}")).data
            done = await press(world, path, item, "reject")

        assert [one.status for one in refused] == [409, 400, 400, 409, 400, 403, 404]
        assert foreign.status == 403
        assert still["answers"] == []
        assert done.status == 200

    anyio.run(main)


def test_a_link_expires(tmp_path: Path) -> None:
    async def main() -> None:
        async with served_links(tmp_path) as world:
            (port,) = world.ports
            item = await wait_for(world, "guarded")
            context, secret = world.site.context, "b" * 52
            now = context.clock.now()
            link = AnswerLink(
                id=secret_hash(secret),
                item_id=ItemId(item["id"]),
                approver="alice",
                created_at=now - timedelta(days=8),
                expires_at=now - timedelta(days=1),
            )
            await context.state.apply([MakeLink(link=link)])
            looked = await world.ask("GET", f"/answer/{secret}", port=port, host="fleet.example")
            pressed = await press(world, f"/answer/{secret}", item, "approve")
            after = (await world.get(f"/v1/inbox/{item['id']}")).data

        assert (looked.status, pressed.status, after["status"]) == (410, 410, "pending")

    anyio.run(main)


def test_a_link_opens_nothing_else_and_a_token_needs_none(tmp_path: Path) -> None:
    async def main() -> None:
        async with served_links(tmp_path) as world:
            (port,) = world.ports
            item = await wait_for(world, "guarded")
            path = await link_to(world, item)
            statuses = [
                (await world.ask("GET", one, port=port, host="fleet.example")).status
                for one in ("/v1/inbox", path + "/../../v1/inbox", "/answer/")
            ]
            beside = await world.ask("GET", "/answer", port=port, host="fleet.example")
            page = await world.ask("GET", "/", port=port, host="fleet.example")
            token = await named_token(world, "alice")
            known = await world.ask(
                "GET",
                "/v1/inbox",
                port=port,
                host="fleet.example",
                authorization=f"Bearer {token}",
            )

        assert 200 not in statuses
        assert beside.body == page.body
        assert known.status == 200

    anyio.run(main)


@pytest.mark.parametrize(
    "text",
    [
        "ftp://fleet.example",
        "javascript:alert(1)",
        "fleet.example",
        "https://",
        "https://user:secret@fleet.example",
        "https://fleet.example?a=b",
        "https://fleet.example#a",
        " https://fleet.example",
        "https://fleet.example/\n",
        "https://[::1",
    ],
)
def test_a_public_url_is_an_http_address(text: str) -> None:
    with pytest.raises(InvalidValueError):
        check_public_url(text)


def test_a_public_url_loses_its_last_slash() -> None:
    assert check_public_url("https://fleet.example/") == "https://fleet.example"
    assert check_public_url("http://localhost:3232/herd") == "http://localhost:3232/herd"
