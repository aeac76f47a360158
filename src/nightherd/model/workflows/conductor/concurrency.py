"""The concurrency key of a run: runs with the same key count together."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from nightherd.errors import InvalidValueError
from nightherd.model.workflows.definition import WorkflowDefinition
from nightherd.model.workflows.expressions.evaluate import EvaluationError, Scope
from nightherd.model.workflows.expressions.templates import parse_template, render_plain
from nightherd.model.workflows.expressions.tree import Mistake
from nightherd.model.workflows.expressions.types import Names
from nightherd.model.workflows.triggers import (
    TRIGGER_NAMES,
    RunTrigger,
    input_names,
    trigger_values,
)


def concurrency_key(
    definition: WorkflowDefinition, inputs: Mapping[str, Any], trigger: RunTrigger
) -> str | None:
    """Return the key; None when the number of runs is not limited. `InvalidValueError` when it has no value."""
    terms = definition.concurrency
    if terms.max_runs is None:
        return None
    if terms.key is None:
        return definition.name
    types = {"inputs": input_names(definition.inputs), "trigger": TRIGGER_NAMES}
    values = {"inputs": dict(inputs), "trigger": trigger_values(trigger)}
    scope = Scope(names=Names(types=types), values=values, untrusted=frozenset())
    template = parse_template(terms.key)
    value = template if isinstance(template, Mistake) else render_plain(template, scope)
    if isinstance(value, Mistake | EvaluationError):
        raise InvalidValueError(f"concurrency.key has no value: {value.message}")
    return f"{definition.name}:{value}"
