"""Webhooks: only what is signed comes in, each delivery makes one job, and nothing acknowledged is lost."""

from __future__ import annotations

import json
from collections import Counter
from contextlib import suppress
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import anyio
import pytest

from nightherd.errors import StateFileError
from nightherd.model.jobs.job import JobQuery
from nightherd.model.webhooks import (
    is_github,
    is_standard,
    sign_github,
    sign_standard,
    standard_key,
)
from nightherd.state.store import SqliteStore
from soak import often
from web.web_world import SECRET, Answer, World, served

DELIVERIES = often(1_000, soak=10_000)
ENDLESS = often(20, soak=200)
"""Clients that never finish what they say."""
TOO_LARGE = often(1, soak=20)
HUGE = 50 * 1024 * 1024
ISSUE = {"action": "opened", "issue": {"number": 7, "title": "It rains"}}


def encoded(payload: Any) -> bytes:
    return json.dumps(payload).encode()


async def github(
    world: World, delivery: str, payload: Any = ISSUE, *, event: str = "issues", **more: str
) -> Answer:
    body = payload if isinstance(payload, bytes) else encoded(payload)
    headers = {
        "x_github_delivery": delivery,
        "x_github_event": event,
        "x_hub_signature_256": sign_github(SECRET, body),
        **more,
    }
    return await world.post("/v1/hooks/issues", body, **headers)


async def standard(
    world: World,
    delivery: str,
    payload: Any,
    *,
    late_s: int = 0,
    name: str = "standard",
    secret: str = SECRET,
) -> Answer:
    body = encoded(payload)
    sent = int(world.site.context.clock.now().timestamp()) - late_s
    signature = sign_standard(secret, delivery, sent, body)
    headers = {
        "webhook_id": delivery,
        "webhook_timestamp": str(sent),
        "webhook_signature": f"v1,bm90IG1pbmU= {signature}",
    }
    return await world.post(f"/v1/hooks/{name}", body, **headers)


def jobs(world: World) -> list[tuple[str, str | None]]:
    """Every job's trigger, oldest first."""
    found = world.site.context.reader.list_jobs(JobQuery(limit=5_000))
    return [(job.trigger_type.value, job.trigger_id) for job in reversed(found)]


def prompt_of(world: World, answer: Answer) -> str:
    texts = world.site.context.reader.find_texts(answer.data["job_id"])
    assert texts is not None
    return texts.prompt


def test_a_message_from_github_becomes_a_job_once(tmp_path: Path) -> None:
    async def main() -> None:
        async with served(tmp_path) as world:
            first = await github(world, "d-1")
            again = await github(world, "d-1")
            other = await github(world, "d-2")

            assert (first.status, first.document["schema"]) == (202, "nightherd/v1/delivery")
            assert (first.data["is_new"], again.data["is_new"]) == (True, False)
            assert again.data["job_id"] == first.data["job_id"] != other.data["job_id"]
            assert prompt_of(world, first) == "Issue 7: It rains"
            assert jobs(world) == [("webhook", "d-1"), ("webhook", "d-2")]

    anyio.run(main)


def test_what_an_endpoint_does_not_act_on_is_kept_and_makes_no_job(tmp_path: Path) -> None:
    async def main() -> None:
        async with served(tmp_path) as world:
            closed = await github(world, "d-1", {**ISSUE, "action": "closed"})
            ping = await github(world, "d-2", {"zen": "calm"}, event="ping")
            listed = (await world.get("/v1/hooks/issues/deliveries")).data

            assert [closed.status, ping.status] == [202, 202]
            assert closed.data["job_id"] is None
            assert closed.data["reason"] == "issues does not act on 'issues'"
            assert [(row["delivery_id"], row["outcome"]) for row in listed] == [
                ("d-2", "ignored"),
                ("d-1", "ignored"),
            ]
            assert jobs(world) == []

    anyio.run(main)


def test_a_form_may_carry_the_payload(tmp_path: Path) -> None:
    async def main() -> None:
        async with served(tmp_path) as world:
            body = urlencode({"payload": json.dumps(ISSUE)}).encode()

            answer = await github(
                world, "d-1", body, content_type="application/x-www-form-urlencoded"
            )

            assert prompt_of(world, answer) == "Issue 7: It rains"
            texts = world.site.context.reader.find_texts(answer.data["job_id"])
            assert texts is not None
            assert texts.inputs["issue_number"] == 7

    anyio.run(main)


