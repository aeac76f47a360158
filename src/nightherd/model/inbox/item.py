"""InboxItem: one thing that waits for a person, and the answers to it.

Items and answers are the only truth about who decided what. An item is pending until one answer decides it, it
expires, or what it asks about ends or changes.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from datetime import datetime
from enum import StrEnum
from hashlib import sha256
from typing import Any, NewType

import msgspec

from nightherd.errors import InvalidValueError
from nightherd.model.ids import JobId
from nightherd.model.lifecycle import Lifecycle

ItemId = NewType("ItemId", str)

ITEM_ID = re.compile(r"ask-[0-9a-f]{12}")
TITLE_LIMIT = 200
"""Characters of a title; the whole text stands apart, lists never read it."""


class ItemKind(StrEnum):
    """What a person is asked for."""

    APPROVAL = "approval"
    """May this call run?"""
    QUESTION = "question"
    """A question of the agent."""
    LIMIT = "limit"
    """The job met a limit: raise it?"""
    FAILURE = "failure"
    """The job failed, or an error stopped it: try again?"""
    RELOAD = "reload"
    """A changed fleet file gives agents more: accept it?"""


ABOUT_CALLS = frozenset({ItemKind.APPROVAL, ItemKind.QUESTION})
"""Items about a call of a job: the job waits for all of them."""


class ItemStatus(StrEnum):
    """Where an item stands."""

    PENDING = "pending"
    APPROVED = "approved"
    REJECTED = "rejected"
    ANSWERED = "answered"
    """Replied to, raised, retried, dismissed or accepted."""
    EXPIRED = "expired"
    SUPERSEDED = "superseded"
    """Something newer is asked instead, or what it asked for was done elsewhere."""
    CANCELLED = "cancelled"
    """What it was about ended."""


ITEM_LIFECYCLE = Lifecycle(
    "inbox item",
    {
        ItemStatus.PENDING: frozenset(ItemStatus) - {ItemStatus.PENDING},
        **{status: frozenset() for status in ItemStatus if status is not ItemStatus.PENDING},
    },
)


class Verdict(StrEnum):
    """What an answer says."""

    APPROVE = "approve"
    REJECT = "reject"
    REPLY = "reply"
    RAISE = "raise"
    RETRY = "retry"
    DISMISS = "dismiss"
    ACCEPT = "accept"
    COMMENT = "comment"
    """Decides nothing."""


VERDICTS: Mapping[ItemKind, frozenset[Verdict]] = {
    ItemKind.APPROVAL: frozenset({Verdict.APPROVE, Verdict.REJECT}),
    ItemKind.QUESTION: frozenset({Verdict.REPLY, Verdict.REJECT}),
    ItemKind.LIMIT: frozenset({Verdict.RAISE, Verdict.REJECT}),
    ItemKind.FAILURE: frozenset({Verdict.RETRY, Verdict.DISMISS}),
    ItemKind.RELOAD: frozenset({Verdict.ACCEPT, Verdict.REJECT}),
}
"""The answers that decide an item of each kind. A comment is always possible and never decides."""

STATUS_OF_VERDICT: Mapping[Verdict, ItemStatus] = {
    Verdict.APPROVE: ItemStatus.APPROVED,
    Verdict.REJECT: ItemStatus.REJECTED,
    Verdict.REPLY: ItemStatus.ANSWERED,
    Verdict.RAISE: ItemStatus.ANSWERED,
    Verdict.RETRY: ItemStatus.ANSWERED,
    Verdict.DISMISS: ItemStatus.ANSWERED,
    Verdict.ACCEPT: ItemStatus.ANSWERED,
}


class OnExpiry(StrEnum):
    """What happens when nobody answers in time."""

    REJECT = "reject"
    """The call is refused, and the job continues."""
    FAIL = "fail"
    """The job fails."""


class InboxItem(msgspec.Struct, frozen=True, kw_only=True):
    """An item's row: everything a list shows, nothing unbounded."""

    id: ItemId
    kind: ItemKind
    status: ItemStatus
    created_at: datetime
    subject: str
    """What it is about: the id of a job, or a fleet file."""
    title: str
    """What is asked, on one line."""
    dedupe_key: str
    """There is one item for each key; the id is made from it."""
    hash: str = ""
    """Of what would happen on yes: an answer given for something else does not count."""
    epoch: int = 0
    """The execution of the job that asked."""
    job_id: JobId | None = None
    agent: str | None = None
    schedule: str | None = None
    tool: str | None = None
    tool_use_id: str | None = None
    quorum: int = 1
    """How many different people have to approve."""
    expires_at: datetime | None = None
    on_expiry: OnExpiry = OnExpiry.REJECT
    decided_at: datetime | None = None
    decided_by: str | None = None
    decided_via: str | None = None
    """Where the answer came from: `cli`, `dashboard`, `api`, `library`, `link`, `expiry` ..."""
    verdict: Verdict | None = None
    workflow_run_id: str | None = None
    """The workflow run that asks, or that failed."""
    node_id: str | None = None
    """The gate of that run."""
    number: int = 0
    """Place in the order of asking, and the cursor of lists."""

    @property
    def is_pending(self) -> bool:
        """Whether a person is waited for."""
        return self.status is ItemStatus.PENDING


