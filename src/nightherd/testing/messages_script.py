"""What the loopback Messages API answers: values, and the bytes each becomes on the wire.

An answer of the model is a `Say`. The others are what goes wrong: `Refuse` (an error status), `Garble` (a
body that is no answer), and a `Say` that is cut off (`drop`) or held up (`hold`) on its way.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator, Mapping
from enum import StrEnum
from typing import Any

import msgspec

from nightherd.host.system import SystemClock

MODEL = "claude-loopback-1"
PIECE_CHARACTERS = 64 * 1024
"""A text longer than this is streamed in several deltas."""


class Cut(StrEnum):
    """Where the connection of an answer breaks."""

    HEADERS = "headers"
    """Before anything is answered."""
    START = "start"
    """After the answer has begun, before its first word."""
    MIDDLE = "middle"
    """In the middle of the first block."""


class Call(msgspec.Struct, frozen=True):
    """The model wants `name` run."""

    name: str
    input: Mapping[str, Any] = msgspec.field(default_factory=dict)


class Tokens(msgspec.Struct, frozen=True):
    """What the API says an answer used."""

    input: int = 10
    output: int = 5
    cache_written: int = 0
    cache_read: int = 0


class Say(msgspec.Struct, frozen=True, kw_only=True):
    """The model answers: thoughts, a text, and calls of tools, all in one message."""

    text: str | None = None
    thinking: str | None = None
    calls: tuple[Call, ...] = ()
    tokens: Tokens = Tokens()
    stop_reason: str | None = None
    model: str = MODEL
    drop: Cut | None = None
    hold: threading.Event | None = None
    """The answer stops in the middle of its first block until this is set, or the server closes."""
    said_first: int = 0
    """Characters of the text that are sent before it stops."""


class UsageLimitHit(msgspec.Struct, frozen=True, kw_only=True):
    """A limit of a subscription that resets so many seconds after the request."""

    resets_in_s: float
    claim: str = "five_hour"


class Refuse(msgspec.Struct, frozen=True, kw_only=True):
    """The API answers with an error. The client must not retry unless `may_retry`."""

    status: int
    message: str = "refused by the script"
    kind: str | None = None
    retry_after_s: int | None = None
    may_retry: bool = False
    limit: UsageLimitHit | None = None
    """The subscription's limit that was hit, stated in headers."""


class Garble(msgspec.Struct, frozen=True, kw_only=True):
    """Something that is no answer at all, sent with status 200."""

    body: bytes = b"<html>not an answer</html>"
    content_type: str = "text/html"


Answer = Say | Refuse | Garble

ERROR_KINDS = {
    400: "invalid_request_error",
    401: "authentication_error",
    403: "permission_error",
    404: "not_found_error",
    413: "request_too_large",
    429: "rate_limit_error",
    500: "api_error",
    529: "overloaded_error",
}


def refusal(answer: Refuse) -> tuple[dict[str, str], bytes]:
    """Headers and body of an error."""
    headers = {"content-type": "application/json"}
    if answer.limit is not None:
        headers |= _limit_headers(answer.limit)
    if not answer.may_retry:
        headers["x-should-retry"] = "false"
    if answer.retry_after_s is not None:
        headers["retry-after"] = str(answer.retry_after_s)
    kind = answer.kind or ERROR_KINDS.get(answer.status, "api_error")
    body = {"type": "error", "error": {"type": kind, "message": answer.message}}
    return headers, json.dumps(body).encode()


def _limit_headers(limit: UsageLimitHit) -> dict[str, str]:
    facts = {
        "status": "rejected",
        "reset": str(int(SystemClock().now().timestamp() + limit.resets_in_s)),
        "representative-claim": limit.claim,
    }
    return {f"anthropic-ratelimit-unified-{name}": value for name, value in facts.items()}


def whole_message(answer: Say, name: str) -> bytes:
    """The answer to a request that did not ask for a stream."""
    return json.dumps({**_frame(answer, name), "content": list(_blocks(answer, name))}).encode()


def streamed(answer: Say, name: str) -> Iterator[bytes]:
    """The answer as server-sent events. The second is the start of the first block."""
    begun = {**_frame(answer, name), "content": [], "stop_reason": None}
    begun["usage"] = {**begun["usage"], "output_tokens": 1}
    yield _event("message_start", message=begun)
    for index, block in enumerate(_blocks(answer, name)):
        yield from _block_events(index, block, answer.said_first)
    yield _event(
        "message_delta",
        delta={"stop_reason": _stop_reason(answer), "stop_sequence": None},
        usage={"output_tokens": answer.tokens.output},
    )
    yield _event("message_stop")


def _event(kind: str, **fields: Any) -> bytes:
    return f"event: {kind}\ndata: {json.dumps({'type': kind, **fields})}\n\n".encode()


def _block_events(index: int, block: Mapping[str, Any], first: int) -> Iterator[bytes]:
    match block:
        case {"type": "text", "text": text}:
            empty: dict[str, Any] = {"type": "text", "text": ""}
            deltas = [{"type": "text_delta", "text": piece} for piece in _pieces(text, first)]
        case {"type": "thinking", "thinking": thought, "signature": signature}:
            empty = {"type": "thinking", "thinking": "", "signature": ""}
            deltas = [{"type": "thinking_delta", "thinking": piece} for piece in _pieces(thought)]
            deltas.append({"type": "signature_delta", "signature": signature})
        case _:
            empty = {**block, "input": {}}
            written = json.dumps(block["input"])
            deltas = [{"type": "input_json_delta", "partial_json": one} for one in _pieces(written)]
    yield _event("content_block_start", index=index, content_block=empty)
    for delta in deltas:
        yield _event("content_block_delta", index=index, delta=delta)
    yield _event("content_block_stop", index=index)


def _pieces(text: str, first: int = 0) -> Iterator[str]:
    if first:
        yield text[:first]
    for start in range(first, len(text), PIECE_CHARACTERS):
        yield text[start : start + PIECE_CHARACTERS]


def _blocks(answer: Say, name: str) -> Iterator[dict[str, Any]]:
    if answer.thinking is not None:
        yield {"type": "thinking", "thinking": answer.thinking, "signature": f"signed-{name}"}
    if answer.text is not None:
        yield {"type": "text", "text": answer.text}
    for number, call in enumerate(answer.calls, 1):
        call_id = f"toolu_{name}_{number}"
        yield {"type": "tool_use", "id": call_id, "name": call.name, "input": dict(call.input)}


def _frame(answer: Say, name: str) -> dict[str, Any]:
    return {
        "id": f"msg_{name}",
        "type": "message",
        "role": "assistant",
        "model": answer.model,
        "stop_reason": _stop_reason(answer),
        "stop_sequence": None,
        "usage": {
            "input_tokens": answer.tokens.input,
            "output_tokens": answer.tokens.output,
            "cache_creation_input_tokens": answer.tokens.cache_written,
            "cache_read_input_tokens": answer.tokens.cache_read,
        },
    }


def _stop_reason(answer: Say) -> str:
    return answer.stop_reason or ("tool_use" if answer.calls else "end_turn")
