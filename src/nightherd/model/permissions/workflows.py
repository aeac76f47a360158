"""What workflows grant: a workflow is accepted as a whole, but for words that only people read."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from typing import Any

import msgspec
from msgspec.structs import replace

from nightherd.model.permissions.fingerprint import fingerprint, relative
from nightherd.model.workflows.definition import (
    NO_MESSAGES,
    BlockAction,
    Phase,
    WorkflowAction,
    WorkflowDefinition,
)

Workflows = Mapping[str, WorkflowDefinition]


def workflow_fingerprint(definition: WorkflowDefinition, home: str) -> str:
    """What a run may do: the same after a change of descriptions, labels and messages, and in a fleet that was moved."""
    return fingerprint(_given(_without_words(definition, home)))


def _without_words(definition: WorkflowDefinition, home: str) -> WorkflowDefinition:
    own, directory = definition.home, definition.working_directory
    return replace(
        definition,
        description="",
        inputs={name: replace(one, description="") for name, one in definition.inputs.items()},
        phases=_bare(definition.phases, home),
        home=None if own is None else relative(own, home),
        working_directory=None if directory is None else relative(directory, home),
    )


def _bare(phases: tuple[Phase, ...], home: str) -> tuple[Phase, ...]:
    bare = []
    for phase in phases:
        action = phase.action
        if isinstance(action, BlockAction):
            action = BlockAction(phases=_bare(action.phases, home))
        elif isinstance(action, WorkflowAction) and action.definition is not None:
            action = replace(action, definition=_without_words(action.definition, home))
        bare.append(replace(phase, action=action, label=None, messages=NO_MESSAGES))
    return tuple(bare)


def _given(value: Any) -> Any:
    """A value without what is as by default: a key that a later version adds changes no fingerprint."""
    if isinstance(value, msgspec.Struct):
        config = value.__struct_config__
        given = {
            name: _given(one)
            for name, default in _defaults(type(value)).items()
            if (one := getattr(value, name)) != default
        }
        return given if config.tag is None else {**given, str(config.tag_field): config.tag}
    if isinstance(value, Mapping):
        return {str(name): _given(one) for name, one in value.items()}
    if isinstance(value, list | tuple):
        return [_given(one) for one in value]
    return value


@functools.cache
def _defaults(struct: type[msgspec.Struct]) -> dict[str, Any]:
    """The fields of a struct with their defaults; NODEFAULT for one that is always given."""
    return {
        field.name: field.default
        if field.default_factory is msgspec.NODEFAULT
        else field.default_factory()
        for field in msgspec.structs.fields(struct)
    }


def workflow_directories(workflows: Workflows, home: str) -> list[str]:
    """The directories that workflows have their agents work in, those below `home` relative to it."""
    named = (one.working_directory for one in workflows.values())
    return sorted({relative(one, home) for one in named if one is not None})


def accepted_workflows(
    workflows: Workflows, before: Workflows, is_accepted: Callable[[WorkflowDefinition], bool]
) -> dict[str, WorkflowDefinition]:
    """The workflows that were accepted; one that was changed stays as it was before, or away."""
    kept = {}
    for name, definition in workflows.items():
        for one in (definition, before.get(name)):
            if one is not None and is_accepted(one):
                kept[name] = one
                break
    return kept
