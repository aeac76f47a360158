"""A session as Markdown, for reading and for tickets."""

from __future__ import annotations

import re
from collections.abc import Iterator

import msgspec

from nightherd.model.message import Speaker
from nightherd.views.export.exported import Exported, facts_of
from nightherd.views.history import Spoken

FENCE = re.compile(r"`{3,}")
TITLE = {Speaker.USER: "User", Speaker.ASSISTANT: "Assistant", Speaker.TOOL: "Tool result"}


def as_markdown(exported: Exported) -> Iterator[str]:
    """The session's facts in a table, then every message under its number."""
    yield f"# Session {exported.session.id}\n\n"
    yield "| | |\n|---|---|\n"
    yield "".join(f"| {name} | {_cell(value)} |\n" for name, value in facts_of(exported))
    for spoken in exported.messages():
        yield from _message(spoken)


def _message(spoken: Spoken) -> Iterator[str]:
    message = spoken.message
    yield f"\n## {spoken.number}. {TITLE[message.speaker]}\n"
    if message.speaker is Speaker.TOOL:
        failed = any(result.success is False for result in message.results)
        yield f"\n{'The tool failed.' + chr(10) * 2 if failed else ''}{fenced(message.text)}\n"
        return
    if message.text:
        yield f"\n{message.text}\n"
    for call in message.calls:
        yield f"\n**{call.tool_name}**\n\n{fenced(_pretty(call.input), 'json')}\n"


def fenced(text: str, language: str = "") -> str:
    """A block that `text` cannot end by itself."""
    longest = max((len(run) for run in FENCE.findall(text)), default=2)
    fence = "`" * (longest + 1)
    return f"{fence}{language}\n{text.rstrip()}\n{fence}"


def _pretty(value: object) -> str:
    return msgspec.json.format(msgspec.json.encode(value), indent=2).decode()


def _cell(value: str) -> str:
    return value.replace("|", "\\|").replace("\n", " ")
