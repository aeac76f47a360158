"""A lost conversation in words: what our record has of it, for a Claude that was never told.

Claude goes on from its own transcript. Where that is nowhere any more, neither with Claude nor as our copy, the
journal still says who said what.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from itertools import dropwhile, takewhile

from nightherd.model.event import ErrorEvent, Event
from nightherd.model.ids import JobId
from nightherd.model.message import Message, Speaker, result_text, whole_messages

ASKED, SAID, CALLED = "You were asked:", "You said:", "You called {tool} {input}"
SHOWN = 4_000
"""Characters of one message, or of one call."""
MOST = 100_000
"""Characters of all of it; the latest count."""


def recounted(history: Iterable[Event], job_id: JobId) -> str | None:
    """What was said before that job, first to last, in words for the agent; None when nothing was.

    Of a long conversation the latest part is given word for word, and how much was before it.
    """
    before = takewhile(lambda event: not _is_of(event, job_id), history)
    own = (event for event in before if not _is_of_a_subagent(event))
    accounts = [account for one in whole_messages(own) if (account := _account(one))]
    kept: list[str] = []
    room = MOST
    for account in reversed(accounts):
        room -= len(account)
        if kept and room < 0:
            break
        kept.append(account)
    left_out = len(accounts) - len(kept)
    if left_out:
        kept.append(f"({left_out} earlier messages are left out here.)")
    return "\n\n".join(reversed(kept)) or None


def since(history: Iterable[Event], job_id: JobId) -> Iterator[Event]:
    """What was said from that job's beginning on."""
    return dropwhile(lambda event: not _is_of(event, job_id), history)


def _is_of(event: Event, job_id: JobId) -> bool:
    return event.execution is not None and event.execution.rpartition(".")[0] == job_id


def _is_of_a_subagent(event: Event) -> bool:
    """What a subagent was told and said stands in a conversation of its own."""
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
                CALLED.format(tool=one.tool_name, input=json.dumps(one.input))[:SHOWN]
                for one in message.calls
            ]
            return "\n\n".join([*([_under(SAID, message.text)] if message.text else []), *calls])


def _under(heading: str, text: str) -> str:
    return f"{heading}\n{text[:SHOWN]}"
