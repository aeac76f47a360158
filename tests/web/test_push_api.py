"""Devices over HTTP: a person subscribes his own, sees and removes only those, and a login takes its devices with it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import anyio
import pytest
from jsonschema import Draft202012Validator

from nightherd.model.access.role import Role
from nightherd.model.access.web import Web, WebPush, contact_of
from nightherd.model.push.keys import decode_key, is_point
from nightherd.model.push.subscription import MOST_DEVICES, PushSubscription
from nightherd.runtimes.notify import push_sender
from nightherd.state.push_keys import KEYS_FILE
from nightherd.web.people.push import end_devices_without_login
from nightherd.web.server import make_api
from runtimes.notify.push_service import Browser, PushService, push_service
from web.browser import log_in, logged_in, login_headers, named_token, new_code, on_port
from web.test_answer_types import closed
from web.web_world import ENVIRON, Answer, World, token_of

PATH = "/v1/push/subscriptions"


@pytest.fixture
def service(tmp_path: Path) -> Iterator[PushService]:
    with push_service(tmp_path) as served:
        yield served


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    folder = tmp_path / "fleet"
    folder.mkdir()
    return folder


def body(
    browser: Browser, endpoint: str = "https://push.example/send/one", **more: Any
) -> dict[str, Any]:
    """What a page sends for a browser."""
    return {
        "endpoint": endpoint,
        "keys": {"p256dh": browser.p256dh, "auth": browser.auth},
        "label": "Chrome on Android",
        "topics": ["inbox", "failures"],
        **more,
    }


async def ask(world: World, method: str, path: str, said: Any = None, **headers: str) -> Answer:
    """A request over the port."""
    return await world.ask(method, path, said, port=world.ports[0], **headers)


async def bearer(world: World, name: str, role: Role = Role.VIEWER) -> dict[str, str]:
    return {"authorization": f"Bearer {await named_token(world, name, role)}"}


def row(world: World, push_id: str) -> PushSubscription:
    found = world.site.context.reader.find_push_subscription(push_id)
    assert found is not None
    return found


def test_a_viewer_subscribes_changes_and_removes_a_device(directory: Path) -> None:
    browser = Browser()

    async def main() -> None:
        async with on_port(directory) as world:
            anna = await bearer(world, "anna")
            empty = await ask(world, "GET", "/v1/push", **anna)
            added = await ask(world, "POST", PATH, body(browser), **anna)
            changed = await ask(
                world, "POST", PATH, body(browser, topics=["failures"], label="Phone"), **anna
            )
            listed = await ask(world, "GET", "/v1/push", **anna)
            removed = await ask(world, "DELETE", f"{PATH}/{added.data['id']}", **anna)
            again = await ask(world, "DELETE", f"{PATH}/{added.data['id']}", **anna)
            after = await ask(world, "GET", "/v1/push", **anna)

            assert (empty.data["available"], empty.data["reason"]) == (True, None)
            assert is_point(decode_key(empty.data["public_key"]))
            assert listed.data["public_key"] == empty.data["public_key"]
            assert (added.status, changed.status, removed.status) == (201, 201, 200)
            assert added.data["topics"] == ["inbox", "failures"]
            assert (changed.data["id"], changed.data["topics"], changed.data["label"]) == (
                added.data["id"],
                ["failures"],
                "Phone",
            )
            assert listed.data["subscriptions"] == [changed.data]
            assert (listed.data["subscriptions"][0]["service"]) == "push.example"
            assert (removed.data["status"], removed.data["end_reason"]) == ("ended", "removed")
            assert again.data == removed.data
            assert (empty.data["subscriptions"], after.data["subscriptions"]) == ([], [])
            for answer in (added, changed, listed, removed):
                for secret in ("/send/one", browser.auth, browser.p256dh):
                    assert secret.encode() not in answer.body

    anyio.run(main)


def test_every_answer_is_exactly_as_described(directory: Path) -> None:
    described = closed(make_api("1").openapi())

    def check(path: str, method: str, answer: Answer) -> None:
        media = described["paths"][path][method]["responses"][str(answer.status)]["content"]
        schema = {
            **media["application/json"]["schema"],
            "components": described["components"],
        }
        Draft202012Validator(schema).validate(json.loads(answer.body))

    async def main() -> None:
        async with on_port(directory) as world:
            anna = await bearer(world, "anna")
            added = await ask(world, "POST", PATH, body(Browser(), "https://127.0.0.1/"), **anna)
            one = f"{PATH}/{added.data['id']}"
            check(PATH, "post", added)
            check("/v1/push", "get", await ask(world, "GET", "/v1/push", **anna))
            described_one = f"{PATH}/{{subscription}}"
            check(f"{described_one}/test", "post", await ask(world, "POST", f"{one}/test", **anna))
            check(described_one, "delete", await ask(world, "DELETE", one, **anna))

    anyio.run(main)


def test_devices_of_others_are_neither_seen_nor_changed(directory: Path) -> None:
    async def main() -> None:
        async with on_port(directory) as world:
            anna, root = await bearer(world, "anna"), await bearer(world, "root", Role.ADMIN)
            device = (await ask(world, "POST", PATH, body(Browser()), **anna)).data["id"]
            seen = await ask(world, "GET", "/v1/push", **root)
            answers = [
                await ask(world, "DELETE", f"{PATH}/{device}", **root),
                await ask(world, "POST", f"{PATH}/{device}/test", **root),
                await ask(world, "DELETE", f"{PATH}/psh-unknown", **anna),
            ]

            assert seen.data["subscriptions"] == []
            assert [one.status for one in answers] == [404, 404, 404]
            assert row(world, device).is_active

    anyio.run(main)


def test_what_no_browser_would_send_is_refused(directory: Path) -> None:
    browser = Browser()
    cut = {"p256dh": browser.p256dh[:-4], "auth": browser.auth}
    short = {"p256dh": browser.p256dh, "auth": "YWJj"}
    wrong = [
        (400, body(browser, endpoint="http://push.example/x")),
        (400, body(browser, endpoint="https://user@push.example/x")),
        (400, body(browser, keys=cut)),
        (400, body(browser, keys=short)),
        (422, body(browser, topics=[])),
        (422, body(browser, topics=["everything"])),
        (422, body(browser, label="")),
        (422, body(browser, person="root")),
        (422, body(browser, endpoint="https://push.example/" + "x" * 3000)),
    ]

    async def main() -> None:
        async with on_port(directory) as world:
            anna = await bearer(world, "anna")
            for status, said in wrong:
                answer = await ask(world, "POST", PATH, said, **anna)
                assert answer.status == status, (said, answer.body)
                assert said["keys"]["auth"].encode() not in answer.body
            assert world.site.context.reader.active_push_subscriptions() == []

    anyio.run(main)


def test_a_person_has_a_bounded_number_of_devices(directory: Path) -> None:
    browser = Browser()

    async def main() -> None:
        async with on_port(directory) as world:
            anna = await bearer(world, "anna")
            answers = [
                await ask(
                    world, "POST", PATH, body(browser, f"https://push.example/{number}"), **anna
                )
                for number in range(MOST_DEVICES + 1)
            ]
            statuses = [one.status for one in answers]
            assert statuses == [201] * MOST_DEVICES + [409]

    anyio.run(main)


def test_a_device_ends_when_its_browser_logs_out(directory: Path) -> None:
    async def main() -> None:
        async with on_port(directory) as world:
            first, second = await logged_in(world), await logged_in(world)
            ids = []
            for number, page in enumerate((first, second)):
                said = body(Browser(), f"https://push.example/{number}")
                ids.append((await ask(world, "POST", PATH, said, **page)).data["id"])

            await ask(world, "POST", "/v1/logout", **first)

            assert [row(world, one).is_active for one in ids] == [False, True]
            assert row(world, ids[0]).end_reason == "logged_out"
            third = await logged_in(world)
            await ask(world, "POST", "/v1/logout", {"everywhere": True}, **third)
            assert row(world, ids[1]).end_reason == "logged_out"

    anyio.run(main)


def test_a_device_ends_with_the_token_that_its_browser_logged_in_with(directory: Path) -> None:
    async def main() -> None:
        async with on_port(directory) as world:
            token = await named_token(world, "anna", Role.VIEWER)
            page = login_headers(world, await log_in(world, token=token))
            by_page = await ask(world, "POST", PATH, body(Browser(), "https://a.example/"), **page)
            shown = {"authorization": f"Bearer {token}"}
            by_token = await ask(
                world, "POST", PATH, body(Browser(), "https://b.example/"), **shown
            )
            root = await bearer(world, "root", Role.ADMIN)

            await ask(world, "DELETE", "/v1/tokens/anna", **root)

            reasons = [row(world, one.data["id"]).end_reason for one in (by_page, by_token)]
            assert reasons == ["revoked", "revoked"]
            refused = await ask(world, "POST", PATH, body(Browser()), **page)
            assert refused.status == 401

    anyio.run(main)


def test_the_same_browser_with_a_new_login_stays_one_device(directory: Path) -> None:
    browser = Browser()

    async def main() -> None:
        async with on_port(directory) as world:
            first, second = await logged_in(world), await logged_in(world)
            before = await ask(world, "POST", PATH, body(browser), **first)
            after = await ask(world, "POST", PATH, body(browser), **second)
            assert after.data["id"] == before.data["id"]
            await ask(world, "POST", "/v1/logout", **first)
            assert row(world, after.data["id"]).is_active
            await ask(world, "POST", "/v1/logout", **second)
            assert not row(world, after.data["id"]).is_active

    anyio.run(main)


def test_a_browser_that_another_person_uses_now_is_theirs(directory: Path) -> None:
    browser = Browser()

    async def main() -> None:
        async with on_port(directory) as world:
            anna, bob = await bearer(world, "anna"), await bearer(world, "bob")
            before = await ask(world, "POST", PATH, body(browser), **anna)
            after = await ask(world, "POST", PATH, body(browser), **bob)
            assert row(world, before.data["id"]).end_reason == "replaced"
            assert row(world, after.data["id"]).person == "bob"

    anyio.run(main)


def test_a_device_of_the_fleets_own_token_ends_when_that_is_replaced(directory: Path) -> None:
    async def main() -> str:
        async with on_port(directory) as world:
            own = {"authorization": f"Bearer {token_of(directory)}"}
            added = await ask(world, "POST", PATH, body(Browser()), **own)
            by_name = await ask(
                world,
                "POST",
                PATH,
                body(Browser(), "https://b.example/"),
                **await bearer(world, "anna"),
            )
            await end_devices_without_login(world.site, world.doors)
            assert row(world, added.data["id"]).is_active
            assert row(world, by_name.data["id"]).is_active
            return str(added.data["id"])

    device = anyio.run(main)
    (directory / ".nightherd" / "web-token").write_text("another-token-of-the-fleet\n")

    async def later() -> None:
        async with on_port(directory) as world:
            assert row(world, device).is_active
            await end_devices_without_login(world.site, world.doors)
            assert row(world, device).end_reason == "revoked"
            assert [
                one.person for one in world.site.context.reader.active_push_subscriptions()
            ] == ["anna"]

    anyio.run(later)


def test_a_trial_push_arrives_or_says_why_not(directory: Path, service: PushService) -> None:
    browser = Browser()
    environ = {**ENVIRON, "REQUESTS_CA_BUNDLE": str(service.certificate)}
    push = WebPush(contact="mailto:ops@fleet.example", allow_hosts=("localhost",))

    async def main() -> None:
        async with on_port(directory, environ=environ, push=push) as world:
            anna = await bearer(world, "anna")
            key = (await ask(world, "GET", "/v1/push", **anna)).data["public_key"]
            said = body(browser, service.endpoint())
            path = f"{PATH}/{(await ask(world, 'POST', PATH, said, **anna)).data['id']}/test"
            taken = await ask(world, "POST", path, **anna)
            service.status = 503
            busy = await ask(world, "POST", path, **anna)
            service.status = 410
            gone = await ask(world, "POST", path, **anna)
            over = await ask(world, "POST", path, **anna)

            assert (taken.status, taken.data["sent"], taken.data["error"]) == (200, True, None)
            assert browser.read(service.received[0].body) == {
                "kind": "test",
                "title": "Test of nightherd",
                "item": None,
                "path": "",
            }
            assert service.received[0].claims(key)["sub"] == "mailto:ops@fleet.example"
            assert (busy.data["sent"], busy.data["error"]) == (
                False,
                "the push service answered 503",
            )
            assert busy.data["subscription"]["status"] == "active"
            assert gone.data["error"] == "the push service answered 410: the subscription is gone"
            assert gone.data["subscription"]["end_reason"] == "gone"
            assert over.status == 409

    anyio.run(main)


def test_a_trial_push_to_a_private_address_is_refused(
    directory: Path, service: PushService
) -> None:
    environ = {**ENVIRON, "REQUESTS_CA_BUNDLE": str(service.certificate)}

    async def main() -> None:
        async with on_port(directory, environ=environ) as world:
            anna = await bearer(world, "anna")
            said = body(Browser(), service.endpoint())
            device = (await ask(world, "POST", PATH, said, **anna)).data["id"]
            refused = await ask(world, "POST", f"{PATH}/{device}/test", **anna)
            assert "not a public address" in refused.data["error"]
            assert "web.push.allow_hosts" in refused.data["error"]

    anyio.run(main)
    assert service.received == []


def test_without_the_extra_the_reason_says_what_to_install(
    directory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(push_sender, "can_push", lambda: False)

    async def main() -> None:
        async with on_port(directory) as world:
            anna = await bearer(world, "anna")
            shown = await ask(world, "GET", "/v1/push", **anna)
            added = await ask(world, "POST", PATH, body(Browser()), **anna)

            assert (shown.data["available"], shown.data["public_key"]) == (False, None)
            assert "pip install 'nightherd[push]'" in shown.data["reason"]
            assert (added.status, added.document["detail"]) == (409, shown.data["reason"])
            assert not (directory / ".nightherd" / KEYS_FILE).exists()

    anyio.run(main)


def test_keys_that_cannot_be_read_are_a_reason_and_stay(directory: Path) -> None:
    async def main() -> None:
        async with on_port(directory) as world:
            path = directory / ".nightherd" / KEYS_FILE
            path.write_text("{")
            anna = await bearer(world, "anna")
            shown = await ask(world, "GET", "/v1/push", **anna)
            added = await ask(world, "POST", PATH, body(Browser()), **anna)

            assert (shown.data["available"], shown.data["public_key"]) == (False, None)
            assert "keys of pushes cannot be read" in shown.data["reason"]
            assert added.status == 500
            assert path.read_text() == "{"

    anyio.run(main)


def test_the_private_key_is_in_no_answer_no_row_and_not_in_the_ledger(directory: Path) -> None:
    async def main() -> None:
        async with on_port(directory) as world:
            anna = await bearer(world, "anna")
            added = await ask(world, "POST", PATH, body(Browser()), **anna)
            shown = await ask(world, "GET", "/v1/push", **anna)
            assert added.status == 201
            state = directory / ".nightherd"
            key = json.loads((state / KEYS_FILE).read_text())["private_key"].encode()
            assert key not in shown.body + added.body
            others = [one for one in state.rglob("*") if one.is_file() and one.name != KEYS_FILE]
            assert any(one.parent.name == "ledger" for one in others)
            assert [one for one in others if key in one.read_bytes()] == []

    anyio.run(main)


def test_a_person_without_a_login_gets_nothing(directory: Path) -> None:
    async def main() -> None:
        async with on_port(directory) as world:
            await new_code(world)
            for method, path in (("GET", "/v1/push"), ("POST", PATH), ("DELETE", f"{PATH}/psh-1")):
                assert (await ask(world, method, path)).status == 401

    anyio.run(main)


def test_contacts_have_a_default() -> None:
    told = [
        contact_of(web)
        for web in (
            Web(
                push=WebPush(contact="mailto:ops@fleet.example"), public_url="https://herd.example"
            ),
            Web(public_url="https://herd.example/path"),
            Web(public_url="http://herd.example"),
            Web(),
        )
    ]

    assert told == [
        "mailto:ops@fleet.example",
        "https://herd.example",
        "https://herd.example",
        "mailto:nightherd@localhost",
    ]
