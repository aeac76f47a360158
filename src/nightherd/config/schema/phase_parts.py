"""What the phases of a workflow are made of: loops, lists, limits, and what each verb takes."""

from __future__ import annotations

from typing import Annotated, Literal, Self

from pydantic import BeforeValidator, Field, model_validator

from nightherd.config.schema.types import (
    Anything,
    Count,
    Environment,
    Filling,
    Flag,
    Model,
    Money,
    Name,
    Span,
    Text,
    Whole,
    refuse,
    typed,
)
from nightherd.model.workflows.definition import MOST_ITERATIONS


def from_truth(value: object) -> object:
    """`when: true` is a condition too."""
    return str(value).lower() if isinstance(value, bool) else value


def from_single(value: object) -> object:
    """A single text is a list of one."""
    return (value,) if isinstance(value, str) else value


Condition = Annotated[str, BeforeValidator(from_truth, json_schema_input_type=str | bool)]
Names = Annotated[
    tuple[Text, ...], BeforeValidator(from_single, json_schema_input_type=tuple[Text, ...] | Text)
]
Schema = dict[str, Anything]


def from_word(value: object) -> object:
    """The word `text` is an output without a schema."""
    return None if value == "text" else value


Output = Annotated[
    Schema | None,
    BeforeValidator(from_word, json_schema_input_type=Schema | Literal["text"] | None),
]


class RunLimits(Model):
    """What a run, or a phase of it, may use."""

    spend: Money | None = Field(None, description="Dollars.")
    turns: Count | None = Field(None, description="Turns.")
    tokens: Count | None = Field(None, description="Tokens of every kind.")
    spawns: Whole | None = Field(None, description="Child jobs.")
    depth: Whole | None = Field(None, description="Levels of child jobs.")
    duration: Span | None = Field(None, description="Time of running.")
    on_reached: Literal["suspend", "fail"] = Field(
        "suspend", description="What happens at a limit: the job waits for a person, or fails."
    )


class ForEach(Model):
    """A list whose items the phase runs for."""

    items: Filling = Field(description="Expression that gives a list.")
    max_parallel: Count = Field(10, description="How many items run at the same time.")


def from_items(value: object) -> object:
    """A bare text is the list."""
    return {"items": value} if isinstance(value, str) else value


AnyForEach = Annotated[ForEach, BeforeValidator(from_items, json_schema_input_type=ForEach | Text)]


def from_place(value: object) -> object:
    """An agent, or whether it is a container at all."""
    value = typed(value)
    if isinstance(value, bool) or (isinstance(value, str) and value):
        return value
    raise refuse("bad_place", "must be the name of an agent, true or false")


AnyPlace = Annotated[
    str | bool | None, BeforeValidator(from_place, json_schema_input_type=Filling | bool)
]
PLACE = "Container to run in: one like that of this agent; true: of the nearest agent that has one; false: none."


class UntilCommand(Model):
    """A command that ends a loop when it exits with 0."""

    bash: Filling | None = Field(None, description="Command of bash.")
    python: Filling | None = Field(None, description="Program of Python.")
    env: Environment = Field({}, description="Variables for it; templates.")
    timeout: Span | None = Field(None, description="How long it may take.")
    container: AnyPlace = Field(None, description=PLACE)

    @model_validator(mode="after")
    def has_one_language(self) -> Self:
        """It is written in one language."""
        if (self.bash is None) is (self.python is None):
            raise refuse("incomplete", "an until_command has either 'bash' or 'python'")
        return self


def from_bash(value: object) -> object:
    """A bare text is a command of bash."""
    return {"bash": value} if isinstance(value, str) else value


AnyUntilCommand = Annotated[
    UntilCommand, BeforeValidator(from_bash, json_schema_input_type=UntilCommand | Text)
]


class Loop(Model):
    """How often a phase runs, and what ends that."""

    max_iterations: Count = Field(description="How often it runs at most.")
    until: Condition | None = Field(
        None, description="Expression that ends the loop when it is true after an iteration."
    )
    until_command: AnyUntilCommand | None = Field(
        None, description="Command that ends the loop when it exits with 0; runs after `until`."
    )
    fresh_context: Flag = Field(
        False, description="Whether each iteration begins with sessions of its own."
    )
    on_exhausted: Literal["fail", "continue"] = Field(
        "fail", description="What happens when nothing has ended the loop after the last iteration."
    )


class Messages(Model):
    """What people are told about a phase; templates."""

    on_start: Text | None = Field(None, description="When it begins.")
    on_success: Text | None = Field(None, description="When it has succeeded.")
    on_failure: Text | None = Field(None, description="When it has failed.")


