"""Prices: what an answer of Claude's costs, as far as published prices say. An estimate, until Claude says it."""

from __future__ import annotations

from genai_prices import Usage as Counted
from genai_prices import calc_price

from nightherd.model.money import MicroUsd, parse_usd
from nightherd.model.usage import Usage

PROVIDER = "anthropic"


def estimate(model: str, usage: Usage) -> MicroUsd | None:
    """What `usage` of `model` costs by the table of prices; None for a model that is not in it."""
    cached = usage.cache_creation_input_tokens + usage.cache_read_input_tokens
    counted = Counted(
        input_tokens=usage.input_tokens + cached,
        cache_write_tokens=usage.cache_creation_input_tokens,
        cache_read_tokens=usage.cache_read_input_tokens,
        output_tokens=usage.output_tokens,
    )
    try:
        return parse_usd(calc_price(counted, model_ref=model, provider_id=PROVIDER).total_price)
    except (LookupError, ValueError):
        return None
