"""A workflow: its inputs, its triggers and its phases. A file of its own, or an entry of `workflows`."""

from __future__ import annotations

from typing import Annotated, Literal, Self

from pydantic import BeforeValidator, Field, model_validator

from nightherd.config.schema.phase import AnyPhase
from nightherd.config.schema.phase_parts import RunLimits
from nightherd.config.schema.types import (
    Anything,
    Count,
    Cron,
    Filling,
    Flag,
    Inputs,
    Model,
    Name,
    Span,
    Text,
    TimeZone,
    refuse,
)
from nightherd.config.schema.workspace import AnyWorkflowDirectory
from nightherd.model.schedules.due import SHORTEST

InputKind = Literal["text", "number", "boolean", "list", "object"]


class WorkflowInput(Model):
    """A declared input."""

    type: InputKind = Field("text", description="What it is.")
    required: Flag = Field(False, description="Whether every run must have it.")
    default: Anything = Field(None, description="What it is when it is not given; else null.")
    description: Text = Field("", description="What it is for.")


def from_type(value: object) -> object:
    """A bare word is the type."""
    return {"type": value} if isinstance(value, str) else value


AnyInput = Annotated[
    WorkflowInput, BeforeValidator(from_type, json_schema_input_type=WorkflowInput | InputKind)
]


class RunConcurrency(Model):
    """How many runs there may be at the same time."""

    max_runs: Count | None = Field(None, description="How many; else as many as there are.")
    key: Filling | None = Field(
        None, description="Template: only runs with the same key count together."
    )
    when_busy: Literal["queue", "drop", "replace"] = Field(
        "queue",
        description="What happens to a further one: it waits, is dropped, or replaces the oldest.",
    )

    @model_validator(mode="after")
    def limits_something(self) -> Self:
        """Only a number of runs can be reached."""
        for key in ("key", "when_busy"):
            if self.max_runs is None and key in self.model_fields_set:
                message = f"'{key}' has no effect without 'max_runs'"
                raise refuse("incomplete", message, key=key)
        return self


class RunSchedule(Model):
    """A rule in time that starts runs."""

    interval: Span | None = Field(None, description="The time between two runs.")
    cron: Cron | None = Field(None, description="A cron expression.")
    timezone: TimeZone | None = Field(None, description="Time zone of the cron expression.")
    inputs: Inputs = Field({}, description="Inputs of its runs.")

    @model_validator(mode="after")
    def is_due_somehow(self) -> Self:
        """It is due by one rule."""
        if (self.interval is None) is (self.cron is None):
            raise refuse("incomplete", "a schedule has either 'interval' or 'cron'")
        if self.interval is not None and self.interval < SHORTEST:
            raise refuse("incomplete", "an interval is at least 1s", key="interval")
        if self.timezone is not None and self.cron is None:
            message = "'timezone' goes with 'cron'; an interval has none"
            raise refuse("incomplete", message, key="timezone")
        return self


class MessageTrigger(Model):
    """A message that starts runs."""

    inputs: Inputs = Field({}, description="Inputs of its runs; texts are templates over trigger.")


def from_names(value: object) -> object:
    """A list of names, each without more to say."""
    if isinstance(value, tuple) and all(isinstance(name, str) for name in value):
        return {name: {} for name in value}
    return value


Webhooks = Annotated[
    dict[Name, MessageTrigger],
    BeforeValidator(
        from_names, json_schema_input_type=dict[Name, MessageTrigger] | tuple[Name, ...]
    ),
]


def from_flag(value: object) -> object:
    """True for a trigger without more to say, false for none."""
    return ({} if value else None) if isinstance(value, bool) else value


AnyChat = Annotated[
    MessageTrigger | None,
    BeforeValidator(from_flag, json_schema_input_type=MessageTrigger | bool | None),
]


class RunTriggers(Model):
    """What starts runs."""

    schedules: dict[Name, RunSchedule] = Field({}, description="Rules in time, by name.")
    webhooks: Webhooks = Field({}, description="Endpoints of the fleet, by name.")
    chat: AnyChat = Field(
        None, description="Whether people in chats start runs, by the command `run`."
    )
    api: Flag = Field(True, description="Whether people and programs may start runs.")


class WorkflowFile(Model):
    """A workflow."""

    name: Name | None = Field(None, description="Its name: that of its file or entry.")
    description: Text = Field("", description="What it is for.")
    inputs: dict[str, AnyInput] = Field({}, description="Values that a run needs, by name.")
    limits: RunLimits | None = Field(None, description="What a whole run may use.")
    working_directory: AnyWorkflowDirectory | None = Field(
        None, description="Where its phases work; else each agent's own, and the fleet file's."
    )
    concurrency: RunConcurrency | None = Field(
        None, description="How many runs there may be at the same time."
    )
    triggers: RunTriggers | None = Field(None, alias="on", description="What starts runs.")
    phases: tuple[AnyPhase, ...] = Field(description="What a run does.")