def test_standard_webhooks_are_taken_within_their_window_only(tmp_path: Path) -> None:
    async def main() -> None:
        async with served(tmp_path) as world:
            good = await standard(world, "m-1", {"text": "hi"}, late_s=60)
            old = await standard(world, "m-2", {"text": "hi"}, late_s=600)
            early = await standard(world, "m-3", {"text": "hi"}, late_s=-600)
            wrong = await standard(world, "m-4", {"text": "hi"}, secret="whsec_b3RoZXI=")

            assert [one.status for one in (good, old, early, wrong)] == [202, 403, 403, 403]
            assert prompt_of(world, good) == "hi"
            assert jobs(world) == [("webhook", "m-1")]

    anyio.run(main)


def test_a_message_fires_a_schedule_while_that_is_enabled(tmp_path: Path) -> None:
    async def main() -> None:
        async with served(tmp_path) as world:
            fired = await standard(world, "m-1", {"text": "me"}, name="fired")
            await world.post("/v1/schedules/hello/fired/disable")
            resting = await standard(world, "m-2", {"text": "me"}, name="fired")

            job = world.site.context.reader.find_job(fired.data["job_id"])
            assert job is not None
            assert (job.schedule, job.trigger_type.value) == ("fired", "webhook")
            assert prompt_of(world, fired) == "fired by me"
            assert resting.data["job_id"] is None
            assert resting.data["reason"] == "schedule hello/fired is disabled"

    anyio.run(main)


def test_a_channel_keeps_its_own_conversation(tmp_path: Path) -> None:
    async def main() -> None:
        async with served(tmp_path) as world:
            for number, room in enumerate(("kitchen", "kitchen", "garden")):
                payload = {"text": "hi", "room": room}
                answer = await standard(world, f"m-{number}", payload, name="rooms")
                assert answer.status == 202

            found = world.site.context.reader.list_jobs(JobQuery())
            sessions = [job.session_id for job in reversed(found)]
            assert sessions[0] == sessions[1] != sessions[2]

    anyio.run(main)


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"x_hub_signature_256": "sha256=" + "0" * 64}, 403),
        ({"x_hub_signature_256": "sha1=abc"}, 403),
        ({"x_hub_signature_256": ""}, 403),
        ({"x_github_delivery": ""}, 403),
        ({"x_github_delivery": "x" * 500}, 400),
    ],
)
def test_what_is_not_signed_or_named_does_not_come_in(
    tmp_path: Path, headers: dict[str, str], status: int
) -> None:
    async def main() -> None:
        async with served(tmp_path) as world:
            answer = await github(world, "d-1", ISSUE, event="issues", **headers)

            assert answer.status == status
            assert jobs(world) == []
            assert (await world.get("/v1/hooks/issues/deliveries")).data == []
            (line,) = refusals(tmp_path)
            assert line["message"].startswith("webhook issues: the ")

    anyio.run(main)


def refusals(directory: Path) -> list[dict[str, Any]]:
    """Refused deliveries in the operator's log."""
    files = (directory / ".nightherd" / "logs").glob("*.log")
    lines = [json.loads(line) for file in files for line in file.read_text().splitlines()]
    return [line for line in lines if line["event"] == "delivery.refused"]


@pytest.mark.parametrize(
    ("payload", "detail"),
    [
        ({"action": "opened"}, "${payload.issue.number} is not in the payload"),
        (b"{", "the body is not JSON"),
        (b"[" * 50_000, "the body is not JSON"),
    ],
)
def test_what_cannot_be_used_is_refused_and_can_be_sent_again(
    tmp_path: Path, payload: Any, detail: str
) -> None:
    async def main() -> None:
        async with served(tmp_path) as world:
            refused = await github(world, "d-1", payload)
            mended = await github(world, "d-1")

            assert refused.status == 400
            assert detail in refused.document["detail"]
            assert mended.data["is_new"]

    anyio.run(main)


