"""The journal of one job as a file for others."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from nightherd.model.ids import JobId
from nightherd.ports import Journals
from nightherd.views.jobs.events import event_document, whole_event


def journal_lines(job_id: JobId, journals: Journals) -> Iterator[str]:
    """Yield the lines of a journal that count, each with its bodies."""
    for event in journals.read(job_id):
        document = event_document(whole_event(journals, event))
        yield msgspec.json.encode(document).decode() + "\n"
