"""What people say to Claude while it is at work: asked for when a result is on record, and given to it at once.

Claude reads it before its next request, or as soon as it has answered, and says that it has. Until then its input
stays open, and no result of it counts.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from nightherd.ports import RuntimeRequest, no_input
from nightherd.runtimes.claude.answer import body_of
from nightherd.runtimes.claude.gate import Gate
from nightherd.runtimes.claude.process import Duty
from nightherd.runtimes.claude.review import waits_for_people

Message = Mapping[str, Any]


def takes_input(request: RuntimeRequest) -> bool:
    """Whether Claude may be told more while it is at work.

    Not where a call may wait for a person: whatever it is told then makes it forget the call.
    """
    return request.take_input is not no_input and not waits_for_people(request.agent)


class NewInputs:
    """Gives one `claude` what people say while it is at work."""

    def __init__(
        self,
        request: RuntimeRequest,
        gate: Gate,
        duty: Duty,
        write: Callable[[Message], Awaitable[None]],
    ) -> None:
        self._take = request.take_input if takes_input(request) else no_input
        self._gate = gate
        self._duty = duty
        self._write = write
        self._given: set[str] = set()

    @property
    def has_unread(self) -> bool:
        """Whether it was given something that it has not read."""
        return bool(self._duty.owed)

    def is_read(self, said: bytes | Message) -> bool:
        """Whether it says that it has read something it was given."""
        match said:
            case {"type": "user", "isReplay": True, "uuid": str(uuid)}:
                return uuid in self._given
            case _:
                return False

    async def after(self, message: bytes | Message) -> None:
        """Give it what there is; `message` is what it said last, and on record."""
        duty, gate = self._duty, self._gate
        is_busy = duty.has_result or duty.holds_prompt or gate.is_waiting or gate.expects_deferred
        if self._take is no_input or is_busy or not _has_result(message):
            return
        duty.is_held = True
        try:
            for one in await self._take():
                self._given.add(one.uuid)
                duty.owed.add(one.uuid)
                await self._write({**user_message(one.text), "uuid": one.uuid})
        finally:
            duty.is_held = False


def _has_result(message: bytes | Message) -> bool:
    """Whether it carries the result of a call of the agent itself."""
    if isinstance(message, bytes) or message.get("type") != "user":
        return False
    body = body_of(message)
    content = body.get("content") if body is not None else None
    blocks = content if isinstance(content, list) else ()
    is_own = not message.get("parent_tool_use_id")
    return is_own and any(
        isinstance(one, Mapping) and one.get("type") == "tool_result" for one in blocks
    )


def user_message(text: str) -> dict[str, Any]:
    """What asks for `text`. Claude reads it as it is, whatever it begins with."""
    return {
        "type": "user",
        "message": {"role": "user", "content": [{"type": "text", "text": text}]},
        "parent_tool_use_id": None,
        "session_id": "",
    }
