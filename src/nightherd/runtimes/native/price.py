"""Price: what an answer cost, who says so, and the most that the next one can cost."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import fields, replace
from decimal import Decimal
from enum import StrEnum
from types import MappingProxyType
from typing import Any

import msgspec
from genai_prices.data_snapshot import get_snapshot
from pydantic_ai.messages import ModelMessage, ModelMessagesTypeAdapter, ModelResponse
from pydantic_ai.models import Model
from pydantic_ai.usage import RequestUsage

from nightherd.errors import InvalidValueError
from nightherd.model.agents.agent import Agent
from nightherd.model.limits.limits import LimitName, Shortfall
from nightherd.model.limits.spending import ModelPrice, Prices, declared_price
from nightherd.model.units import FREE, MicroUsd, parse_usd
from nightherd.model.usage import BYTES_PER_TOKEN as USUAL_BYTES_PER_TOKEN
from nightherd.model.usage import Usage, tokens_in
from nightherd.runtimes.native.provider import members
from nightherd.runtimes.native.script_model import NAME as SCRIPTED
from nightherd.runtimes.native.script_model import ScriptModel

BYTES_PER_TOKEN = 2
"""Of what has not been counted by a provider yet: few texts come to more tokens than that."""
MOST_TOKENS = 10**12
"""More than any answer can have used."""
FRAME_TOKENS = 1_000
"""What a provider adds of its own to a request."""
NONE: Prices = MappingProxyType({})
"""No declared prices."""


def know_prices() -> None:
    """Have the table of prices at hand; the first time it takes a moment."""
    get_snapshot()


class CostSource(StrEnum):
    """Who says what an answer cost."""

    SCRIPT = "script"
    PROVIDER = "provider"
    DECLARED = "fleet-file"
    PRICES = "genai-prices"
    ESTIMATE = "estimate"
    """Worked out for an answer that never came: its usage is unknown."""
    UNKNOWN = "unknown"
    """The model's prices are unknown: its cost counts as nothing."""


class Cost(msgspec.Struct, frozen=True, kw_only=True):
    """An amount and its source."""

    amount: MicroUsd
    source: CostSource


def declared_prices(prices: Prices, agent: Agent, model: Model) -> Prices:
    """Return the prices that the fleet file declares for the agent's models, by the models' own names."""
    found: dict[str, ModelPrice] = {}
    for one, written in zip(members(model), (agent.model, agent.fallback_model), strict=False):
        spellings = [written, f"{one.system}:{one.model_name}"]
        known = (declared_price(prices, spelling) for spelling in spellings if spelling)
        price = next(filter(None, known), None)
        if price is not None:
            found[one.model_name] = price
    return found


def cost_of(answer: ModelResponse, model_name: str | None = None, declared: Prices = NONE) -> Cost:
    """What the answer cost. `model_name` is what was asked for, should the name it gives itself be unknown.

    What the provider says comes first, then what the fleet file declares, then published prices.
    """
    reported = _amount(answer.usage.cost)  # no amount at all is as good as none said
    if reported is not None:
        source = CostSource.SCRIPT if answer.provider_name == SCRIPTED else CostSource.PROVIDER
        return Cost(amount=parse_usd(reported), source=source)
    known = declared.get(answer.model_name or "") or declared.get(model_name or "")
    if known is not None:
        usage = usage_of(answer, Cost(amount=FREE, source=CostSource.DECLARED))
        return Cost(amount=known.cost(usage), source=CostSource.DECLARED)
    for name in filter(None, (answer.model_name, model_name)):
        with suppress(LookupError, ValueError, InvalidValueError):
            price = replace(answer, model_name=name).cost().total_price
            return Cost(amount=parse_usd(price), source=CostSource.PRICES)
    return Cost(amount=FREE, source=CostSource.UNKNOWN)


def believable(used: RequestUsage) -> RequestUsage:
    """What a provider says to have been used, as far as it can be so; the rest as if it had not been said."""
    counts = {field.name: getattr(used, field.name) for field in fields(used)}
    kept = {name: _kept(name, value) for name, value in counts.items()}
    changed = {name: value for name, value in kept.items() if value is not counts[name]}
    return replace(used, **changed) if changed else used


def _kept(name: str, value: Any) -> Any:
    match name:
        case "cost":
            return _amount(value)
        case "details":
            given = value.items() if isinstance(value, dict) else ()
            counted = {key: item for key, item in given if type(key) is str and type(item) is int}
            return value if counted == value else counted
        case "audio_seconds":
            is_length = isinstance(value, int | float) and 0 <= value <= MOST_TOKENS
            return value if is_length else 0
        case _:
            count = _count(value)
            return value if type(value) is int and count == value else count


def _amount(value: Any) -> Decimal | None:
    try:
        parse_usd(value)
    except InvalidValueError:
        return None
    return value if isinstance(value, Decimal) else Decimal(str(value))


def usage_of(answer: ModelResponse, cost: Cost) -> Usage:
    """What the answer used, counted as the API does: tokens from the cache are not among the input's."""
    used = answer.usage
    read, written = _count(used.cache_read_tokens), _count(used.cache_write_tokens)
    return Usage(
        input_tokens=max(_count(used.input_tokens) - read - written, 0),
        output_tokens=_count(used.output_tokens),
        cache_creation_input_tokens=written,
        cache_read_input_tokens=read,
        cost_microusd=cost.amount,
    )


