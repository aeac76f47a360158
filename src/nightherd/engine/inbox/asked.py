"""What a person is shown about a call: masked first, then shortened, so that no half of a secret is left."""

from __future__ import annotations

from datetime import datetime
from typing import Any

import msgspec
from msgspec.structs import replace

from nightherd.model.inbox.item import (
    TITLE_LIMIT,
    Asked,
    InboxItem,
    InboxTexts,
    ItemKind,
    ItemStatus,
    item_id,
)
from nightherd.model.inbox.review import ProposedCall, title_of
from nightherd.model.jobs.job import Job
from nightherd.model.secrets import Secrets
from nightherd.model.text import shorten, whole_value

SHOWN_INPUT = 64 * 1024
"""Characters of a value of a call's input that an item shows; its hash is of all of it."""
SHOWN_BYTES = 4 * SHOWN_INPUT
"""Of all values together."""
SHOWN_PREVIEW = 64 * 1024
"""Characters of a diff that an item shows; its hash is of all of it."""
SHOWN_OPTION = 200
MOST_OPTIONS = 50
"""Answers that a question offers, and characters of each."""


def asked_about(
    call: ProposedCall, *, job: Job, key: str, hash: str, at: datetime, secrets: Secrets
) -> Asked:
    """Return the item about the call, with its texts."""
    shown, terms = _masked(call, secrets), call.terms
    item = InboxItem(
        id=item_id(key),
        kind=ItemKind.APPROVAL if call.question is None else ItemKind.QUESTION,
        status=ItemStatus.PENDING,
        created_at=at,
        subject=job.id,
        title=shorten(title_of(shown), TITLE_LIMIT),
        dedupe_key=key,
        hash=hash,
        epoch=job.epoch,
        job_id=job.id,
        agent=job.agent,
        schedule=job.schedule,
        tool=call.tool,
        tool_use_id=call.tool_use_id,
        quorum=terms.quorum,
        expires_at=None if terms.expires is None else at + terms.expires,
        on_expiry=terms.on_expiry,
    )
    texts = InboxTexts(
        item_id=item.id,
        body=_body(shown),
        terms={
            "approvers": list(terms.approvers),
            "remind_s": [one.total_seconds() for one in terms.remind],
        },
    )
    return Asked(item=item, texts=texts)


def _masked(call: ProposedCall, secrets: Secrets) -> ProposedCall:
    """The call without secrets, and without halves of characters, which no row can hold."""

    def clean(value: Any) -> Any:
        return whole_value(secrets.mask(value))

    question = call.question
    if question is not None:
        options = tuple(clean(list(question.options)))
        question = replace(question, text=clean(question.text), options=options)
    preview = None if call.preview is None else clean(call.preview)
    return replace(call, input=clean(dict(call.input)), preview=preview, question=question)


def _body(call: ProposedCall) -> dict[str, Any]:
    """What is shown, shortened: a person reads no more, and a row is no file."""
    body: dict[str, Any] = {"tool": call.tool, "input": _bounded_input(call.input)}
    if call.note is not None:
        body["note"] = shorten(call.note, SHOWN_OPTION)
    if call.preview is not None:
        body["preview"] = shorten(call.preview, SHOWN_PREVIEW)
    if call.question is not None:
        body["question"] = shorten(call.question.text, SHOWN_INPUT)
        body["options"] = [
            shorten(one, SHOWN_OPTION) for one in call.question.options[:MOST_OPTIONS]
        ]
    return body


def _bounded_input(input: Any) -> Any:
    shown = _bounded(input)
    encoded = msgspec.json.encode(shown, enc_hook=str)
    if len(encoded) <= SHOWN_BYTES:
        return shown
    return {"(too long, cut off)": shorten(encoded.decode(), SHOWN_INPUT)}


def _bounded(input: Any) -> Any:
    """The input with long texts cut off."""
    if isinstance(input, str):
        return shorten(input, SHOWN_INPUT)
    if isinstance(input, dict):
        return {name: _bounded(value) for name, value in input.items()}
    if isinstance(input, list | tuple):
        return [_bounded(value) for value in input]
    return input
