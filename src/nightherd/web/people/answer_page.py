"""`/answer/SECRET`: the page behind an answer link. Looking at it decides nothing; its buttons send the answer.

The secret in the path is all that is needed, and it answers one item once. The page runs no script, is not stored,
and tells no other site where it was.
"""

from __future__ import annotations

from collections.abc import Mapping
from html import escape
from urllib.parse import parse_qs

from fastapi import APIRouter, Request, Response
from starlette.responses import HTMLResponse

from nightherd.engine.notifications.links import PATH
from nightherd.engine.operations.requests import Answer
from nightherd.errors import InvalidValueError, NightherdError
from nightherd.model.inbox.item import ItemKind, Verdict, decided_text
from nightherd.model.inbox.token import AnswerLink, secret_hash
from nightherd.model.text import neutralise
from nightherd.model.units import format_usd
from nightherd.ports import StateReader
from nightherd.views.people.inbox import ShownItem, asked_blocks, show_item, what_happens
from nightherd.web.access.caller import public
from nightherd.web.api_context import ApiContext, OnSite
from nightherd.web.operations import FromSender, perform_for
from nightherd.web.problem import status_of

VIA = "link"
FORM = "application/x-www-form-urlencoded"
GONE, UNKNOWN = 410, 404
MOST_FIELDS = 10
CHOICES: Mapping[ItemKind, tuple[Verdict, Verdict]] = {
    ItemKind.APPROVAL: (Verdict.APPROVE, Verdict.REJECT),
    ItemKind.QUESTION: (Verdict.REPLY, Verdict.REJECT),
    ItemKind.FAILURE: (Verdict.RETRY, Verdict.DISMISS),
    ItemKind.RELOAD: (Verdict.ACCEPT, Verdict.REJECT),
}
"""The two buttons of each kind."""
HEADERS = {
    "cache-control": "no-store",
    "referrer-policy": "no-referrer",
    "content-security-policy": (
        "default-src 'none'; form-action 'self'; frame-ancestors 'none'; base-uri 'none'"
    ),
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    "x-robots-tag": "noindex",
}

router = APIRouter(include_in_schema=False)


@router.get(PATH + "{secret}")
@public
async def look(site: OnSite, secret: str) -> Response:
    """What would happen, and two buttons. Changes nothing."""
    try:
        _, shown = await _open(site, secret)
    except _OverError as error:
        return _page(error.message, error.status)
    return HTMLResponse(_question(shown), headers=HEADERS)


@router.post(PATH + "{secret}")
@public
async def answer(site: OnSite, sender: FromSender, request: Request, secret: str) -> Response:
    """Give the answer that a button stands for."""
    try:
        link, shown = await _open(site, secret)
        fields = _fields(request, await request.body())
        verdict = Verdict(fields.get("verdict", ""))
        if verdict not in CHOICES[shown.item.kind]:
            raise InvalidValueError(f"{verdict.value} is no answer to this")
        asked = Answer(
            item_id=link.item_id,
            verdict=verdict,
            by=link.approver,
            via=VIA,
            text=fields.get("text", "").strip() or None,
            seen_hash=fields.get("seen", ""),
            link=link.id,
        )
        answered = await perform_for(site, sender, asked)
    except _OverError as error:
        return _page(error.message, error.status)
    except NightherdError as error:
        return _page(error.message, status_of(error))
    except ValueError:
        return _page("This is no answer.", 400)
    item = answered.item
    said = (
        f"Recorded as {link.approver}; more people have to approve."
        if item.is_pending
        else (f"{item.status.value}, recorded as {link.approver}.")
    )
    return _page(said[0].upper() + said[1:], 200)


class _OverError(Exception):
    """Why a link shows nothing to decide."""

    def __init__(self, message: str, status: int) -> None:
        super().__init__(message)
        self.message = message
        self.status = status


async def _open(site: ApiContext, secret: str) -> tuple[AnswerLink, ShownItem]:
    """The link, and the item that waits for its answer."""
    now = site.context.clock.now()

    def find(reader: StateReader) -> tuple[AnswerLink, ShownItem] | None:
        link = reader.find_link(secret_hash(secret))
        return (
            None
            if link is None
            else (link, show_item(reader, link.item_id, site.context.artifacts))
        )

    found = await site.ask(find)
    if found is None or found[1].item.kind not in CHOICES:
        raise _OverError("This link answers nothing.", UNKNOWN)
    link, shown = found
    if link.used_at is not None:
        raise _OverError("This link has been used already.", GONE)
    if not shown.item.is_pending:
        raise _OverError(decided_text(shown.item), GONE)
    if link.expires_at <= now:
        raise _OverError("This link has expired.", GONE)
    return found


def _fields(request: Request, body: bytes) -> dict[str, str]:
    if request.headers.get("content-type", "").partition(";")[0].strip().lower() != FORM:
        raise InvalidValueError("the body is not a form")
    found = parse_qs(body.decode(), max_num_fields=MOST_FIELDS)
    return {name: values[0] for name, values in found.items()}


def _question(shown: ShownItem) -> str:
    """The page of an item that waits."""
    item, job = shown.item, shown.job
    effects = what_happens(item)
    facts = [
        ("agent", item.agent),
        ("job", item.job_id),
        ("asked", f"{item.created_at:%Y-%m-%d %H:%M} UTC"),
    ]
    if job is not None:
        facts.append(("cost so far", format_usd(job.cost_microusd)))
    parts = [f"<h1>{_safe(item.title)}</h1>"]
    parts += [f"<p>{_safe(name)}: {_safe(value)}</p>" for name, value in facts if value]
    for label, text in asked_blocks(shown.texts, shown.artifact):
        parts.append(f"<h2>{_safe(label)}</h2><pre>{_safe(text)}</pre>")
    yes, no = CHOICES[item.kind]
    label = "Your answer" if yes is Verdict.REPLY else "Reason or comment (optional)"
    parts.append(
        f'<form method="post" action=""><input type="hidden" name="seen" value="{_safe(item.hash)}">'
        f'<p><label>{label}<br><textarea name="text" rows="3" cols="40" maxlength="10000"></textarea></label></p>'
    )
    for one in (yes, no):
        parts.append(
            f'<p><button name="verdict" value="{one.value}">{one.value.capitalize()}</button> {_safe(effects[one.value])}</p>'
        )
    parts.append(f"</form><p>Without an answer: {_safe(effects['no answer'])}</p>")
    return _document("".join(parts))


def _page(text: str, status: int) -> Response:
    return HTMLResponse(_document(f"<p>{_safe(text)}</p>"), status, headers=HEADERS)


def _document(body: str) -> str:
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8"><meta name="viewport"'
        f' content="width=device-width"><title>nightherd</title></head><body>{body}</body></html>'
    )


def _safe(text: str) -> str:
    """The text as a page shows it: an agent wrote it, and nothing in it is obeyed."""
    return escape(neutralise(text))
