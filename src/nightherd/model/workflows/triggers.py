"""What starts a workflow: its declared inputs and triggers, and the trigger of one run."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import timedelta
from enum import StrEnum
from typing import Any

import msgspec

from nightherd.errors import InvalidValueError
from nightherd.model.jobs.job import TriggerType
from nightherd.model.json_text import check_value
from nightherd.model.schedules.rule import UTC_NAME, Cron, Interval, Rule
from nightherd.model.text import quote
from nightherd.model.workflows.expressions.types import (
    ANY,
    BOOLEAN,
    LIST,
    NUMBER,
    OBJECT,
    TEXT,
    Type,
    described,
    kind_of,
    namespace_of,
    one_of,
    optional,
)


class InputType(StrEnum):
    """What an input is."""

    TEXT = "text"
    NUMBER = "number"
    BOOLEAN = "boolean"
    LIST = "list"
    OBJECT = "object"


INPUT_TYPES = {
    InputType.TEXT: TEXT,
    InputType.NUMBER: NUMBER,
    InputType.BOOLEAN: BOOLEAN,
    InputType.LIST: LIST,
    InputType.OBJECT: OBJECT,
}


class InputSpec(msgspec.Struct, frozen=True, kw_only=True):
    """A declared input. Without a default, one that is not required may be null."""

    type: InputType = InputType.TEXT
    required: bool = False
    default: Any = None
    description: str = ""

    @property
    def value_type(self) -> Type:
        """What expressions know about it."""
        known = INPUT_TYPES[self.type]
        return known if self.required or self.default is not None else optional(known)


def input_names(inputs: Mapping[str, InputSpec]) -> Type:
    """Return the type of the root `inputs`."""
    return namespace_of({name: spec.value_type for name, spec in inputs.items()})


def input_mismatch(spec: InputSpec, value: Any) -> str | None:
    """Return why a value is not what the input takes; None when it is."""
    if value is None and not spec.required:
        return None
    if kind_of(value).value == spec.type.value:
        return None
    return f"expected {INPUT_TYPES[spec.type]}, got {described(value)}"


class InputProblem(msgspec.Struct, frozen=True, kw_only=True):
    """What is wrong with the value of one input."""

    name: str
    message: str


def complete_inputs(
    specs: Mapping[str, InputSpec], given: Mapping[str, Any]
) -> tuple[dict[str, Any], tuple[InputProblem, ...]]:
    """Return a value for every declared input, and what is wrong with those that are given."""
    values = {
        name: spec.default if given.get(name) is None else given[name]
        for name, spec in specs.items()
    }
    return values, tuple(_input_problems(specs, given, values))


def _input_problems(
    specs: Mapping[str, InputSpec], given: Mapping[str, Any], values: Mapping[str, Any]
) -> Iterator[InputProblem]:
    for name in given:
        if name not in specs:
            declared = ", ".join(specs) or "none"
            message = f"there is no input {quote(name)}; declared: {declared}"
            yield InputProblem(name=name, message=message)
    for name, spec in specs.items():
        try:
            check_value(values[name])
        except InvalidValueError as error:
            message = f"the input {quote(name)} cannot be stored: {error.message}"
            yield InputProblem(name=name, message=message)
            continue
        if values[name] is None and spec.required:
            yield InputProblem(name=name, message=f"the input {quote(name)} is required")
        elif (reason := input_mismatch(spec, values[name])) is not None:
            yield InputProblem(name=name, message=f"the input {quote(name)}: {reason}")


class WhenBusy(StrEnum):
    """What happens to a trigger while as many runs are there as may be."""

    QUEUE = "queue"
    DROP = "drop"
    REPLACE = "replace"
    """The oldest run is cancelled."""


class Concurrency(msgspec.Struct, frozen=True, kw_only=True):
    """How many runs of a workflow there may be at the same time."""

    max_runs: int | None = None
    """None for no limit."""
    key: str | None = None
    """A template over `inputs` and `trigger`: runs with the same key count together. None: all runs."""
    when_busy: WhenBusy = WhenBusy.QUEUE


class WorkflowSchedule(msgspec.Struct, frozen=True, kw_only=True):
    """A rule in time that starts runs. Exactly one of `interval` and `cron` is set."""

    interval: timedelta | None = None
    cron: str | None = None
    timezone: str = UTC_NAME
    inputs: Mapping[str, Any] = msgspec.field(default_factory=dict)

    @property
    def rule(self) -> Rule:
        """When it is due."""
        if self.interval is not None:
            return Interval(every=self.interval)
        return Cron(expression=self.cron or "", timezone=self.timezone)


class MessageTrigger(msgspec.Struct, frozen=True, kw_only=True):
    """A webhook or chat that starts runs."""

    inputs: Mapping[str, Any] = msgspec.field(default_factory=dict)
    """Values; their texts are templates over `trigger`, at any depth."""


class Triggers(msgspec.Struct, frozen=True, kw_only=True):
    """Everything that starts runs of a workflow."""

    schedules: Mapping[str, WorkflowSchedule] = msgspec.field(default_factory=dict)
    webhooks: Mapping[str, MessageTrigger] = msgspec.field(default_factory=dict)
    """By the name of the fleet's endpoint."""
    chat: MessageTrigger | None = None
    api: bool = True
    """Whether people and programs may start it."""


NO_TRIGGERS = Triggers()


class RunTrigger(msgspec.Struct, frozen=True, kw_only=True):
    """What started a run, with all that it brought. Never changed."""

    type: TriggerType = TriggerType.MANUAL
    id: str = ""
    """The delivery, slot, channel or job."""
    actor: str | None = None
    repo: str | None = None
    issue_number: int | None = None
    channel: str | None = None
    payload: Any = None
    untrusted_inputs: frozenset[str] = frozenset()
    """Inputs that hold what other people wrote, besides those of webhooks and chats: a parent run's."""

    @property
    def is_from_other_people(self) -> bool:
        """Whether a message of other people started the run."""
        return self.type in FROM_OTHER_PEOPLE

    def is_untrusted(self, name: str) -> bool:
        """Return whether an input holds what other people wrote."""
        return self.is_from_other_people or name in self.untrusted_inputs


FROM_OTHER_PEOPLE = frozenset(
    {TriggerType.WEBHOOK, TriggerType.CHAT, TriggerType.DISCORD, TriggerType.SLACK}
)
"""Triggers whose inputs are texts that other people wrote."""

TRIGGER_NAMES = namespace_of(
    {
        "type": one_of(*TriggerType),
        "id": TEXT,
        "actor": optional(TEXT),
        "repo": optional(TEXT),
        "issue_number": optional(NUMBER),
        "channel": optional(TEXT),
        "payload": ANY,
    }
)
"""The type of the root `trigger`."""


def trigger_values(trigger: RunTrigger) -> dict[str, Any]:
    """Return the values of the root `trigger`."""
    fields = TRIGGER_NAMES.fields or {}
    return {name: getattr(trigger, name) for name in fields} | {"type": trigger.type.value}
