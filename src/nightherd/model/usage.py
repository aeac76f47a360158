"""What a piece of work used: tokens by kind and money; and the totals of a record."""

from __future__ import annotations

import msgspec

from nightherd.model.units import FREE, MicroUsd


class Usage(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Tokens and cost of one turn, or the sum over many."""

    input_tokens: int = 0
    output_tokens: int = 0
    cache_creation_input_tokens: int = 0
    cache_read_input_tokens: int = 0
    cost_microusd: MicroUsd = FREE

    def __sub__(self, other: Usage) -> Usage:
        return Usage(
            input_tokens=self.input_tokens - other.input_tokens,
            output_tokens=self.output_tokens - other.output_tokens,
            cache_creation_input_tokens=self.cache_creation_input_tokens
            - other.cache_creation_input_tokens,
            cache_read_input_tokens=self.cache_read_input_tokens - other.cache_read_input_tokens,
            cost_microusd=MicroUsd(self.cost_microusd - other.cost_microusd),
        )

    def __add__(self, other: Usage) -> Usage:
        return Usage(
            input_tokens=self.input_tokens + other.input_tokens,
            output_tokens=self.output_tokens + other.output_tokens,
            cache_creation_input_tokens=self.cache_creation_input_tokens
            + other.cache_creation_input_tokens,
            cache_read_input_tokens=self.cache_read_input_tokens + other.cache_read_input_tokens,
            cost_microusd=MicroUsd(self.cost_microusd + other.cost_microusd),
        )


def tokens_in(usage: Usage) -> int:
    """Tokens of every kind. Of one answer that is also how large the conversation was then."""
    return (
        usage.input_tokens
        + usage.output_tokens
        + usage.cache_creation_input_tokens
        + usage.cache_read_input_tokens
    )


BYTES_PER_TOKEN = 4
"""What a token is taken to be where nothing was reported."""

NOTHING_USED = Usage()
"""Where every sum starts."""


class Totals(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The totals of a part of a job's record."""

    turns: int = 0
    messages: int = 0
    usage: Usage = NOTHING_USED
    context_tokens: int = 0
    """How large the conversation was when that was last reported; 0 when it never was."""
    unreported_bytes: int = 0
    """What was said since then."""

    def __sub__(self, earlier: Totals) -> Totals:
        return Totals(
            turns=self.turns - earlier.turns,
            messages=self.messages - earlier.messages,
            usage=self.usage - earlier.usage,
            context_tokens=self.context_tokens,
            unreported_bytes=max(self.unreported_bytes - earlier.unreported_bytes, 0),
        )
