"""Streamed text on a terminal: the pieces of an answer as they come, and then no second copy of it."""

from __future__ import annotations

from msgspec.structs import replace

from nightherd.cli.jobs.event_text import event_text
from nightherd.cli.screen.render import Screen
from nightherd.cli.screen.text import neutralise
from nightherd.model.journal.event import AssistantEvent, Event, ToolUseEvent
from nightherd.model.journal.live_text import TextDelta, is_about_answer, is_cut_off


class StreamedText:
    """Writes pieces and events to one screen, in the order in which they are given."""

    def __init__(self, screen: Screen) -> None:
        self._screen = screen
        self._shown: dict[tuple[int, int], str] = {}
        """What is on the screen of each part whose event has not come, first to last."""
        self.is_in_line = False
        """Whether the last line on the screen is not ended: more of it may come."""

    def piece(self, delta: TextDelta) -> None:
        """Write a piece where the last one ended."""
        part = (delta.epoch, delta.part)
        if part not in self._shown:
            self.end_line()
        self._shown[part] = self._shown.get(part, "") + delta.text
        self._screen.write(neutralise(delta.text))
        self.is_in_line = True

    def event(self, event: Event, *, is_full: bool = False) -> None:
        """Write an event, without the text that is on the screen already."""
        if self._shown and is_about_answer(event):
            event = self._rest_of(event)
            if not self._shown:
                self.end_line()
        text = event_text(event, self._screen.out, is_full=is_full)
        if text is None:
            return
        self.end_line()
        self._screen.show(text)
        self._screen.flush()

    def end_line(self) -> None:
        """Begin a new line, unless the last one is ended."""
        if self.is_in_line:
            self.is_in_line = False
            self._screen.write("\n")

    def _rest_of(self, event: Event) -> Event:
        """Return the event without the text that was streamed; what is missing of that text is written."""
        shown = list(self._shown.items())
        if isinstance(event, ToolUseEvent) or not isinstance(event, AssistantEvent):
            self._shown.clear()
            return event
        content = event.content or ""
        if is_cut_off(event):
            streamed = "\n\n".join(text for _, text in shown)
            self._shown.clear()
            return self._without(event, content, streamed)
        part = next((part for part, text in shown if content.startswith(text)), None)
        streamed = self._shown.pop(part) if part is not None else ""
        is_last = part is not None and part == shown[-1][0]
        if event.end:
            self._shown.clear()
        if part is None or (not is_last and streamed != content):
            return event
        return self._without(event, content, streamed)

    def _without(self, event: AssistantEvent, content: str, streamed: str) -> AssistantEvent:
        if not content.startswith(streamed):
            return event
        if self.is_in_line:
            self._screen.write(neutralise(content[len(streamed) :]))
        replaced: AssistantEvent = replace(event, content=None)
        return replaced
