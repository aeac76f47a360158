"""ToolRule: one entry of `allowed_tools` or `denied_tools`.

    Bash                      a tool
    Bash(git *)               commands; * is any text, and a * after a space also fits nothing
    Edit(src/**), Read(...)   files: changed by any tool, or read; // is the root, / the working directory
    mcp__github, mcp__github__*, mcp__github__create_issue
    *                         every tool, where it denies

These are the forms that Claude really obeys; one that would silently do nothing is refused.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterable

import msgspec

from nightherd.errors import InvalidValueError
from nightherd.model.agents.mcp import PREFIX, check_server_name, split_tool_name

BASH = "Bash"
EVERY = "*"
FILE_TOOLS = frozenset({"Read", "Write", "Edit"})
CHANGES_FILES = frozenset({"Write", "Edit"})
OTHER_SPECIFIED = frozenset({"WebFetch", "WebSearch", "Agent", "Task", "Skill", "SlashCommand"})
"""Tools of Claude's own that take something in brackets."""

_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_-]*")
_FORM = re.compile(r"(?P<name>[^()]*)(?:\((?P<specifier>.*)\))?", re.DOTALL)
_MCP_TOOL = re.compile(r"[A-Za-z0-9_-]*\*?")


class ToolRule(msgspec.Struct, frozen=True, kw_only=True):
    """A rule that was understood."""

    text: str
    """As it was written."""
    tool: str
    specifier: str | None = None
    """What the call has to be about; None for any call."""

    def concerns(self, tool: str) -> bool:
        """Whether the rule is about calls of `tool`."""
        if self.tool == EVERY:
            return True
        if self.tool.startswith(PREFIX):
            return _fits(self.tool, tool)
        if self.tool == "Edit" and self.specifier is not None:
            return tool in CHANGES_FILES
        return self.tool == tool

    def fits_text(self, text: str) -> bool:
        """Whether a command is one that the rule means."""
        return self.specifier is not None and _fits(self.specifier, text)

    def fits_path(self, path: str, root: str) -> bool:
        """Whether the file at the absolute `path` is one that the rule means; relative to `root`."""
        return (
            self.specifier is not None
            and _path_form(self.specifier, root).fullmatch(path) is not None
        )


def parse_rule(text: str, *, denies: bool = False) -> ToolRule:
    """The rule that `text` spells, or `InvalidValueError` when it could not work, saying what would."""
    form = _FORM.fullmatch(text)
    if form is None or text != text.strip() or not text:
        raise InvalidValueError(f"{text!r} is not a rule for tools: write Bash, or Bash(git *)")
    name, specifier = form["name"], form["specifier"]
    if name == EVERY and specifier is None:
        if denies:
            return ToolRule(text=text, tool=EVERY)
        raise InvalidValueError(
            "'*' is not supported: name the tools, or set permission_mode: bypassPermissions"
        )
    if name.startswith(PREFIX.rstrip("_")):
        return _mcp_rule(text, name, specifier)
    if _NAME.fullmatch(name) is None:
        raise InvalidValueError(
            f"{text!r} does not begin with the name of a tool, like Bash or Read"
        )
    if specifier is not None:
        specifier = _specifier(text, name, specifier)
    return ToolRule(text=text, tool=name, specifier=specifier)


def check_tool_name(text: str) -> str:
    """`text`, the name of a tool of the runtime's own; `InvalidValueError` when it could name none."""
    if text.startswith(PREFIX.rstrip("_")):
        raise InvalidValueError(f"{text!r}: tools of MCP servers come with their server; remove it")
    if "(" in text:
        raise InvalidValueError(
            f"{text!r} is a rule; here are names of tools, rules are for allowed_tools and denied_tools"
        )
    if _NAME.fullmatch(text) is None:
        raise InvalidValueError(f"{text!r} is not the name of a tool, like Bash or Read")
    return text


def _mcp_rule(text: str, name: str, specifier: str | None) -> ToolRule:
    shape = "write mcp__SERVER, mcp__SERVER__* or mcp__SERVER__TOOL"
    if specifier is not None:
        raise InvalidValueError(
            f"{text!r}: tools of MCP servers take no argument in brackets; {shape}"
        )
    server, tool = split_tool_name(name) or (name.removeprefix(PREFIX), EVERY)
    if (
        not name.startswith(PREFIX)
        or not server
        or "*" in server
        or _MCP_TOOL.fullmatch(tool) is None
    ):
        raise InvalidValueError(f"{text!r} fits no tool of an MCP server: {shape}")
    check_server_name(server)
    return ToolRule(text=text, tool=f"{PREFIX}{server}__{tool}")


