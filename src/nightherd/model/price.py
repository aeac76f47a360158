"""Price: what a model's tokens cost, as the fleet file declares it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from nightherd.model.money import FREE, MicroUsd
from nightherd.model.usage import Usage

PER = 1_000_000
"""Prices are for this many tokens."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelPrice:
    """Micro-dollars for a million tokens of each kind."""

    input: MicroUsd = FREE
    output: MicroUsd = FREE
    cache_write: MicroUsd = FREE
    cache_read: MicroUsd = FREE

    def cost(self, usage: Usage) -> MicroUsd:
        """Return what `usage` costs, rounded up to a whole micro-dollar."""
        total = (
            usage.input_tokens * self.input
            + usage.output_tokens * self.output
            + usage.cache_creation_input_tokens * self.cache_write
            + usage.cache_read_input_tokens * self.cache_read
        )
        return MicroUsd(-(-total // PER))


Prices = Mapping[str, ModelPrice]
"""Declared prices by model: `provider:name`, or the name alone for every provider."""


def declared_price(prices: Prices, model: str) -> ModelPrice | None:
    """Return the price declared for `model`, written as in an agent's `model` key."""
    return prices.get(model) or prices.get(model.partition(":")[2])
