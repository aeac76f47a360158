"""Prices: which models have published prices, and what Claude's answers cost by them until Claude says it."""

from __future__ import annotations

from genai_prices import Usage as Counted
from genai_prices import calc_price

from nightherd.model.units import MicroUsd, parse_usd
from nightherd.model.usage import Usage

PROVIDER = "anthropic"
SYSTEMS = {"openai-chat": "openai", "openai-responses": "openai", "bedrock": "aws"}
"""What a provider is called in the table of prices, where agents name it otherwise."""


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


def is_published(model: str) -> bool:
    """Whether `model`, written `provider:name`, has a published price; the runtime itself asks more exactly."""
    provider, colon, name = model.partition(":")
    if not colon:
        return _has_price(model, None)
    return _has_price(name, SYSTEMS.get(provider, provider)) or _has_price(name, None)


def _has_price(name: str, provider: str | None) -> bool:
    try:
        calc_price(Counted(input_tokens=1, output_tokens=1), model_ref=name, provider_id=provider)
    except (LookupError, ValueError):
        return False
    return True
