"""SessionHeader: what a journal's first line says about the job's session."""

from __future__ import annotations

from datetime import datetime

import msgspec


class SessionHeader(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A session as the header of each of its jobs records it: enough to continue it when only journals are left."""

    mode: str
    created_at: datetime
    runtime_type: str
    working_directory: str
    channel_id: str | None = None
    schedule: str | None = None
    docker_enabled: bool = False
    operation: str | None = None
    name: str | None = None
    parent_session_id: str | None = None
    base_job_id: str | None = None
    base_seq: int | None = None
    base_messages: int = 0
    base_turns: int = 0
    is_branch: bool = False
    """Whether no job joins it unasked."""
    max_age_s: float | None = None
    max_idle_s: float | None = None
    imported_from: str | None = None
    root: str | None = None
    """The agent's directory, when the session was in a workspace already."""
    workspace_id: str | None = None
