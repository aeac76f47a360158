"""From a checked workflow file to a definition: gaps filled, shorthands written out, every part with its place."""

from __future__ import annotations

import msgspec

from nightherd.config.resolve_agent import json_inputs
from nightherd.config.schema.phase import (
    AgentPhase,
    AnyPhase,
    BashPhase,
    BlockPhase,
    CommonPhase,
    GatePhase,
    LoopedPhase,
    PythonPhase,
    ReviewPhase,
    WaitPhase,
    WorkflowPhase,
)
from nightherd.config.schema.phase_parts import UntilCommand as UntilCommandSchema
from nightherd.config.schema.workflow import MessageTrigger as MessageTriggerSchema
from nightherd.config.schema.workflow import RunTriggers, WorkflowFile
from nightherd.config.workflows.actions import ActionResolver, resolve_run_limits
from nightherd.config.workflows.directory import resolve_directory
from nightherd.config.workflows.places import value_at
from nightherd.files.yaml_nodes import MappingNode, Node, SequenceNode
from nightherd.model.workflows.definition import (
    Action,
    BlockAction,
    ForEach,
    Language,
    Loop,
    Messages,
    OnExhausted,
    OnFailure,
    Phase,
    TriggerRule,
    UntilCommand,
    WorkflowDefinition,
    chain,
)
from nightherd.model.workflows.finding import DefinitionPath
from nightherd.model.workflows.triggers import (
    NO_TRIGGERS,
    Concurrency,
    InputSpec,
    InputType,
    MessageTrigger,
    Triggers,
    WhenBusy,
    WorkflowSchedule,
)

SAME_PLACE = (
    ("name",),
    ("depends_on",),
    ("trigger_rule",),
    ("when",),
    ("retries",),
    ("timeout",),
    ("for_each",),
    ("for_each", "items"),
    ("for_each", "max_parallel"),
    ("loop",),
    ("loop", "max_iterations"),
    ("loop", "until"),
    ("loop", "until_command"),
    ("loop", "until_command", "env"),
    ("loop", "until_command", "container"),
    ("messages", "on_start"),
    ("messages", "on_success"),
    ("messages", "on_failure"),
)
"""Parts of a phase that have the same keys in the file."""


