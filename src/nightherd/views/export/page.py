"""Exports as one HTML file: the transcript of the dashboard with all it shows. It loads nothing and needs no server."""

from __future__ import annotations

import re
from base64 import b64encode
from collections.abc import Iterator, Mapping, Sequence
from hashlib import sha256
from html import escape
from pathlib import Path

import msgspec

from nightherd.model.ids import JobId
from nightherd.model.jobs.job import Job
from nightherd.model.units import format_usd
from nightherd.ports import Journals
from nightherd.views.export.document import Exported, facts_of
from nightherd.views.jobs.events import event_document, with_full_output
from nightherd.views.jobs.jobs import timestamp

BUILT = Path(__file__).parent / "built"
"""The built script and style (`scripts/web-ui build`)."""
MARKUP = re.compile(r"<(?=!--|/?script)", re.IGNORECASE)
"""What would end or change a script element; in a script it stands only within texts and patterns."""
EVERYTHING = None

Part = tuple[JobId, int | None]
"""A job, and the last event of it that belongs to the export."""


def session_page(exported: Exported) -> Iterator[str]:
    """Yield the page of a session, a piece at a time."""
    session = exported.session
    parts = [(part.job.id, part.upto) for part in exported.parts]
    name = f"{session.name or session.id}, {session.agent}"
    return _page(name, facts_of(exported), parts, exported.journals)


def job_page(job: Job, journals: Journals) -> Iterator[str]:
    """Yield the page of a job, a piece at a time."""
    facts = {
        "job": job.id,
        "agent": job.agent,
        "status": job.status.value,
        "created": timestamp(job.created_at),
        "finished": timestamp(job.finished_at),
        "cost": format_usd(job.cost_microusd),
        "session": job.session_id,
    }
    known = [(name, value) for name, value in facts.items() if value]
    return _page(f"{job.agent}, {job.id}", known, [(job.id, EVERYTHING)], journals)


def _page(
    name: str, facts: Sequence[tuple[str, str]], parts: Sequence[Part], journals: Journals
) -> Iterator[str]:
    script = MARKUP.sub(r"\\x3C", (BUILT / "export.js").read_text("utf-8"))
    style = (BUILT / "export.css").read_text("utf-8")
    yield (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{escape(_policy(script, style))}">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        '<meta name="color-scheme" content="light dark">\n'
        f"<title>{escape(name)}</title>\n<style>{style}</style>\n</head>\n<body>\n"
        '<div id="app"></div>\n<noscript>This page needs JavaScript.</noscript>\n'
        '<script type="application/json" id="journal">'
    )
    yield from _data(name, facts, parts, journals)
    yield f'</script>\n<script type="module">{script}</script>\n</body>\n</html>\n'


def _policy(script: str, style: str) -> str:
    """Only this script and this style are run; what an agent wrote can neither run nor load anything."""
    sources: Mapping[str, str] = {
        "default-src": "'none'",
        "script-src": f"'sha256-{_hash(script)}'",
        "style-src": f"'sha256-{_hash(style)}'",
        "img-src": "data: blob:",
        "base-uri": "'none'",
        "form-action": "'none'",
        "require-trusted-types-for": "'script'",
        "trusted-types": "nightherd dompurify",
    }
    return "; ".join(f"{name} {value}" for name, value in sources.items())


def _hash(text: str) -> str:
    return b64encode(sha256(text.encode()).digest()).decode()


def _data(
    name: str, facts: Sequence[tuple[str, str]], parts: Sequence[Part], journals: Journals
) -> Iterator[str]:
    """What the page shows, as JSON in which nothing is markup."""
    head = {"name": name, "facts": [list(fact) for fact in facts], "ignored": 0}
    yield _json(head)[:-1] + ',"jobs":['
    for place, (job_id, upto) in enumerate(parts):
        yield ("," if place else "") + f'{{"id":{_json(job_id)},"events":['
        lead = ""
        for event in journals.read(job_id):
            if upto is not None and event.seq > upto:
                break
            yield lead + _json(event_document(with_full_output(journals, event)))
            lead = ",\n"
        yield "]}"
    yield "]}"


def _json(value: object) -> str:
    return msgspec.json.encode(value).decode().replace("<", "\\u003c")
