"""Messages in which `claude` reports that a request failed: they look like answers of the model and are none."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from nightherd.runtimes.claude.answer import body_of

STATUS = re.compile(r"\bAPI Error: (\d{3})\b")
"""Older versions (2.1.100) give the status in the text alone."""


def is_api_error(message: Mapping[str, Any]) -> bool:
    """Whether an `assistant` message is such a report."""
    return bool(message.get("error") or message.get("is_api_error_message"))


@dataclass(frozen=True, slots=True)
class ApiError:
    """One such report; without a message, none was made."""

    message: Mapping[str, Any] = field(default_factory=dict)

    @property
    def text(self) -> str:
        """What it says."""
        content = (body_of(self.message) or {}).get("content")
        blocks = content if isinstance(content, list) else [{"text": content}]
        texts = (block.get("text") for block in blocks if isinstance(block, Mapping))
        return "\n".join(text for text in texts if isinstance(text, str))

    @property
    def status(self) -> int | None:
        """The API's status."""
        given = self.message.get("api_error_status")
        if isinstance(given, int):
            return given
        found = STATUS.search(self.text)
        return int(found[1]) if found is not None else None

    @property
    def kind(self) -> str:
        """Claude's own word for the error."""
        given = self.message.get("api_error") or self.message.get("error")
        return given if isinstance(given, str) else ""
