"""A session as one HTML page that needs nothing else: no script, no font, no picture from anywhere."""

from __future__ import annotations

from collections.abc import Iterator
from html import escape

import msgspec

from nightherd.model.message import Speaker
from nightherd.views.export.exported import Exported, facts_of
from nightherd.views.history import Spoken
from nightherd.views.jobs import timestamp

STYLE = """\
:root { color-scheme: light dark; --line: #8884; --soft: #8881; }
body { font: 16px/1.5 system-ui, sans-serif; max-width: 54rem; margin: 2rem auto; padding: 0 1rem; }
dl { display: grid; grid-template-columns: max-content 1fr; gap: .2rem 1rem; }
dt { opacity: .7; } dd { margin: 0; overflow-wrap: anywhere; }
article { border: 1px solid var(--line); border-radius: .5rem; padding: .5rem 1rem; margin: 1rem 0; }
article.user { background: var(--soft); } article.tool { margin-left: 2rem; }
header { font-size: .85rem; opacity: .7; }
pre { white-space: pre-wrap; overflow-wrap: anywhere; margin: .5rem 0; font: 14px/1.45 ui-monospace, monospace; }
.text { white-space: pre-wrap; overflow-wrap: anywhere; }
.failed { border-color: #c33; } a { color: inherit; }
"""
POLICY = "default-src 'none'; style-src 'unsafe-inline'"
"""Even if something of a stranger's text came through as markup, it could load and run nothing."""


def as_page(exported: Exported) -> Iterator[str]:
    """The whole page."""
    session = exported.session
    title = escape(f"{session.name or session.id}, {session.agent}")
    yield (
        f'<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f'<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{POLICY}">\n'
        f"<title>{title}</title>\n<style>\n{STYLE}</style>\n</head>\n<body>\n"
        f"<h1>{title}</h1>\n<dl>\n"
    )
    for name, value in facts_of(exported):
        yield f"<dt>{name}</dt><dd>{escape(value)}</dd>\n"
    yield "</dl>\n<main>\n"
    for spoken in exported.messages():
        yield from _article(spoken)
    yield "</main>\n</body>\n</html>\n"


def _article(spoken: Spoken) -> Iterator[str]:
    message, number = spoken.message, spoken.number
    failed = any(result.success is False for result in message.results)
    classes = message.speaker.value + (" failed" if failed else "")
    at = timestamp(message.last.timestamp) or ""
    yield f'<article class="{classes}" id="m{number}">\n'
    yield (
        f'<header><a href="#m{number}">{number}</a> {message.speaker.value} '
        f"{escape(at)} {escape(spoken.job_id)}</header>\n"
    )
    if message.speaker is Speaker.TOOL:
        yield f"<pre>{escape(message.text)}</pre>\n"
    elif message.text:
        yield f'<div class="text">{escape(message.text)}</div>\n'
    for call in message.calls:
        given = msgspec.json.format(msgspec.json.encode(call.input), indent=2).decode()
        yield f"<pre><b>{escape(call.tool_name)}</b>\n{escape(given)}</pre>\n"
    yield "</article>\n"