class WorkflowResolver(msgspec.Struct):
    """Turns one checked file into a definition."""

    actions: ActionResolver

    def workflow(self, name: str, file: WorkflowFile, node: MappingNode) -> WorkflowDefinition:
        """Return the definition; sub-workflows are only named in it."""
        places = self.actions.places
        places.put((), node)
        for key in ("inputs", "phases", "concurrency"):
            places.put((key,), node.get(key))
        places.put(("triggers",), node.get("on"))
        concurrency = file.concurrency
        root, workspace = resolve_directory(
            file.working_directory,
            node,
            home=self.actions.home,
            findings=self.actions.findings,
            where=self.actions.where,
        )
        return WorkflowDefinition(
            name=name,
            description=file.description,
            inputs={
                key: InputSpec(
                    type=InputType(spec.type),
                    required=spec.required,
                    default=json_inputs({key: spec.default})[key],
                    description=spec.description,
                )
                for key, spec in file.inputs.items()
            },
            limits=resolve_run_limits(file.limits),
            concurrency=Concurrency()
            if concurrency is None
            else Concurrency(
                max_runs=concurrency.max_runs,
                key=concurrency.key,
                when_busy=WhenBusy(concurrency.when_busy),
            ),
            triggers=resolve_triggers(file.triggers),
            home=self.actions.home.directory if self.actions.home.fleet else None,
            working_directory=root,
            workspace=workspace,
            phases=self.block(file.phases, node.get("phases"), ("phases",)),
        )

    def block(
        self, phases: tuple[AnyPhase, ...], node: Node | None, path: DefinitionPath
    ) -> tuple[Phase, ...]:
        """The phases of a block; where none says what it depends on, they are a chain."""
        items = node.items if isinstance(node, SequenceNode) else ()
        resolved = tuple(
            self.phase(phase, item, (*path, place))
            for place, (phase, item) in enumerate(zip(phases, items, strict=True))
            if isinstance(item, MappingNode)
        )
        is_chain = all(phase.depends_on is None for phase in phases)
        return chain(resolved) if is_chain else resolved

    def phase(self, phase: CommonPhase, node: MappingNode, path: DefinitionPath) -> Phase:
        """One phase."""
        places = self.actions.places
        places.put(path, node)
        for keys in SAME_PLACE:
            places.put((*path, *keys), value_at(node, *keys))
        looped = phase.loop if isinstance(phase, LoopedPhase) else None
        loop = None
        if looped is not None:
            loop = Loop(
                max_iterations=looped.max_iterations,
                until=looped.until,
                until_command=self.until_command(looped.until_command, node, path),
                fresh_context=looped.fresh_context,
                on_exhausted=OnExhausted(looped.on_exhausted),
            )
        action, review_loop = self.action(phase, node, (*path, "action"))
        if review_loop is not None:
            loop = review_loop
            places.put((*path, "loop"), node.get("review"))
        return Phase(
            name=phase.name,
            action=action,
            label=phase.label,
            depends_on=phase.depends_on or (),
            trigger_rule=TriggerRule(phase.trigger_rule),
            when=phase.when,
            retries=phase.retries,
            timeout=phase.timeout,
            on_failure=OnFailure(phase.on_failure),
            for_each=None
            if phase.for_each is None
            else ForEach(items=phase.for_each.items, max_parallel=phase.for_each.max_parallel),
            loop=loop,
            messages=resolve_messages(phase),
            untrusted=phase.untrusted,
        )

    def until_command(
        self, command: UntilCommandSchema | None, node: MappingNode, path: DefinitionPath
    ) -> UntilCommand | None:
        """The command that ends a loop."""
        if command is None:
            return None
        language = Language.BASH if command.python is None else Language.PYTHON
        text = value_at(node, "loop", "until_command", language.value)
        self.actions.places.put((*path, "loop", "until_command", "command"), text)
        return UntilCommand(
            language=language,
            command=command.bash or command.python or "",
            env=dict(command.env),
            timeout=command.timeout,
            container=self.actions.place(command.container),
        )

    def action(
        self, phase: CommonPhase, node: MappingNode, path: DefinitionPath
    ) -> tuple[Action, Loop | None]:
        """What a phase does; with `review`, also how it loops."""
        actions = self.actions
        match phase:
            case AgentPhase():
                return actions.agent(phase, node, path), None
            case BashPhase() | PythonPhase():
                return actions.command(phase, node, path), None
            case WorkflowPhase():
                return actions.workflow(phase, node, path), None
            case GatePhase():
                return actions.gate(phase, node, path), None
            case WaitPhase():
                return actions.wait(phase, node, path), None
            case BlockPhase():
                actions.places.put((*path, "phases"), node.get("phases"))
                inside = self.block(phase.phases, node.get("phases"), (*path, "phases"))
                return BlockAction(phases=inside), None
            case ReviewPhase():
                review = node.get("review")
                assert isinstance(review, MappingNode)  # noqa: S101 (the schema has checked it)
                return actions.review(phase.review, review, path)
            case _:
                raise AssertionError(phase)  # the schema refuses every other phase


def resolve_messages(phase: CommonPhase) -> Messages:
    """What people are told about a phase."""
    messages = phase.messages
    if messages is None:
        return Messages()
    return Messages(
        on_start=messages.on_start,
        on_success=messages.on_success,
        on_failure=messages.on_failure,
    )


def resolve_triggers(triggers: RunTriggers | None) -> Triggers:
    """What starts runs."""
    if triggers is None:
        return NO_TRIGGERS
    return Triggers(
        schedules={
            name: WorkflowSchedule(
                interval=schedule.interval,
                cron=schedule.cron,
                timezone=schedule.timezone or "UTC",
                inputs=json_inputs(schedule.inputs),
            )
            for name, schedule in triggers.schedules.items()
        },
        webhooks={name: message_trigger(webhook) for name, webhook in triggers.webhooks.items()},
        chat=None if triggers.chat is None else message_trigger(triggers.chat),
        api=triggers.api,
    )


def message_trigger(trigger: MessageTriggerSchema) -> MessageTrigger:
    """A message that starts runs."""
    return MessageTrigger(inputs=json_inputs(trigger.inputs))
