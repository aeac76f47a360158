"""Output of commands that run for days: that it cannot be written is no reason to end."""

from __future__ import annotations

import errno
from collections.abc import Callable

from nightherd.cli.edge import abandon_output
from nightherd.cli.render import Screen
from nightherd.cli.text import neutralise
from nightherd.wiring.memories import system_clock

PASSING = (errno.ENOSPC, errno.EDQUOT, errno.EAGAIN)
"""A file on a full disk takes more when there is room again; a reader that is gone never does."""


def say(screen: Screen, text: str) -> None:
    """One line of talk."""
    _steadily(lambda: screen.say(neutralise(text)), is_data=False)


def show(screen: Screen, text: str) -> None:
    """One line of data, for people."""

    def write() -> None:
        screen.show(text)
        screen.flush()

    _steadily(write, is_data=True)


def document(screen: Screen, noun: str, data: object) -> None:
    """One document, for programs."""
    _steadily(lambda: screen.document(noun, data, system_clock().now()), is_data=True)


def _steadily(write: Callable[[], None], *, is_data: bool) -> None:
    try:
        write()
    except OSError as error:
        if is_data and error.errno not in PASSING:
            abandon_output()  # nobody listens any more, or the terminal is gone
