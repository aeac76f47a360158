"""Lines that a person types, with a history that the next conversation has too."""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from types import ModuleType

LONGEST_HISTORY = 1_000
CONTINUES = "\\"
"""At the end of a line: the message goes on in the next one."""


class LineReader:
    """Reads lines from the terminal. What is remembered in the file holds no secret."""

    def __init__(self, history: Path, mask: Callable[[str], str], prompt: str) -> None:
        self._history = history
        self._mask = mask
        self._prompt = prompt
        self._is_reading = False
        self._readline = _readline()
        if self._readline is not None:
            self._readline.set_auto_history(False)
            with suppress(OSError):
                self._readline.read_history_file(str(history))

    def read(self) -> str:
        """Return what the person typed; `EOFError` and `KeyboardInterrupt` as `input` raises them."""
        self._is_reading = True
        try:
            text = input(self._prompt)
            while text.endswith(CONTINUES):
                text = f"{text.removesuffix(CONTINUES)}\n{input('. ')}"
        finally:
            self._is_reading = False
        self._remember(text)
        return text

    def current_line(self) -> str | None:
        """Return what stands in the line that is being typed; None when nothing is read."""
        if not self._is_reading:
            return None
        typed = "" if self._readline is None else self._readline.get_line_buffer()
        return f"{self._prompt}{typed}"

    def _remember(self, text: str) -> None:
        if self._readline is None or not text.strip() or "\n" in text:
            return
        self._readline.add_history(text)
        flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW
        # A history that cannot be written is no reason to end the conversation.
        with suppress(OSError):
            handle = os.open(self._history, flags, 0o600)
            try:
                os.write(handle, f"{self._mask(text)}\n".encode())
            finally:
                os.close(handle)

    def shorten_history(self) -> None:
        """Keep the newest lines of the file."""
        with suppress(OSError):
            lines = self._history.read_text(encoding="utf-8", errors="replace").splitlines()
            if len(lines) > 2 * LONGEST_HISTORY:
                self._history.write_text("\n".join(lines[-LONGEST_HISTORY:]) + "\n")


def _readline() -> ModuleType | None:
    """The module by which lines are edited, where Python has it."""
    try:
        import readline
    except ImportError:
        return None
    return readline
