"""A Messages API on the loopback interface that answers by script and remembers what it was asked.

For tests, and for trying fleets out without a key: point `ANTHROPIC_BASE_URL` at `url`. It listens on
127.0.0.1 only and calls no other host. Requests are answered in the order of the script, whichever client sends them; the
last answer is given again and again.
"""

from __future__ import annotations

import json
import socket
import threading
from collections.abc import Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Self

import msgspec

from nightherd.testing.messages_script import (
    Answer,
    Cut,
    Garble,
    Refuse,
    Say,
    refusal,
    streamed,
    whole_message,
)

MESSAGES = "/v1/messages"
COUNT_TOKENS = "/v1/messages/count_tokens"
BYTES_PER_TOKEN = 4
START_EVENTS = 2
"""How much of a stream is sent before it is held up or cut in the middle: its start, and its first block's."""


class Asked(msgspec.Struct, frozen=True, kw_only=True):
    """One request for an answer."""

    path: str
    headers: Mapping[str, str]
    """By lower-case name."""
    body: Mapping[str, Any]

    @property
    def texts(self) -> list[str]:
        """Every text in the conversation sent, in order, also those of tool results."""
        return [text for message in self.body["messages"] for text in _texts(message["content"])]


class MessagesApi:
    """A server that runs while its context lasts. What it was asked may be read at any time."""

    def __init__(self, *answers: Answer) -> None:
        if not answers:
            raise ValueError("a script needs at least one answer")
        self._answers = answers
        self._asked: list[Asked] = []
        self._news = threading.Condition()
        self._is_closing = threading.Event()
        self._server = _Server(("127.0.0.1", 0), _Handler)
        self._server.api = self
        self._thread = threading.Thread(
            target=self._server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True
        )

    @property
    def url(self) -> str:
        """What a client takes as the API's address."""
        return f"http://127.0.0.1:{self._server.server_address[1]}"

    @property
    def asked(self) -> list[Asked]:
        """Every request for an answer so far."""
        with self._news:
            return list(self._asked)

    def wait_until_asked(self, count: int, timeout_s: float = 60.0) -> bool:
        """Whether `count` requests have come, waiting for them if need be."""
        with self._news:
            return self._news.wait_for(lambda: len(self._asked) >= count, timeout_s)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._is_closing.set()
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    def take(self, asked: Asked) -> tuple[Answer, str]:
        """Note the request; its answer, and a name that no other answer has."""
        with self._news:
            self._asked.append(asked)
            number = len(self._asked)
            self._news.notify_all()
        return self._answers[min(number, len(self._answers)) - 1], f"loopback{number}"

    def wait_for(self, event: threading.Event) -> None:
        """Returns when `event` is set or the server closes."""
        while not (event.wait(0.02) or self._is_closing.is_set()):
            pass


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    block_on_close = False
    api: MessagesApi

    def handle_error(self, request: object, client_address: object) -> None:
        """A client that went away in the middle is what some tests are about: no word of it."""


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: _Server

    def do_HEAD(self) -> None:
        self._send(200, {}, b"")

    def do_GET(self) -> None:
        self._send(404, {"content-type": "application/json"}, b"{}")

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers.get("content-length", "0"))) or b"{}")
        path = self.path.partition("?")[0]
        if path == COUNT_TOKENS:
            tokens = len(json.dumps(body)) // BYTES_PER_TOKEN
            self._send_json({"input_tokens": tokens})
        elif path == MESSAGES:
            headers = {name.lower(): value for name, value in self.headers.items()}
            answer, name = self.server.api.take(Asked(path=self.path, headers=headers, body=body))
            self._answer(answer, name, is_stream=bool(body.get("stream")))
        else:
            self._send(404, {"content-type": "application/json"}, b"{}")

    def log_message(self, format: str, *args: object) -> None:
        """Tests read `asked`, not a log."""

    def _answer(self, answer: Answer, name: str, *, is_stream: bool) -> None:
        match answer:
            case Refuse(status=status):
                headers, body = refusal(answer)
                self._send(status, headers, body)
            case Garble(body=body, content_type=kind):
                self._send(200, {"content-type": kind}, body)
            case Say(drop=Cut.HEADERS):
                self._hang_up()
            case Say() if is_stream:
                self._stream(answer, name)
            case Say(drop=None):
                self._send(200, {"content-type": "application/json"}, whole_message(answer, name))
            case Say():
                self._hang_up()

    def _stream(self, answer: Say, name: str) -> None:
        self.send_response(200)
        self.send_header("content-type", "text/event-stream")
        self.send_header("transfer-encoding", "chunked")
        self.end_headers()
        for number, event in enumerate(streamed(answer, name)):
            if answer.drop is Cut.START and number == 1:
                self._hang_up()
                return
            if number == START_EVENTS + bool(answer.said_first):
                if answer.drop is Cut.MIDDLE:
                    self._send_chunk(event[: len(event) // 2])
                    self._hang_up()
                    return
                if answer.hold is not None:
                    self.server.api.wait_for(answer.hold)
            self._send_chunk(event)
        self._send_chunk(b"")

    def _send_chunk(self, data: bytes) -> None:
        self.wfile.write(f"{len(data):x}\r\n".encode() + data + b"\r\n")
        self.wfile.flush()

    def _hang_up(self) -> None:
        self.close_connection = True
        self.wfile.flush()
        try:
            self.connection.shutdown(socket.SHUT_RDWR)
        except OSError:  # the client was first
            pass

    def _send_json(self, value: object) -> None:
        self._send(200, {"content-type": "application/json"}, json.dumps(value).encode())

    def _send(self, status: int, headers: Mapping[str, str], body: bytes) -> None:
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


def _texts(content: Any) -> list[str]:
    if isinstance(content, str):
        return [content]
    found: list[str] = []
    for block in content:
        match block:
            case {"type": "text", "text": str(text)}:
                found.append(text)
            case {"type": "tool_result", "content": inner}:
                found.extend(_texts(inner))
            case _:
                pass
    return found
