"""A hook's request: signed, tried again when that may help, and given up when its time is over."""

from __future__ import annotations

import http.server
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

import anyio
import pytest

from nightherd.model.hooks import HttpRequest
from nightherd.model.ids import ExecutionId, JobId
from nightherd.model.secrets import knowing
from nightherd.model.webhooks import is_standard
from nightherd.ports import HookCall, HookResult
from nightherd.runtimes.hook_runner import ANSWER_LIMIT, send
from nightherd.testing.determinism import FakeClock

SECRET = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
BODY = b'{"event":"completed"}'


@dataclass
class Receiver:
    """Answers with one status after another, the last one for ever, and remembers what came."""

    statuses: list[int]
    came: list[tuple[str, str, dict[str, str], bytes]] = field(default_factory=list)
    url: str = ""
    body: bytes | None = None

    def answer(self, handler: http.server.BaseHTTPRequestHandler) -> None:
        length = int(handler.headers.get("content-length", "0"))
        headers = {name.lower(): value for name, value in handler.headers.items()}
        self.came.append((handler.command, handler.path, headers, handler.rfile.read(length)))
        status = self.statuses[min(len(self.came), len(self.statuses)) - 1]
        handler.send_response(status)
        if 300 <= status < 400:
            handler.send_header("location", "http://127.0.0.1:1/elsewhere")
        handler.end_headers()
        handler.wfile.write(self.body or b"said " + str(status).encode())


@contextmanager
def receiving(*statuses: int) -> Iterator[Receiver]:
    receiver = Receiver(list(statuses))

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            receiver.answer(self)

        def do_PUT(self) -> None:
            receiver.answer(self)

        def log_message(self, *_: Any) -> None:
            """Nobody listens."""

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    receiver.url = f"http://127.0.0.1:{server.server_address[1]}/in?x=1"
    try:
        yield receiver
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def sent(url: str, *, timeout: float = 60, **more: Any) -> HookResult:
    request = HttpRequest(url=url, timeout=timedelta(seconds=timeout), **more)
    call = HookCall(
        id="job-1/completed/after_run[0]",
        execution=ExecutionId("x"),
        event="completed",
        job_id=JobId("job-2026-01-02-abcdef"),
        body=BODY,
        working_directory=".",
        environment={"HOOK_SECRET": SECRET},
        secrets=knowing({SECRET: "HOOK_SECRET"}),
    )

    async def go() -> HookResult:
        return await send(request, call, FakeClock(), first_pause_s=0.001)

    return anyio.run(go)


def test_the_context_arrives_with_the_headers_given() -> None:
    with receiving(204) as receiver:
        result = sent(receiver.url, method="PUT", headers={"X-Team": "night"})

    assert result.success
    ((method, path, headers, body),) = receiver.came
    assert (method, path, body) == ("PUT", "/in?x=1", BODY)
    assert (headers["x-team"], headers["content-type"]) == ("night", "application/json")


def test_a_signed_request_can_be_checked_by_its_receiver() -> None:
    with receiving(200) as receiver:
        result = sent(receiver.url, secret_env="HOOK_SECRET")

    assert result == HookResult(success=True, output="said 200")
    ((_, _, headers, body),) = receiver.came
    signature, message = headers["webhook-signature"], headers["webhook-id"]
    timestamp = int(headers["webhook-timestamp"])
    assert is_standard([SECRET], signature, message, timestamp, body)
    assert not is_standard([SECRET], signature, message, timestamp, body + b" ")
    assert not is_standard(["other-secret"], signature, message, timestamp, body)


@pytest.mark.parametrize("status", [408, 425, 429, 500, 503])
def test_a_failure_that_may_pass_is_tried_again_with_the_same_id(status: int) -> None:
    with receiving(status, status, 200) as receiver:
        result = sent(receiver.url)

    assert result.success
    assert len({headers["webhook-id"] for _, _, headers, _ in receiver.came}) == 1
    assert len(receiver.came) == 3


@pytest.mark.parametrize("status", [302, 400, 401, 404, 422])
def test_a_refusal_is_final_and_redirects_are_not_followed(status: int) -> None:
    with receiving(status) as receiver:
        result = sent(receiver.url)

    assert (result.success, result.error) == (False, f"the answer was {status}")
    assert result.output == f"said {status}"
    assert len(receiver.came) == 1


def test_it_is_given_up_after_as_many_tries_as_it_may_have() -> None:
    with receiving(500) as receiver:
        result = sent(receiver.url, attempts=4)

    assert result.error == "the answer was 500, after 4 tries"
    assert len(receiver.came) == 4


def test_nobody_at_that_address_is_a_failure() -> None:
    with receiving(200) as receiver:
        pass

    result = sent(receiver.url, attempts=2)

    assert not result.success
    assert "after 2 tries" in str(result.error)


def test_a_receiver_that_never_answers_is_left_when_the_time_is_up() -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        port = silent.getsockname()[1]
        result = sent(f"http://127.0.0.1:{port}/", timeout=0.3, attempts=1)

    assert result.error is not None
    assert "there was no answer within 300ms" in result.error or "timed out" in result.error


@pytest.mark.parametrize("url", ["file:///etc/passwd", "nothing", "http://", "ftp://x/"])
def test_only_http_addresses_are_sent_to(url: str) -> None:
    result = sent(url)

    assert (result.success, result.error) == (False, f"{url!r} is not an address to send to")


def test_a_secret_that_is_not_set_sends_nothing() -> None:
    with receiving(200) as receiver:
        result = sent(receiver.url, secret_env="NO_SUCH_SECRET")

    assert result.error == "the variable NO_SUCH_SECRET has no secret to sign with"
    assert receiver.came == []


@pytest.mark.parametrize("status", [200, 400])
def test_a_secret_where_the_answer_is_cut_is_masked(status: int) -> None:
    with receiving(status) as receiver:
        receiver.body = b"." * (ANSWER_LIMIT - 20) + SECRET.encode() + b"." * ANSWER_LIMIT
        result = sent(receiver.url)

    assert len(result.output) == ANSWER_LIMIT
    assert result.output.startswith("...")
    assert SECRET[:8] not in result.output