class AgentWork(Model):
    """What an agent is asked."""

    agent: Filling = Field(description="Agent that works.")
    prompt: Text | None = Field(None, description="What it is asked; a template.")
    prompt_file: Filling | None = Field(None, description="File that holds the prompt.")
    skill: Name | None = Field(
        None, description="Skill whose text the prompt begins with: skills/NAME/SKILL.md."
    )
    model: Filling | None = Field(None, description="Model instead of the agent's.")
    limits: RunLimits | None = Field(None, description="What its job may use.")
    session: Filling | None = Field(
        None, description="Phase whose session it continues; else `own`."
    )

    @model_validator(mode="after")
    def is_asked_something(self) -> Self:
        """An agent needs something to do, said once."""
        # A fix has a prompt also when none is given.
        if "prompt" in self.model_fields_set and self.prompt_file is not None:
            message = "'prompt' and 'prompt_file' both say what is asked; use only one"
            raise refuse("incomplete", message, key="prompt_file")
        if self.prompt_file is None and self.skill is None:
            if self.prompt is None:
                raise refuse("incomplete", "an agent needs 'prompt', 'prompt_file' or 'skill'")
            if not self.prompt.strip():
                raise refuse("incomplete", "the prompt is empty", key="prompt")
        return self


class Artifact(Model):
    """What a person looks at before they answer."""

    file: Filling | None = Field(None, description="A file of the workspace; a template.")
    diff: Literal[True] | None = Field(None, description="What changed in the workspace.")
    phase: Filling | None = Field(None, description="The output of this phase.")

    @model_validator(mode="after")
    def is_one_thing(self) -> Self:
        """It is one thing."""
        if [self.file, self.diff, self.phase].count(None) != 2:
            raise refuse("incomplete", "an artifact has one of 'file', 'diff' and 'phase'")
        return self


def from_diff(value: object) -> object:
    """The bare word `diff`."""
    return {"diff": True} if value == "diff" else value


AnyArtifact = Annotated[
    Artifact, BeforeValidator(from_diff, json_schema_input_type=Artifact | Literal["diff"])
]


class Gate(Model):
    """What a person is asked."""

    kind: Literal["approve", "reply"] = Field(
        "approve", description="approve: yes or no; reply: any text."
    )
    summary: Filling = Field(description="What is asked; a template.")
    artifact: AnyArtifact | None = Field(None, description="What is shown, and can be changed.")
    approvers: tuple[Name, ...] = Field((), description="Who may answer; else everybody.")
    quorum: Count = Field(1, description="How many different people have to approve.")
    expires: Span | None = Field(None, description="How long to wait for an answer.")
    remind: tuple[Span, ...] = Field((), description="When to remind people, counted from asking.")


class Wait(Model):
    """What is waited for."""

    duration: Filling | None = Field(
        None, alias="for", description="A duration such as 30m; a template."
    )
    until: Filling | None = Field(
        None, description="An instant such as 2026-11-15T12:00:00Z; a template."
    )
    event: Name | None = Field(None, description="An event.")

    @model_validator(mode="after")
    def is_one_thing(self) -> Self:
        """It waits for one thing."""
        if [self.duration, self.until, self.event].count(None) != 2:
            raise refuse("incomplete", "a wait has one of 'for', 'until' and 'event'")
        return self


def from_duration(value: object) -> object:
    """A bare text is how long."""
    return {"for": value} if isinstance(value, str) else value


AnyWait = Annotated[Wait, BeforeValidator(from_duration, json_schema_input_type=Wait | Text)]


class Fix(AgentWork):
    """What repairs what a review finds."""

    prompt: Text | None = Field(
        "Fix what the review found:\n\n${phases.review.output.comments}",
        description="What it is asked; a template that may use phases.review.output.comments.",
    )


class Review(AgentWork):
    """A review that is repeated, with fixes between, until it approves."""

    fix: Fix = Field(description="What repairs what it finds.")
    max_cycles: Count = Field(3, description="How many reviews there are at most.")
    fresh_context: Flag = Field(
        False, description="Whether each cycle begins with sessions of its own."
    )
    on_exhausted: Literal["fail", "continue"] = Field(
        "fail", description="What happens when the last review does not approve."
    )

    @model_validator(mode="after")
    def has_few_cycles(self) -> Self:
        """A cycle is an iteration of a loop."""
        if self.max_cycles > MOST_ITERATIONS:
            message = f"max_cycles is 1 to {MOST_ITERATIONS:,}"
            raise refuse("incomplete", message, key="max_cycles")
        return self
