"""WorkflowDefinition: a declared workflow, resolved. A run keeps the whole definition it began with.

Everything is JSON. Expressions and templates are texts here; `expressions/` reads them. After resolving, every
dependency is written out: `depends_on` of a phase says all that it waits for.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import timedelta
from enum import StrEnum
from hashlib import sha256
from typing import Any

import msgspec

from nightherd.decoding import json_decoder
from nightherd.model.limits.limits import NO_LIMITS, Limits
from nightherd.model.workflows.triggers import NO_TRIGGERS, Concurrency, InputSpec, Triggers
from nightherd.model.workspaces.policy import WorkspacePolicy

MOST_PHASES = 500
"""Phases of a workflow, those inside blocks included."""
DEEPEST = 5
"""Levels of blocks, the workflow's own phases being the first."""
MOST_ITEMS = 1_000
"""Items of a `for_each`."""
MOST_ITERATIONS = 1_000
MOST_RETRIES = 100


class TriggerRule(StrEnum):
    """Which outcomes of its dependencies let a phase run."""

    ALL_SUCCESS = "all_success"
    ONE_SUCCESS = "one_success"
    """As soon as one has succeeded, without waiting for the others."""
    NONE_FAILED_MIN_ONE_SUCCESS = "none_failed_min_one_success"
    ALL_DONE = "all_done"
    ONE_FAILED = "one_failed"
    """As soon as one has failed: a recovery phase."""


EAGER = frozenset({TriggerRule.ONE_SUCCESS, TriggerRule.ONE_FAILED})
"""Rules that hold before every dependency has ended."""


class OnFailure(StrEnum):
    """What the failure of a phase does to its run."""

    FAIL = "fail"
    CONTINUE = "continue"
    """The run goes on as if the phase had succeeded, without its output."""


class OnExhausted(StrEnum):
    """What becomes of a loop whose condition is not met after its last iteration."""

    FAIL = "fail"
    CONTINUE = "continue"


class OnInterrupt(StrEnum):
    """What happens to a command that was cut off: nobody knows how far it came."""

    ASK = "ask"
    RERUN = "rerun"
    FAIL = "fail"


class Language(StrEnum):
    """What a command is written in."""

    BASH = "bash"
    PYTHON = "python"


class GateKind(StrEnum):
    """What a person is asked for."""

    APPROVE = "approve"
    REPLY = "reply"
    """Any text is an answer."""


class ArtifactKind(StrEnum):
    """What a gate shows."""

    FILE = "file"
    DIFF = "diff"
    """What changed in the workspace."""
    OUTPUT = "output"
    """The output of a phase."""


class AgentAction(msgspec.Struct, frozen=True, kw_only=True, tag_field="kind", tag="agent"):
    """A job of an agent."""

    agent: str
    prompt: str = ""
    """A template."""
    skill: str | None = None
    skill_text: str = ""
    """What the skill says, without its front matter; no template."""
    model: str | None = None
    limits: Limits = NO_LIMITS
    session: str | None = None
    """The phase whose session it continues; None for one of its own."""
    output: Mapping[str, Any] | None = None
    """The JSON Schema of its answer; None for text."""


class CommandAction(msgspec.Struct, frozen=True, kw_only=True, tag_field="kind", tag="command"):
    """A command. Its text is fixed: values come by `env` and `stdin`."""

    language: Language
    command: str
    env: Mapping[str, str] = msgspec.field(default_factory=dict)
    """Templates by the name of their variable."""
    stdin: str | None = None
    """A template."""
    on_interrupt: OnInterrupt = OnInterrupt.ASK
    output: Mapping[str, Any] | None = None
    """The JSON Schema of what it prints; None for text."""
    container: str | bool | None = None
    """Where it runs: `command_place.py`."""


class WorkflowAction(msgspec.Struct, frozen=True, kw_only=True, tag_field="kind", tag="workflow"):
    """A run of another workflow."""

    workflow: str
    inputs: Mapping[str, Any] = msgspec.field(default_factory=dict)
    """Values; their texts are templates, at any depth."""
    definition: WorkflowDefinition | None = None
    """What it runs; None until the definition is complete."""


class Artifact(msgspec.Struct, frozen=True, kw_only=True):
    """What a person looks at before they answer; the text that they leave is what the next phase gets."""

    kind: ArtifactKind
    file: str | None = None
    """A template: the path in the workspace."""
    phase: str | None = None


class GateAction(msgspec.Struct, frozen=True, kw_only=True, tag_field="kind", tag="gate"):
    """A wait for a person."""

    gate: GateKind = GateKind.APPROVE
    summary: str = ""
    """A template."""
    artifact: Artifact | None = None
    approvers: tuple[str, ...] = ()
    quorum: int = 1
    expires: timedelta | None = None
    remind: tuple[timedelta, ...] = ()


