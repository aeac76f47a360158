"""The screen: the only place that writes. Standard output is data, standard error is talk; text is made safe for a terminal."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from enum import StrEnum
from pathlib import Path
from shlex import quote
from typing import Any, NamedTuple, TextIO

PAGE = 20
"""How many rows a list shows by default."""


def neutralise(text: str) -> str:
    """`text` with everything a terminal would obey spelled out, so that it can only be read."""
    from nightherd.model.text import neutralise

    return neutralise(text)


def one_line(text: str, limit: int | None = None) -> str:
    """`text` made safe, on one line, cut with an ellipsis where it would be longer than `limit`."""
    flat = " ".join(neutralise(text).split())
    if limit is None or len(flat) <= limit:
        return flat
    return flat[: max(limit - 1, 0)].rstrip() + "…"


def local_text(at: datetime, zone: str | None = None) -> str:
    """Return an instant in the zone of that name, else in the local one (`TZ`), with the zone: for a terminal."""
    if zone is None:
        return at.astimezone().strftime("%Y-%m-%d %H:%M:%S %Z")
    from zoneinfo import ZoneInfo  # most commands show no other zone

    return f"{at.astimezone(ZoneInfo(zone)):%Y-%m-%d %H:%M:%S} {zone}"


def relative(at: datetime | None, now: datetime) -> str:
    """How long ago, in one unit; a dash when there is no instant."""
    if at is None:
        return "-"
    seconds = (now - at).total_seconds()
    if abs(seconds) < 1:
        return "now"
    size = _largest_unit(abs(seconds))
    return f"{size} ago" if seconds > 0 else f"in {size}"


def _largest_unit(seconds: float) -> str:
    for unit, length in (("d", 86_400), ("h", 3_600), ("m", 60)):
        if seconds >= length:
            return f"{int(seconds // length)}{unit}"
    return f"{int(seconds)}s"


def next_page(
    command: str, before: int, limit: int, words: Sequence[str] = (), **narrowed: str | None
) -> str:
    """The command that lists what comes after a page, narrowed as that was."""
    given = {**narrowed, "limit": None if limit == PAGE else limit, "before": before}
    options = [f"--{name} {value}" for name, value in given.items() if value is not None]
    return " ".join([command, *map(quote, words), *options])


def length(duration: timedelta | None) -> str:
    """How long something took, as precisely as a person wants it; a dash when it is unknown."""
    from nightherd.model.units import rough_duration  # help shows no durations

    return "-" if duration is None else rough_duration(duration)


GLYPHS = {
    "pending": ("○", "33"),
    "running": ("●", "36"),
    "suspended": ("‖", "33"),
    "lost": ("?", "31"),
    "completed": ("✔", "32"),
    "failed": ("✗", "31"),
    "cancelled": ("⊘", "35"),
    "queued": ("○", "33"),
    "waiting": ("○", "33"),
    "succeeded": ("✔", "32"),
    "skipped": ("↷", "35"),
    "not_run": ("·", "35"),
    "created": ("○", "33"),
    "active": ("●", "36"),
    "paused": ("‖", "32"),
    "expired": ("◌", "35"),
    "idle": ("○", "32"),
    "error": ("✗", "31"),
    "disabled": ("⊘", "35"),
    "working": ("●", "36"),
    "making": ("○", "33"),
    "clean": ("○", "32"),
    "dirty": ("±", "33"),
    "applied": ("✔", "32"),
    "merged": ("✔", "32"),
    "pushed": ("✔", "32"),
    "removing": ("◌", "35"),
    "removed": ("⊘", "35"),
    "starting": ("○", "33"),
    "connected": ("●", "32"),
    "disconnected": ("?", "31"),
    "refused": ("✗", "31"),
    "unavailable": ("✗", "31"),
    "stopped": ("○", "35"),
    "reserved": ("○", "33"),
    "held": ("○", "33"),
    "settling": ("◌", "36"),
    "done": ("✔", "32"),
    "released": ("↷", "33"),
}
"""A sign and an ANSI colour for each status; the word always stands beside them."""

GAP = "  "
DEFAULT_HEIGHT = 24
"""Lines of a terminal that does not say."""
READABLE = 16
"""Characters of a cut text that still say something."""


class ColorChoice(StrEnum):
    """When to colour."""

    AUTO = "auto"
    ALWAYS = "always"
    NEVER = "never"


def wants_color(choice: ColorChoice, environ: Mapping[str, str], is_tty: bool) -> bool:
    """Whether to colour: the option first, then what the environment asks for, then the terminal."""
    if choice is not ColorChoice.AUTO:
        return choice is ColorChoice.ALWAYS
    if environ.get("NO_COLOR"):
        return False
    if any(environ.get(name, "0") not in ("", "0") for name in ("FORCE_COLOR", "CLICOLOR_FORCE")):
        return True
    if environ.get("CLICOLOR") == "0" or environ.get("TERM") == "dumb":
        return False
    return is_tty


class Style(NamedTuple):
    """Marks text with ANSI colours, or leaves it as it is."""

    is_colored: bool

    def _mark(self, text: str, code: str) -> str:
        return f"\x1b[{code}m{text}\x1b[0m" if self.is_colored and text else text

    def bold(self, text: str) -> str:
        return self._mark(text, "1")

    def dim(self, text: str) -> str:
        return self._mark(text, "2")

    def bad(self, text: str) -> str:
        return self._mark(text, "31")

    def good(self, text: str) -> str:
        return self._mark(text, "32")

    def call(self, text: str) -> str:
        return self._mark(text, "36")

    def status(self, status: str) -> str:
        """The status as sign and word, in its colour."""
        glyph, color = GLYPHS[status]
        return self._mark(f"{glyph} {status}", color)


class Screen:
    """Where one invocation writes: `show` is data, `say` is talk, `document` is data for programs."""

    def __init__(
        self,
        out: TextIO,
        err: TextIO,
        environ: Mapping[str, str],
        choice: ColorChoice = ColorChoice.AUTO,
    ) -> None:
        self._out = out
        self._err = err
        self._environ = environ
        self.is_json = False
        self.choose_color(choice)

    def choose_color(self, choice: ColorChoice) -> None:
        """Colour each stream by `choice`; they may be different terminals or none."""
        self.out = Style(wants_color(choice, self._environ, self._out.isatty()))
        self.err = Style(wants_color(choice, self._environ, self._err.isatty()))

    @property
    def is_terminal(self) -> bool:
        """Whether a person reads standard output as it comes."""
        return self._out.isatty()

    @property
    def can_animate(self) -> bool:
        """Whether standard error is a terminal that can redraw a line."""
        return self._err.isatty() and self._environ.get("TERM") != "dumb"

    @property
    def width(self) -> int | None:
        """Columns of the terminal; None when output does not go to a terminal."""
        columns = self._environ.get("COLUMNS", "")
        if columns.isdecimal() and int(columns) > 0:
            return int(columns) if self.is_terminal else None
        try:
            return os.get_terminal_size(self._out.fileno()).columns or None
        except (OSError, ValueError):
            return None

    @property
    def can_redraw(self) -> bool:
        """Whether standard output is a terminal that can redraw lines."""
        return self.is_terminal and self._environ.get("TERM") != "dumb"

    @property
    def height(self) -> int:
        """Lines of the terminal."""
        lines = self._environ.get("LINES", "")
        if lines.isdecimal() and int(lines) > 1:
            return int(lines)
        try:
            return max(os.get_terminal_size(self._out.fileno()).lines, 2)
        except (OSError, ValueError):
            return DEFAULT_HEIGHT

    def redraw(self, lines: Sequence[str], drawn: int) -> None:
        """Replace the `drawn` lines above the cursor with `lines`."""
        up = f"\x1b[{drawn}A" if drawn else ""
        self.write(f"{up}\r\x1b[J" + "".join(f"{line}\n" for line in lines))

    @property
    def talk(self) -> TextIO:
        """Standard error itself, for what redraws its own line."""
        return self._err

    def show(self, text: str = "") -> None:
        """One line or several of data, for people."""
        self._out.write(text + "\n")

    def write(self, text: str) -> None:
        """Write data at once, without waiting for the end of a line."""
        self._out.write(text)
        self._out.flush()

    def write_bytes(self, data: bytes) -> None:
        """Write data byte for byte, for programs; a stream without bytes gets what can be decoded."""
        self._out.flush()
        raw = getattr(self._out, "buffer", None)
        if raw is None:
            self.write(data.decode("utf-8", "backslashreplace"))
            return
        raw.write(data)
        raw.flush()

    def say(self, text: str = "") -> None:
        """One line or several of talk; written at once, dropped when standard error is closed."""
        try:
            self._err.write(text + "\n")
            self._err.flush()
        except BrokenPipeError:
            # What is left in the buffer would fail again when Python ends, and change the exit code.
            nowhere = os.open(os.devnull, os.O_WRONLY)
            os.dup2(nowhere, self._err.fileno())
            os.close(nowhere)

    def document(self, noun: str, data: object, as_of: datetime, **beside: object) -> None:
        """`data` for programs: one line, in the envelope every command shares, `beside` next to it."""
        from nightherd.views.jobs.jobs import timestamp

        # Loaded here, like json below: help, which prints no document, would pay for them too.
        envelope = {"schema": f"nightherd/v1/{noun}", "as_of": timestamp(as_of), "data": data}
        self.line({**envelope, **beside})

    def line(self, value: Mapping[str, Any]) -> None:
        """One JSON object on a line of its own, written at once: a follower waits for it."""
        from json import dumps

        is_unicode = (self._out.encoding or "").lower().replace("-", "") == "utf8"
        self.show(dumps(value, ensure_ascii=not is_unicode, separators=(",", ":")))
        self.flush()

    def flush(self) -> None:
        """Everything shown so far reaches the reader."""
        self._out.flush()

    def when(self, at: datetime | None, now: datetime) -> str:
        """Return an instant relative to now on a terminal, in UTC anywhere else; a dash for None."""
        return relative(at, now) if self.is_terminal else self.time(at)

    def time(self, at: datetime | None, zone: str | None = None) -> str:
        """Return an instant in local time, or in `zone`, on a terminal; in UTC anywhere else; a dash for None."""
        from nightherd.model.text import time_text  # help shows no times

        if at is None:
            return "-"
        return local_text(at, zone) if self.is_terminal else time_text(at)


def table(
    heading: Sequence[str],
    rows: Sequence[Sequence[str]],
    *,
    width: int | None,
    style: Style,
    spare: Sequence[str] = (),
) -> str:
    """Aligned columns; the last one is cut to fit `width`, and a `status` column shows sign and word.

    Where the last has too little room, columns named in `spare` are left out, one after the other.
    """
    names, body = list(heading), [list(row) for row in rows]
    widths = _widths(names, body)
    for name in spare:
        if width is None or _used(widths) + _wanted(names, body) <= width:
            break
        place = names.index(name)
        widths.pop(place)
        for row in (names, *body):
            row.pop(place)
    room = None if width is None else max(width - _used(widths), len(names[-1]))
    lines = [style.bold(_join(names, widths, room, plain=None))]
    lines += [_join(row, widths, room, plain=style) for row in body]
    return "\n".join(lines)


def _widths(heading: Sequence[str], rows: Sequence[Sequence[str]]) -> list[int]:
    """How wide each column is, but for the last."""
    return [max(len(row[column]) for row in (heading, *rows)) for column in range(len(heading) - 1)]


def _used(widths: Sequence[int]) -> int:
    return sum(widths) + len(GAP) * len(widths)


def _wanted(heading: Sequence[str], rows: Sequence[Sequence[str]]) -> int:
    """How much of the last column has to be seen for it to say something."""
    return min(max(len(row[-1]) for row in (heading, *rows)), READABLE)


def _join(
    row: Sequence[str], widths: Sequence[int], room: int | None, *, plain: Style | None
) -> str:
    cells = [cell.ljust(width) for cell, width in zip(row, widths, strict=False)]
    if plain is not None:
        cells = [_colored(cell, plain) for cell in cells]
    last = row[-1]
    if room is not None and len(last) > room:
        last = last[: room - 1] + "…"
    return GAP.join([*cells, last]).rstrip()


def _colored(cell: str, style: Style) -> str:
    """A cell that is a status's sign and word, in the status's colour; padding stays outside of it."""
    glyph, _, word = cell.rstrip().partition(" ")
    if GLYPHS.get(word, ("",))[0] != glyph or not glyph:
        return cell
    return style.status(word) + " " * (len(cell) - len(cell.rstrip()))


def status_cell(status: str) -> str:
    """A status as sign and word, without colour."""
    return f"{GLYPHS[status][0]} {status}"


MODES = {"stdin": "r", "stdout": "w", "stderr": "w"}


def open_closed_streams() -> None:
    """Let every standard stream that is closed lead nowhere.

    Else the next file that is opened gets its number: printed text would be written into the database.
    """
    for name, mode in MODES.items():
        if getattr(sys, name) is None:
            nowhere = Path(os.devnull).open(mode)  # noqa: SIM115 (for as long as the process lives)
            os.set_inheritable(nowhere.fileno(), True)
            setattr(sys, name, nowhere)
