"""`prices`: what models cost whose prices are not published, or are not yours."""

from __future__ import annotations

from typing import Annotated

from pydantic import BeforeValidator, Field

from nightherd.config.schema.types import Filling, Model, Money


class ModelPrice(Model):
    """Dollars for a million tokens of each kind."""

    input: Money = Field(description="Dollars for a million tokens sent.")
    output: Money = Field(description="Dollars for a million tokens that the model writes.")
    cache_write: Money | None = Field(
        None, description="Dollars for a million tokens written to the cache; else as `input`."
    )
    cache_read: Money | None = Field(
        None, description="Dollars for a million tokens read from the cache; else as `input`."
    )


def from_amount(value: object) -> object:
    """One amount is for every kind of token."""
    return value if isinstance(value, dict) or value is None else {"input": value, "output": value}


AnyPrice = Annotated[
    ModelPrice, BeforeValidator(from_amount, json_schema_input_type=ModelPrice | str | float)
]
Prices = dict[Filling, AnyPrice]