class WaitAction(msgspec.Struct, frozen=True, kw_only=True, tag_field="kind", tag="wait"):
    """A wait for time to pass, an instant, or an event. Exactly one field is set."""

    duration: str | None = None
    """A template that gives `30m`."""
    until: str | None = None
    """A template that gives `2026-11-15T12:00:00Z`."""
    event: str | None = None


class BlockAction(msgspec.Struct, frozen=True, kw_only=True, tag_field="kind", tag="block"):
    """Phases that belong together."""

    phases: tuple[Phase, ...]


Action = AgentAction | CommandAction | WorkflowAction | GateAction | WaitAction | BlockAction
RETRIED = (AgentAction, CommandAction, WorkflowAction)
"""Actions that can be tried again."""


class ForEach(msgspec.Struct, frozen=True, kw_only=True):
    """Runs a phase for every item of a list."""

    items: str
    """An expression that gives a list."""
    max_parallel: int = 10


class UntilCommand(msgspec.Struct, frozen=True, kw_only=True):
    """A command that ends a loop when it exits with 0."""

    language: Language = Language.BASH
    command: str
    env: Mapping[str, str] = msgspec.field(default_factory=dict)
    timeout: timedelta | None = None
    container: str | bool | None = None
    """Where it runs: `command_place.py`."""


class Loop(msgspec.Struct, frozen=True, kw_only=True):
    """Runs a phase again until a condition is met; `until` is evaluated before `until_command` runs."""

    max_iterations: int
    until: str | None = None
    until_command: UntilCommand | None = None
    fresh_context: bool = False
    """Whether each iteration has sessions of its own; else it continues those of the iteration before."""
    on_exhausted: OnExhausted = OnExhausted.FAIL


class Messages(msgspec.Struct, frozen=True, kw_only=True):
    """Templates of what people are told about a phase."""

    on_start: str | None = None
    on_success: str | None = None
    on_failure: str | None = None


NO_MESSAGES = Messages()


class Phase(msgspec.Struct, frozen=True, kw_only=True):
    """A declared node of a workflow."""

    name: str
    action: Action
    label: str | None = None
    depends_on: tuple[str, ...] = ()
    trigger_rule: TriggerRule = TriggerRule.ALL_SUCCESS
    when: str | None = None
    """An expression; evaluated when the rule holds."""
    retries: int = 0
    timeout: timedelta | None = None
    on_failure: OnFailure = OnFailure.FAIL
    for_each: ForEach | None = None
    loop: Loop | None = None
    """With `for_each`, every item loops on its own."""
    messages: Messages = NO_MESSAGES
    untrusted: bool = False
    """Whether its output is text that other people wrote."""

    @property
    def block(self) -> tuple[Phase, ...]:
        """The phases inside it."""
        return self.action.phases if isinstance(self.action, BlockAction) else ()

    @property
    def tolerates_failure(self) -> bool:
        """Whether its failure counts as success for its run."""
        return self.on_failure is OnFailure.CONTINUE


class WorkflowDefinition(msgspec.Struct, frozen=True, kw_only=True):
    """A declared graph of phases, with everything a run of it needs."""

    name: str
    phases: tuple[Phase, ...]
    description: str = ""
    inputs: Mapping[str, InputSpec] = msgspec.field(default_factory=dict)
    limits: Limits = NO_LIMITS
    """For the whole run."""
    concurrency: Concurrency = Concurrency()
    triggers: Triggers = NO_TRIGGERS
    home: str | None = None
    """Directory of the fleet file that declares it, of an included fleet; None for the outermost."""
    working_directory: str | None = None
    """Where its phases work, absolute; None for each agent's own directory, and the fleet file's for commands."""
    workspace: WorkspacePolicy | None = None
    """Whether they work in that directory, or in one made from it; None for each agent's own policy."""


DECODER = json_decoder(WorkflowDefinition)


def canonical_json(definition: WorkflowDefinition) -> bytes:
    """Return the definition as JSON, the same bytes for the same definition."""
    return msgspec.json.encode(definition, order="sorted")


def definition_hash(definition: WorkflowDefinition) -> str:
    """Return the sha256 of the canonical JSON, by which a run names its definition."""
    return sha256(canonical_json(definition)).hexdigest()


def read_definition(content: bytes) -> WorkflowDefinition:
    """Return the definition that `canonical_json` wrote."""
    return DECODER.decode(content)


def chain(phases: tuple[Phase, ...]) -> tuple[Phase, ...]:
    """Return the phases as a chain: each depends on the one before it."""
    names = [(), *((phase.name,) for phase in phases)]
    return tuple(
        msgspec.structs.replace(phase, depends_on=before)
        for phase, before in zip(phases, names[:-1], strict=True)
    )


def every_phase(phases: tuple[Phase, ...]) -> Iterator[Phase]:
    """Yield the phases and those inside their blocks, in the order of the file."""
    for phase in phases:
        yield phase
        yield from every_phase(phase.block)
