"""Messages sent by a real child process to a real server on this machine, which the test allows by name."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from time import monotonic, sleep

import anyio
import pytest

from nightherd.cli.next_steps import command_for
from nightherd.host.system import SystemClock
from nightherd.model.notifications.message import Message, render_message
from nightherd.ports import Outgoing, SendResult
from nightherd.runtimes.notify.sender import ChildSender
from runtimes.notify.loopback import Loopback, loopback
from runtimes.notify.mail_server import mail_server

HERE = ("127.0.0.1", "localhost")
HELLO = Message(title="Hello", text="What happened.")
PATIENT = timedelta(seconds=60)


@pytest.fixture
def server() -> Iterator[Loopback]:
    with loopback() as served:
        yield served


def sent(
    url: str,
    message: Message = HELLO,
    *,
    allow: tuple[str, ...] = HERE,
    environ: dict[str, str] | None = None,
    timeout: timedelta = PATIENT,
    api: str = "https://discord.invalid",
) -> SendResult:
    """Send one message."""
    sender = ChildSender(SystemClock(), environ or dict(os.environ), discord_api=api)
    outgoing = Outgoing(url=url, message=message, timeout=timeout, allow_hosts=allow)

    async def send() -> SendResult:
        async with sender.batch() as send:
            return await send(outgoing)

    return anyio.run(send)


def test_a_message_arrives_as_it_was_written(server: Loopback) -> None:
    hostile = Message(
        title="Hello\\n${x} {{7*7}} %s", text='a "quoted" \\n text\n<b>${HOME}</b> $(id)'
    )

    result = sent(server.url(), hostile)

    assert result == SendResult()
    (body,) = (json.loads(one) for one in server.bodies)
    assert (body["title"], body["message"]) == (hostile.title, hostile.text)


def test_a_private_address_is_refused_unless_it_is_allowed(server: Loopback) -> None:
    result = sent(server.url(), allow=())

    assert result.error is not None
    assert "127.0.0.1, which is not a public address" in result.error
    assert "allow_hosts" in result.error
    assert server.bodies == []


def test_a_name_that_means_this_machine_is_refused_unless_that_name_is_allowed(
    server: Loopback,
) -> None:
    refused = sent(server.url("localhost"), allow=("ntfy.example",))
    allowed = sent(server.url("localhost"), allow=("localhost",))

    assert "not a public address" in (refused.error or "")
    assert allowed == SendResult()
    assert len(server.bodies) == 1


def test_a_redirect_is_not_followed(server: Loopback) -> None:
    with loopback() as inner:
        server.status, server.headers = 307, {"Location": f"http://127.0.0.1:{inner.port}/"}

        result = sent(server.url())

        assert result.error == "the server answered 307: redirects are not followed"
        assert (len(server.bodies), inner.bodies) == (1, [])


def test_a_server_that_asks_to_wait_is_heard(server: Loopback) -> None:
    server.status, server.headers = 429, {"Retry-After": "120"}

    result = sent(server.url())

    assert result.error == "the server answered 429"
    assert result.retry_after == timedelta(seconds=120)
    assert not result.is_permanent


@pytest.mark.parametrize(("status", "is_permanent"), [(500, False), (422, True), (401, False)])
def test_a_refusal_is_a_status_and_nothing_that_the_server_says(
    server: Loopback, status: int, is_permanent: bool
) -> None:
    server.status = status

    result = sent(server.url(path="/a-secret-path"))

    assert result == SendResult(error=f"the server answered {status}", is_permanent=is_permanent)


def test_a_server_that_hangs_is_left_after_the_timeout(server: Loopback) -> None:
    server.hangs = True

    result = sent(server.url(), timeout=timedelta(seconds=3))

    assert result.error == "there was no answer within 3s"
    assert len(server.bodies) == 1, "it had been asked"


def test_a_batch_goes_on_after_a_message_that_failed_or_hung(server: Loopback) -> None:
    outgoing = Outgoing(
        url=server.url(), message=HELLO, timeout=timedelta(seconds=3), allow_hosts=HERE
    )

    async def main() -> list[str | None]:
        errors = []
        async with ChildSender(SystemClock(), os.environ).batch() as send:
            for status, hangs in ((200, False), (500, False), (200, True), (200, False)):
                server.status, server.hangs = status, hangs
                errors.append((await send(outgoing)).error)
        return errors

    assert anyio.run(main) == [
        None,
        "the server answered 500",
        "there was no answer within 3s",
        None,
    ]


def test_a_proxy_of_the_environment_is_not_used(server: Loopback) -> None:
    with loopback() as proxy:
        address = f"http://127.0.0.1:{proxy.port}"
        environ = {**os.environ, "http_proxy": address, "HTTP_PROXY": address, "ALL_PROXY": address}

        assert sent(server.url(), environ=environ) == SendResult()

        assert (len(server.bodies), proxy.bodies) == (1, [])


@pytest.mark.parametrize(
    "url",
    ["syslog://", "dbus://", "windows://", "file:///etc/passwd", "http://127.0.0.1/", "macosx://"],
)
def test_a_service_that_is_not_listed_is_never_loaded(url: str) -> None:
    result = sent(url)

    assert result.error is not None
    assert result.is_permanent is False


def test_a_url_that_apprise_cannot_read_is_refused_without_being_shown() -> None:
    result = sent("slack://not-a-token-but-a-secret")

    assert result.is_permanent
    assert "not-a-token-but-a-secret" not in (result.error or "")


def test_a_mail_server_that_is_not_there_is_named_without_the_password() -> None:
    url = "mailto://user:pass-word-1@localhost:9?to=ada@example.com&from=bot@example.com"

    result = sent(url)

    assert result.error is not None
    assert "pass-word-1" not in result.error


def test_a_discord_bot_mentions_nobody(server: Loopback) -> None:
    result = sent("discord-bot://t0ken%2Fx@4242", api=f"http://127.0.0.1:{server.port}/api")

    assert result == SendResult()
    ((path, headers),) = server.requests
    assert path == "/api/channels/4242/messages"
    assert headers["authorization"] == "Bot t0ken/x"
    body = json.loads(server.bodies[0])
    assert body == {"content": "**Hello**\nWhat happened.", "allowed_mentions": {"parse": []}}


def test_a_letter_has_only_our_headers_whatever_an_agent_wrote() -> None:
    error = "x\r\nBcc: everybody@example.com\nX-Evil: 1\n.\nMAIL FROM:<evil@example.com>"
    fields = {"title": f"grazer failed: {error}", "what": error}
    message = render_message(fields, target="mail", spell=command_for)

    with mail_server() as mail:
        url = f"mailto://127.0.0.1:{mail.port}?to=ada@example.com&from=bot@example.com"
        assert sent(url, message) == SendResult()
        letter = mail.read()

    assert [one.partition(":")[2] for one in mail.recipients] == ["<ada@example.com>"]
    assert letter["Bcc"] is None
    assert letter["X-Evil"] is None
    assert letter["Subject"].startswith("grazer failed: x Bcc: everybody@example.com X-Evil: 1")


def test_html_is_sent_as_html_beside_plain_text() -> None:
    page = "<h3>Ran</h3><ul><li>&lt;script&gt;</li></ul>"

    with mail_server() as mail:
        url = f"mailto://127.0.0.1:{mail.port}?to=ada@example.com&from=bot@example.com"
        assert sent(url, Message(title="Digest", text="Ran", html=page)) == SendResult()
        letter = mail.read()

    body = letter.get_body(("html",))
    assert body is not None
    assert "&lt;script&gt;" in body.get_content()
    assert "<script>" not in body.get_content()


def test_a_child_whose_parent_is_killed_ends_by_itself(server: Loopback, tmp_path: Path) -> None:
    server.hangs = True
    script = tmp_path / "parent.py"
    script.write_text(PARENT.format(url=server.url()))
    parent = subprocess.Popen([sys.executable, str(script)])
    assert server.asked.wait(60)
    (child,) = children_of(parent.pid)

    parent.kill()
    parent.wait()

    deadline = monotonic() + 60
    while is_alive(child):
        assert monotonic() < deadline, "it outlived its timeout"
        sleep(0.05)


PARENT = """\
import os
from datetime import timedelta

import anyio

from nightherd.host.system import SystemClock
from nightherd.cli.next_steps import command_for
from nightherd.model.notifications.message import Message, render_message
from nightherd.ports import Outgoing
from nightherd.runtimes.notify.sender import ChildSender

outgoing = Outgoing(
    url={url!r},
    message=Message(title="x", text="y"),
    timeout=timedelta(seconds=2),
    allow_hosts=("127.0.0.1",),
)


async def main():
    async with ChildSender(SystemClock(), os.environ).batch() as send:
        await send(outgoing)


anyio.run(main)
"""


def children_of(pid: int) -> list[int]:
    text = Path(f"/proc/{pid}/task/{pid}/children").read_text()
    return [int(one) for one in text.split()]


def is_alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False
