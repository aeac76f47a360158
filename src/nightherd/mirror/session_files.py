"""`sessions/<agent>.json` and `sessions/<session>.json`: an agent's session, and one session itself."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from nightherd.mirror.images import SessionImage


def agent_session_document(session: SessionImage) -> dict[str, Any]:
    """An agent's session as its file says it; `session_id` is the runtime's, where it has one."""
    return {
        "agent_name": session.agent,
        "session_id": session.runtime_session_id or session.id,
        "created_at": session.created_at,
        "last_used_at": session.last_active_at,
        "job_count": session.job_count,
        "mode": session.operation,
        "working_directory": session.working_directory,
        "runtime_type": session.runtime_type,
        "docker_enabled": bool(session.docker_enabled),
    }


def session_document(session: SessionImage, jobs: Sequence[str]) -> dict[str, Any]:
    """A session as its own file says it, with its jobs from first to last."""
    return {
        "id": session.id,
        "agentId": session.agent,
        "mode": session.mode,
        "status": session.status,
        "createdAt": session.created_at,
        "lastActiveAt": session.last_active_at,
        "messageCount": session.message_count,
        "tokenEstimate": session.token_estimate,
        **({} if session.channel_id is None else {"channelId": session.channel_id}),
        "jobs": list(jobs),
    }
