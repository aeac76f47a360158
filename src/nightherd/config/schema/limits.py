"""`limits`: what a job may use before it is stopped."""

from datetime import timedelta
from typing import Annotated, Literal, Self

from pydantic import BeforeValidator, Field, model_validator

from nightherd.config.schema.types import Count, Filling, Inputs, Model, Money, Span, Whole, refuse

LimitEvent = Literal[
    "limit", "error", "budget", "approval", "rate_limit", "completed", "failed", "cancelled"
]


class LimitHook(Model):
    """An agent to submit when something happens to the job."""

    event: LimitEvent = Field(description="What has to happen.")
    directive: str = Field(description="Agent that is submitted then.")
    inputs: Inputs = Field({}, description="Values for its ${inputs.NAME}.")


OnReached = Literal["suspend", "fail", "hook"]


class Outcomes(Model):
    """What happens to a job at each limit: it waits, it fails, or agents decide."""

    spend: OnReached | None = Field(None, description="At the limit of dollars.")
    turns: OnReached | None = Field(None, description="At the limit of turns.")
    tokens: OnReached | None = Field(None, description="At the limit of tokens.")
    spawns: OnReached | None = Field(None, description="At the limit of child jobs.")
    depth: OnReached | None = Field(None, description="At the limit of levels.")
    duration: OnReached | None = Field(None, description="At the limit of time.")


def from_word(value: object) -> object:
    """One word is for every limit."""
    return dict.fromkeys(Outcomes.model_fields, value) if isinstance(value, str) else value


OnReachedOf = Annotated[
    Outcomes, BeforeValidator(from_word, json_schema_input_type=Outcomes | OnReached)
]


class DayLimits(Model):
    """What may be used in one day, all jobs together."""

    spend: Money | None = Field(None, description="Dollars a day.")
    turns: Count | None = Field(None, description="Turns a day.")
    tokens: Count | None = Field(None, description="Tokens a day.")


def from_amount(value: object) -> object:
    """A bare amount is what may be spent."""
    return value if isinstance(value, dict) or value is None else {"spend": value}


PerDay = Annotated[
    DayLimits, BeforeValidator(from_amount, json_schema_input_type=DayLimits | str | float)
]


class Limits(Model):
    """What may be used, children of the job included."""

    spend: Money | None = Field(None, description="Dollars.")
    turns: Count | None = Field(None, description="Turns.")
    tokens: Count | None = Field(
        None, description="Tokens of every kind: input, output, written to the cache, read from it."
    )
    spawns: Whole | None = Field(None, description="Child jobs.")
    depth: Whole | None = Field(None, description="Levels of child jobs below this one.")
    duration: Span | None = Field(None, description="Time of running.")
    per_day: PerDay | None = Field(
        None, description="The same limits per day; a bare amount is dollars."
    )
    hooks: tuple[LimitHook, ...] | None = Field(
        None, description="Agents to submit when a limit is reached."
    )
    on_reached: OnReachedOf | None = Field(
        None,
        description="What happens at a limit: one word for all, or one for each; else suspend.",
    )

    @model_validator(mode="after")
    def somebody_decides(self) -> Self:
        """`hook` needs an agent that is asked: about the job's own limits, or about what is shared."""
        wanted = self.on_reached is not None and "hook" in self.on_reached.model_dump().values()
        if wanted and not any(hook.event in ("limit", "budget") for hook in self.hooks or ()):
            message = "'hook' needs an agent to ask: give 'hooks' one with 'event: limit' or 'event: budget'"
            raise refuse("incomplete", message, key="on_reached")
        return self


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


def price_from_amount(value: object) -> object:
    """One amount is for every kind of token."""
    return value if isinstance(value, dict) or value is None else {"input": value, "output": value}


AnyPrice = Annotated[
    ModelPrice, BeforeValidator(price_from_amount, json_schema_input_type=ModelPrice | str | float)
]
Prices = dict[Filling, AnyPrice]


class Retry(Model):
    """Tries and pauses after rate limits, overload and outages; a time that the provider names counts first."""

    attempts: Count = Field(
        5, description="Quick tries without a finished turn before the job pauses."
    )
    first_pause: Span = Field(
        timedelta(minutes=2),
        description="The first pause after the quick tries; each further one is twice as long.",
    )
    longest_pause: Span = Field(timedelta(hours=1), description="The longest of these pauses.")
    max_wait: Span = Field(
        timedelta(hours=24),
        description="How long after the first failure the job keeps retrying; then it waits for you.",
    )
