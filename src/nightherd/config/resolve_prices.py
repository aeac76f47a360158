"""Declared prices as runtimes use them."""

from __future__ import annotations

from collections.abc import Mapping

from nightherd.config.schema.prices import ModelPrice as PriceSchema
from nightherd.model.price import ModelPrice


def resolve_prices(prices: Mapping[str, PriceSchema] | None) -> dict[str, ModelPrice]:
    """Return the prices by model; what is not said of the cache is as `input`."""
    return {model: resolve_price(price) for model, price in (prices or {}).items()}


def resolve_price(price: PriceSchema) -> ModelPrice:
    """Return one of them."""
    write, read = price.cache_write, price.cache_read
    return ModelPrice(
        input=price.input,
        output=price.output,
        cache_write=price.input if write is None else write,
        cache_read=price.input if read is None else read,
    )
