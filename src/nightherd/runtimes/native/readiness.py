"""Whether a native agent's model could be asked now: it is known, its provider is installed, its key is there."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime

from nightherd.model.advice import ADVICE, key_advice
from nightherd.model.agent import Agent
from nightherd.runtimes.native.failure import MODEL_ERRORS, error_event
from nightherd.runtimes.native.provider import model_of

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
        advice = ADVICE.get(event.code or "")
        return event.message, advice if advice and "{" not in advice else None
    return None
