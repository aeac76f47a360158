"""Short spellings of definitions for tests."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from nightherd.model.workflows.definition import (
    Action,
    AgentAction,
    BlockAction,
    CommandAction,
    ForEach,
    GateAction,
    Language,
    Loop,
    Phase,
    WaitAction,
    WorkflowAction,
    WorkflowDefinition,
)

REVIEW = {
    "type": "object",
    "properties": {"approved": {"type": "boolean"}, "comments": {"type": "string"}},
    "required": ["approved", "comments"],
}
FILES = {
    "type": "object",
    "properties": {"files": {"type": "array", "items": {"type": "string"}}},
    "required": ["files"],
}


def workflow(*phases: Phase, **more: Any) -> WorkflowDefinition:
    return WorkflowDefinition(name="w", phases=phases, **more)


def phase(name: str, action: Action, needs: str = "", **more: Any) -> Phase:
    return Phase(name=name, action=action, depends_on=tuple(needs.split()), **more)


def agent(
    name: str,
    prompt: str = "go",
    needs: str = "",
    *,
    output: Mapping[str, Any] | None = None,
    session: str | None = None,
    by: str = "coder",
    **more: Any,
) -> Phase:
    action = AgentAction(agent=by, prompt=prompt, output=output, session=session)
    return phase(name, action, needs, **more)


def bash(
    name: str,
    command: str = "true",
    needs: str = "",
    *,
    env: Mapping[str, str] | None = None,
    stdin: str | None = None,
    **more: Any,
) -> Phase:
    action = CommandAction(language=Language.BASH, command=command, env=env or {}, stdin=stdin)
    return phase(name, action, needs, **more)


def block(name: str, *phases: Phase, needs: str = "", **more: Any) -> Phase:
    return phase(name, BlockAction(phases=phases), needs, **more)


def gate(name: str, summary: str = "ok?", needs: str = "", **more: Any) -> Phase:
    return phase(name, GateAction(summary=summary), needs, **more)


def wait(name: str, duration: str = "1h", needs: str = "", **more: Any) -> Phase:
    return phase(name, WaitAction(duration=duration), needs, **more)


def child(
    name: str,
    definition: WorkflowDefinition | None = None,
    needs: str = "",
    *,
    inputs: Mapping[str, Any] | None = None,
    **more: Any,
) -> Phase:
    action = WorkflowAction(workflow="other", inputs=inputs or {}, definition=definition)
    return phase(name, action, needs, **more)


def each(items: str, max_parallel: int = 10) -> ForEach:
    return ForEach(items=items, max_parallel=max_parallel)


def loop(until: str | None, most: int = 3, **more: Any) -> Loop:
    return Loop(max_iterations=most, until=until, **more)
