"""Review: a call that a person has to allow, or a question that a person has to answer, and what comes of it."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from typing import Any

import msgspec

from nightherd.model.inbox.item import OnExpiry

ASK_PERSON = "ask_person"
"""The tool by which an agent asks a person."""
CLAUDE_QUESTION = "AskUserQuestion"
"""Claude's own tool for the same."""
APPROVAL = "approval"
"""Code of a job that waits for approval of a call."""
QUESTION = "question"
"""Code of a job that waits for an answer to a question."""
ASKING = frozenset({APPROVAL, QUESTION})
"""Codes of a job that waits for what its own execution asked."""
REPEATED_REJECTIONS = "rejected_repeatedly"
"""Code of a job that failed because its agent kept making a call that was rejected."""
MOST_REPEATS = 10
"""How often an agent may make the same rejected call again before its job fails."""


class ApprovalTerms(msgspec.Struct, frozen=True, kw_only=True):
    """Who may answer, how many have to, and until when."""

    approvers: tuple[str, ...] = ()
    """Names of tokens or chat users; none for everybody who may use the fleet."""
    quorum: int = 1
    expires: timedelta | None = None
    """How long is waited for an answer; None for ever."""
    on_expiry: OnExpiry = OnExpiry.REJECT
    remind: tuple[timedelta, ...] = ()


class ApprovalRule(msgspec.Struct, frozen=True, kw_only=True):
    """Calls that need a person's approval, whatever allows them."""

    tool: str
    """A rule as in `allowed_tools`."""
    terms: ApprovalTerms = ApprovalTerms()


class Question(msgspec.Struct, frozen=True, kw_only=True):
    """What an agent asks a person."""

    text: str
    options: tuple[str, ...] = ()


class ProposedCall(msgspec.Struct, frozen=True, kw_only=True):
    """A call that waits for a person, exactly as it would run."""

    tool_use_id: str
    tool: str
    input: Mapping[str, Any]
    preview: str | None = None
    """What it would change, as far as that can be seen: the diff of an edit."""
    question: Question | None = None
    """Set for a call that asks a person instead of doing something."""
    note: str | None = None
    """What is asked about the call on one line, where it is not whether a rule's call may run."""
    terms: ApprovalTerms = ApprovalTerms()
    is_allowed: bool = False
    """Whether the rules allow it by now: nobody new is asked, but what people were asked before still counts."""


class Proceed(msgspec.Struct, frozen=True, kw_only=True):
    """Run the call now. It is on record as begun: it is never run a second time."""

    input: Mapping[str, Any] | None = None
    """Other arguments than the agent's, where the person changed them."""


class Refuse(msgspec.Struct, frozen=True, kw_only=True):
    """Do not run the call; the agent is given the reason."""

    reason: str


class Replied(msgspec.Struct, frozen=True, kw_only=True):
    """What a person answered to a question: the result of its call."""

    text: str


class Wait(msgspec.Struct, frozen=True):
    """End the run: the job is suspended until a person answers, and the same call is proposed again."""


Verdict = Proceed | Refuse | Replied | Wait


def title_of(call: ProposedCall) -> str:
    """Say on one line what is asked."""
    if call.question is not None:
        return " ".join(call.question.text.split())
    shown = (
        call.input.get("command") or call.input.get("file_path") or call.input.get("notebook_path")
    )
    if shown is None:
        shown = ", ".join(f"{name}={value}" for name, value in call.input.items())
    title = f"{call.tool}: {' '.join(str(shown).split())}"
    return title if call.note is None else f"{call.note} {title}"
