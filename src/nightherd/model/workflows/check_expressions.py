"""Checking every expression and template of a definition against the names that exist at its place."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

import msgspec

from nightherd.errors import InvalidValueError
from nightherd.model.problem import Severity
from nightherd.model.text import quote
from nightherd.model.units import parse_duration, parse_instant
from nightherd.model.workflows.definition import (
    AgentAction,
    BlockAction,
    CommandAction,
    GateAction,
    Loop,
    Phase,
    UntilCommand,
    WaitAction,
    WorkflowAction,
    WorkflowDefinition,
    every_phase,
)
from nightherd.model.workflows.expressions.checker import check_expression
from nightherd.model.workflows.expressions.evaluate import Scope, evaluate
from nightherd.model.workflows.expressions.templates import check_template, parse_template
from nightherd.model.workflows.expressions.tree import IDENTIFIER, Mistake, Path, paths_of
from nightherd.model.workflows.expressions.types import (
    ANY,
    LIST,
    OBJECT,
    TEXT,
    Kind,
    Names,
    Type,
    can_equal,
    kind_of,
)
from nightherd.model.workflows.finding import DefinitionPath, Finding, of_mistakes
from nightherd.model.workflows.frame import Frame, block_of
from nightherd.model.workflows.triggers import (
    INPUT_TYPES,
    TRIGGER_NAMES,
    InputSpec,
    input_names,
)

EXPRESSION_IN_COMMAND = re.compile(
    r"\$\{\s*(?:item\b|(?:inputs|trigger|phases|run|loop)\s*[.\[])", re.ASCII
)
"""What would be an expression elsewhere; bash has no such names, `item` apart."""
COMMAND_HINT = "pass values by 'env' or 'stdin'; in bash write $NAME"


class ExpressionCheck(msgspec.Struct):
    """Walks a definition from the outside to the inside; collects findings, and the paths that are used."""

    findings: list[Finding] = msgspec.field(default_factory=list)
    used: list[Path] = msgspec.field(default_factory=list)

    def definition(self, definition: WorkflowDefinition) -> None:
        """Check everything in it."""
        inputs = input_names(definition.inputs)
        outside = Names(types={"inputs": inputs, "trigger": TRIGGER_NAMES})
        if definition.concurrency.key is not None:
            self.template(("concurrency", "key"), definition.concurrency.key, outside)
        self.block(definition.phases, Frame(inputs=inputs), ("phases",))
        self.triggers(definition)

    def triggers(self, definition: WorkflowDefinition) -> None:
        """Check the inputs that each trigger gives."""
        triggers, specs = definition.triggers, definition.inputs
        names = Names(types={"trigger": TRIGGER_NAMES})
        for name, schedule in triggers.schedules.items():
            path: DefinitionPath = ("triggers", "schedules", name, "inputs")
            self.inputs(path, specs, schedule.inputs, None)
            self.plain_texts(path, schedule.inputs)
        for name, webhook in triggers.webhooks.items():
            path = ("triggers", "webhooks", name, "inputs")
            self.inputs(path, specs, webhook.inputs, names)
        if triggers.chat is not None:
            self.inputs(("triggers", "chat", "inputs"), specs, triggers.chat.inputs, names)

    def plain_texts(self, path: DefinitionPath, inputs: Mapping[str, Any]) -> None:
        """Notice inputs that look like templates where nothing is filled in."""
        for name, value in inputs.items():
            if isinstance(value, str) and "${" in value:
                message = "inputs of a schedule are values: '${' stays as it is"
                self.findings.append(
                    Finding(path=(*path, name), message=message, severity=Severity.NOTICE)
                )

    def block(self, phases: tuple[Phase, ...], outer: Frame, path: DefinitionPath) -> None:
        """Check the phases of a block."""
        block = block_of(phases)
        for place, phase in enumerate(phases):
            self.phase(phase, outer.of_phase(phase, block), (*path, place))

    def phase(self, phase: Phase, frame: Frame, path: DefinitionPath) -> None:
        """Check a phase and what is inside it."""
        names = frame.names
        if phase.when is not None:
            self.condition((*path, "when"), phase.when, names)
        item = None
        if phase.for_each is not None:
            place = (*path, "for_each", "items")
            items = self.expression(place, phase.for_each.items, names, Kind.LIST)
            item = items.item or ANY
        body = frame.of_body(phase, item)
        self.action(phase, body, (*path, "action"))
        if phase.loop is not None:
            self.loop(phase.loop, body.of_until(phase).names, (*path, "loop"))
        messages = phase.messages
        end = frame.of_end(phase).names
        self.template((*path, "messages", "on_start"), messages.on_start, names)
        self.template((*path, "messages", "on_success"), messages.on_success, end)
        self.template((*path, "messages", "on_failure"), messages.on_failure, end)

    def loop(self, loop: Loop, names: Names, path: DefinitionPath) -> None:
        """Check how a loop ends."""
        if loop.until is not None:
            self.expression((*path, "until"), loop.until, names, Kind.BOOLEAN)
        if loop.until_command is not None:
            self.command((*path, "until_command"), loop.until_command, names)

    def action(self, phase: Phase, frame: Frame, path: DefinitionPath) -> None:
        """Check the templates of an action."""
        names = frame.names
        match phase.action:
            case AgentAction() as agent:
                self.template((*path, "prompt"), agent.prompt, names)
            case CommandAction() as command:
                self.command(path, command, names)
                self.template((*path, "stdin"), command.stdin, names)
            case WorkflowAction() as child:
                specs = None if child.definition is None else child.definition.inputs
                self.inputs((*path, "inputs"), specs, child.inputs, names)
            case GateAction() as gate:
                self.gate(gate, frame, path)
            case WaitAction() as wait:
                self.wait((*path, "duration"), wait.duration, names, parse_duration)
                self.wait((*path, "until"), wait.until, names, parse_instant)
            case BlockAction() as block:
                self.block(block.phases, frame, (*path, "phases"))

    def wait(
        self, path: DefinitionPath, text: str | None, names: Names, parse: Callable[[str], Any]
    ) -> None:
        """Check how long a wait takes; a text without values can be read already."""
        before = len(self.findings)
        self.template(path, text, names)
        if text is None or len(self.findings) > before:
            return
        template = parse_template(text)
        if isinstance(template, Mistake) or any(template.places):
            return
        try:
            parse("".join(part for part in template.parts if isinstance(part, str)))
        except InvalidValueError as error:
            self.findings.append(Finding(path=path, message=error.message))

    def gate(self, gate: GateAction, frame: Frame, path: DefinitionPath) -> None:
        """Check what a gate shows."""
        self.template((*path, "summary"), gate.summary, frame.names)
        if gate.artifact is None:
            return
        self.template((*path, "artifact", "file"), gate.artifact.file, frame.names)
        name = gate.artifact.phase
        if name is not None and IDENTIFIER.fullmatch(name) is None:
            message = f"there is no phase {quote(name)}"
            place = (*path, "artifact", "phase")
            known = tuple(frame.visible)
            self.findings.append(Finding(path=place, message=message, word=name, known=known))
        elif name is not None:
            text = f"phases.{name}.output"
            checked = check_expression(text, frame.names)
            self.used += [] if checked.tree is None else paths_of(checked.tree)
            for mistake in checked.mistakes:
                place = (*path, "artifact", "phase")
                known = tuple(frame.visible)
                self.findings.append(
                    Finding(path=place, message=mistake.message, word=name, known=known)
                )

    def command(
        self, path: DefinitionPath, command: CommandAction | UntilCommand, names: Names
    ) -> None:
        """Check a command: no value becomes a part of its text, where `${` is the shell's own."""
        expression = EXPRESSION_IN_COMMAND.search(command.command)
        if expression is not None:
            message = "a command cannot contain expressions"
            place = (*path, "command")
            start = expression.start()
            self.findings.append(
                Finding(path=place, message=message, start=start, width=2, hint=COMMAND_HINT)
            )
        for name, template in command.env.items():
            self.template((*path, "env", name), template, names)

    def inputs(
        self,
        path: DefinitionPath,
        specs: Mapping[str, InputSpec] | None,
        values: Mapping[str, Any],
        names: Names | None,
    ) -> None:
        """Check the inputs that start a run; `specs` are None where the workflow is not known."""
        for name, value in values.items():
            value_type = self.value((*path, name), value, names)
            if specs is None:
                continue
            if name not in specs:
                message = f"the workflow has no input {quote(name)}"
                known = tuple(specs)
                self.findings.append(
                    Finding(path=(*path, name), message=message, word=name, known=known)
                )
            elif not can_equal(value_type, wanted := INPUT_TYPES[specs[name].type]):
                message = f"the input {quote(name)} is {wanted}; this is {value_type}"
                self.findings.append(Finding(path=(*path, name), message=message))
        for name, spec in (specs or {}).items():
            if spec.required and name not in values:
                message = f"the input {quote(name)} is required and is not given"
                self.findings.append(Finding(path=path, message=message))

    def value(self, path: DefinitionPath, value: Any, names: Names | None) -> Type:
        """Check a value whose texts are templates, or plain texts where there are no `names`."""
        match value:
            case str() if names is not None:
                return self.template(path, value, names)
            case Mapping():
                for key, inner in value.items():
                    self.value((*path, key), inner, names)
                return OBJECT
            case list() | tuple():
                for place, inner in enumerate(value):
                    self.value((*path, place), inner, names)
                return LIST
            case _:
                return Type(kind=kind_of(value))

    def template(self, path: DefinitionPath, text: str | None, names: Names) -> Type:
        """Check a template; None is none."""
        if text is None:
            return TEXT
        checked = check_template(text, names)
        self.findings += of_mistakes(path, checked.mistakes)
        if checked.template is not None:
            self.used += checked.template.paths
        return checked.type

    def expression(
        self, path: DefinitionPath, text: str, names: Names, wanted: Kind | None = None
    ) -> Type:
        """Check an expression."""
        checked = check_expression(text, names, wanted=wanted)
        self.findings += of_mistakes(path, checked.mistakes)
        self.used += [] if checked.tree is None else paths_of(checked.tree)
        return checked.type

    def condition(self, path: DefinitionPath, text: str, names: Names) -> None:
        """Check a condition; a phase whose condition is always false never runs."""
        before = len(self.findings)
        self.expression(path, text, names, Kind.BOOLEAN)
        if len(self.findings) > before:
            return
        tree = check_expression(text, names).tree
        if tree is None or any(True for _ in paths_of(tree)):
            return
        if evaluate(tree, Scope(names=names, values={})) is False:
            message = "the phase never runs: its condition is always false"
            self.findings.append(Finding(path=path, message=message, start=0, width=len(text)))


def check_expressions(definition: WorkflowDefinition) -> tuple[list[Finding], list[Path]]:
    """Return what is wrong with the expressions of a definition, and every path that they use."""
    walk = ExpressionCheck()
    walk.definition(definition)
    return walk.findings, walk.used


def names_used(phases: tuple[Phase, ...], used: list[Path]) -> frozenset[str]:
    """Return the names of all phases whose output some path reads, as a whole or in part."""
    inside = {
        phase.name: frozenset(inner.name for inner in every_phase(phase.block))
        for phase in every_phase(phases)
        if phase.block
    }
    names: set[str] = set()
    for path in used:
        steps = [str(name) for name in path.names]
        if path.root == "phases":
            names.update(steps[1:])
            if len(steps) == 3 and steps[2] == "output":
                names |= inside.get(steps[1], frozenset())
        elif steps[:2] == ["loop", "previous"]:
            names.update(steps[2:])
            if len(steps) == 2:
                names.update(*inside.values())
    return frozenset(names)
