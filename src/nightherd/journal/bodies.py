"""Bodies: what of an event goes into its line and what goes beside it.

Long texts, large values and binaries become blobs, and lone surrogates, which UTF-8 cannot carry, become
U+FFFD. What was done is noted in `extra` under the reserved key `$journal`, from which `restore` undoes it.
A provider's own `$journal` key is kept inside the note, so `extra` comes back exactly as it was given.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import msgspec

from nightherd.decoding import convert
from nightherd.errors import JournalError
from nightherd.journal.blobs import Blobs, BlobStore
from nightherd.journal.codec import encode, encode_line
from nightherd.model.ids import JobId
from nightherd.model.journal.event import (
    AssistantEvent,
    ErrorEvent,
    Event,
    FullOutput,
    SystemEvent,
    ToolResultEvent,
    ToolUseEvent,
)
from nightherd.model.journal.settings_ref import SettingsRef, settings_ref
from nightherd.model.journal.system import SystemSubtype
from nightherd.model.text import whole_value
from nightherd.ports import BlobRef, Journals

BODY_LIMIT = 64 * 1024
"""Bodies whose JSON is longer than this many bytes go to blobs."""

NOTE = "$journal"

BODY_FIELDS: dict[type[Event], tuple[str, ...]] = {
    SystemEvent: ("content",),
    AssistantEvent: ("content", "thinking"),
    ToolUseEvent: ("input",),
    ToolResultEvent: ("result",),
    ErrorEvent: (),
}

OPEN_BODY: dict[type[Event], str] = {ToolUseEvent: "input", ToolResultEvent: "result"}
"""The bodies that can be anything, not only text."""


class Note(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What the line does not say itself."""

    blobs: dict[str, BlobRef] = {}
    replaced: list[str] = []
    """Fields in which lone surrogates were replaced."""
    given: Any = msgspec.UNSET
    """The value that `extra` had under the reserved key."""
    is_empty: bool = False
    """`extra` was an empty object, not absent."""


class Sealed(msgspec.Struct, frozen=True):
    """An event ready to be written: its line, the event a reader will get, the blobs it needs."""

    line: bytes
    event: Event
    blobs: tuple[BlobRef, ...] = ()


def plain_line(event: Event) -> bytes | None:
    """The line of an event that needs nothing done to it, as nearly all do; None when `seal` has to see it."""
    # JSON brings back neither a binary body nor, unmarked, an `extra` that uses our own key.
    if event.extra is not None and NOTE in event.extra:
        return None
    if isinstance(event, ToolResultEvent) and event.full_output and event.full_output.text:
        return None
    if _exported_settings(event) is not None:
        return None
    open_body = OPEN_BODY.get(type(event))
    if open_body is not None and isinstance(getattr(event, open_body), bytes):
        return None
    try:
        line = encode(event) + b"\n"
    except (TypeError, ValueError, RecursionError):
        return None
    return line if len(line) <= BODY_LIMIT else None


def seal(event: Event, blobs: BlobStore) -> Sealed:
    """The event as line and blobs. Blobs are written before this returns, so before any line names them."""
    event, replaced = scrub(event)
    event, beside = _store_output(event, blobs)
    taken = {name: _store(getattr(event, name), blobs) for name in _large_bodies(event)}
    extra = event.extra
    note = Note(
        blobs=taken,
        replaced=replaced,
        given=extra[NOTE] if extra and NOTE in extra else msgspec.UNSET,
        is_empty=extra == {},
    )
    if not taken and not replaced and note.given is msgspec.UNSET:
        return Sealed(encode_line(event), event, beside)
    bare = {**extra} if extra else {}
    bare[NOTE] = msgspec.to_builtins(note)
    written = msgspec.structs.replace(event, extra=bare, **dict.fromkeys(taken))
    seen = _without_note(event, note)
    return Sealed(encode_line(written), seen, (*taken.values(), *beside))


def restore(event: Event, blobs: BlobStore | None) -> Event:
    """The event as it was given to `seal`; without `blobs`, bodies that are blobs stay away and noted."""
    extra = event.extra
    if not extra or NOTE not in extra:
        return event
    try:
        note = convert(extra[NOTE], Note)
    except msgspec.ValidationError as error:
        raise JournalError(
            f"event {event.seq} has a {NOTE} note that cannot be understood: {error}", code="note"
        ) from error
    if note.blobs and blobs is None:
        return event
    known = BODY_FIELDS[type(event)]
    bodies = {
        name: _load(ref, blobs) for name, ref in note.blobs.items() if name in known and blobs
    }
    return _without_note(msgspec.structs.replace(event, **bodies), note)


def scrub(event: Event) -> tuple[Event, list[str]]:
    """The event with U+FFFD for every lone surrogate, and the fields where there were any."""
    fields = {name: getattr(event, name) for name in event.__struct_fields__}
    changed = {name: whole_value(value) for name, value in fields.items() if _has_surrogate(value)}
    if not changed:
        return event, []
    return msgspec.structs.replace(event, **changed), sorted(changed)


