"""Blob check: the large bodies of one journal, each compared with the hash it is named for."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

import msgspec

from nightherd.errors import JournalError
from nightherd.journal.blobs import BlobRef, Blobs
from nightherd.journal.bodies import NOTE, Note, output_ref
from nightherd.model.ids import JobId
from nightherd.model.journal.event import Event, ToolResultEvent
from nightherd.ports import Journals


class BlobCheck:
    """Looks at the blobs of one state directory; a blob that several events share is read once."""

    def __init__(self, directory: Path, journals: Journals) -> None:
        self._blobs = Blobs(directory)
        self._journals = journals
        self._problems: dict[tuple[str, int], str | None] = {}

    def __call__(self, job_id: JobId) -> Iterator[str]:
        """Yield what is wrong with the bodies of the job's events; nothing when all are whole."""
        for event in self._journals.read(job_id, load_blobs=False):
            try:
                refs = _refs_of(event)
            except msgspec.ValidationError as error:
                yield f"event {event.seq} has a {NOTE} note that cannot be understood: {error}"
                continue
            for name, ref in refs.items():
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


def _refs_of(event: Event) -> Mapping[str, BlobRef]:
    """The blobs that an event names, each by the field it belongs to."""
    note = (event.extra or {}).get(NOTE)
    refs = {} if note is None else msgspec.convert(note, Note).blobs
    if isinstance(event, ToolResultEvent) and event.full_output is not None:
        return {**refs, "full_output": output_ref(event.full_output)}
    return refs
