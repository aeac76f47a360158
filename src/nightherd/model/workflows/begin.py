"""Beginning an action: its templates filled in, as the step that starts it; or why it cannot begin."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from nightherd.errors import InvalidValueError
from nightherd.model.units import parse_duration, parse_instant
from nightherd.model.workflows.definition import (
    AgentAction,
    ArtifactKind,
    CommandAction,
    GateAction,
    Phase,
    UntilCommand,
    WaitAction,
    WorkflowAction,
)
from nightherd.model.workflows.expressions.evaluate import (
    EvaluationError,
    Scope,
    evaluate,
    evaluate_condition,
)
from nightherd.model.workflows.expressions.parser import parse
from nightherd.model.workflows.expressions.templates import (
    Template,
    parse_template,
    render_plain,
    render_prompt,
    render_value,
    value_text,
)
from nightherd.model.workflows.expressions.tree import Mistake, paths_of
from nightherd.model.workflows.instance import Instance
from nightherd.model.workflows.node import NO_ITERATION, NodeKey, NodeKind
from nightherd.model.workflows.scope import At, Context
from nightherd.model.workflows.steps import (
    Fail,
    OpenGate,
    RunUntilCommand,
    StartChild,
    StartWait,
    Step,
    SubmitPhase,
)
from nightherd.model.workflows.triggers import complete_inputs

Render = Callable[[Template, Scope], Any]


class CannotBeginError(Exception):
    """A template or expression has no value. The message says which, and why."""


def condition(context: Context, instance: Instance, at: At, what: str, text: str) -> bool:
    """Return the value of a condition, or raise `CannotBeginError`."""
    tree = parse(text)
    if isinstance(tree, Mistake):
        raise CannotBeginError(f"{what}: {tree.message}")
    value = evaluate_condition(tree, context.scope(instance, at, paths_of(tree)))
    if isinstance(value, EvaluationError):
        raise CannotBeginError(f"{what}: {value.message}")
    return value


def items(context: Context, instance: Instance, text: str) -> Any:
    """Return the value of the expression of a `for_each`, or raise `CannotBeginError`."""
    tree = parse(text)
    if isinstance(tree, Mistake):
        raise CannotBeginError(f"for_each: {tree.message}")
    value = evaluate(tree, context.scope(instance, At.START, paths_of(tree)))
    if isinstance(value, EvaluationError):
        raise CannotBeginError(f"for_each: {value.message}")
    return value


def filled(
    context: Context, instance: Instance, at: At, what: str, text: str, render: Render
) -> Any:
    """Return a template filled in, or raise `CannotBeginError`."""
    template = parse_template(text)
    if isinstance(template, Mistake):
        raise CannotBeginError(f"{what}: {template.message}")
    value = render(template, context.scope(instance, at, template.paths))
    if isinstance(value, EvaluationError):
        raise CannotBeginError(f"{what}: {value.message}")
    return value


def begin(context: Context, instance: Instance, attempt: int, message: str | None) -> Step:
    """Return the step that starts an action: of an agent, a command, a workflow, a gate or a wait."""
    key, phase = instance.key(attempt), instance.phase
    try:
        return _begin(context, instance, key, message)
    except CannotBeginError as error:
        return Fail(key=key, phase=phase, error=str(error))


def _begin(context: Context, instance: Instance, key: NodeKey, message: str | None) -> Step:
    phase = instance.phase
    body = At.BODY
    match phase.action:
        case AgentAction() as agent:
            prompt = filled(context, instance, body, "prompt", agent.prompt, render_prompt)
            prompt = with_skill(agent, prompt)
            if not prompt.strip():
                raise CannotBeginError("prompt: it is empty, so there is nothing to ask")
            session = session_of(context, instance, agent)
            return SubmitPhase(
                key=key, phase=phase, prompt=prompt, session_of=session, message=message
            )
        case CommandAction() as command:
            env = environment(context, instance, body, command.env)
            stdin = None
            if command.stdin is not None:
                stdin = filled(context, instance, body, "stdin", command.stdin, render_plain)
            return SubmitPhase(key=key, phase=phase, env=env, stdin=stdin, message=message)
        case WorkflowAction() as child:
            return _begin_child(context, instance, child, key, message)
        case GateAction() as gate:
            return _open_gate(context, instance, gate, key, message)
        case WaitAction() as wait:
            return _start_wait(context, instance, wait, key, message)
        case _:
            raise CannotBeginError("a block has no action of its own")


def with_skill(agent: AgentAction, prompt: str) -> str:
    """Return what the agent is asked: the text of its skill, which is no template, and the prompt."""
    return "\n\n".join(text for text in (agent.skill_text, prompt) if text)


def environment(
    context: Context, instance: Instance, at: At, env: Mapping[str, str]
) -> dict[str, str]:
    """Return the variables of a command."""
    return {
        name: filled(context, instance, at, f"env.{name}", text, render_plain)
        for name, text in env.items()
    }


def run_until(context: Context, instance: Instance, command: UntilCommand) -> Step:
    """Return the step that asks a command whether a loop ends after this iteration."""
    key, phase = instance.until_key, instance.phase
    try:
        env = environment(context, instance, At.UNTIL, command.env)
    except CannotBeginError as error:
        return Fail(key=key, phase=phase, error=f"until_command: {error}")
    return RunUntilCommand(key=key, phase=phase, command=command, env=env)


def session_of(context: Context, instance: Instance, agent: AgentAction) -> NodeKey | None:
    """Return the node whose session a job continues: of the phase it names, or of the iteration before."""
    if agent.session is not None:
        for around in instance.around():
            shared = around.sibling(agent.session)
            if shared is not None:
                return _session_node(context, shared)
        return None
    iterations = (place for place in instance.around() if place.iteration != NO_ITERATION)
    looped = next(iterations, None)
    if looped is None or looped.phase.loop is None or looped.phase.loop.fresh_context:
        return None
    before = instance.before()
    while before is not None:
        node = _session_node(context, before)
        if node is not None:
            return node
        before = before.before()
    return None


def _session_node(context: Context, instance: Instance) -> NodeKey | None:
    records = context.records
    if instance.phase.loop is not None and instance.iteration == NO_ITERATION:
        instance = records.last_iteration(instance) or instance
    node = records.node(instance)
    return node.key if node is not None and node.kind is NodeKind.JOB else None


def _begin_child(
    context: Context,
    instance: Instance,
    child: WorkflowAction,
    key: NodeKey,
    message: str | None,
) -> StartChild:
    untrusted: set[str] = set()
    given: dict[str, Any] = {}
    for name, value in child.inputs.items():
        given[name] = _deep(context, instance, f"inputs.{name}", value)
        if any(_is_untrusted(context, instance, text) for text in _texts(value)):
            untrusted.add(name)
    if child.definition is not None:
        given, problems = complete_inputs(child.definition.inputs, given)
        if problems:
            raise CannotBeginError(problems[0].message)
    return StartChild(
        key=key,
        phase=instance.phase,
        workflow=child.workflow,
        definition=child.definition,
        inputs=given,
        untrusted_inputs=frozenset(untrusted),
        message=message,
    )


def _deep(context: Context, instance: Instance, what: str, value: Any) -> Any:
    """Return a value with the templates in it filled in, at every depth."""
    match value:
        case str():
            return filled(context, instance, At.BODY, what, value, render_value)
        case Mapping():
            return {key: _deep(context, instance, what, inner) for key, inner in value.items()}
        case list() | tuple():
            return [_deep(context, instance, what, inner) for inner in value]
        case _:
            return value


def _texts(value: Any) -> Iterator[str]:
    match value:
        case str():
            yield value
        case Mapping():
            for inner in value.values():
                yield from _texts(inner)
        case list() | tuple():
            for inner in value:
                yield from _texts(inner)
        case _:
            return


def _is_untrusted(context: Context, instance: Instance, text: str) -> bool:
    template = parse_template(text)
    if isinstance(template, Mistake):
        return True
    paths = list(template.paths)
    scope = context.scope(instance, At.BODY, paths)
    return any(scope.is_untrusted(path.names) for path in paths)


def _open_gate(
    context: Context, instance: Instance, gate: GateAction, key: NodeKey, message: str | None
) -> OpenGate:
    body = At.BODY
    summary = filled(context, instance, body, "summary", gate.summary, render_plain)
    file, text = None, None
    artifact = gate.artifact
    if artifact is not None and artifact.kind is ArtifactKind.FILE:
        file = filled(context, instance, body, "artifact", artifact.file or "", render_plain)
    elif artifact is not None and artifact.kind is ArtifactKind.OUTPUT:
        template = f"${{phases.{artifact.phase}.output}}"
        text = value_text(filled(context, instance, body, "artifact", template, render_value))
    return OpenGate(
        key=key, phase=instance.phase, summary=summary, file=file, text=text, message=message
    )


def _start_wait(
    context: Context, instance: Instance, wait: WaitAction, key: NodeKey, message: str | None
) -> StartWait:
    body, phase = At.BODY, instance.phase
    if wait.duration is not None:
        text = filled(context, instance, body, "wait.for", wait.duration, render_plain)
        try:
            duration = parse_duration(text)
        except InvalidValueError as error:
            raise CannotBeginError(f"wait.for: {error.message}") from error
        return StartWait(key=key, phase=phase, duration=duration, message=message)
    if wait.until is not None:
        text = filled(context, instance, body, "wait.until", wait.until, render_plain)
        try:
            until = parse_instant(text)
        except InvalidValueError as error:
            raise CannotBeginError(f"wait.until: {error.message}") from error
        return StartWait(key=key, phase=phase, until=until, message=message)
    return StartWait(key=key, phase=phase, event=wait.event, message=message)


def message_text(context: Context, instance: Instance, at: At, text: str | None) -> str | None:
    """Return what people are told; a message that cannot be filled in says so and stops nothing."""
    if text is None:
        return None
    try:
        return str(filled(context, instance, at, "message", text, render_plain))
    except CannotBeginError as error:
        return f"(the message of {phase_name(instance.phase)} cannot be filled in: {error})"


def phase_name(phase: Phase) -> str:
    """Return the phase's name for people."""
    return phase.label or phase.name
