"""A server that speaks the protocol of OpenAI's chat completions, streamed, and answers by script."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

Delta = Mapping[str, Any]

USAGE = {"prompt_tokens": 1000, "completion_tokens": 100, "total_tokens": 1100}


def text(*pieces: str) -> list[Delta]:
    """An answer in words."""
    return [{"content": piece} for piece in pieces]


def call(name: str, arguments: str) -> list[Delta]:
    """An answer that wants a tool run."""
    function = {"name": name, "arguments": arguments}
    wanted = {"index": 0, "id": "call_1", "type": "function", "function": function}
    return [{"tool_calls": [wanted]}]


@contextmanager
def chat_api(
    *answers: list[Delta], usage: Mapping[str, Any] = USAGE
) -> Iterator[tuple[str, list[dict[str, Any]]]]:
    """Its address, and what it was asked so far."""
    asked: list[dict[str, Any]] = []

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            asked.append(json.loads(self.rfile.read(int(self.headers["content-length"]))))
            self.send_response(200)
            self.send_header("content-type", "text/event-stream")
            self.end_headers()
            for chunk in _chunks(answers[len(asked) - 1], usage):
                self.wfile.write(f"data: {chunk}\n\n".encode())

        def log_message(self, format: str, *args: object) -> None:
            """Tests read what was asked, not a log."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}/v1", asked
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def _chunks(deltas: list[Delta], usage: Mapping[str, Any]) -> Iterator[str]:
    frame = {"id": "c1", "object": "chat.completion.chunk", "created": 1, "model": "gpt-5"}
    is_call = any("tool_calls" in delta for delta in deltas)
    for delta in deltas:
        choice = {"index": 0, "delta": {"role": "assistant", **delta}, "finish_reason": None}
        yield json.dumps({**frame, "choices": [choice]})
    reason = "tool_calls" if is_call else "stop"
    yield json.dumps({**frame, "choices": [{"index": 0, "delta": {}, "finish_reason": reason}]})
    yield json.dumps({**frame, "choices": [], "usage": usage})
    yield "[DONE]"
