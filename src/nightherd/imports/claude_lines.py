"""The lines of Claude Code's transcripts, and the totals of a whole transcript.

The format is Claude Code's own and changes with it, so only what is needed is looked at, and a field of
another type than expected is as good as absent. A line that is no JSON object is a bad line.
"""

from __future__ import annotations

from collections import OrderedDict
from contextlib import suppress
from datetime import datetime
from typing import Annotated, Any, TypeVar, get_args

import msgspec

from nightherd.decoding import convert, json_decoder
from nightherd.errors import InvalidValueError
from nightherd.imports.lines import (
    Line,
    LineCutter,
    instant,
    is_count,
    read_object,
    reason_of,
    too_long,
)
from nightherd.model.units import FREE, LARGEST, MicroUsd, parse_usd

SYNTHETIC = "<synthetic>"
"""The model of answers that Claude Code made up itself: notices of errors and interruptions."""

SPOKEN = frozenset({"user", "assistant"})
"""The types of lines in which something is said."""

PROMPT_LIMIT = 2_000
"""Characters kept of a first prompt or title; a name is much shorter."""

MESSAGE_MEMORY = 4_096
"""How many message ids are remembered: the lines of one message stand close together."""

LISTED = 20
"""Bad lines of one file that are listed; of the rest, the number."""


class Block(msgspec.Struct, frozen=True):
    """A part of a message."""

    type: str = ""
    text: str | None = None


class Tokens(msgspec.Struct, frozen=True):
    """What the provider said a request took."""

    input_tokens: int = 0
    output_tokens: int = 0
    cache_creation_input_tokens: int = 0
    cache_read_input_tokens: int = 0

    @property
    def total(self) -> int:
        """The size of the conversation after it."""
        return (
            self.input_tokens
            + self.output_tokens
            + self.cache_creation_input_tokens
            + self.cache_read_input_tokens
        )


class Message(msgspec.Struct, frozen=True):
    """What was said."""

    id: str | None = None
    model: str | None = None
    content: str | list[Block] | None = None
    usage: Tokens | None = None


class TranscriptLine(msgspec.Struct, frozen=True, rename="camel"):
    """What of a line counts here."""

    type: str = ""
    timestamp: Annotated[datetime, msgspec.Meta(tz=True)] | None = None
    cwd: str | None = None
    is_sidechain: bool = False
    is_meta: bool = False
    message: Message | None = None
    cost: int | float | None = msgspec.field(default=None, name="costUSD")
    custom_title: str | None = None
    ai_title: str | None = None
    summary: str | None = None


StructT = TypeVar("StructT", bound=msgspec.Struct)

_decoder = json_decoder(TranscriptLine)


def decode(text: bytes) -> TranscriptLine:
    """The line, or `ValueError` when it is no JSON object."""
    try:
        return _decoder.decode(text)
    except (ValueError, RecursionError):
        return lenient(read_object(text), TranscriptLine)


def decode_block(whole: bytes) -> list[TranscriptLine] | None:
    """The lines of a piece of whole lines, or None when one of them has to be looked at by itself."""
    try:
        found = _decoder.decode_lines(whole)
    except (ValueError, RecursionError):
        return None
    return found if len(found) == whole.count(b"\n") else None


def _is_struct(part: Any) -> bool:
    return isinstance(part, type) and issubclass(part, msgspec.Struct)


def lenient(value: dict[str, Any], kind: type[StructT]) -> StructT:
    """As much of `value` as fits; fields of other types than expected count as absent."""
    found: dict[str, Any] = {}
    for field in msgspec.structs.fields(kind):
        given = value.get(field.encode_name, msgspec.UNSET)
        parts = [part for part in get_args(field.type) if _is_struct(part)]
        if field.name == "timestamp":
            found[field.name] = instant(given if isinstance(given, str) else None)
        elif isinstance(given, dict) and parts:
            found[field.name] = lenient(given, parts[0])
        elif isinstance(given, list) and list[Block] in get_args(field.type):
            found[field.name] = [lenient(one, Block) for one in given if isinstance(one, dict)]
        elif given is not msgspec.UNSET:
            with suppress(msgspec.ValidationError):
                found[field.name] = convert(given, field.type)
    return kind(**found)


