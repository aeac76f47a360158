"""`sessions/<agent>.json` and `sessions/<session>.json`: an agent's session, and one session itself."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import msgspec

from nightherd.mirror.envelope import cut
from nightherd.model.journal.event import Event
from nightherd.model.journal.message import Message, Speaker, whole_messages
from nightherd.model.sessions.context_window import contextual
from nightherd.model.sessions.session import Session
from nightherd.model.text import utc_text


def agent_session_document(session: Session) -> dict[str, Any]:
    """An agent's session as its file says it; `session_id` is the runtime's, where it has one."""
    return {
        "agent_name": session.agent,
        "session_id": session.runtime_session_id or session.id,
        "created_at": utc_text(session.created_at),
        "last_used_at": utc_text(session.last_active_at),
        "job_count": session.job_count,
        "mode": session.operation,
        "working_directory": session.working_directory,
        "runtime_type": session.runtime_type,
        "docker_enabled": session.docker_enabled,
    }


def session_document(session: Session, jobs: Sequence[str]) -> dict[str, Any]:
    """A session as its own file says it, with its jobs from first to last."""
    return {
        "id": session.id,
        "agentId": session.agent,
        "mode": session.mode.value,
        "status": session.status.value,
        "createdAt": utc_text(session.created_at),
        "lastActiveAt": utc_text(session.last_active_at),
        "messageCount": session.message_count,
        "tokenEstimate": session.token_estimate,
        **({} if session.channel_id is None else {"channelId": session.channel_id}),
        "jobs": list(jobs),
    }


def context_text(events: Iterable[Event]) -> bytes:
    """`sessions/<session>.context`: the messages that the session's next request would have, of everything said in it."""
    encoder = msgspec.json.Encoder()
    lines = (_line(message) for message in whole_messages(contextual(events)))
    return b"".join(encoder.encode(line) + b"\n" for line in lines)


def _line(message: Message) -> dict[str, Any]:
    line: dict[str, Any] = {"role": message.speaker.value, "content": cut(message.text)}
    if message.speaker is Speaker.ASSISTANT and message.calls:
        line["tool_calls"] = [
            {"id": call.tool_use_id, "name": call.tool_name, "input": call.input}
            for call in message.calls
        ]
    if message.speaker is Speaker.TOOL:
        (first, *_) = message.results
        line["tool_call_id"] = first.tool_use_id
        line["is_error"] = first.success is False
    return line
