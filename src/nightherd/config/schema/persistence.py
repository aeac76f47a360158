"""`state_persistence.yaml`: when checkpoints are made, how state is written, how long it is kept."""

from __future__ import annotations

from typing import Annotated, Any, Literal, Self

from pydantic import AfterValidator, BeforeValidator, Discriminator, Field, Tag, model_validator

from nightherd.config.schema.types import Count, Filling, Flag, Model, Text, Whole, reading, refuse
from nightherd.errors import InvalidValueError
from nightherd.model.checkpoints.persistence import MUST_SAVE

TypeName = Literal["object", "array", "string", "integer", "number", "boolean", "null"]
Priority = Annotated[int, Field(ge=1, le=MUST_SAVE)]
Attempts = Annotated[Count, Field(le=100)]
Days = Annotated[Whole, Field(le=36_500)]
JOB_PLACE = "{thread_id}"
"""Stands for the job in a path."""


def kind_of_type(value: object) -> str:
    """Which form of `type` this is, so that one mistake is one problem."""
    return "(list)" if isinstance(value, list | tuple) else "(word)"


def some(types: tuple[str, ...]) -> tuple[str, ...]:
    """At least one; looked at when each of them is right."""
    if not types:
        raise refuse("too_short", "")
    return types


TypeOrTypes = Annotated[
    Annotated[TypeName, Tag("(word)")]
    | Annotated[tuple[TypeName, ...], AfterValidator(some), Tag("(list)")],
    Discriminator(kind_of_type),
]


def read_archive_path(text: str) -> str:
    """A path inside the state directory that is another for every job, and not where its document is."""
    parts = text.rstrip("/").split("/")
    is_plain = text.isprintable() and "\\" not in text
    if not is_plain or any(part in ("", ".", "..") for part in parts):
        raise InvalidValueError(
            f"{text!r} is not a path inside the state directory; write threads/{JOB_PLACE}/archive/"
        )
    if JOB_PLACE not in text:
        raise InvalidValueError(
            f"{text!r} is one place for all jobs, each of which would replace the last; put {JOB_PLACE} in it"
        )
    if parts == ["threads", JOB_PLACE]:
        raise InvalidValueError(
            f"archiving would delete the job's own document there; write threads/{JOB_PLACE}/archive/"
        )
    return text


ArchivePath = Annotated[
    str, BeforeValidator(reading("shape", read_archive_path), json_schema_input_type=str)
]


class FieldSchema(Model):
    """What one field of a `state.json` looks like."""

    type: TypeOrTypes | None = Field(None, description="Its type, or types.")
    description: Text | None = Field(None, description="What it says.")
    default: Any = Field(None, description="Its value in a file that lacks it.")
    properties: dict[str, FieldSchema] | None = Field(None, description="The fields inside it.")
    required: tuple[Filling, ...] | None = Field(None, description="Fields it must have.")
    items: FieldSchema | None = Field(None, description="What the items of the list look like.")
    enum: Annotated[tuple[Any, ...], Field(min_length=1)] | None = Field(
        None, description="The values it may have."
    )
    format: Literal["date-time"] | None = Field(None, description="What its text spells.")


class State(Model):
    """What a `state.json` holds."""

    required: tuple[Filling, ...] = Field(description="Fields it must have.")
    schema_: FieldSchema = Field(alias="schema", description="What it looks like.")


class Trigger(Model):
    """One place of a run at which a checkpoint can be made."""

    enabled: Flag = Field(description="Whether one is made there.")
    description: Text = Field(description="Which place it is.")
    priority: Priority = Field(
        description="How much it counts among those on one line; 10 is always saved, and synced."
    )

    @model_validator(mode="after")
    def always_saved(self) -> Self:
        """What must be saved cannot be switched off."""
        if self.priority == MUST_SAVE and not self.enabled:
            message = f"a trigger of priority {MUST_SAVE} is always saved; it cannot be disabled"
            raise refuse("conflict", message, key="enabled")
        return self


class Triggers(Model):
    """When checkpoints are made; one that was deleted is never made."""

    pre_turn: Trigger | None = Field(None, description="Before each model call.")
    post_llm: Trigger | None = Field(None, description="After the model has answered.")
    post_tools: Trigger | None = Field(None, description="After the tools have run.")
    on_suspend: Trigger = Field(description="When the job begins to wait.")
    on_error: Trigger = Field(description="When the job fails.")
    on_cancel: Trigger = Field(description="When the job is cancelled.")


class Retry(Model):
    """What happens when the file cannot be written."""

    enabled: Flag = Field(description="Whether a failed write is retried.")
    max_attempts: Attempts = Field(description="Maximum number of attempts.")
    backoff: Literal["exponential", "linear", "fixed"] = Field(
        description="How the pauses between tries grow."
    )


class Performance(Model):
    """How `state.json` is written."""

    incremental: Flag = Field(
        description="Whether it is written only when a job stops, not at every checkpoint."
    )
    compress: Flag = Field(description="Whether it is written as state.json.gz.")
    atomic: Flag = Field(
        description="Whether it is written beside the old one and then replaces it."
    )
    retry: Retry = Field(description="What happens when it cannot be written.")


class Checkpoints(Model):
    """When checkpoints are made, and how state is written then."""

    triggers: Triggers = Field(description="When they are made.")
    performance: Performance = Field(description="How state is written.")


class Cleanup(Model):
    """Which old checkpoints go."""

    enabled: Flag = Field(description="Whether any go because of their age.")
    keep_last_n: Whole = Field(description="How many of the last ones stay in any case.")
    delete_older_than_days: Days = Field(description="The age beyond which they go.")


class ChatRetention(Model):
    """How long what was said in chat is kept, and the files that people sent."""

    enabled: Flag = Field(default=True, description="Whether any of it goes because of its age.")
    delete_older_than_days: Days = Field(default=90, description="The age beyond which it goes.")


class Completion(Model):
    """What becomes of a job's checkpoints once it has ended."""

    action: Literal["archive", "delete", "keep"] = Field(description="What is done with them.")
    archive_path: ArchivePath = Field(description="Where they are put, inside the state directory.")


class Retention(Model):
    """How long checkpoints are kept, and what was said in chat."""

    automatic: Flag = Field(
        True, description="Whether a started fleet archives and cleans up by itself, once a day."
    )
    max_checkpoints: Count = Field(description="How many are kept of one job.")
    cleanup: Cleanup = Field(description="Which old ones go.")
    chat: ChatRetention = Field(
        ChatRetention(), description="How long what was said in chat is kept."
    )
    on_completion: Completion = Field(description="What becomes of them at the end of the job.")


class PersistenceFile(Model):
    """The whole file, everything it extends laid under it."""

    schema_version: Literal["1.0.0", "1.1.0"] = Field(description="Version of the format.")
    state: State = Field(description="What a state.json holds.")
    checkpoint: Checkpoints = Field(description="When checkpoints are made.")
    retention: Retention = Field(description="How long they are kept.")
