"""Pushes sent by a real child process with pywebpush to a push service on this machine, which the test allows by name."""

from __future__ import annotations

import stat
from base64 import urlsafe_b64encode
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from threading import Barrier, Thread

import anyio
import pytest
from msgspec.structs import replace as replaced

from nightherd.errors import StateFileError
from nightherd.host.system import SystemClock
from nightherd.model.push.keys import PushKeys, check_keys, encode_key
from nightherd.model.push.payload import topic_of
from nightherd.ports import OutgoingPush, SendResult
from nightherd.runtimes.notify.push_sender import ChildPushSender
from nightherd.runtimes.notify.vapid import make_push_keys
from nightherd.state.push_keys import KEYS_FILE, ensure_push_keys, read_push_keys
from runtimes.notify.push_service import Browser, PushService, push_service

PATIENT = timedelta(seconds=60)
PAYLOAD = '{"kind":"approval","title":"grazer needs approval: \\u00e4"}'
KEYS = make_push_keys()


@pytest.fixture
def service(tmp_path: Path) -> Iterator[PushService]:
    with push_service(tmp_path) as served:
        yield served


def push_to(
    service: PushService,
    browser: Browser,
    *,
    host: str = "localhost",
    timeout: timedelta = PATIENT,
    allow_hosts: tuple[str, ...] = ("localhost",),
    payload: str = PAYLOAD,
    p256dh: str | None = None,
) -> OutgoingPush:
    return OutgoingPush(
        endpoint=service.endpoint(host=host),
        p256dh=p256dh or browser.p256dh,
        auth=browser.auth,
        payload=payload,
        topic=topic_of("inbox/ask-1"),
        ttl=timedelta(hours=2),
        is_urgent=True,
        contact="mailto:ops@fleet.example",
        timeout=timeout,
        allow_hosts=allow_hosts,
    )


def sent(service: PushService, *pushes: OutgoingPush, keys: PushKeys = KEYS) -> list[SendResult]:
    sender = ChildPushSender(SystemClock(), service.environ, lambda: keys)

    async def main() -> list[SendResult]:
        async with sender.batch() as send:
            return [await send(push) for push in pushes]

    return anyio.run(main)


def test_a_browser_can_read_what_it_is_sent_and_the_service_only_how_to_treat_it(
    service: PushService,
) -> None:
    browser = Browser()
    before = SystemClock().now().timestamp()

    results = sent(service, push_to(service, browser), push_to(service, browser))

    assert results == [SendResult(), SendResult()]
    first, second = service.received
    assert first.path == "/send/one"
    assert browser.read(first.body) == {"kind": "approval", "title": "grazer needs approval: ä"}
    assert first.body != second.body, "each is encrypted with a key of its own"
    assert (first.headers["content-encoding"], first.headers["ttl"]) == ("aes128gcm", "7200")
    assert (first.headers["urgency"], first.headers["topic"]) == ("high", topic_of("inbox/ask-1"))
    claims = first.claims(KEYS.public_key)
    assert (claims["aud"], claims["sub"]) == (service.origin, "mailto:ops@fleet.example")
    assert before < claims["exp"] <= before + 24 * 3600
    told = b"".join([first.body, *(value.encode() for value in first.headers.values())])
    assert b"grazer" not in told
    assert b"ask-1" not in told


def test_a_push_for_one_browser_cannot_be_read_by_another(service: PushService) -> None:
    sent(service, push_to(service, Browser()))

    (received,) = service.received
    with pytest.raises(Exception):  # noqa: B017, PT011 (whatever http_ece says)
        Browser().read(received.body)
    with pytest.raises(AssertionError):
        received.claims(make_push_keys().public_key)


def test_the_key_of_the_fleet_is_in_no_command_line_and_no_environment(
    service: PushService, tmp_path: Path
) -> None:
    service.hangs = True
    seen: list[bytes] = []

    def look() -> None:
        assert service.asked.wait(60)
        for process in Path("/proc").iterdir():
            if process.name.isdecimal():
                for name in ("cmdline", "environ"):
                    try:
                        seen.append((process / name).read_bytes())
                    except OSError:
                        continue
        service.released.set()

    watcher = Thread(target=look)
    watcher.start()
    sent(service, push_to(service, Browser(), timeout=timedelta(seconds=30)))
    watcher.join()

    everything = b"".join(seen)
    assert b"push_child" in everything
    assert KEYS.private_key.encode() not in everything
    assert b"/send/one" not in everything


@pytest.mark.parametrize("status", [404, 410])
def test_a_subscription_that_is_gone_is_gone_for_good(service: PushService, status: int) -> None:
    service.status = status

    (result,) = sent(service, push_to(service, Browser()))

    assert (result.is_gone, result.is_permanent) == (True, True)
    assert result.error == f"the push service answered {status}: the subscription is gone"


def test_a_service_that_asks_to_wait_is_heard(service: PushService) -> None:
    service.status, service.headers = 429, {"Retry-After": "120"}

    (result,) = sent(service, push_to(service, Browser()))

    assert result == SendResult(
        error="the push service answered 429", retry_after=timedelta(seconds=120)
    )


