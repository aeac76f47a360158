"""A session that was handed over to a person, as `session takeover --json` and the API show it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypedDict

from nightherd.model.ids import SessionId
from nightherd.model.jobs.job import Job


class TakeoverDocument(TypedDict):
    """How a person continues a session by hand, and what was taken in of what they said before."""

    session_id: str
    directory: str
    command: list[str]
    shell: str
    was_in_container: bool
    recorded_job_id: str | None
    """The job that records what was said outside nightherd; None when nothing was."""
    recorded_messages: int


def takeover_document(
    session_id: SessionId,
    directory: str,
    command: Sequence[str],
    shell: str,
    taken: Job | None,
    *,
    was_in_container: bool,
) -> TakeoverDocument:
    """Return what is known of it as plain data."""
    return {
        "session_id": session_id,
        "directory": directory,
        "command": [*command],
        "shell": shell,
        "was_in_container": was_in_container,
        "recorded_job_id": None if taken is None else taken.id,
        "recorded_messages": 0 if taken is None else taken.messages,
    }