def test_no_endpoint_no_secret_no_way_in(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def main() -> None:
        async with served(tmp_path) as world:
            nowhere = await world.post("/v1/hooks/nowhere", b"{}")
            environ = world.site.environ
            assert isinstance(environ, dict)
            monkeypatch.delitem(environ, "HOOK_SECRET")
            unsigned = await github(world, "d-1")

            assert (nowhere.status, unsigned.status) == (404, 403)

    anyio.run(main)


def test_many_deliveries_among_forged_huge_and_endless_ones_make_one_job_each(
    tmp_path: Path,
) -> None:
    async def main() -> None:
        async with served(tmp_path) as world, anyio.create_task_group() as tasks:
            outcomes: Counter[int] = Counter()
            limit = anyio.CapacityLimiter(24)

            async def send(number: int) -> None:
                async with limit:
                    forged = {"x_hub_signature_256": "sha256=" + "f" * 64}
                    more = forged if number % 5 == 4 else {}
                    answer = await github(world, f"d-{number % 400}", ISSUE, event="issues", **more)
                    outcomes[answer.status] += 1

            async def linger() -> None:
                with suppress(anyio.EndOfStream, anyio.BrokenResourceError):
                    async with await anyio.connect_unix(str(world.socket_path)) as stream:
                        await stream.send(b"POST /v1/hooks/issues HTTP/1.1\r\nHost: x\r\nX-A: 1")
                        await stream.receive()

            async def overdo() -> None:
                async with limit:
                    with suppress(BrokenPipeError, ConnectionResetError):
                        assert (await github(world, "huge", b"x" * HUGE)).status == 413

            for _ in range(ENDLESS):
                tasks.start_soon(linger)
            async with anyio.create_task_group() as senders:
                for number in range(DELIVERIES):
                    senders.start_soon(send, number)
                for _ in range(TOO_LARGE):
                    senders.start_soon(overdo)

            made = {f"d-{number % 400}" for number in range(DELIVERIES) if number % 5 != 4}
            assert outcomes == {202: DELIVERIES * 4 // 5, 403: DELIVERIES // 5}
            assert sorted(name or "" for _, name in jobs(world)) == sorted(made)
            tasks.cancel_scope.cancel()

    anyio.run(main)


def test_a_body_that_is_too_large_is_not_read(tmp_path: Path) -> None:
    async def main() -> None:
        async with served(tmp_path) as world:
            huge = b"x" * (50 * 1024 * 1024)
            try:
                answer = await github(world, "d-1", huge)
            except (BrokenPipeError, ConnectionResetError):
                pass  # told and hung up while it was still sending: what a client may see of it
            else:
                assert (answer.status, answer.document["code"]) == (413, "too_large")
            just_over = await github(world, "d-2", b"x" * (1024 * 1024 + 1))

            assert just_over.status == 413
            assert (await github(world, "d-3")).status == 202

    anyio.run(main)


def test_a_full_disk_acknowledges_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def full(self: SqliteStore, changes: object) -> None:
        raise StateFileError("no space left on device", code="ENOSPC")

    async def main() -> None:
        async with served(tmp_path) as world:
            with monkeypatch.context() as patch:
                patch.setattr(SqliteStore, "apply", full)
                failed = await github(world, "d-1")
            later = await github(world, "d-1")

            assert (failed.status, failed.document["code"]) == (507, "state_file")
            assert (later.status, later.data["is_new"]) == (202, True)

    anyio.run(main)


def test_signatures_are_those_of_the_published_examples() -> None:
    body = b"Hello, World!"
    known = "sha256=757107ea0eb2509fc211221cce984b8a37570b6d7586c22c46f4379c8b043e17"
    assert sign_github("It's a Secret to Everybody", body) == known
    assert is_github(["old", "It's a Secret to Everybody"], known, body)
    assert not is_github(["It's a Secret to Everybody"], known.upper(), body)

    secret = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
    message, sent = "msg_p5jXN8AQM9LWM0D4loKWxJek", 1614265330
    signed = "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="
    text = b'{"test": 2432232314}'
    assert sign_standard(secret, message, sent, text) == signed
    assert is_standard([secret], f"v1a,xxx {signed}", message, sent, text)
    assert not is_standard([secret], signed, message, sent + 1, text)
    assert standard_key("plain") == b"plain"
    assert standard_key("whsec_***") == b"whsec_***"