class InboxTexts(msgspec.Struct, frozen=True, kw_only=True):
    """The unbounded part of an item, kept apart from its row: lists never read it."""

    item_id: ItemId
    body: Mapping[str, Any] = msgspec.field(default_factory=dict)
    """What is shown: `input` and `preview` of a call, `question` and `options`, `error` and `limits` of a job."""
    terms: Mapping[str, Any] = msgspec.field(default_factory=dict)
    """`approvers`: who may answer, none for everybody who may use the fleet. `remind_s`: when people are reminded."""
    reply: str | None = None
    """What the deciding answer says."""
    input: Mapping[str, Any] | None = None
    """The arguments to use instead of the agent's, where the approval changed them."""

    @property
    def approvers(self) -> Sequence[str]:
        """Who may answer; empty for everybody who may use the fleet."""
        return tuple(self.terms.get("approvers", ()))

    @property
    def remind_s(self) -> Sequence[float]:
        """Seconds after asking at which people are reminded."""
        return tuple(self.terms.get("remind_s", ()))


class InboxAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """One answer of one person, kept whether it decided or not."""

    id: str
    """`ITEM.NUMBER`."""
    item_id: ItemId
    at: datetime
    by: str
    via: str
    verdict: Verdict
    text: str | None = None
    number: int = 1


class InboxQuery(msgspec.Struct, frozen=True, kw_only=True):
    """Which items a list shows: newest first, those before the item with the number `before`, at most `limit`."""

    is_pending: bool = True
    """Only what waits; else only what has been decided or is over."""
    kind: ItemKind | None = None
    agent: str | None = None
    before: int | None = None
    limit: int = 20


class Asked(msgspec.Struct, frozen=True, kw_only=True):
    """What a person is to be asked: an item with its texts, not yet numbered."""

    item: InboxItem
    texts: InboxTexts


def item_id(dedupe_key: str) -> ItemId:
    """Return the id of the item with that key: the same for every try to ask the same."""
    return ItemId(f"ask-{sha256(dedupe_key.encode()).hexdigest()[:12]}")


def parse_item_id(text: str) -> ItemId:
    """`text` as the id of an item, or `InvalidValueError`."""
    if ITEM_ID.fullmatch(text) is None:
        raise InvalidValueError(f"{text!r} is not the id of an inbox item (ask-xxxxxxxxxxxx)")
    return ItemId(text)


def call_key(job_id: JobId, tool_use_id: str, attempt: int = 1) -> str:
    """Return the key of the item about a call; `attempt` counts how often it had to be asked again."""
    return f"call:{job_id}:{tool_use_id}" + (f":{attempt}" if attempt > 1 else "")


def call_hash(tool: str, input: Mapping[str, Any], preview: str | None = None) -> str:
    """Return the hash of exactly that call; `preview` is what it would change, as far as it can be seen."""
    text = json.dumps([tool, input, preview], sort_keys=True, ensure_ascii=False, default=str)
    return sha256(text.encode(errors="surrogatepass")).hexdigest()


def decided_text(item: InboxItem) -> str:
    """Say who decided the item, where and when; or why nobody can any more."""
    if item.decided_by is None:
        return f"{item.id} is {item.status.value}"
    when = f"{item.decided_at:%Y-%m-%d %H:%M:%S} UTC" if item.decided_at is not None else "before"
    return f"{item.id} was {item.status.value} by {item.decided_by} ({item.decided_via}) at {when}"
