"""Codec: one event to one line of JSON and back.

A line that cannot be read is a value, `BadLine`, so that one damaged record never hides the next. A line of
a newer format is an error: guessing what it means would be worse than stopping.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from io import BytesIO

import msgspec

from nightherd.decoding import json_decoder
from nightherd.errors import JournalError
from nightherd.model.journal.event import VERSION, Event
from nightherd.ports import BadLine

LINE_LIMIT = 256 * 1024 * 1024
"""Longest line that is written or read, in bytes; what is longer is reported, never held in memory."""

BOM = b"\xef\xbb\xbf"


class Stamp(msgspec.Struct, frozen=True):
    """The few fields of a line that say whether it counts."""

    v: int = 0
    seq: int = 0
    epoch: int = 0


_encoder = msgspec.json.Encoder()
_event_decoder: msgspec.json.Decoder[Event] = json_decoder(Event)
_stamp_decoder: msgspec.json.Decoder[Stamp] = json_decoder(Stamp)

encode: Callable[[object], bytes] = _encoder.encode
"""The value as compact JSON; raises what msgspec raises. `encode_line` is the careful one."""


def encode_line(event: Event) -> bytes:
    """The event's line with its newline, or `JournalError` when it cannot be one.

    Lone surrogates raise `UnicodeEncodeError`: what to do about them is the caller's decision.
    """
    try:
        line = _encoder.encode(event) + b"\n"
    except UnicodeEncodeError:
        raise
    except (TypeError, ValueError, OverflowError) as error:
        raise JournalError(f"the event cannot be written as JSON: {error}", code="value") from error
    except RecursionError as error:
        raise JournalError("the event is nested too deeply to be written", code="value") from error
    if len(line) > LINE_LIMIT:
        raise JournalError(
            f"the event makes a line of {len(line)} bytes; at most {LINE_LIMIT} are allowed",
            code="size",
        )
    return line


def decode_line(line: bytes, offset: int) -> Event | BadLine:
    """The event of a line (newline or not), or why it is none. `JournalError` for a newer format."""
    if offset == 0:
        line = line.removeprefix(BOM)
    try:
        event = _decode(line)
    except (ValueError, RecursionError) as error:
        _refuse_newer(line, offset)
        return BadLine(offset=offset, length=len(line), reason=str(error))
    if event.v > VERSION:
        raise _newer(event.v, offset)
    if event.v < 1 or event.seq < 1 or event.epoch < 0:
        return BadLine(offset=offset, length=len(line), reason="an event without v, seq or epoch")
    return event


def read_back(line: bytes) -> Event:
    """The event that readers will get from a line about to be written.

    An event can be built with values its type does not allow. Its line would be written and then be
    not an event, so `JournalError` says so before anything is acknowledged.
    """
    try:
        return _event_decoder.decode(line)
    except RecursionError:
        return _decode_on_fresh_stack(line)
    except ValueError as error:
        raise JournalError(f"the event could not be read back: {error}", code="value") from error


def decode_block(block: bytes) -> list[Event] | None:
    """The events of a block of whole lines, or None when a line needs looking at by itself.

    The stamps are not looked at; that the lines hold exactly one object each is.
    """
    try:
        events = _event_decoder.decode_lines(block)
    except (ValueError, RecursionError):
        return None
    # Counted by what iterates over lines: `bytes.count` takes a sixth of the time of decoding.
    return events if len(events) == len(BytesIO(block).readlines()) else None


def decode_stamp(line: bytes) -> Stamp | None:
    """The stamp of a line, much faster than the whole event; None when there is none to be had."""
    try:
        stamp = _stamp_decoder.decode(line)
    except (ValueError, RecursionError):
        return None
    return stamp if stamp.seq > 0 else None


def _decode(line: bytes) -> Event:
    try:
        return _event_decoder.decode(line)
    except RecursionError:
        # How deep a line may nest depends on how deep the stack stands already. The writer may have stood
        # higher up than this reader; on a stack of its own the line is as readable as it was writable.
        return _decode_on_fresh_stack(line)


def _decode_on_fresh_stack(line: bytes) -> Event:
    found: list[Event] = []
    failed: list[ValueError | RecursionError] = []

    def work() -> None:
        try:
            found.append(_event_decoder.decode(line))
        except (ValueError, RecursionError) as error:
            failed.append(error)

    thread = threading.Thread(target=work, name="journal-decode")
    thread.start()
    thread.join()
    if failed:
        raise failed[0]
    return found[0]


def _refuse_newer(line: bytes, offset: int) -> None:
    stamp = decode_stamp(line)
    if stamp is not None and stamp.v > VERSION:
        raise _newer(stamp.v, offset)


def _newer(version: int, offset: int) -> JournalError:
    return JournalError(
        f"the line at byte {offset} has format version {version}; this nightherd reads up to {VERSION}",
        code="version",
        hint="upgrade nightherd to read this journal",
    )
