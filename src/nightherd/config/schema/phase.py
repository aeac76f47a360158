"""`phases` of a workflow: each has exactly one verb, and the keys that go with it."""

from __future__ import annotations

from typing import Annotated, Any, Literal, Self

from pydantic import Discriminator, Field, Tag, model_validator

from nightherd.config.schema.phase_parts import (
    PLACE,
    AgentWork,
    AnyForEach,
    AnyPlace,
    AnyWait,
    Condition,
    Gate,
    Loop,
    Messages,
    Names,
    Output,
    Review,
)
from nightherd.config.schema.types import (
    Anything,
    Environment,
    Filling,
    Flag,
    Inputs,
    Model,
    Span,
    Text,
    Whole,
    refuse,
)
from nightherd.config.wording import listed
from nightherd.model.workflows.definition import TriggerRule

VERBS = ("agent", "bash", "python", "workflow", "gate", "wait", "phases", "review")
Rule = Literal[
    "all_success", "one_success", "none_failed_min_one_success", "all_done", "one_failed"
]


class CommonPhase(Model):
    """What every phase has."""

    name: Filling = Field(description="Its name: small letters, digits and '_'.")
    label: Text | None = Field(None, description="Its name for people.")
    depends_on: Names | None = Field(
        None,
        description="Phases of the same block that it waits for; if no phase of a block says, they run one after the other.",
    )
    trigger_rule: Rule = Field(
        TriggerRule.ALL_SUCCESS.value, description="Which outcomes of those let it run."
    )
    when: Condition | None = Field(
        None, description="Expression: the phase is skipped when it is false."
    )
    retries: Whole = Field(0, description="How often a failed attempt is repeated.")
    timeout: Span | None = Field(None, description="How long an attempt may take.")
    on_failure: Literal["fail", "continue"] = Field(
        "fail", description="Whether its failure fails the run."
    )
    for_each: AnyForEach | None = Field(
        None, description="Runs the phase for every item of a list."
    )
    messages: Messages | None = Field(None, description="What people are told about it.")
    untrusted: Flag = Field(
        False, description="Whether its output is text that other people wrote; prompts mark it."
    )


class LoopedPhase(CommonPhase):
    """What every phase has that can be repeated."""

    loop: Loop | None = Field(None, description="Repeats the phase.")


class AgentPhase(LoopedPhase, AgentWork):
    """A job of an agent."""

    output: Output = Field(None, description="`text`, or the JSON Schema of its answer.")


class CommandPhase(LoopedPhase):
    """What commands have."""

    env: Environment = Field({}, description="Variables for it; templates.")
    stdin: Text | None = Field(None, description="Its standard input; a template.")
    on_interrupt: Literal["ask", "rerun", "fail"] = Field(
        "ask", description="What happens when it was cut off and nobody knows how far it came."
    )
    output: Output = Field(None, description="`text`, or the JSON Schema of what it prints.")
    container: AnyPlace = Field(None, description=PLACE)


class BashPhase(CommandPhase):
    """A command of bash."""

    bash: Filling = Field(description="Command to run; values come by `env` and `stdin`.")


class PythonPhase(CommandPhase):
    """A program of Python."""

    python: Filling = Field(description="Program to run; values come by `env` and `stdin`.")


class WorkflowPhase(LoopedPhase):
    """A run of another workflow."""

    workflow: Filling = Field(description="Workflow to run.")
    inputs: Inputs = Field({}, description="Its inputs; texts are templates.")


class GatePhase(LoopedPhase):
    """A wait for a person."""

    gate: Gate = Field(description="What is asked.")


class WaitPhase(LoopedPhase):
    """A wait for a time or an event."""

    wait: AnyWait = Field(description="What it waits for.")


class BlockPhase(LoopedPhase):
    """Phases that belong together."""

    phases: tuple[AnyPhase, ...] = Field(description="The phases inside.")


class ReviewPhase(CommonPhase):
    """A review-fix loop in short."""

    review: Review = Field(description="Reviews and fixes until the review approves.")


class OtherPhase(CommonPhase):
    """A phase without a verb, or with several: only says so."""

    agent: Anything = Field(None, description="Agent that works.")
    bash: Anything = Field(None, description="Command to run.")
    python: Anything = Field(None, description="Program to run.")
    workflow: Anything = Field(None, description="Workflow to run.")
    gate: Anything = Field(None, description="What is asked.")
    wait: Anything = Field(None, description="What it waits for.")
    phases: Anything = Field(None, description="The phases inside.")
    review: Anything = Field(None, description="Reviews and fixes.")

    @model_validator(mode="after")
    def one_verb(self) -> Self:
        """Refuse what no model of a phase took."""
        verbs = [verb for verb in VERBS if verb in self.model_fields_set]
        if len(verbs) > 1:
            message = f"a phase does one thing; this one has {listed(verbs)}"
            raise refuse("incomplete", message, key=verbs[1])
        raise refuse("incomplete", f"a phase needs one of {listed(VERBS)}")


def verb_of(value: Any) -> str:
    """Which model describes this phase, so that one mistake is one problem."""
    verbs = [verb for verb in VERBS if verb in value] if isinstance(value, dict) else []
    return f"({verbs[0]})" if len(verbs) == 1 else "(other)"


AnyPhase = Annotated[
    Annotated[AgentPhase, Tag("(agent)")]
    | Annotated[BashPhase, Tag("(bash)")]
    | Annotated[PythonPhase, Tag("(python)")]
    | Annotated[WorkflowPhase, Tag("(workflow)")]
    | Annotated[GatePhase, Tag("(gate)")]
    | Annotated[WaitPhase, Tag("(wait)")]
    | Annotated[BlockPhase, Tag("(phases)")]
    | Annotated[ReviewPhase, Tag("(review)")]
    | Annotated[OtherPhase, Tag("(other)")],
    Discriminator(verb_of),
]
