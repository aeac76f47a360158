"""Outline: a job's whole journal in a value of bounded size.

A journal grows without end, and its outline does not: every list in it has a fixed maximum and a total beside
it. `fold.py` makes one from events, as many at a time as there are.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

import msgspec

from nightherd.decoding import json_decoder

MOST_SEGMENTS = 512
"""Once there would be more, two neighbours become one, and segments hold twice as many steps from then on."""
MOST_ERRORS = 200
"""How many errors are named, the first ones; the others are counted."""
MOST_EXECUTIONS = MOST_GAPS = 200
"""How many are named: the first half and the last half; those in between are counted."""
MOST_CHECKPOINTS = 128
"""Once there would be more, every second one is left out, and so on."""
MOST_TOOLS = 64
"""How many tools are counted by name; calls of others are counted together."""
MOST_OPEN_CALLS = 256
"""How many calls without a result are remembered."""
LABEL_LIMIT, TEXT_LIMIT = 80, 240
OTHER_TOOLS = "(other)"


class Segment(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Some steps of a job in a row: one prompt, answer or tool call each, or several together."""

    first_seq: int
    last_seq: int
    start: datetime
    end: datetime
    """When its last event was recorded; of a tool call, its result."""
    kind: str
    """`prompt`, `answer`, `thinking`, `tool`, `error` or `system`; `mixed` for steps of several kinds."""
    label: str = ""
    """What the most notable of its steps is: a tool and its argument, or the beginning of a text."""
    turn: int | None = None
    """The turn of its first step."""
    last_turn: int | None = None
    steps: int = 1
    tools: int = 0
    """How many of the steps are tool calls."""
    errors: int = 0
    is_nested: bool = False
    """Whether all of it is the work of a sub-agent."""


class OutlineError(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Something that failed: an error of the run, a tool, a hook, or a call that was denied."""

    seq: int
    at: datetime
    kind: str
    """`error`, `tool`, `denied` or `hook`."""
    text: str
    turn: int | None = None


class OutlineExecution(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One execution, from its first line to its last."""

    epoch: int
    worker: str
    first_seq: int
    last_seq: int
    start: datetime
    end: datetime
    outcome: str | None = None
    """`completed`, `failed`, `cancelled`, `suspended`, `lost` or `restarted`; None while it may still write."""


class Gap(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A time in which nothing worked on the job, and why."""

    after_seq: int
    start: datetime
    reason: str
    """`queued`, `crash`, `restart`, `retry`, `child`, or the reason of a suspension."""
    end: datetime | None = None
    """None while it lasts."""
    before_seq: int | None = None
    text: str = ""
    code: str | None = None
    until: datetime | None = None
    """When the job was to resume by itself."""
    epoch: int | None = None
    """The execution that ended the gap."""


class OutlineCheckpoint(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A checkpoint as its line says it."""

    number: int
    seq: int
    at: datetime
    epoch: int
    trigger: str
    turn: int = 0
    cost_microusd: int = 0


class Counts(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """How many of each there are in the whole journal."""

    events: int = 0
    turns: int = 0
    messages: int = 0
    prompts: int = 0
    answers: int = 0
    tool_calls: int = 0
    errors: int = 0
    denied: int = 0
    executions: int = 0
    gaps: int = 0
    checkpoints: int = 0
    tools: Mapping[str, int] = {}
    """Calls by the tool's name."""


class Outline(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """All of a journal up to `last_seq`. Also what a fold needs to continue from there."""

    last_seq: int = 0
    first_at: datetime | None = None
    last_at: datetime | None = None
    agent: str = ""
    session_id: str | None = None
    created_at: datetime | None = None
    span: int = 1
    """How many steps a segment holds."""
    steps: int = 0
    segments: tuple[Segment, ...] = ()
    counts: Counts = Counts()
    errors: tuple[OutlineError, ...] = ()
    executions: tuple[OutlineExecution, ...] = ()
    gaps: tuple[Gap, ...] = ()
    checkpoints: tuple[OutlineCheckpoint, ...] = ()
    checkpoint_stride: int = 1
    """Every so many checkpoints one is named; the last one always is."""
    pause: Gap | None = None
    """What the job waits for, until an execution says that it has resumed."""
    open_calls: Mapping[str, int] = {}
    """Calls without a result: the number of their step, by the runtime's id of the call."""
    open_message: int | None = None
    """The message that the last step is of, while more lines of it may come."""

    @property
    def is_ended(self) -> bool:
        """Whether its last execution says that the job has ended."""
        return bool(self.executions) and self.executions[-1].outcome in ENDED


ENDED = frozenset({"completed", "failed", "cancelled"})
EMPTY = Outline()
_DECODER = json_decoder(Outline)


def encode_outline(outline: Outline) -> bytes:
    """Return it as the index keeps it."""
    return msgspec.json.encode(outline)


def decode_outline(data: Any) -> Outline:
    """Return the outline that was kept; raises what msgspec raises for one that cannot be read."""
    return _DECODER.decode(data)