@pytest.mark.parametrize(("status", "is_permanent"), [(400, True), (403, False), (500, False)])
def test_a_refusal_is_a_status_and_nothing_that_the_service_says(
    service: PushService, status: int, is_permanent: bool
) -> None:
    service.status = status

    (result,) = sent(service, push_to(service, Browser()))

    assert result == SendResult(
        error=f"the push service answered {status}", is_permanent=is_permanent
    )


@pytest.mark.parametrize("status", [301, 307])
def test_a_redirect_is_not_followed(service: PushService, tmp_path: Path, status: int) -> None:
    folder = tmp_path / "inner"
    folder.mkdir()
    with push_service(folder) as inner:
        service.status = status
        service.headers = {"Location": inner.endpoint()}

        (result,) = sent(service, push_to(service, Browser()))

        assert result.error == (f"the push service answered {status}: redirects are not followed")
        assert not result.is_gone
        assert (len(service.received), inner.received) == (1, [])


@pytest.mark.parametrize("host", ["localhost", "127.0.0.1"])
def test_a_private_address_is_refused_unless_its_host_is_allowed(
    service: PushService, host: str
) -> None:
    push = push_to(service, Browser(), host=host, allow_hosts=("push.example",))

    (result,) = sent(service, push)

    assert result.error is not None
    assert "127.0.0.1, which is not a public address" in result.error
    assert "web.push.allow_hosts" in result.error
    assert service.received == []


def test_a_certificate_that_is_not_believed_is_a_failure(service: PushService) -> None:
    sender = ChildPushSender(SystemClock(), {}, lambda: KEYS)

    async def main() -> SendResult:
        async with sender.batch() as send:
            return await send(push_to(service, Browser()))

    assert anyio.run(main) == SendResult(error="the request failed: SSLError")
    assert service.received == []


def test_a_proxy_of_the_environment_is_not_used(service: PushService, tmp_path: Path) -> None:
    environ = {
        **service.environ,
        "https_proxy": "http://127.0.0.1:9",
        "ALL_PROXY": "http://127.0.0.1:9",
    }
    sender = ChildPushSender(SystemClock(), environ, lambda: KEYS)

    async def main() -> SendResult:
        async with sender.batch() as send:
            return await send(push_to(service, Browser()))

    assert anyio.run(main) == SendResult()


def test_keys_that_cannot_be_used_fail_for_good_and_are_not_shown(service: PushService) -> None:
    browser = Browser()
    off_the_curve = urlsafe_b64encode(b"\x04" + b"\x01" * 64).decode()

    wrong_device, wrong_fleet = (
        sent(service, push_to(service, browser, p256dh=off_the_curve))[0],
        sent(
            service,
            push_to(service, browser),
            keys=replaced(KEYS, private_key=encode_key(b"\xff" * 32)),
        )[0],
    )

    assert wrong_device == SendResult(
        error="the keys of the subscription cannot be used", is_permanent=True
    )
    assert wrong_fleet.error == "the key of this fleet's pushes cannot be read"
    assert service.received == []


def test_a_service_that_hangs_is_left_after_the_timeout_and_the_next_push_goes_out(
    service: PushService,
) -> None:
    browser = Browser()
    sender = ChildPushSender(SystemClock(), service.environ, lambda: KEYS)

    async def main() -> list[str | None]:
        errors = []
        async with sender.batch() as send:
            for hangs in (True, False):
                service.hangs = hangs
                push = push_to(service, browser, timeout=timedelta(seconds=5))
                errors.append((await send(push)).error)
        return errors

    assert anyio.run(main) == ["there was no answer within 5s", None]


def test_the_address_and_the_keys_of_a_push_are_not_shown(service: PushService) -> None:
    browser = Browser()

    shown = repr(push_to(service, browser))

    for secret in (browser.p256dh, browser.auth, "/send/one"):
        assert secret not in shown
    assert KEYS.private_key not in repr(KEYS)


def test_the_fleets_keys_are_made_once_and_only_their_owner_can_read_them(tmp_path: Path) -> None:
    assert read_push_keys(tmp_path) is None
    barrier, found = Barrier(8), []

    def make() -> None:
        barrier.wait()
        found.append(ensure_push_keys(tmp_path, make_push_keys))

    threads = [Thread(target=make) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert len(found) == 8
    assert {one.private_key for one in found} == {found[0].private_key}
    assert check_keys(found[0]) == read_push_keys(tmp_path)
    assert stat.S_IMODE((tmp_path / KEYS_FILE).stat().st_mode) == 0o600
    assert [one.name for one in tmp_path.iterdir()] == [KEYS_FILE]


@pytest.mark.parametrize("damage", [b"", b"{", b'{"public_key":"x","private_key":"y"}', b"\xff"])
def test_keys_that_cannot_be_read_are_reported_and_kept(tmp_path: Path, damage: bytes) -> None:
    (tmp_path / KEYS_FILE).write_bytes(damage)

    with pytest.raises(StateFileError, match="keys of pushes cannot be read"):
        ensure_push_keys(tmp_path, make_push_keys)

    assert (tmp_path / KEYS_FILE).read_bytes() == damage