def _has_surrogate(value: Any) -> bool:
    try:
        encode(value)
    except UnicodeEncodeError:
        return True
    except (TypeError, ValueError, RecursionError):
        return False  # not ours to judge; writing the line will say what is wrong
    return False


def _large_bodies(event: Event) -> list[str]:
    names = BODY_FIELDS[type(event)]
    return [name for name in names if _is_large(getattr(event, name))]


def _is_large(value: Any) -> bool:
    if value is None:
        return False
    if isinstance(value, bytes):
        return True
    try:
        return len(encode(value)) > BODY_LIMIT
    except (TypeError, ValueError, RecursionError):
        return False  # encoding the line reports it


def _store(value: Any, blobs: BlobStore) -> BlobRef:
    if isinstance(value, bytes):
        return blobs.put([value], kind="bytes")
    if isinstance(value, str):
        return blobs.put([value.encode()], kind="text")
    return blobs.put([encode(value)], kind="json")


def _store_output(event: Event, blobs: BlobStore) -> tuple[Event, tuple[BlobRef, ...]]:
    """The event with the text of its full output, or its settings, in a blob, as it comes from an export."""
    settings = _exported_settings(event)
    if settings is not None and settings.text is not None and isinstance(event, SystemEvent):
        ref = blobs.put([settings.text.encode()], kind="json")
        named = msgspec.to_builtins(SettingsRef(sha256=ref.sha256, size=ref.size))
        return msgspec.structs.replace(event, extra={**(event.extra or {}), "settings": named}), (
            ref,
        )
    output = event.full_output if isinstance(event, ToolResultEvent) else None
    if output is None or output.text is None:
        return event, ()
    ref = blobs.put([output.text.encode()], kind="text")
    kept = FullOutput(sha256=ref.sha256, size=ref.size, left_out=output.left_out)
    return msgspec.structs.replace(event, full_output=kept), (ref,)


def _exported_settings(event: Event) -> SettingsRef | None:
    if not isinstance(event, SystemEvent) or event.subtype is not SystemSubtype.EXECUTION_STARTED:
        return None
    ref = settings_ref(event.extra)
    return None if ref is None or ref.text is None else ref


def output_ref(output: FullOutput) -> BlobRef:
    """Return which blob has the text."""
    return BlobRef(sha256=output.sha256, size=output.size, kind="text")


def load_output(output: FullOutput, blobs: BlobStore) -> str:
    """Return the whole text, also of an output that has it at hand."""
    return blobs.get(output_ref(output)).decode() if output.text is None else output.text


def _load(ref: BlobRef, blobs: BlobStore) -> Any:
    data = blobs.get(ref)
    match ref.kind:
        case "text":
            return data.decode()
        case "json":
            return msgspec.json.decode(data)
        case _:
            return data


def _without_note(event: Event, note: Note) -> Event:
    """The event with its own `extra` back; that something was replaced stays said, it cannot be undone."""
    extra = {key: value for key, value in (event.extra or {}).items() if key != NOTE}
    if note.given is not msgspec.UNSET:
        extra[NOTE] = note.given
    elif note.replaced:
        extra[NOTE] = {"replaced": note.replaced}
    return msgspec.structs.replace(event, extra=extra if extra or note.is_empty else None)


class BlobCheck:
    """Looks at the blobs of one state directory; a blob that several events share is read once."""

    def __init__(self, directory: Path, journals: Journals) -> None:
        self._blobs = Blobs(directory)
        self._journals = journals
        self._problems: dict[tuple[str, int], str | None] = {}

    def __call__(self, job_id: JobId) -> Iterator[str]:
        """Yield what is wrong with the bodies of the job's events; nothing when all are whole."""
        for event in self._journals.read(job_id, load_blobs=False):
            for name, ref in stored_bodies(event).items():
                key = (ref.sha256, ref.size)
                if key not in self._problems:
                    try:
                        self._blobs.get(ref)
                        self._problems[key] = None
                    except JournalError as error:
                        self._problems[key] = error.message
                problem = self._problems[key]
                if problem is not None:
                    yield f"the {name} of event {event.seq} cannot be read: {problem}"


def stored_bodies(event: Event) -> Mapping[str, BlobRef]:
    """Return the blobs that an event, as readers get it, names; each by the field it belongs to."""
    note = (event.extra or {}).get(NOTE)
    try:
        refs = {} if note is None else convert(note, Note).blobs
    except msgspec.ValidationError:
        refs = {}  # `restore` has read our own note by now: this one is the provider's
    if isinstance(event, ToolResultEvent) and event.full_output is not None:
        return {**refs, "full_output": output_ref(event.full_output)}
    if isinstance(event, SystemEvent) and event.subtype is SystemSubtype.EXECUTION_STARTED:
        settings = settings_ref(event.extra)
        if settings is not None:
            ref = BlobRef(sha256=settings.sha256, size=settings.size, kind="json")
            return {**refs, "settings": ref}
    return refs
