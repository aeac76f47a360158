"""What waits for a person, as a message with buttons; and as it stands once somebody has answered."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import msgspec

from nightherd.model.chat.files import shown_name
from nightherd.model.chat.platform import LIMITS, Platform
from nightherd.model.chat.prompt import author
from nightherd.model.inbox.item import (
    ITEM_ID,
    InboxAnswer,
    InboxItem,
    InboxTexts,
    ItemId,
    ItemKind,
    ItemStatus,
    Verdict,
)
from nightherd.model.limits.limits import LimitName, shown
from nightherd.model.text import neutralise, shorten

BUTTON = "item"
"""How the id of a button of an item begins."""
LABEL_LIMIT = 75
BODY_LIMITS = {Platform.SLACK: 2_000, Platform.DISCORD: 1_000, Platform.TERMINAL: 20_000}
"""Characters of a call or a question that are shown."""
MOST_COMMENTS = 5
COMMENT_LIMIT = 200
MORE = "Answer..."
HEADINGS = {
    ItemKind.APPROVAL: "Approval needed",
    ItemKind.QUESTION: "Question",
    ItemKind.LIMIT: "A limit was reached",
    ItemKind.FAILURE: "Something went wrong",
}
"""The kinds of items that are shown in chat."""
ENDINGS = {
    ItemStatus.APPROVED: "\N{WHITE HEAVY CHECK MARK} Approved",
    ItemStatus.REJECTED: "\N{CROSS MARK} Rejected",
    ItemStatus.ANSWERED: "\N{WHITE HEAVY CHECK MARK} Answered",
    ItemStatus.EXPIRED: "Expired without an answer.",
    ItemStatus.SUPERSEDED: "No longer needed.",
    ItemStatus.CANCELLED: "No longer needed.",
}
_FENCE = re.compile(r"`{3,}")


class ItemPost(msgspec.Struct, frozen=True, kw_only=True):
    """The text of a post about an item, and its buttons as documents of `ports.chat.Button`."""

    text: str
    buttons: Sequence[Mapping[str, Any]] = ()

    @property
    def details(self) -> dict[str, Any]:
        """The details of the post: see `PostTexts.details`."""
        return {"buttons": [dict(one) for one in self.buttons]} if self.buttons else {}


class ItemButton(msgspec.Struct, frozen=True, kw_only=True):
    """What a button of an item says."""

    item_id: ItemId
    verdict: Verdict
    value: str = ""
    """The number of an option, or the limit to raise with its new maximum."""

    @property
    def id(self) -> str:
        """The id of the button."""
        parts = (BUTTON, self.item_id, self.verdict.value, self.value)
        return ":".join(part for part in parts if part)


def parse_button(id: str) -> ItemButton | None:
    """Return what the button says; None for one that is of no item."""
    parts = id.split(":", 3)
    if len(parts) < 3 or parts[0] != BUTTON or ITEM_ID.fullmatch(parts[1]) is None:
        return None
    if parts[2] not in tuple(Verdict):
        return None
    value = parts[3] if len(parts) > 3 else ""
    return ItemButton(item_id=ItemId(parts[1]), verdict=Verdict(parts[2]), value=value)


def item_post(
    item: InboxItem,
    texts: InboxTexts,
    answers: Sequence[InboxAnswer],
    platform: Platform,
    *,
    raised: tuple[LimitName, int] | None = None,
    can_answer: bool = True,
) -> ItemPost:
    """Return the post about an item as it is now.

    `raised` is the limit that can be raised, and the maximum that is offered. Without `can_answer` nobody may
    answer in the place, and there are no buttons.
    """
    heading = f"**{HEADINGS[item.kind]}:** {_code(item.title)}"
    if not item.is_pending:
        return ItemPost(text="\n".join((heading, *_ending(item, texts))))
    lines = [
        heading,
        *_body(item, texts, BODY_LIMITS[platform]),
        *_terms(item, texts, answers),
        *_comments(answers),
    ]
    if not can_answer:
        lines.append(f"Answer it in the inbox: `{item.id}`")
        return ItemPost(text="\n".join(lines))
    most = LIMITS[platform].buttons
    buttons = tuple(_buttons(item, texts, raised, most))[:most]
    return ItemPost(text="\n".join(lines), buttons=buttons)


def _ending(item: InboxItem, texts: InboxTexts) -> Iterator[str]:
    ending = ENDINGS[item.status]
    if item.decided_by is not None and item.status is not ItemStatus.EXPIRED:
        ending = f"{ending} by {author(item.decided_by)} ({item.decided_via})"
    yield ending
    if texts.reply:
        yield f"> {_one_line(shorten(texts.reply, COMMENT_LIMIT))}"


def _body(item: InboxItem, texts: InboxTexts, limit: int) -> Iterator[str]:
    """What the person has to know to decide."""
    body = texts.body
    if item.job_id is not None:
        yield f"Agent `{item.agent}`, job `{item.job_id}`"
    elif item.node_id is not None:
        phase = item.node_id.removeprefix(f"{item.workflow_run_id}/")
        yield f"Run `{item.workflow_run_id}`, phase `{_one_line(phase)}`"
    if note := body.get("note"):
        yield _one_line(str(note))
    match item.kind:
        case ItemKind.APPROVAL if "input" in body:
            call = body.get("preview") or _call_text(body["input"])
            yield _fenced(str(call), limit, "diff" if body.get("preview") else "")
        case ItemKind.APPROVAL | ItemKind.QUESTION:
            question = neutralise(str(body.get("question") or body.get("summary") or ""))
            if question and _one_line(question) != _one_line(item.title):
                yield _quoted(shorten(question, limit))
            for number, option in enumerate(body.get("options") or (), start=1):
                yield f"{number}. {_one_line(str(option))}"
            if artifact := body.get("artifact"):
                yield _fenced(str(artifact), limit)
        case _:
            error = neutralise(str(body.get("error") or ""))
            if error and _one_line(error) != _one_line(item.title):
                yield _fenced(error, limit)


def _call_text(input: Any) -> str:
    """The arguments of a call, a command as it is typed."""
    if isinstance(input, Mapping) and set(input) <= {"command", "description"}:
        return str(input.get("command", ""))
    return json.dumps(input, ensure_ascii=False, indent=2, default=str)


def _terms(item: InboxItem, texts: InboxTexts, answers: Sequence[InboxAnswer]) -> Iterator[str]:
    if item.quorum > 1:
        names = [author(one.by) for one in answers if one.verdict is Verdict.APPROVE]
        so_far = f": {', '.join(names)} so far" if names else ""
        yield f"{item.quorum} people have to approve{so_far}."
    if texts.approvers:
        yield f"Only {', '.join(author(one) for one in texts.approvers)} may answer."
    if item.expires_at is not None:
        yield f"Expires {item.expires_at:%Y-%m-%d %H:%M} UTC."


def _comments(answers: Sequence[InboxAnswer]) -> Iterator[str]:
    comments = [one for one in answers if one.verdict is Verdict.COMMENT and one.text]
    for one in comments[-MOST_COMMENTS:]:
        yield f"> **{author(one.by)}:** {_one_line(shorten(one.text or '', COMMENT_LIMIT))}"


def _buttons(
    item: InboxItem, texts: InboxTexts, raised: tuple[LimitName, int] | None, most: int
) -> Iterator[Mapping[str, Any]]:
    def button(verdict: Verdict, label: str, value: str = "", **more: bool) -> Mapping[str, Any]:
        id = ItemButton(item_id=item.id, verdict=verdict, value=value).id
        return {"id": id, "label": shorten(label, LABEL_LIMIT), **more}

    match item.kind:
        case ItemKind.APPROVAL:
            yield button(Verdict.APPROVE, "Approve", is_primary=True)
            yield button(Verdict.REJECT, "Reject", is_dangerous=True)
            yield button(Verdict.COMMENT, "Comment...", asks_comment=True)
        case ItemKind.QUESTION:
            options = list(texts.body.get("options") or ())
            # With too many options they are read above, and answered in words.
            for number, option in enumerate(options[: most - 2]):
                yield button(Verdict.REPLY, shown_name(str(option)), f"{number}")
            yield button(Verdict.REPLY, MORE, asks_comment=True, is_primary=not options)
            yield button(Verdict.REJECT, "Reject", is_dangerous=True)
        case ItemKind.LIMIT:
            if raised is not None:
                name, maximum = raised
                label = f"Raise to {shown(name, maximum)}"
                yield button(Verdict.RAISE, label, f"{name.value}={maximum}", is_primary=True)
                yield button(Verdict.RAISE, "Raise...", asks_comment=True)
            yield button(Verdict.REJECT, "Reject", is_dangerous=True)
        case _:
            yield button(Verdict.RETRY, "Retry", is_primary=True)
            yield button(Verdict.DISMISS, "Dismiss")


def _code(text: str) -> str:
    return f"`{_one_line(text).replace('`', '')}`"


def _quoted(text: str) -> str:
    """The text as a quotation: no line of it reads as ours."""
    return "\n".join(f"> {line}" for line in text.split("\n"))


def _one_line(text: str) -> str:
    return " ".join(neutralise(text).split())


def _fenced(text: str, limit: int, language: str = "") -> str:
    """The text as a code block: no fence in it ends the block. A text that is cut off says so."""
    plain = neutralise(text)
    cut = shorten(plain, limit)
    longest = max((len(fence) for fence in _FENCE.findall(cut)), default=2)
    fence = "`" * max(3, longest + 1)
    block = f"{fence}{language}\n{cut}\n{fence}"
    return block if cut == plain else f"{block}\n(cut off here; the inbox shows all of it)"
