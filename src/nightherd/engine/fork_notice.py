"""What an agent has to be told when it begins in a fork: a call may have been cut off from its result."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import takewhile

from nightherd.engine.workshop import Workshop
from nightherd.model.agent import Agent, RuntimeName
from nightherd.model.message import Message, Speaker, open_calls
from nightherd.model.session import Session
from nightherd.ports import RuntimeFork
from nightherd.views.conversation import count_messages, segments_of
from nightherd.views.history import messages_between

LOOK_BACK = 32
"""Messages before the cut that are looked at; the calls of one answer are fewer, nearly always."""

TOLD = frozenset({RuntimeName.CLI, RuntimeName.SDK})
"""Runtimes whose own memory says nothing true about such a call; the others read it off the record."""


def with_notice(
    prompt: str, agent: Agent, session: Session, fork: RuntimeFork | None, workshop: Workshop
) -> str:
    """The prompt, and what the runtime that begins with `fork` would not know: before it what was asked right before
    the cut, after it what became of calls that were cut off. Nobody knows, and none is made again."""
    if agent.runtime not in TOLD or session.base_messages == 0:
        return prompt
    if fork is not None and fork.at_uuid is None:
        return prompt  # it begins with all of the session, and is told what that lacks when it does
    parts = segments_of(workshop.reader, workshop.journals, session)
    last = min(session.base_messages, count_messages(parts))
    first = max(last - LOOK_BACK + 1, 1)
    spoken = [
        one.message
        for one in messages_between(workshop.journals, parts, first, last, load_blobs=False)
    ]
    asked = _asked_last(spoken)
    if asked:
        text = "\n\n".join(message.text for message in asked)
        return f"(You were asked before, and had not answered yet:)\n\n{text}\n\n{prompt}"
    calls = open_calls(spoken).values()
    if not calls:
        return prompt
    names = ", ".join(call.tool_name for call in calls)
    return (
        f"{prompt}\n\n(The conversation was cut right after you had called: {names}. The outcome is unknown: "
        "look before you do it again.)"
    )


def _asked_last(spoken: Sequence[Message]) -> list[Message]:
    """The questions at the end that have no name of the runtime's own: it cannot begin after them."""
    nameless = takewhile(
        lambda message: message.speaker is Speaker.USER and message.last.uuid is None,
        reversed(spoken),
    )
    return list(nameless)[::-1]
