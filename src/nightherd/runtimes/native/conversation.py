"""Conversation: what the next request to the model holds. It is always what the record says, and no more."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from dataclasses import replace
from datetime import datetime
from itertools import pairwise
from typing import cast

import msgspec
from pydantic_ai.messages import (
    ModelMessage,
    ModelRequest,
    ModelRequestPart,
    ModelResponse,
    ModelResponsePart,
    ToolCallPart,
    ToolReturnPart,
    UserPromptPart,
)

from nightherd.model.journal.event import Event, MessageEvent, SystemEvent
from nightherd.model.journal.system import SystemSubtype
from nightherd.model.secrets import Secrets
from nightherd.runtimes.native.decode import TOLD_CUT_OFF, Reader, decode, load_or_retell

UNKNOWN_OUTCOME = "outcome unknown: the record ends before this call was answered"


class Conversation(msgspec.Struct, kw_only=True):
    """The messages so far; `take` adds to them what has been recorded since."""

    secrets: Secrets
    messages: list[ModelMessage] = msgspec.field(default_factory=list)
    written: set[str] = msgspec.field(default_factory=set)
    """The constants that are on record in this job, by hash."""
    cut_off: str | None = None
    """What had arrived of an answer that never ended, and has not been sent to the model."""
    unreadable: int = 0
    """How many messages of the record could not be read, and are sent as the text of their lines."""
    call_ids: set[str] = msgspec.field(default_factory=set)
    """The ids of all calls on record, also of those that a summary stands for."""

    @property
    def awaits_answer(self) -> bool:
        """Whether it is the model's turn."""
        return bool(self.messages) and isinstance(self.messages[-1], ModelRequest)

    @property
    def last_answer(self) -> ModelResponse | None:
        """The model's last answer."""
        answers = (
            message for message in reversed(self.messages) if isinstance(message, ModelResponse)
        )
        return next(answers, None)

    def mask(self, event: MessageEvent) -> MessageEvent:
        """The event as it will stand on record: the model is sent nothing else."""
        return cast("MessageEvent", self.secrets.mask_event(event))

    def take(self, events: Iterable[Event]) -> None:
        """Add what these recorded lines say; results go with those right before them."""
        self.add(decode(events))

    def add(self, messages: Iterable[ModelMessage]) -> None:
        """Add what recorded lines have been found to say."""
        for message in messages:
            last = self.messages[-1] if self.messages else None
            if isinstance(last, ModelRequest) and isinstance(message, ModelRequest):
                last.parts = [*last.parts, *message.parts]
            else:
                self.messages.append(message)

    def with_own_ids(self, answer: ModelResponse, turn: int) -> ModelResponse:
        """The answer, each call with an id that no other has: it identifies results and the jobs that the call makes.

        Most models see to that themselves; some count again in every answer, or give none.
        """
        parts = [self._with_own_id(part, turn) for part in answer.parts]
        return answer if parts == answer.parts else replace(answer, parts=parts)

    def _with_own_id(self, part: ModelResponsePart, turn: int) -> ModelResponsePart:
        if not isinstance(part, ToolCallPart):
            return part
        known = self.call_ids
        given = name = part.tool_call_id
        again = 0
        while not name or name in known:
            again += 1
            name = f"{given or 'call'}-{turn}-{again}"
        known.add(name)
        return part if name == given else replace(part, tool_call_id=name)

    def end_results(self) -> None:
        """All calls of the last answer are answered: the model gets the results in the order of its calls."""
        if len(self.messages) > 1:
            _put_in_order(self.messages[-2], self.messages[-1])


def recall(events: Iterable[Event], secrets: Secrets, repeat: Collection[str] = ()) -> Conversation:
    """The conversation of the events of a session, ready to continue.

    Calls in `repeat` are left without a result: they are about to be made again.
    """
    reader = Reader()
    reader.take(events)
    found, unreadable = load_or_retell(reader.made())
    messages = list(_answered(found, repeat))
    for answer, request in pairwise(messages):
        _put_in_order(answer, request)
    return Conversation(
        secrets=secrets,
        messages=messages,
        written=reader.written,
        cut_off=reader.cut_off,
        unreadable=unreadable,
        call_ids=reader.call_ids,
    )


def ask(prompt: str) -> ModelRequest:
    """A conversation's beginning, where the record has none."""
    return ModelRequest([UserPromptPart(prompt)])


def quote_cut_off(text: str, *, turn: int, at: datetime) -> SystemEvent:
    """The line that gives the model what had arrived of its answer before it was cut off."""
    return SystemEvent(
        subtype=SystemSubtype.USER_INPUT,
        content=(
            "Your last answer was cut off before it ended. This much of it had arrived:\n\n"
            f"<partial_cognition>\n{text}\n</partial_cognition>\n\n"
            "Go on from there. Nothing that it announced has been done."
        ),
        extra={TOLD_CUT_OFF: True, "part": {"timestamp": at.isoformat()}},
        turn=turn,
        index=0,
        end=True,
    )


def _put_in_order(answer: ModelMessage, request: ModelMessage) -> None:
    """Results come into the record as they are known; the model gets them in the order of its calls."""
    if len(request.parts) < 2 or not isinstance(answer, ModelResponse):
        return
    places = {call.tool_call_id: place for place, call in enumerate(answer.tool_calls)}
    if not places or not isinstance(request, ModelRequest):
        return

    def place(part: ModelRequestPart) -> int:
        last = len(places)
        return places.get(part.tool_call_id, last) if isinstance(part, ToolReturnPart) else last

    request.parts = sorted(request.parts, key=place)


def _answered(messages: Iterable[ModelMessage], repeat: Collection[str]) -> Iterator[ModelMessage]:
    """The messages with exactly one result for each call: providers refuse anything else.

    A result whose call is not in the record belonged to an answer that never ended. A call without a result
    is the last thing before a cut (a fork made right there).
    """
    unanswered: dict[str, str] = {}
    for message in messages:
        if isinstance(message, ModelRequest):
            parts = [part for part in message.parts if _belongs(part, unanswered)]
            if parts:
                if unanswered or len(parts) != len(message.parts):
                    message.parts = [*_unknown(unanswered), *parts]
                    unanswered = {}
                yield message
            continue
        if unanswered:
            yield ModelRequest(list(_unknown(unanswered)))
        yield message
        unanswered = {
            part.tool_call_id: part.tool_name
            for part in message.parts
            if isinstance(part, ToolCallPart) and part.tool_call_id not in repeat
        }
    if unanswered:
        yield ModelRequest(list(_unknown(unanswered)))


def _belongs(part: ModelRequestPart, unanswered: dict[str, str]) -> bool:
    if not isinstance(part, ToolReturnPart):
        return True
    return unanswered.pop(part.tool_call_id, None) is not None


def _unknown(unanswered: dict[str, str]) -> Iterator[ToolReturnPart]:
    for call, name in unanswered.items():
        yield ToolReturnPart(name, UNKNOWN_OUTCOME, call, outcome="interrupted")
