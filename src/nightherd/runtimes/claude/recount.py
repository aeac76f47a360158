"""What was said before a job, in words for an agent whose own conversation is lost."""

from __future__ import annotations

import json
from collections.abc import Iterable
from itertools import takewhile

from nightherd.model.ids import JobId
from nightherd.model.journal.event import ErrorEvent, Event
from nightherd.model.journal.message import Message, Speaker, result_text, whole_messages
from nightherd.runtimes.claude.memory import SHOWN, is_of

ASKED, YOU_SAID, CALLED = "You were asked:", "You said:", "You called {tool} {input}"
SHOWN_EACH = 4_000
"""Characters of one message, or of one call."""
RECOUNT_LENGTH = 100_000
"""Characters of all of it; the latest count."""


def recounted(history: Iterable[Event], job_id: JobId) -> str | None:
    """What was said before that job, first to last, in words for the agent; None when nothing was.

    Of a long conversation the latest part is given word for word, and how much was before it.
    """
    before = takewhile(lambda event: not is_of(event, job_id), history)
    own = (event for event in before if not _is_of_a_subagent(event))
    accounts = [account for one in whole_messages(own) if (account := _account(one))]
    kept: list[str] = []
    room = RECOUNT_LENGTH
    for account in reversed(accounts):
        room -= len(account)
        if kept and room < 0:
            break
        kept.append(account)
    left_out = len(accounts) - len(kept)
    if left_out:
        kept.append(f"({left_out} earlier messages are left out here.)")
    return "\n\n".join(reversed(kept)) or None


def _is_of_a_subagent(event: Event) -> bool:
    """The messages of a subagent are in a conversation of its own."""
    return not isinstance(event, ErrorEvent) and event.parent_tool_use_id is not None


def _account(message: Message) -> str:
    match message.speaker:
        case Speaker.USER:
            return _under(ASKED, message.text)
        case Speaker.TOOL:
            return "\n\n".join(
                _under("It succeeded:" if one.success else "It failed:", result_text(one))
                for one in message.results
            )
        case Speaker.ASSISTANT:
            calls = [
                CALLED.format(tool=one.tool_name, input=json.dumps(one.input))[:SHOWN_EACH]
                for one in message.calls
            ]
            return "\n\n".join(
                [*([_under(YOU_SAID, message.text)] if message.text else []), *calls]
            )


def _under(heading: str, text: str) -> str:
    return f"{heading}\n{text[:SHOWN]}"
