"""What an injected server says in the Model Context Protocol: the few requests that offering tools takes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from nightherd import __version__
from nightherd.model.mcp import InjectedMcpServerDef, ToolAnswer

VERSIONS = ("2025-06-18", "2025-03-26", "2024-11-05")
"""Newest first."""
INVALID_REQUEST, METHOD_NOT_FOUND, INVALID_PARAMS = -32600, -32601, -32602

Message = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Reply:
    """The answer is known."""

    message: Message


@dataclass(frozen=True, slots=True)
class NoReply:
    """Nothing is answered: it was a notification."""


@dataclass(frozen=True, slots=True)
class Call:
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
