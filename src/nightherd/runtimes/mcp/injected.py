"""Calls of injected tools: checked against the tool's schema, answered whatever its handler does."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from nightherd.model.mcp import InjectedMcpServerDef, InjectedMcpToolDef, ToolAnswer

TYPES: Mapping[str, tuple[type, ...]] = {
    "string": (str,),
    "integer": (int,),
    "number": (int, float),
    "boolean": (bool,),
    "object": (dict,),
    "array": (list, tuple),
    "null": (type(None),),
}


async def call_injected(
    server: InjectedMcpServerDef, name: str, input: Mapping[str, Any]
) -> ToolAnswer:
    """What the tool called `name` answers; also an unknown tool, wrong input and a failure are answers."""
    tool = server.find_tool(name)
    if tool is None:
        there = ", ".join(one.name for one in server.tools) or "none"
        return ToolAnswer(text=f"{server.name} has no tool {name}; it has {there}", is_error=True)
    wrong = mistake_in(tool, input)
    if wrong is not None:
        return ToolAnswer(text=f"{name}: {wrong}", is_error=True)
    try:
        answer = await tool.handler(input)
    except Exception as error:  # noqa: BLE001 whatever it is, it is the tool's failure and not the run's
        return ToolAnswer(text=f"{name} failed: {error}", is_error=True)
    return ToolAnswer(text=answer) if isinstance(answer, str) else answer


def mistake_in(tool: InjectedMcpToolDef, input: Mapping[str, Any]) -> str | None:
    """What is wrong with the fields of `input`; below them the handler has to look for itself."""
    schema = tool.input_schema
    fields: Mapping[str, Any] = schema.get("properties", {})
    for name in schema.get("required", ()):
        if name not in input:
            return f"the input {name!r} is missing"
    for name, value in input.items():
        field = fields.get(name)
        if field is None:
            if schema.get("additionalProperties") is False:
                return f"there is no input {name!r}; there are {', '.join(fields) or 'none'}"
            continue
        if isinstance(field, Mapping) and not _is_of(value, field.get("type")):
            return f"the input {name!r} has to be of type {field['type']}"
    return None


def _is_of(value: Any, wanted: Any) -> bool:
    kinds = [wanted] if isinstance(wanted, str) else wanted
    if not isinstance(kinds, list | tuple):
        return True
    for kind in kinds:
        classes = TYPES.get(kind)
        if classes is None:
            return True
        if isinstance(value, classes) and (bool in classes or not isinstance(value, bool)):
            return True
    return False
