"""Which model an agent means by `provider:name`, reached with the keys of the agent's own environment."""

from __future__ import annotations

import inspect
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from functools import partial
from typing import Any

from pydantic_ai.models import Model, infer_model
from pydantic_ai.models.fallback import FallbackModel
from pydantic_ai.providers import Provider, infer_provider, infer_provider_class
from pydantic_ai.settings import ModelSettings

from nightherd.errors import UsageError
from nightherd.model.agents.agent import Agent
from nightherd.model.jobs.failure import advice_on_code, key_advice
from nightherd.runtimes.native.failure import MODEL_ERRORS, error_event

MAX_OUTPUT_TOKENS = 16_384
"""What an answer may hold besides its thoughts. With them it is what is reserved before it is asked for."""
LEAST_OUTPUT_TOKENS = 256
"""A shorter answer is not worth what sending the conversation costs."""
THOUGHTS = {"low": 2_048, "medium": 10_000, "high": 16_384, "max": 32_768}
"""Tokens that thoughts may take: a provider refuses a request whose answer could not hold them and more."""

VARIABLES = {"openai-chat": "OPENAI", "openai-responses": "OPENAI", "cohere": "CO"}
"""How a provider's variables begin where that is not its name: `OPENAI_API_KEY`, `OPENAI_BASE_URL`."""


def model_of(agent: Agent, environment: Mapping[str, str]) -> Model:
    """The agent's model; with a `fallback_model`, which answers when the first is not to be had.

    `UsageError` when the agent names none; what pydantic-ai raises when it does not know it, or a key is missing.
    """
    if agent.model is None:
        raise UsageError(
            f"agent {agent.name} has no model",
            hint="set `model: provider:name`, for example `model: anthropic:claude-sonnet-5-5`",
        )
    factory = partial(provider_of, environment=environment)
    first = infer_model(agent.model, factory)
    if agent.fallback_model is None:
        return first
    return FallbackModel(first, infer_model(agent.fallback_model, factory))


def members(model: Model) -> Sequence[Model]:
    """The models that may answer: one, or those of a fallback in their order."""
    return model.models if isinstance(model, FallbackModel) else [model]


def provider_of(name: str, *, environment: Mapping[str, str]) -> Provider[Any]:
    """The provider called `name`, with key and address from `environment` where it takes them."""
    if name.startswith("gateway/"):
        return infer_provider(name)
    try:
        kind = infer_provider_class(name)
    except ValueError as error:
        raise UsageError(f"there is no provider {name!r} of models") from error
    prefix = VARIABLES.get(name, name.upper().replace("-", "_"))
    given = {
        "api_key": environment.get(f"{prefix}_API_KEY"),
        "base_url": environment.get(f"{prefix}_BASE_URL"),
    }
    taken = inspect.signature(kind).parameters
    return kind(**{key: value for key, value in given.items() if value and key in taken})


def least_output(agent: Agent) -> int:
    """Return the size of the smallest answer that is worth asking for."""
    return _thoughts(agent) + LEAST_OUTPUT_TOKENS


def full_output(agent: Agent) -> int:
    """Return the size of the largest answer that is asked for."""
    return _thoughts(agent) + MAX_OUTPUT_TOKENS


def _thoughts(agent: Agent) -> int:
    return THOUGHTS.get(agent.effort or "", 0)


def settings_of(agent: Agent, model: Model) -> ModelSettings:
    """What every request says besides the conversation. Tries again are the engine's business, not a client's."""
    settings = ModelSettings(max_tokens=full_output(agent))
    if all(member.provider is not None for member in members(model)):
        settings["max_retries"] = 0
    if all(one.profile.get("supports_cache") for one in members(model)):
        settings["cache"] = True
    match agent.effort:
        case "low" | "medium" | "high" | "max":
            settings["thinking"] = agent.effort
        case _:
            pass
    return settings


NEVER = datetime(1970, 1, 1, tzinfo=UTC)


def why_no_model(agent: Agent, environment: Mapping[str, str]) -> tuple[str, str | None] | None:
    """Why the agent's model cannot be asked, and what to do about it; None when nothing speaks against it."""
    if agent.script is not None:
        return None
    try:
        model_of(agent, environment)
    except MODEL_ERRORS as error:
        event = error_event(error, turn=0, at=NEVER)
        if event.code == "missing_api_key":
            return event.message, key_advice(event.message)
        return event.message, advice_on_code(event.code or "")
    return None
