"""What a person in the terminal sees of a conversation. A terminal gets answers as they come in, a pipe nothing of them."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from nightherd.cli.screen.render import Screen, neutralise
from nightherd.ports.chat import Button

CLEAR_LINE = "\r\x1b[K"


class StreamView:
    """Shows messages as they are written: what is new at the end of one is added, anything else begins a new line."""

    def __init__(self, screen: Screen, prompt: Callable[[], str | None]) -> None:
        """`prompt` returns the line that the person is typing, with what stands before it; None when nobody is asked."""
        self._screen = screen
        self._prompt = prompt
        self._shown: dict[str, str] = {}
        self._last: str | None = None
        """The message whose line is not ended yet."""

    def show(self, message_id: str, text: str, buttons: Sequence[Button]) -> None:
        """Show a message, or what has become of it."""
        clean = neutralise(text)
        known = self._shown.get(message_id)
        self._shown[message_id] = clean
        line = self._prompt()
        before = CLEAR_LINE if line is not None else ""
        if known is not None and clean.startswith(known) and self._last == message_id:
            self._screen.write(clean[len(known) :])
            return
        rest = clean
        if known is not None and clean.startswith(known):
            rest = clean[len(known) :].lstrip("\n")
        elif known is not None and known.strip() == clean.strip():
            rest = ""
        if rest.strip():
            self._screen.write(f"{before}{self._line_end()}{rest}")
            self._last = message_id
        if buttons:
            self._screen.write(f"{self._line_end()}{buttons_text(buttons)}\n")
        if line is not None:
            self._screen.write(f"{self._line_end()}{line}")

    def end(self) -> None:
        """End the line, so that something else can be written."""
        self._screen.write(self._line_end())

    def _line_end(self) -> str:
        is_open, self._last = self._last is not None, None
        return "\n" if is_open else ""

    def remove(self, message_id: str) -> None:
        """Forget a message."""
        self._shown.pop(message_id, None)

    def file(self, name: str, path: str, text: str) -> None:
        """Say where a file of the agent is."""
        line = self._prompt()
        before = CLEAR_LINE if line is not None else self._line_end()
        said = f"{neutralise(text)}\n" if text.strip() else ""
        mark = self._screen.out.bold(neutralise(name))
        self._screen.write(f"{before}{said}file {mark}: {neutralise(path)}\n{line or ''}")


class QuietView:
    """Remembers what a pipe is not shown before it is whole: buttons and files."""

    def __init__(self) -> None:
        self.files: list[dict[str, str]] = []

    def show(self, message_id: str, text: str, buttons: Sequence[Button]) -> None:
        """Nothing: the answer is written when it is whole."""

    def end(self) -> None:
        """Nothing to end."""

    def remove(self, message_id: str) -> None:
        """Nothing to forget."""

    def file(self, name: str, path: str, text: str) -> None:
        """Remember a file of the agent."""
        self.files.append({"name": name, "path": path})

    def take_files(self) -> list[dict[str, str]]:
        """Return the files since the last time."""
        taken, self.files = self.files, []
        return taken


def buttons_text(buttons: Sequence[Button]) -> str:
    """Return how the buttons of a message are pressed."""
    choices = [f"/{number} {one.label}" for number, one in enumerate(buttons, start=1)]
    has_comment = any(one.asks_comment for one in buttons)
    return neutralise("   ".join(choices) + (" (and what you want to say)" if has_comment else ""))
