"""Script: what a scripted agent plays, as a value, and which of its steps make up which turn.

A turn is one answer and its tool call. In a script it is the steps up to and including a `tool`, or up to
a `say` that no `tool` follows; `sleep`, `think` and `fail` belong to the turn they lead into, `usage` and `end`
to the turn that has begun, or else to the one right before it. A `repeat` stands for itself: turns never
cross its edges. So the n-th turn of a script has always the same steps, which is what lets a resumed
job continue where the record ends.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import timedelta
from typing import Any

import msgspec

from nightherd.model.usage import Usage


class Say(msgspec.Struct, frozen=True, tag=True):
    """Answer with a text."""

    text: str
    over: timedelta = timedelta()
    """How long the text takes to come, word by word."""


class Think(msgspec.Struct, frozen=True, tag=True):
    """Think aloud before the answer."""

    text: str


class UseTool(msgspec.Struct, frozen=True, tag=True):
    """Call a tool, for real, in the working directory."""

    name: str
    input: Mapping[str, Any]


class Sleep(msgspec.Struct, frozen=True, tag=True):
    """Take this long."""

    duration: timedelta


class Spend(msgspec.Struct, frozen=True, tag=True):
    """Report tokens and money for the turn."""

    usage: Usage


class Fail(msgspec.Struct, frozen=True, tag=True):
    """End with an error."""

    code: str
    message: str
    recoverable: bool = False
    """Whether trying again may help."""
    retry_after: timedelta | None = None
    """When it may."""


class End(msgspec.Struct, frozen=True, tag=True):
    """End the job here; the next job of the session plays on."""


class Repeat(msgspec.Struct, frozen=True):
    """Play `steps` `count` times."""

    count: int
    steps: tuple[Step, ...]


Step = Say | Think | UseTool | Sleep | Spend | Fail | End | Repeat
Action = Say | Think | UseTool | Sleep | Spend | Fail | End
Turn = tuple[Action, ...]


def ends_job(turn: Turn | None) -> bool:
    """Return whether a job ends with this turn, also where the script goes on."""
    return any(isinstance(step, End) for step in turn or ())


class Script(msgspec.Struct, frozen=True):
    """A script cut into turns; a `repeat` stays one block however often it plays."""

    blocks: tuple[Block, ...]

    @property
    def turn_count(self) -> int:
        """How many turns the whole script has."""
        return sum(block.turn_count for block in self.blocks)

    def turn(self, number: int) -> Turn | None:
        """The steps of turn `number` (from 0), or None past the end; repeats are not unrolled."""
        for block in self.blocks:
            if number < block.turn_count:
                return block.turn(number)
            number -= block.turn_count
        return None

    def turns_from(self, start: int) -> Iterator[Turn]:
        """Turn `start` (from 0) and all after it, in order; nothing past the end."""
        for block in self.blocks:
            if start < block.turn_count:
                yield from block.turns_from(start)
            start = max(0, start - block.turn_count)


class Block(msgspec.Struct, frozen=True):
    """Either one turn, or a script that plays several times."""

    count: int
    content: Turn | Script

    @property
    def turn_count(self) -> int:
        """Turns in this block, all its rounds together."""
        return self.count * (self.content.turn_count if isinstance(self.content, Script) else 1)

    def turn(self, number: int) -> Turn | None:
        """The steps of the block's turn `number` (from 0)."""
        if isinstance(self.content, Script):
            return self.content.turn(number % self.content.turn_count)
        return self.content

    def turns_from(self, start: int) -> Iterator[Turn]:
        """The block's turn `start` (from 0) and all after it, all rounds."""
        if not isinstance(self.content, Script):
            yield from (self.content for _ in range(start, self.count))
            return
        rounds, start = divmod(start, self.content.turn_count)
        for _ in range(rounds, self.count):
            yield from self.content.turns_from(start)
            start = 0


def compile_script(steps: Sequence[Step]) -> Script:
    """`steps` cut into turns by the rule above."""
    blocks: list[Block] = []
    current: list[Action] = []

    def close() -> None:
        if current:
            blocks.append(Block(1, tuple(current)))
            current.clear()

    for position, step in enumerate(steps):
        follower = steps[position + 1] if position + 1 < len(steps) else None
        match step:
            case Repeat(count, inner):
                close()
                # Also one that plays nothing: turns do not cross its edges either.
                blocks.append(Block(count, compile_script(inner)))
            case Spend() | End() if (
                not current and blocks and not isinstance(blocks[-1].content, Script)
            ):
                blocks[-1] = Block(1, (*blocks[-1].content, step))
            case UseTool() | Fail() | End():
                current.append(step)
                close()
            case Say():
                current.append(step)
                if not isinstance(follower, UseTool):
                    close()
            case _:
                current.append(step)
    close()
    return Script(tuple(blocks))
