"""Outlines: the outline of one job as its journal is now, whatever the index knows of it yet."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import msgspec

from nightherd.errors import StateError
from nightherd.index.file import open_index_for_reading
from nightherd.index.indexer import Indexer
from nightherd.index.store import IndexStore
from nightherd.model.ids import JobId
from nightherd.model.index.fold import extend
from nightherd.model.index.outline import EMPTY, Outline
from nightherd.ports import Journals

KEPT_AFTER = 2_000
"""When so many events are not indexed yet, the one who asks indexes them, so that the next one need not."""


class IndexedOutlines:
    """Outlines of the jobs of one state directory; from any thread."""

    def __init__(self, root: Path, journals: Journals, open_indexer: Callable[[], Indexer]) -> None:
        self._root = root
        self._journals = journals
        self._open_indexer = open_indexer

    def outline(self, job_id: JobId) -> Outline:
        """Return the outline of the job's journal as far as it goes now; an empty one without a journal.

        Costs the same for any journal that is indexed. Without an index, or with one that cannot be used, the
        answer is the same and takes longer. `JournalError` when the journal cannot be read.
        """
        last = self._journals.last(job_id, 1)
        if not last:
            return EMPTY
        kept = self._kept(job_id, last[-1].seq)
        if last[-1].seq - kept.last_seq > KEPT_AFTER and self._index(job_id):
            kept = self._kept(job_id, last[-1].seq)
        if kept.last_seq == last[-1].seq:
            return kept
        return extend(kept, self._journals.read(job_id, after=kept.last_seq, load_blobs=False))

    def _kept(self, job_id: JobId, last_seq: int) -> Outline:
        """Return what the index has of the job; nothing when that is of another journal."""
        try:
            database = open_index_for_reading(self._root)
            if database is None:
                return EMPTY
            with closing(database):
                outline = IndexStore(database).find_job(job_id).outline
        except (StateError, msgspec.DecodeError):
            return EMPTY  # whoever writes the index finds the same, reports it and makes it again
        return outline if outline.last_seq <= last_seq else EMPTY

    def _index(self, job_id: JobId) -> bool:
        """Index the job; False when that cannot be done here."""
        try:
            with closing(self._open_indexer()) as indexer:
                while indexer.index_job(job_id):
                    pass
        except StateError:
            return False  # a full disk, or a directory that is only for reading
        return True
