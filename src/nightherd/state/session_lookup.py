"""Looking up the current session of a key, for readers and decisions alike."""

from __future__ import annotations

from nightherd.model.session import Session, SessionKey, SessionMode
from nightherd.state.rows import SqliteRows


def find_current_session(rows: SqliteRows, key: SessionKey) -> Session | None:
    """Return the session that a job with this key joins; none for `fresh_per_job`, which shares none."""
    if key.mode is SessionMode.FRESH_PER_JOB:
        return None
    parts = (key.agent, key.mode.value, key.channel_id or "", key.schedule or "")
    return rows.find(Session, "current_session", *parts)
