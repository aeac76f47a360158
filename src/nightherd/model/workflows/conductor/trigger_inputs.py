"""The inputs that a message gives a run: the templates of its trigger, filled in from what came."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from nightherd.errors import InvalidValueError
from nightherd.model.workflows.expressions.evaluate import EvaluationError, Scope
from nightherd.model.workflows.expressions.templates import parse_template, render_value
from nightherd.model.workflows.expressions.tree import Mistake
from nightherd.model.workflows.expressions.types import Names
from nightherd.model.workflows.triggers import TRIGGER_NAMES, RunTrigger, trigger_values


def filled_inputs(inputs: Mapping[str, Any], trigger: RunTrigger) -> dict[str, Any]:
    """Return the inputs with the templates in their texts filled in, at every depth.

    `InvalidValueError` for a place that the message does not have.
    """
    values = {"trigger": trigger_values(trigger)}
    scope = Scope(names=Names(types={"trigger": TRIGGER_NAMES}), values=values)
    return {name: _filled(name, value, scope) for name, value in inputs.items()}


def _filled(name: str, value: Any, scope: Scope) -> Any:
    match value:
        case str():
            template = parse_template(value)
            found = template if isinstance(template, Mistake) else render_value(template, scope)
            if isinstance(found, Mistake | EvaluationError):
                raise InvalidValueError(f"inputs.{name}: {found.message}")
            return found
        case Mapping():
            return {key: _filled(name, inner, scope) for key, inner in value.items()}
        case list() | tuple():
            return [_filled(name, inner, scope) for inner in value]
        case _:
            return value


def name_in(payload: Any, *path: str) -> str | None:
    """Return the text at that place of a payload; None when there is none."""
    value = payload
    for name in path:
        value = value.get(name) if isinstance(value, Mapping) else None
    return value if isinstance(value, str) else None
