"""What an injected server says in the Model Context Protocol: the few requests that offering tools takes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from nightherd import __version__
from nightherd.model.agents.mcp import InjectedMcpServerDef, InjectedMcpToolDef, ToolAnswer

VERSIONS = ("2025-06-18", "2025-03-26", "2024-11-05")
"""Newest first."""
INVALID_REQUEST, METHOD_NOT_FOUND, INVALID_PARAMS = -32600, -32601, -32602

Message = dict[str, Any]


class Reply(msgspec.Struct, frozen=True):
    """The answer is known."""

    message: Message


class NoReply(msgspec.Struct, frozen=True):
    """Nothing is answered: it was a notification."""


class Call(msgspec.Struct, frozen=True):
    """A tool is to be called; `answered` makes the reply."""

    id: Any
    tool: str
    input: Mapping[str, Any]

    def answered(self, answer: ToolAnswer) -> Message:
        """The reply that gives the answer."""
        content = [{"type": "text", "text": answer.text}]
        return _result(self.id, {"content": content, "isError": answer.is_error})


def understand(server: InjectedMcpServerDef, message: object) -> Reply | NoReply | Call:
    """What a client's message asks of `server`."""
    if not isinstance(message, Mapping) or not isinstance(message.get("method"), str):
        is_answer = isinstance(message, Mapping) and "id" in message and "method" not in message
        return NoReply() if is_answer else Reply(_error(None, INVALID_REQUEST, "not a request"))
    if "id" not in message:
        return NoReply()
    asked = message.get("params")
    params: Mapping[str, Any] = asked if isinstance(asked, Mapping) else {}
    match message["method"]:
        case "initialize":
            return Reply(_result(message["id"], _introduction(server, params)))
        case "ping":
            return Reply(_result(message["id"], {}))
        case "tools/list":
            return Reply(_result(message["id"], {"tools": _tools(server)}))
        case "tools/call":
            return _call(message["id"], params)
        case method:
            return Reply(_error(message["id"], METHOD_NOT_FOUND, f"there is no method {method}"))


def _call(id: Any, params: Mapping[str, Any]) -> Reply | Call:
    name, input = params.get("name"), params.get("arguments", {})
    if not isinstance(name, str) or not isinstance(input, Mapping):
        return Reply(_error(id, INVALID_PARAMS, "a call needs a name, and arguments as an object"))
    return Call(id, name, input)


def _introduction(server: InjectedMcpServerDef, params: Mapping[str, Any]) -> Message:
    wanted = params.get("protocolVersion")
    return {
        "protocolVersion": wanted if wanted in VERSIONS else VERSIONS[0],
        "capabilities": {"tools": {}},
        "serverInfo": {"name": server.name, "version": __version__},
    }


def _tools(server: InjectedMcpServerDef) -> list[Message]:
    return [
        {
            "name": tool.name,
            "description": tool.description,
            "inputSchema": tool.whole_schema,
        }
        for tool in server.tools
    ]


def _result(id: Any, result: Message) -> Message:
    return {"jsonrpc": "2.0", "id": id, "result": result}


def _error(id: Any, code: int, text: str) -> Message:
    return {"jsonrpc": "2.0", "id": id, "error": {"code": code, "message": text}}


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
            return f"the input {name!r} must be of type {field['type']}"
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
