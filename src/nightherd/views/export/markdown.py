"""A session as Markdown, for reading and for tickets."""

from __future__ import annotations

import re
from collections.abc import Iterator

import msgspec

from nightherd.model.message import Speaker
from nightherd.model.money import format_usd
from nightherd.views.export.exported import Exported
from nightherd.views.history import Spoken
from nightherd.views.jobs import timestamp

FENCE = re.compile(r"`{3,}")
TITLE = {Speaker.USER: "User", Speaker.ASSISTANT: "Assistant", Speaker.TOOL: "Tool result"}


def as_markdown(exported: Exported) -> Iterator[str]:
    """The session's facts in a table, then every message under its number."""
    session = exported.session
    yield f"# Session {session.id}\n\n"
    facts = {
        "agent": session.agent,
        "name": session.name,
        "mode": session.mode.value,
        "status": session.status.value,
        "created": timestamp(session.created_at),
        "last active": timestamp(session.last_active_at),
        "messages": str(session.message_count),
        "tokens (estimate)": str(session.token_estimate),
        "cost": format_usd(session.cost_microusd),
        "working directory": session.working_directory,
        "forked from": session.parent_session_id
        and f"{session.parent_session_id} after message {session.base_messages}",
        "jobs": ", ".join(part.job.id for part in exported.parts),
        "exported": timestamp(exported.at),
    }
    yield "| | |\n|---|---|\n"
    yield "".join(f"| {name} | {_cell(value)} |\n" for name, value in facts.items() if value)
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
