"""Last Light's event logs as events of ours: one file for a session, divided among the executions that were in it.

Its lines have the shape of Claude's transcripts. Lines we have no word for become warnings with their text, and so do
lines that are not JSON, which are reported too.
"""

from __future__ import annotations

import json
from bisect import bisect_right
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from datetime import datetime
from pathlib import Path
from typing import Any

from msgspec.structs import replace

from nightherd.engine.imports.context import Report, Unreadable
from nightherd.errors import InvalidValueError
from nightherd.imports.claude import ClaudeFile
from nightherd.imports.claude_lines import lenient
from nightherd.imports.claude_turns import Entry, answer_events, user_events
from nightherd.imports.herdctl_events import usage_of
from nightherd.imports.lines import (
    Line,
    instant,
    opened,
    read_lines,
    read_object,
    reason_of,
    shown,
    too_long,
)
from nightherd.model.journal.event import AssistantEvent, Event, describe
from nightherd.model.journal.system import Complete, Warned
from nightherd.model.units import parse_usd
from nightherd.model.usage import NOTHING_USED

PROJECTS = Path("agent-sessions") / "projects"
"""Where the logs are, below the state directory."""
LISTED = 20
"""Bad lines of one file that are listed; all of them are kept."""
TOTALS = {
    "total_input_tokens": "input_tokens",
    "total_output_tokens": "output_tokens",
    "total_cache_read_input_tokens": "cache_read_input_tokens",
    "total_cache_creation_input_tokens": "cache_creation_input_tokens",
}
"""What a result calls the tokens that were used."""

OnUnreadable = Callable[[Unreadable], None]


def find_logs(root: Path, report: Report) -> dict[str, ClaudeFile]:
    """Return every event log below a state directory by its path there; what cannot be read is put on the report."""
    found: dict[str, ClaudeFile] = {}
    for path in sorted((root / PROJECTS).rglob("*.jsonl")):
        name = path.relative_to(root / PROJECTS).as_posix()
        try:
            status = path.stat()
            with opened(path):
                pass
        except OSError as error:
            report.unreadable.append(Unreadable(file=shown(path), reason=reason_of(error)))
            continue
        if "\\" in name or not name.isprintable():
            report.skip(shown(path), "its name cannot be one of a copy")
            continue
        found[name] = ClaudeFile(
            path=path, name=name, size=status.st_size, modified_ns=status.st_mtime_ns
        )
    return found


def session_logs(files: Sequence[ClaudeFile], report: Report) -> dict[str, ClaudeFile]:
    """Return the log of each session by its id; of several the longest, and the others are put on the report."""
    logs: dict[str, ClaudeFile] = {}
    for file in files:
        is_own = file.name.count("/") == 1 and not file.path.name.startswith("agent-")
        if not is_own:
            continue  # a sub-agent's, of which the copy is all that is kept
        known = logs.setdefault(file.path.stem, file)
        if known is not file:
            shorter, longer = sorted((known, file), key=lambda one: (one.size, one.source))
            report.skip(shorter.source, f"{longer.source} is a longer log of the same session")
            logs[file.path.stem] = longer
    return logs


class SessionLog:
    """The log of one session. A line belongs to the execution that began last before it was written."""

    def __init__(self, path: Path, starts: Sequence[datetime]) -> None:
        self._path = path
        self._starts = starts
        self._places: list[int] | None = None

    def events(self, part: int, on_unreadable: OnUnreadable) -> Iterator[Event]:
        """Yield what was said in one of its executions."""
        translator = Translator(self._path, on_unreadable)
        try:
            places = self._first_lines()
            end = places[part + 1] if part + 1 < len(places) else None
            for line in read_lines(self._path):
                if end is not None and line.number >= end:
                    return
                if line.number >= places[part]:
                    yield from translator.translate(line)
        except OSError as error:
            on_unreadable(Unreadable(file=shown(self._path), reason=reason_of(error)))

    def _first_lines(self) -> list[int]:
        """The line that each execution's part begins with."""
        if self._places is None:
            self._places = [1]
            for line in read_lines(self._path) if len(self._starts) > 1 else ():
                part = bisect_right(self._starts, at) - 1 if (at := _written_at(line)) else 0
                while len(self._places) <= part:
                    self._places.append(line.number)
            # Those of which nothing was written are after the end.
            last = 2**62
            self._places += [last] * (len(self._starts) - len(self._places))
        return self._places


def _written_at(line: Line) -> datetime | None:
    try:
        found = read_object(line.text or b"").get("timestamp")
    except ValueError:
        return None
    return instant(found if isinstance(found, str) else None)


class Translator:
    """Translates the lines of one file."""

    def __init__(self, path: Path, on_unreadable: OnUnreadable) -> None:
        self._path = path
        self._on_unreadable = on_unreadable
        self._bad = 0
        self._turn = 0
        self._answer: str | None = None

    def translate(self, line: Line) -> Iterator[Event]:
        """Yield the events of a line: none only for one that is blank."""
        if line.text is None:
            yield self._bad_line(line, too_long(), "")
            return
        if not line.text.strip():
            return
        text = line.text.decode("utf-8", "replace")
        try:
            value = read_object(line.text)
        except ValueError as error:
            yield self._bad_line(line, reason_of(error), text)
            return
        events = list(self._events(value))
        yield from events or [_noted(value, "unknown_line", text)]

    def _bad_line(self, line: Line, reason: str, text: str) -> Event:
        self._bad += 1
        if self._bad <= LISTED:
            torn = "" if line.is_ended else "; it is not finished"
            self._on_unreadable(
                Unreadable(file=shown(self._path), line=line.number, reason=f"{reason}{torn}")
            )
        return describe(Warned(code="malformed", raw=reason), text)

    def _events(self, value: dict[str, Any]) -> Iterator[Event]:
        entry = lenient(value, Entry)
        match value.get("type"):
            case "assistant" if value.get("isApiErrorMessage") is True:
                yield _noted(value, "api_error", _error_text(value))
            case "assistant":
                events = list(answer_events([entry], self._turn + 1))
                self._turn += bool(events)
                texts = [one.content for one in events if isinstance(one, AssistantEvent)]
                self._answer = next((text for text in reversed(texts) if text), self._answer)
                yield from events
            case "user":
                yield from user_events(entry, self._turn)
            case "result":
                yield _result(value, self._answer)
            case _:
                return


def _noted(value: dict[str, Any], code: str, text: str) -> Event:
    return _stamped(describe(Warned(code=code), text), value)


def _stamped(event: Event, value: dict[str, Any]) -> Event:
    found = value.get("timestamp")
    return replace(event, timestamp=instant(found if isinstance(found, str) else None))


def _error_text(value: dict[str, Any]) -> str:
    error = value.get("error")
    return error if isinstance(error, str) else json.dumps(value, ensure_ascii=False)


def _result(value: dict[str, Any], answer: str | None) -> Event:
    """The end of a run. Its text is kept only when it is not simply the last answer."""
    usage = usage_of({ours: value.get(theirs) for theirs, ours in TOTALS.items()})
    cost = value.get("total_cost_usd")
    if isinstance(cost, int | float) and not isinstance(cost, bool):
        with suppress(InvalidValueError):
            usage = replace(usage or NOTHING_USED, cost_microusd=parse_usd(cost))
    text, reason = value.get("result"), value.get("stop_reason") or value.get("subtype")
    complete = Complete(
        summary=text if isinstance(text, str) and text and text != answer else None,
        usage=usage,
        stop_reason=reason if isinstance(reason, str) else None,
    )
    return _stamped(describe(complete), value)
