"""Live text: what a model has said of an answer that is not in the journal yet.

Pieces of it are shown to followers while the answer comes. They are no events: the whole answer becomes one
when it is recorded, or, when it is cut off, one line with `partial: true` (`cut_off_event`).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import msgspec

from nightherd.model.journal.event import AssistantEvent, Event, ToolUseEvent
from nightherd.model.secrets import Secrets

CUT_OFF = "cut_off"
"""In `extra` of the line that holds the text of an answer that was cut off."""


class TextDelta(msgspec.Struct, frozen=True, kw_only=True):
    """A piece of an answer, masked. Pieces of one part follow each other without a gap."""

    epoch: int
    after: int
    """The last event on record when the piece was written."""
    part: int
    """Counts the texts that an execution streams; an answer may hold several."""
    at: int
    """Characters of the part before this piece."""
    text: str


class LivePart:
    """One text that is coming in, masked as it comes."""

    def __init__(self, number: int, block: int, secrets: Secrets) -> None:
        self.number = number
        self.block = block
        """Its place in the answer, by the runtime's count."""
        self.length = 0
        """Characters that may be shown of it so far."""
        self._pieces: list[str] = []
        self._rest = ""
        self._secrets = secrets

    @property
    def text(self) -> str:
        """What may be shown of it so far."""
        return "".join(self._pieces)

    def add(self, text: str) -> str:
        """Take more text; what may be shown now. A tail that may be the beginning of a secret is held back."""
        rest = self._rest + text
        cut = len(rest) if self._secrets.pattern is None else safe_length(rest, self._secrets)
        self._rest = rest[cut:]
        return self._keep(rest[:cut])

    def finish(self) -> str:
        """Take the end of the text; what was held back may be shown, masked."""
        rest, self._rest = self._rest, ""
        return self._keep(rest)

    def _keep(self, text: str) -> str:
        shown = str(self._secrets.mask(text))
        if shown:
            self._pieces.append(shown)
            self.length += len(shown)
        return shown


def safe_length(text: str, secrets: Secrets) -> int:
    """Return how much of `text` can be masked now: whatever follows, no secret reaches across that place."""
    if secrets.pattern is None:
        return len(text)
    longest = max(map(len, secrets.names))
    starts = range(max(len(text) - longest + 1, 0), len(text))
    hold = next((start for start in starts if _may_grow(text[start:], secrets)), len(text))
    for match in secrets.pattern.finditer(text):
        if match.start() >= hold:
            break
        if match.end() > hold:
            return match.end()
    return hold


def _may_grow(tail: str, secrets: Secrets) -> bool:
    """Whether `tail` is the beginning of a secret, and not all of it."""
    return any(len(value) > len(tail) and value.startswith(tail) for value in secrets.names)


def is_about_answer(event: Event) -> bool:
    """Whether the event records (a part of) an answer of the agent itself, whole or cut off."""
    if event.parent_tool_use_id is not None:
        return False
    if isinstance(event, AssistantEvent):
        return bool(event.content) or event.end or is_cut_off(event)
    return isinstance(event, ToolUseEvent)


def cut_off_event(texts: Sequence[str]) -> AssistantEvent | None:
    """Return the line that keeps the texts of an answer that was cut off; None when there is no text.

    It belongs to no turn and to no message: it is never history.
    """
    text = "\n\n".join(text for text in texts if text)
    return AssistantEvent(content=text, partial=True, extra={CUT_OFF: True}) if text else None


def is_cut_off(event: Event) -> bool:
    """Whether the event holds the text of an answer that was cut off."""
    return (
        isinstance(event, AssistantEvent)
        and event.partial is True
        and (event.extra or {}).get(CUT_OFF) is True
    )


def unrecorded_texts(deltas: Iterable[TextDelta], events: Iterable[Event]) -> list[str]:
    """Return the texts that `deltas` hold and that no later event of the job has, part by part.

    A writer that was killed right after it had recorded an answer leaves its deltas behind.
    """
    texts: dict[int, str] = {}
    after = 0
    for delta in deltas:
        known = texts.get(delta.part, "")
        if delta.at != len(known):
            continue
        texts[delta.part] = known + delta.text
        after = delta.after
    for event in events:
        if event.seq <= after or not is_about_answer(event):
            continue
        if not isinstance(event, AssistantEvent) or event.end or event.partial:
            return []
        content = event.content or ""
        texts = {part: text for part, text in texts.items() if not content.startswith(text)}
    return list(texts.values())