class Tally:
    """What the lines of a transcript come to, line by line; memory does not grow with their number."""

    def __init__(self) -> None:
        self._cutter = LineCutter()
        self.messages = 0
        self.turns = 0
        self.token_estimate = 0
        self.cost: MicroUsd = FREE
        self.first_at: datetime | None = None
        self.last_at: datetime | None = None
        self.directories: OrderedDict[str, None] = OrderedDict()
        self.has_sidechain = False
        self.bad_lines: list[tuple[int, str]] = []
        self.bad_count = 0
        self._titles: dict[str, str] = {}
        self._seen: OrderedDict[str, None] = OrderedDict()

    @property
    def title(self) -> str | None:
        """What it is called: by a person, by Claude, by a summary, else by its first prompt."""
        order = ("custom", "ai", "summary", "prompt")
        return next((self._titles[kind] for kind in order if kind in self._titles), None)

    def feed(self, block: bytes) -> None:
        """Take note of the lines that end in `block`; read all at once where nothing is odd about them."""
        begun, whole = self._cutter.part(block)
        if begun is not None:
            self.add(begun)
        found = decode_block(whole)
        if found is None:
            for line in self._cutter.split(whole):
                self.add(line)
        else:
            self._cutter.pass_over(len(found))
            for read in found:
                self._add(read)

    def end(self) -> None:
        """Take note of a last line that no newline ended."""
        for line in self._cutter.end():
            self.add(line)

    def add(self, line: Line) -> None:
        """Take note of a line. The end of a file that is still written, or torn, is no bad line."""
        if line.text is None:
            self._bad(line.number, too_long())
        elif line.text.strip():
            try:
                self._add(decode(line.text))
            except ValueError as error:
                if line.is_ended:
                    self._bad(line.number, reason_of(error))

    def _bad(self, number: int, reason: str) -> None:
        self.bad_count += 1
        if len(self.bad_lines) < LISTED:
            self.bad_lines.append((number, reason))

    def _add(self, line: TranscriptLine) -> None:
        at, message = line.timestamp, line.message
        if at is not None:
            if self.first_at is None or self.last_at is None:
                self.first_at = self.last_at = at
            elif at > self.last_at:
                self.last_at = at
            elif at < self.first_at:
                self.first_at = at
        if line.cwd is not None and line.cwd not in self.directories:
            self._add_directory(line.cwd)
        if line.is_sidechain:
            self.has_sidechain = True
            self._spend(line, is_first=self._is_first(message))
        elif message is None or line.type not in SPOKEN:
            self._spend(line, is_first=True)
            self._entitle(line)
        elif line.type == "user":
            self._add_user(message, is_meta=line.is_meta)
        elif message.model != SYNTHETIC:
            self._add_answer(line, message)

    def _add_directory(self, directory: str) -> None:
        if directory and len(self.directories) < LISTED:
            self.directories[directory] = None

    def _add_answer(self, line: TranscriptLine, message: Message) -> None:
        is_first = self._is_first(message)
        self._spend(line, is_first=is_first)
        self.messages += is_first
        self.turns += is_first
        total = message.usage.total if message.usage is not None else 0
        if total and is_count(total):
            self.token_estimate = total

    def _add_user(self, message: Message, *, is_meta: bool) -> None:
        content = message.content
        if isinstance(content, list):
            said = [block for block in content if block.type != "tool_result"]
            self.messages += len(content) - len(said)
            if not said:
                return
            text = " ".join([block.text for block in said if block.text])
        elif content:
            text = content
        else:
            return
        if not is_meta:
            self.messages += 1
            if "prompt" not in self._titles:
                self._begin(text.strip())

    def _begin(self, prompt: str) -> None:
        """What begins with `<` was put in by Claude Code: a command's name, its output, a reminder."""
        if prompt and not prompt.startswith("<"):
            self._titles["prompt"] = prompt[:PROMPT_LIMIT]

    def _entitle(self, line: TranscriptLine) -> None:
        for kind, text in (
            ("custom", line.custom_title if line.type == "custom-title" else None),
            ("ai", line.ai_title if line.type == "ai-title" else None),
            ("summary", line.summary if line.type == "summary" else None),
        ):
            if text and text.strip():
                self._titles[kind] = text.strip()[:PROMPT_LIMIT]

    def _is_first(self, message: Message | None) -> bool:
        """Whether this is the first line of its message; a message is written in several."""
        if message is None or message.id is None:
            return True
        if message.id in self._seen:
            self._seen.move_to_end(message.id)
            return False
        self._seen[message.id] = None
        if len(self._seen) > MESSAGE_MEMORY:
            self._seen.popitem(last=False)
        return True

    def _spend(self, line: TranscriptLine, *, is_first: bool) -> None:
        """Add what the line says it cost; a message is paid once, however many lines it has."""
        if line.cost is None or not is_first:
            return
        try:
            self.cost = MicroUsd(min(self.cost + parse_usd(line.cost), LARGEST))
        except InvalidValueError:
            return  # no amount: nothing is added that was not said
