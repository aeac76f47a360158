"""Static checks of a definition: everything that can be known to be wrong before a run begins."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator

from nightherd.model.problem import Severity
from nightherd.model.text import quote
from nightherd.model.workflows.check_expressions import check_expressions, names_used
from nightherd.model.workflows.check_sessions import check_sessions
from nightherd.model.workflows.command import is_variable_name
from nightherd.model.workflows.definition import (
    DEEPEST,
    MOST_ITERATIONS,
    MOST_PHASES,
    MOST_RETRIES,
    RETRIED,
    AgentAction,
    BlockAction,
    CommandAction,
    GateAction,
    GateKind,
    Phase,
    UntilCommand,
    WaitAction,
    WorkflowDefinition,
    every_phase,
)
from nightherd.model.workflows.finding import DefinitionPath, Finding, errors_of
from nightherd.model.workflows.graph import cycle_in, never_runs
from nightherd.model.workflows.json_schema import check_schema
from nightherd.model.workflows.triggers import InputSpec, input_mismatch

PHASE_NAME = re.compile(r"[a-z][a-z0-9_]*")
LONGEST_NAME = 60
OWN_SESSION = "own"
"""What `session` says for a session that no other phase began."""


def check_definition(definition: WorkflowDefinition) -> tuple[Finding, ...]:
    """Return everything that is wrong with a definition, and what is worth saying about it.

    Expressions are checked once the graph is sound: what they may use follows from it.
    """
    findings = list(_check_inputs(definition))
    count = sum(1 for _ in every_phase(definition.phases))
    if count > MOST_PHASES:
        message = f"a workflow has at most {MOST_PHASES} phases; this has {count}"
        return (*findings, Finding(path=("phases",), message=message))
    findings += _check_block(definition.phases, ("phases",), 1)
    if errors_of(findings):
        return tuple(findings)
    mistakes, used = check_expressions(definition)
    findings += mistakes
    findings += check_sessions(definition.phases)
    findings += _unused(definition.phases, names_used(definition.phases, used), ("phases",))
    return tuple(findings)


def _check_inputs(definition: WorkflowDefinition) -> Iterator[Finding]:
    for name, spec in definition.inputs.items():
        yield from _check_input(("inputs", name), name, spec)


def _check_input(path: DefinitionPath, name: str, spec: InputSpec) -> Iterator[Finding]:
    if not PHASE_NAME.fullmatch(name):
        message = f"{quote(name)} is not the name of an input: small letters, digits and '_'"
        yield Finding(path=path, message=message)
    if spec.default is None:
        return
    if spec.required:
        message = "an input that is required takes no default"
        yield Finding(path=(*path, "default"), message=message)
    reason = input_mismatch(spec, spec.default)
    if reason is not None:
        yield Finding(path=(*path, "default"), message=reason)


def _check_block(phases: tuple[Phase, ...], path: DefinitionPath, depth: int) -> Iterator[Finding]:
    if depth > DEEPEST:
        message = f"blocks are nested more than {DEEPEST} levels deep"
        yield Finding(path=path, message=message)
        return
    if not phases:
        yield Finding(path=path, message="there are no phases")
        return
    mistakes = list(_check_names(phases, path))
    yield from mistakes
    for place, phase in enumerate(phases):
        yield from _check_phase(phase, (*path, place))
        if isinstance(phase.action, BlockAction):
            yield from _check_block(phase.block, (*path, place, "action", "phases"), depth + 1)
    if mistakes:
        return
    cycle = cycle_in(phases)
    places = {phase.name: place for place, phase in enumerate(phases)}
    if cycle is not None:
        message = f"these phases wait for each other: {' -> '.join(cycle)}"
        yield Finding(path=(*path, places[cycle[0]], "depends_on"), message=message)
        return
    for name, reason in never_runs(phases).items():
        phase = phases[places[name]]
        field = "depends_on" if phase.depends_on else "trigger_rule"
        message = f"the phase never runs: {reason}"
        yield Finding(path=(*path, places[name], field), message=message)


def _check_names(phases: tuple[Phase, ...], path: DefinitionPath) -> Iterator[Finding]:
    first: dict[str, int] = {}
    for place, phase in enumerate(phases):
        name_path = (*path, place, "name")
        if len(phase.name) > LONGEST_NAME:
            message = f"{quote(phase.name)} is longer than {LONGEST_NAME} characters"
            yield Finding(path=name_path, message=message)
        elif not PHASE_NAME.fullmatch(phase.name):
            message = f"{quote(phase.name)} is not the name of a phase: small letters, digits and '_', beginning with a letter"
            yield Finding(path=name_path, message=message)
        elif phase.name == OWN_SESSION:
            message = f"a phase cannot be called {quote(OWN_SESSION)}: 'session: {OWN_SESSION}' means none of another phase"
            yield Finding(path=name_path, message=message)
        elif phase.name in first:
            yield Finding(path=name_path, message=f"a second phase called {quote(phase.name)}")
        first.setdefault(phase.name, place)
    for place, phase in enumerate(phases):
        for index, name in enumerate(phase.depends_on):
            if name not in first:
                known = tuple(other for other in first if other != phase.name)
                yield Finding(
                    path=(*path, place, "depends_on", index),
                    message=f"there is no phase {quote(name)} beside this one",
                    word=name,
                    known=known,
                )
        for name, times in Counter(phase.depends_on).items():
            if times > 1:
                message = f"{quote(name)} is here {times} times"
                yield Finding(path=(*path, place, "depends_on"), message=message)


def _check_phase(phase: Phase, path: DefinitionPath) -> Iterator[Finding]:
    if phase.retries and not isinstance(phase.action, RETRIED):
        what = phase.action.__struct_config__.tag
        message = f"a {what} is not tried again: only agents, commands and workflows take retries"
        yield Finding(path=(*path, "retries"), message=message)
    elif not 0 <= phase.retries <= MOST_RETRIES:
        yield Finding(path=(*path, "retries"), message=f"retries are 0 to {MOST_RETRIES}")
    if phase.for_each is not None and phase.for_each.max_parallel < 1:
        message = "max_parallel is at least 1"
        yield Finding(path=(*path, "for_each", "max_parallel"), message=message)
    yield from _check_loop(phase, path)
    match phase.action:
        case AgentAction(output=schema) | CommandAction(output=schema):
            if isinstance(phase.action, CommandAction):
                yield from _check_command(phase.action, (*path, "action"))
            if schema is not None:
                yield from _check_output(schema, (*path, "action", "output"))
        case GateAction() as gate:
            yield from _check_gate(gate, (*path, "action"))
        case WaitAction() as wait:
            yield from _check_wait(phase, wait, path)
        case _:
            pass


def _check_gate(gate: GateAction, path: DefinitionPath) -> Iterator[Finding]:
    people = len(set(gate.approvers))
    if gate.quorum < 1 or (gate.approvers and gate.quorum > people):
        message = f"quorum {gate.quorum} cannot be reached by {people} approvers"
        yield Finding(path=(*path, "quorum"), message=message)
    elif gate.quorum > 1 and gate.gate is GateKind.REPLY:
        message = "one reply answers a gate: only 'kind: approve' takes a quorum"
        yield Finding(path=(*path, "quorum"), message=message)


def _check_wait(phase: Phase, wait: WaitAction, path: DefinitionPath) -> Iterator[Finding]:
    given = [wait.duration, wait.until, wait.event]
    if given.count(None) != 2:
        message = "a wait has one of 'for', 'until' and 'event'"
        yield Finding(path=(*path, "action"), message=message)
    is_repeated = phase.loop is not None or phase.for_each is not None
    if phase.timeout is not None and wait.event is None and not is_repeated:
        message = "a wait for a time ends by itself and takes no timeout"
        yield Finding(path=(*path, "timeout"), message=message)


def _check_command(
    command: CommandAction | UntilCommand, path: DefinitionPath
) -> Iterator[Finding]:
    """Yield what no process can be started with."""
    if "\0" in command.command:
        yield Finding(path=(*path, "command"), message="the command holds a NUL character")
    for name, value in command.env.items():
        place = (*path, "env", name)
        if not is_variable_name(name):
            message = f"{quote(name)} is not the name of a variable"
            yield Finding(path=place, message=message, word=name)
        elif "\0" in value:
            message = f"the value of {quote(name)} holds a NUL character"
            yield Finding(path=place, message=message)


def _check_loop(phase: Phase, path: DefinitionPath) -> Iterator[Finding]:
    loop = phase.loop
    if loop is None:
        return
    if loop.until_command is not None:
        yield from _check_command(loop.until_command, (*path, "loop", "until_command"))
    if loop.until is None and loop.until_command is None:
        message = "a loop needs 'until' or 'until_command' to end it"
        yield Finding(path=(*path, "loop"), message=message)
    if not 1 <= loop.max_iterations <= MOST_ITERATIONS:
        message = f"max_iterations is 1 to {MOST_ITERATIONS:,}"
        yield Finding(path=(*path, "loop", "max_iterations"), message=message)


def _check_output(schema: object, path: DefinitionPath) -> Iterator[Finding]:
    for mistake in check_schema(schema):
        yield Finding(
            path=(*path, *mistake.path),
            message=mistake.message,
            word=mistake.word,
            known=mistake.known,
        )


def _unused(
    phases: tuple[Phase, ...], used: frozenset[str], path: DefinitionPath
) -> Iterator[Finding]:
    """Yield the declared outputs that nothing reads. Those of the last phases are the result."""
    needed = {name for phase in phases for name in phase.depends_on}
    for place, phase in enumerate(phases):
        schema = getattr(phase.action, "output", None)
        if schema is not None and phase.name in needed and phase.name not in used:
            message = f"nothing reads the output of {quote(phase.name)}"
            yield Finding(
                path=(*path, place, "action", "output"), message=message, severity=Severity.NOTICE
            )
        yield from _unused(phase.block, used, (*path, place, "action", "phases"))
