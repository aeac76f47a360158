"""What a piece of work used: tokens by kind and money."""

from __future__ import annotations

import msgspec

from nightherd.model.money import FREE, MicroUsd


class Usage(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Tokens and cost of one turn, or the sum over many."""

    input_tokens: int = 0
    output_tokens: int = 0
    cache_creation_input_tokens: int = 0
    cache_read_input_tokens: int = 0
    cost_microusd: MicroUsd = FREE

    def __add__(self, other: Usage) -> Usage:
        return Usage(
            input_tokens=self.input_tokens + other.input_tokens,
            output_tokens=self.output_tokens + other.output_tokens,
            cache_creation_input_tokens=self.cache_creation_input_tokens
            + other.cache_creation_input_tokens,
            cache_read_input_tokens=self.cache_read_input_tokens + other.cache_read_input_tokens,
            cost_microusd=MicroUsd(self.cost_microusd + other.cost_microusd),
        )


NOTHING_USED = Usage()
"""Where every sum starts."""
