"""Files that people send along: which are fetched, under what name, and why the others are not."""

from __future__ import annotations

import re
from collections.abc import Sequence
from fnmatch import fnmatchcase

import msgspec

from nightherd.model.chat.incoming import IncomingFile
from nightherd.model.chat.settings import MEGABYTE, AttachmentSettings
from nightherd.model.text import counted, neutralise, shorten

NAME_LIMIT = 80
SHOWN_NAME_LIMIT = 60
UNNAMED = "file"
NO_VOICE = "I cannot listen to voice notes here; please write instead"
NOT_FETCHED = "files are not fetched here"

_UNSAFE = re.compile(r"[^\w.+-]+")


class RefusedFile(msgspec.Struct, frozen=True, kw_only=True):
    """A file that is not fetched."""

    name: str
    why: str
    """As a clause: `it is larger than 10 MB`."""


class SortedFiles(msgspec.Struct, frozen=True, kw_only=True):
    """What becomes of the files of one message."""

    fetched: tuple[IncomingFile, ...] = ()
    voices: tuple[IncomingFile, ...] = ()
    """Voice notes that are turned into text."""
    refused: tuple[RefusedFile, ...] = ()

    @property
    def is_empty(self) -> bool:
        """Whether the agent gets nothing of them."""
        return not self.fetched and not self.voices


NO_FILES = SortedFiles()


def sort_files(
    files: Sequence[IncomingFile], settings: AttachmentSettings | None, *, can_transcribe: bool
) -> SortedFiles:
    """Decide about the files of one message, in their order."""
    fetched: list[IncomingFile] = []
    refused: list[RefusedFile] = []
    voices = tuple(file for file in files if file.is_voice and can_transcribe)
    for file in files:
        if file.is_voice and can_transcribe:
            continue
        why = NO_VOICE if file.is_voice else why_refused(file, settings, len(fetched))
        if why is None:
            fetched.append(file)
        else:
            refused.append(RefusedFile(name=shown_name(file.name), why=why))
    return SortedFiles(fetched=tuple(fetched), voices=voices, refused=tuple(refused))


def why_refused(file: IncomingFile, settings: AttachmentSettings | None, taken: int) -> str | None:
    """Return why a file is not fetched; `taken` files of the message are fetched already."""
    if settings is None:
        return NOT_FETCHED
    kind = file.media_type.partition(";")[0].strip().lower()
    if not any(fnmatchcase(kind, allowed.strip().lower()) for allowed in settings.allowed_types):
        return f"files of type {shown_name(kind or 'unknown')} are not fetched here"
    if file.size > settings.max_bytes:
        return f"it is larger than {settings.max_bytes / MEGABYTE:g} MB"
    if taken >= settings.max_files:
        return f"only {counted(settings.max_files, 'file')} of a message are fetched"
    return None


def refusal_text(refused: Sequence[RefusedFile]) -> str:
    """Return what the person is told about files that are not fetched, in markdown."""
    voices = [NO_VOICE] if any(one.why == NO_VOICE for one in refused) else []
    others = [f"I did not open `{one.name}`: {one.why}" for one in refused if one.why != NO_VOICE]
    return "\n".join(f"{line}." for line in (*voices, *others))


def attachment_path(directory: str, message_id: str, place: int, name: str) -> str:
    """Return where file number `place` of a message is put, below the directory that the job works in.

    No two files have the same path, and no name leads anywhere else.
    """
    return f"{directory.rstrip('/')}/{_safe(message_id)}-{place}-{_safe(name)}"


def shown_name(name: str) -> str:
    """Return the name of a file as it can be shown: on one line, nothing in it that markdown obeys."""
    plain = " ".join(neutralise(name).replace("`", "'").split())
    return shorten(plain, SHOWN_NAME_LIMIT) or UNNAMED


def _safe(name: str) -> str:
    """The name without anything that a shell or a path obeys; its suffix stays where it is long."""
    plain = _UNSAFE.sub("_", name).lstrip(".-") or UNNAMED
    stem, dot, suffix = plain.rpartition(".")
    if len(plain) <= NAME_LIMIT or not dot or len(suffix) > NAME_LIMIT // 4:
        return plain[:NAME_LIMIT]
    return f"{stem[: NAME_LIMIT - len(suffix) - 1]}.{suffix}"