def _specifier(text: str, name: str, specifier: str) -> str | None:
    if not specifier.strip():
        raise InvalidValueError(f"{text!r} has empty brackets; write {name} alone")
    if specifier == EVERY:
        return None
    if name == BASH:
        return f"{specifier.removesuffix(':*')} *" if specifier.endswith(":*") else specifier
    if name == "Write":
        raise InvalidValueError(
            f"{text!r} has no effect: write rules about changed files as Edit({specifier})"
        )
    if name in FILE_TOOLS:
        if specifier.startswith("~"):
            raise InvalidValueError(
                f"{text!r}: the home directory is unknown; write //home/... instead"
            )
        return specifier
    if name in OTHER_SPECIFIED:
        return specifier
    raise InvalidValueError(f"{text!r}: {name} takes no argument in brackets; write {name} alone")


def _fits(pattern: str, text: str) -> bool:
    """`*` is any text; one after a space at the end may be missing with its space.

    Looked for piece by piece, each as early as can be: however many stars there are, the text is gone through once.
    """
    if pattern.endswith(" *") and "*" not in pattern[:-1]:
        return text == pattern[:-2] or text.startswith(pattern[:-1])
    first, *others = pattern.split("*")
    if not others:
        return text == first
    *pieces, last = others
    at, end = len(first), len(text) - len(last)
    if at > end or not text.startswith(first) or not text.endswith(last):
        return False
    for piece in pieces:
        found = text.find(piece, at, end)
        if found < 0:
            return False
        at = found + len(piece)
    return True


def _path_form(pattern: str, root: str) -> re.Pattern[str]:
    """`**` is any path, `*` and `?` stay within a name; a pattern without a slash fits at any depth."""
    if pattern.startswith("//"):
        anchored = pattern[1:]
    elif "/" in pattern.rstrip("/"):
        anchored = posixpath.join(root, pattern.removeprefix("./").lstrip("/"))
    else:
        anchored = posixpath.join(root, "**", pattern)
    form = ""
    for part in re.split(r"(/\*\*/|\*\*|\*|\?)", anchored.rstrip("/")):
        form += {"/**/": "/(?:.*/)?", "**": ".*", "*": "[^/]*", "?": "[^/]"}.get(
            part, re.escape(part)
        )
    # A directory stands for all that is in it.
    return re.compile(f"{form}(?:/.*)?", re.DOTALL)


TOOL = "nightherd.tool."
MCP = "nightherd.mcp."
SPAWN = "nightherd.spawn."
SPAWN_TOOL = "Spawn"
"""The tool that jobs are made with: being allowed one agent is being allowed the tool."""


def capability_of_tool(tool: str) -> str:
    """The capability that calling `tool` takes."""
    server = split_tool_name(tool)
    return f"{TOOL}{tool}" if server is None else f"{MCP}{server[0]}.{server[1]}"


def covers_tool(capabilities: Iterable[str], tool: str) -> bool:
    """Whether an agent held to `capabilities` may call `tool`, as far as they go."""
    held_to = tuple(capabilities)
    if tool == SPAWN_TOOL and any(one.startswith(SPAWN) for one in held_to):
        return True
    return covers(held_to, capability_of_tool(tool))


def covers_spawn(capabilities: Iterable[str] | None, agent: str) -> bool:
    """Whether an agent held to `capabilities` (None: to nothing) may have jobs done by `agent`."""
    return capabilities is None or covers(capabilities, f"{SPAWN}{agent}")


def covers(capabilities: Iterable[str], wanted: str) -> bool:
    """Whether one of `capabilities` is `wanted`, or a pattern that fits it."""
    return any(
        re.fullmatch(".*".join(map(re.escape, capability.split("*"))), wanted) is not None
        for capability in capabilities
    )


def whole_servers(capabilities: Iterable[str], servers: Iterable[str]) -> tuple[str, ...]:
    """Those of `servers` of which every tool is covered."""
    # No tool is called so: only a pattern for all of them fits.
    return tuple(name for name in servers if covers(capabilities, f"{MCP}{name}.\0"))


def named_tools(capabilities: Iterable[str]) -> tuple[str, ...] | None:
    """The tools, of no server, that are covered; None when all are."""
    names = [
        capability.removeprefix(TOOL) for capability in capabilities if capability.startswith(TOOL)
    ]
    return None if "*" in names else tuple(names)