def _count(tokens: Any) -> int:
    """What a provider says, as far as it can be so: nothing is given back, and nothing is beyond counting."""
    if not isinstance(tokens, int | float) or not tokens > 0:  # so is what is no number at all
        return 0
    return int(min(tokens, MOST_TOKENS))


class WorstCase(msgspec.Struct, frozen=True, kw_only=True):
    """The most that a request can cost."""

    cost: MicroUsd | None
    """None when the price of a model that may answer is unknown."""
    tokens: int


class Prospect(msgspec.Struct, frozen=True, kw_only=True):
    """A request about to be made: what it sends, and what it can cost for each size of answer."""

    model: Model
    declared: Prices
    asked: int
    """The most tokens that it sends."""
    sent: RequestUsage = msgspec.field(default_factory=RequestUsage)
    """What is probably sent with it: not the most, but what is counted if the usage stays unknown."""

    def worst_case(self, max_output: int) -> WorstCase:
        """Return the most that it can cost with an answer of `max_output` tokens."""
        if isinstance(self.model, ScriptModel):
            used = self.model.next_usage
            return WorstCase(cost=used.cost_microusd, tokens=tokens_in(used))
        return WorstCase(cost=self._most(max_output), tokens=self.asked + max_output)

    def fitting_output(self, shortfall: Shortfall, max_output: int) -> int:
        """Return the longest answer that what is left is enough for; 0 when none is, or size is not the matter."""
        if isinstance(self.model, ScriptModel):
            return 0
        match shortfall.name:
            case LimitName.TOKENS:
                return max(0, min(max_output, shortfall.left - self.asked))
            case LimitName.SPEND:
                return self._affordable(shortfall.left, max_output)
            case _:
                return 0

    def _affordable(self, left: int, max_output: int) -> int:
        """The longest answer that costs no more than `left`: a longer one never costs less."""
        fits, too_long = 0, max_output + 1
        while too_long - fits > 1:
            middle = (fits + too_long) // 2
            cost = self._most(middle)
            if cost is not None and cost <= left:
                fits = middle
            else:
                too_long = middle
        return fits

    def _most(self, answered: int) -> MicroUsd | None:
        """What the dearest of the models that may answer can cost; None when the price of one is unknown."""
        costs = [
            _most(member, self.declared, self.asked, answered) for member in members(self.model)
        ]
        known = [cost for cost in costs if cost is not None]
        return max(known) if len(known) == len(costs) else None


def prospect_of(
    model: Model, messages: Sequence[ModelMessage], *, constants_bytes: int, declared: Prices = NONE
) -> Prospect:
    """Return the request that asks `model` to answer `messages`.

    What was counted by the provider for the last answer is taken as it is, and everything since by its size.
    """
    if isinstance(model, ScriptModel):
        return Prospect(model=model, declared=declared, asked=0)
    known, since = _counted(messages)
    size = len(ModelMessagesTypeAdapter.dump_json(since)) + (0 if known else constants_bytes)
    return Prospect(
        model=model,
        declared=declared,
        asked=known + size // BYTES_PER_TOKEN + FRAME_TOKENS,
        sent=_sent(known + size // USUAL_BYTES_PER_TOKEN, messages),
    )


def used_so_far(
    model: Model, sent: RequestUsage, said: RequestUsage, heard: int, declared: Prices = NONE
) -> Usage:
    """What an answer on its way has used: as far as the provider `said`, else what was `sent` and `heard`, in bytes."""
    known = said if said.input_tokens else sent
    answered = max(said.output_tokens, heard // USUAL_BYTES_PER_TOKEN)
    cut = answer_of(model, replace(known, output_tokens=answered, cost=said.cost))
    return usage_of(cut, cost_of(cut, declared=declared))


def _sent(tokens: int, messages: Sequence[ModelMessage]) -> RequestUsage:
    """So many tokens, of which a cache has what it had of the last request, and was given by it."""
    last = next(
        (message.usage for message in reversed(messages) if isinstance(message, ModelResponse)),
        None,
    )
    cached = last.cache_read_tokens + last.cache_write_tokens if last is not None else 0
    return RequestUsage(input_tokens=tokens, cache_read_tokens=min(cached, tokens))


def _most(model: Model, declared: Prices, asked: int, answered: int) -> MicroUsd | None:
    """What so many tokens can cost. Filling a cache costs more, and whether it will be filled is unknown beforehand."""
    guesses = (
        RequestUsage(input_tokens=asked, output_tokens=answered),
        RequestUsage(input_tokens=asked, cache_write_tokens=asked, output_tokens=answered),
    )
    costs = [cost_of(answer_of(model, usage), declared=declared) for usage in guesses]
    if any(cost.source is CostSource.UNKNOWN for cost in costs):
        return None
    return max(cost.amount for cost in costs)


def answer_of(model: Model, usage: RequestUsage) -> ModelResponse:
    """An answer of `model` that says nothing, to ask the price of."""
    first = members(model)[0]
    return ModelResponse(
        [],
        usage=usage,
        model_name=first.model_name,
        provider_name=first.system,
        provider_url=first.base_url,
    )


def _counted(messages: Sequence[ModelMessage]) -> tuple[int, list[ModelMessage]]:
    """The tokens that the last answer says the conversation had come to, and what was said since."""
    for place in range(len(messages) - 1, -1, -1):
        message = messages[place]
        if isinstance(message, ModelResponse) and message.usage.input_tokens:
            return message.usage.total_tokens, list(messages[place + 1 :])
    return 0, list(messages)
