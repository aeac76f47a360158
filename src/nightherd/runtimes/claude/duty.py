"""What a `claude` still owes, and its lines as messages: shared by both ways of talking to it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

ENVIRONMENT = {
    # Says when nothing more will come, so that its input is not closed too early.
    "CLAUDE_CODE_SDK_READS_SESSION_STATE": "1",
}


class Duty:
    """Whether the process still owes an answer: to what it was asked, or to what runs in its background."""

    def __init__(self) -> None:
        self._has_result = False
        self._state: str | None = None
        """Versions that do not tell their state are done with their result."""
        self._has_tasks = False

    @property
    def is_done(self) -> bool:
        """Whether its input may be closed."""
        return self._has_result and not self._has_tasks and self._state in (None, "idle")

    def see(self, message: Mapping[str, Any]) -> None:
        """Take note of a message."""
        match message:
            case {"type": "result"}:
                self._has_result = True
            case {"type": "system", "subtype": "session_state_changed", "state": str(state)}:
                self._state = state
            case {"type": "system", "subtype": "background_tasks_changed"}:
                self._has_tasks = bool(message.get("tasks"))
            case _:
                pass


def parsed(line: bytes) -> bytes | dict[str, Any]:
    """The message, or the line as it is when it is none."""
    try:
        message = json.loads(line)
    except ValueError:
        return line
    return message if isinstance(message, dict) else line
