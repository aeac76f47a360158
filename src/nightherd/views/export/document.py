"""Our own export: everything on record about a session, from which another fleet can go on
(docs/formats/session-export.md)."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from nightherd.views.conversation import Segment
from nightherd.views.events import event_document, with_full_output
from nightherd.views.export.exported import Exported
from nightherd.views.jobs import job_row, timestamp
from nightherd.views.sessions import session_row

SCHEMA = "nightherd/v1/session_export"
VERSION = 1


def as_document(exported: Exported) -> Iterator[str]:
    """One JSON object; an event a line, so that it can be read and compared."""
    head = {
        "schema": SCHEMA,
        "as_of": timestamp(exported.at),
    }
    yield _json(head)[:-1] + ',"data":{'
    yield f'"version":{VERSION},"nightherd_version":{_json(exported.version)},\n'
    yield f'"session":{_json(session_row(exported.session))},\n'
    yield f'"ancestors":{_json([session_row(one) for one in exported.ancestors])},\n"jobs":['
    for place, part in enumerate(exported.parts):
        yield "," if place else ""
        yield from _job(exported, part)
    yield "]}}\n"


def _job(exported: Exported, part: Segment) -> Iterator[str]:
    row = job_row(exported.jobs[part.job.id])
    yield "\n" + _json({"job": row, "upto": part.upto})[:-1] + ',"events":['
    lead = "\n"
    for event in exported.journals.read(part.job.id):
        if part.upto is not None and event.seq > part.upto:
            break
        yield lead + _json(event_document(with_full_output(exported.journals, event)))
        lead = ",\n"
    yield "]}"


def _json(value: object) -> str:
    return msgspec.json.encode(value).decode()
