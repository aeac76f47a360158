"""Permission: whether an agent may make a call, decided from what its declaration says and nothing else.

What only the mode would have asked a person for is denied. From the strongest:

1. a capability is missing, where the agent is held to capabilities (`required_caps`);
2. `tools` is given and does not name the tool (tools of MCP servers are there because the server is);
3. it would change a protected file (model/permissions/protected.py): the state directory, the fleet's own files;
4. a rule of `denied_tools` fits;
5. the mode is `plan`: nothing runs;
6. a rule of `approvals` may fit, or the agent's `operation` is `review` and the call is not read-only: a person decides
   (model/permissions/approval.py);
7. the mode is `bypassPermissions`: everything runs;
8. rules of `allowed_tools` fit all of the call;
9. the mode is `acceptEdits`: files are read and changed in the agent's own directories.
"""

from __future__ import annotations

import posixpath
from collections.abc import Callable, Iterator, Mapping
from enum import StrEnum
from functools import cached_property
from typing import Any

import msgspec

from nightherd.model.agents.agent import Agent
from nightherd.model.agents.mcp import InjectedMcpServerDef, split_tool_name
from nightherd.model.inbox.review import ASK_PERSON, ApprovalTerms
from nightherd.model.permissions.approval import NO_APPROVALS, Approvals, approvals_of
from nightherd.model.permissions.command_match import may_be
from nightherd.model.permissions.file_command import Changed, changed_paths
from nightherd.model.permissions.protected import NAMES_ONLY, Protection
from nightherd.model.permissions.shell_command import (
    ShellCommand,
    Simple,
    Word,
    read_command,
)
from nightherd.model.permissions.tool_rule import (
    BASH,
    FILE_TOOLS,
    ToolRule,
    covers_tool,
    parse_rule,
)

WRITTEN_PATH = {
    "Write": "file_path",
    "Edit": "file_path",
    "MultiEdit": "file_path",
    "NotebookEdit": "notebook_path",
}
"""Tools that change one file, and where their input names it."""
SEARCH_TOOLS = frozenset({"Glob", "Grep"})
LONGEST_PATH = 4096
"""Characters of a path that anybody can open; a longer one is not looked up."""
ZERO = "\0"
"""What no path can hold: looking it up would fail."""
CHANGES_DIRECTORY = frozenset({"cd", "pushd", "popd"})


class PermissionMode(StrEnum):
    """What may be done without asking, beside what is allowed by name."""

    DEFAULT = "default"
    ACCEPT_EDITS = "acceptEdits"
    BYPASS = "bypassPermissions"
    PLAN = "plan"
    DELEGATE = "delegate"
    """As `default`: the agents it may call on are given by name."""
    DONT_ASK = "dontAsk"
    """As `default`, which without anybody to ask has the same effect."""
    MANUAL = "manual"
    """Claude's newer name for `default`."""
    AUTO = "auto"
    """Claude judges each call itself. Our own loops have no such judge: as `default`."""


AUTO_APPROVED: Mapping[PermissionMode, frozenset[str]] = {
    PermissionMode.DEFAULT: frozenset(),
    PermissionMode.ACCEPT_EDITS: frozenset(
        {"Read", "Write", "Edit", "Glob", "Grep", "mkdir", "rm", "mv", "cp"}
    ),
    PermissionMode.PLAN: frozenset(),
    PermissionMode.DELEGATE: frozenset(),
    PermissionMode.DONT_ASK: frozenset(),
    PermissionMode.MANUAL: frozenset(),
    PermissionMode.AUTO: frozenset(),
}
"""Tools, and programs that Bash runs, that need no rule. `bypassPermissions` approves everything."""


class Allowed(msgspec.Struct, frozen=True):
    """The call may be made."""


class Denied(msgspec.Struct, frozen=True):
    """The call may not be made, and why."""

    reason: str


class NeedsApproval(msgspec.Struct, frozen=True):
    """A person has to allow the call first."""

    reason: str
    terms: ApprovalTerms = ApprovalTerms()


Decision = Allowed | Denied | NeedsApproval
ALLOWED = Allowed()


class Permissions(msgspec.Struct, frozen=True, kw_only=True):
    """What one agent may do, read from its declaration once."""

    mode: PermissionMode
    directories: tuple[str, ...]
    """Its working directory, and those added to it."""
    tools: frozenset[str] | None = None
    allowed: tuple[ToolRule, ...] = ()
    denied: tuple[ToolRule, ...] = ()
    capabilities: tuple[str, ...] | None = None
    injected: frozenset[str] = frozenset()
    """Servers injected into this run; their tools are allowed."""
    real_path: Callable[[str], str] = posixpath.normpath
    """An absolute path without links, where somebody can look; else without dots."""
    protection: Protection = NAMES_ONLY
    """What it may not change, whatever allows it."""
    approvals: Approvals = NO_APPROVALS
    """What a person has to allow first."""


def permissions_of(
    agent: Agent,
    *,
    injected: tuple[InjectedMcpServerDef, ...] = (),
    real_path: Callable[[str], str] = posixpath.normpath,
    protection: Protection = NAMES_ONLY,
) -> Permissions:
    """What `agent` may do, with the servers injected into its run."""
    return Permissions(
        mode=PermissionMode(agent.permission_mode),
        directories=(agent.working_directory, *agent.add_dirs),
        tools=None if agent.tools is None else frozenset(agent.tools),
        allowed=tuple(parse_rule(text) for text in agent.allowed_tools),
        denied=tuple(parse_rule(text, denies=True) for text in agent.denied_tools),
        capabilities=agent.required_caps,
        injected=frozenset(server.name for server in injected),
        real_path=real_path,
        protection=protection,
        approvals=approvals_of(agent),
    )


def decide(permissions: Permissions, tool: str, input: Mapping[str, Any]) -> Decision:
    """Whether `tool` may be called with `input`."""
    return _Question(permissions, tool, input).answer()


def protected_change(permissions: Permissions, tool: str, input: Mapping[str, Any]) -> str | None:
    """Return why a call is refused that would change a protected file; None for every other call."""
    refusal = _Question(permissions, tool, input).protected()
    return None if refusal is None else refusal.reason


def approval_needed(
    permissions: Permissions, tool: str, input: Mapping[str, Any]
) -> NeedsApproval | None:
    """Return on which terms a person has to allow the call; None for every other call."""
    return _Question(permissions, tool, input).needs_approval()


def is_offered(permissions: Permissions, tool: str) -> bool:
    """Whether some call of `tool` could ever be made."""
    if tool == ASK_PERSON:
        return True  # a person answers it; nothing is done
    question = _Question(permissions, tool, {})
    return question.exists() and not any(
        rule.specifier is None and rule.concerns(tool) for rule in permissions.denied
    )


class _Question:
    """One call that an agent wants to make."""

    def __init__(self, permissions: Permissions, tool: str, input: Mapping[str, Any]) -> None:
        self._rules = permissions
        self._tool = tool
        self._input = input

    @cached_property
    def _command(self) -> ShellCommand | None:
        """What Bash is to run; parsed only when needed."""
        if self._tool != BASH:
            return None
        return read_command(str(self._input.get("command", "")))

    @property
    def _named(self) -> str:
        """The file it is about, as the call names it; empty for a call that is about none."""
        if self._tool in FILE_TOOLS:
            return str(self._input.get("file_path", ""))
        if self._tool in SEARCH_TOOLS:
            return str(self._input.get("path") or ".")
        return ""

    @cached_property
    def _path(self) -> str | None:
        """The file it is about; resolved only when needed."""
        if self._tool in FILE_TOOLS or self._tool in SEARCH_TOOLS:
            return self._absolute(self._named)
        return None

    def answer(self) -> Decision:
        rules, tool = self._rules, self._tool
        if not self._is_capable():
            return Denied(f"{tool} is not among the capabilities of the agent ('required_caps')")
        if not self._is_listed():
            return Denied(f"{tool} is not one of the agent's tools ('tools')")
        if len(self._named) > LONGEST_PATH:
            return Denied(f"no path has {len(self._named):,} characters")
        if ZERO in self._named:
            return Denied("no path has a zero byte in it")
        refusal = self.protected() or self._denied()
        if refusal is not None:
            return refusal
        match rules.mode:
            case PermissionMode.PLAN:
                return Denied("mode plan runs no tools")
            case _ if (needed := self.needs_approval()) is not None:
                return needed
            case PermissionMode.BYPASS:
                return ALLOWED
            case _:
                return ALLOWED if self._is_approved() else self._unapproved()

    def needs_approval(self) -> NeedsApproval | None:
        """Whether a person has to allow the call, and on which terms."""
        path = None if self._path is None else (self._path, self._root)
        found = self._rules.approvals.needed(self._tool, self._input, self._command, path)
        return None if found is None else NeedsApproval(found.reason, found.terms)

    @property
    def _root(self) -> str:
        return self._rules.real_path(self._rules.directories[0])

    def exists(self) -> bool:
        """Whether the agent has the tool at all."""
        return self._is_capable() and self._is_listed()

    def _is_capable(self) -> bool:
        held_to = self._rules.capabilities
        return held_to is None or covers_tool(held_to, self._tool)

    def _is_listed(self) -> bool:
        tools = self._rules.tools
        return tools is None or self._tool in tools or split_tool_name(self._tool) is not None

    def protected(self) -> Denied | None:
        """Refuses what would change the fleet's own files."""
        for changed in self._changes():
            if len(changed.path) > LONGEST_PATH or ZERO in changed.path:
                continue
            if self._rules.protection.covers(changed, self._rules.directories[0]):
                return Denied(
                    f"{changed.path} is protected: agents may not change the state directory, the fleet's "
                    "files, or files that give Claude hooks, servers or permissions"
                )
        return None

    def _changes(self) -> Iterator[Changed]:
        """The files the call would change, as far as that can be determined."""
        written = WRITTEN_PATH.get(self._tool)
        if written is not None:
            yield Changed(path=str(self._input.get(written, "")))
        if self._command is not None:
            for simple in self._command.simples:
                yield from changed_paths(simple)
            for word in self._command.outputs:
                yield Changed(path=word.text, is_pattern=word.has_glob)

    def _denied(self) -> Denied | None:
        for rule in self._rules.denied:
            if self._tool == "Grep" and rule.tool == "Read" and rule.specifier is not None:
                reason = f"cannot decide whether the search reads what {rule.text!r} denies"
                return Denied(f"{reason} ('denied_tools')")
            if not rule.concerns(self._tool):
                continue
            if rule.specifier is None or self._is_forbidden_by(rule):
                return Denied(f"{self._tool} is denied by the rule {rule.text!r} ('denied_tools')")
            if self._command is not None and self._command.is_opaque:
                reason = f"cannot decide whether the command is one that {rule.text!r} denies"
                return Denied(f"{reason} ('denied_tools')")
        return None

    def _is_forbidden_by(self, rule: ToolRule) -> bool:
        if self._command is not None:
            return not self._command.is_opaque and may_be(rule, self._command)
        return self._path is not None and self._fits_path(rule, self._path)

    def _is_approved(self) -> bool:
        server = split_tool_name(self._tool)
        if server is not None and server[0] in self._rules.injected:
            return True
        rules = [rule for rule in self._rules.allowed if rule.concerns(self._tool)]
        if any(rule.specifier is None for rule in rules):
            return True
        if self._command is not None:
            return self._is_command_approved(self._command, rules)
        if self._path is not None:
            fits = any(self._fits_path(rule, self._path) for rule in rules)
            return fits or (self._approves(self._tool) and self._is_own(self._path))
        return False

    def _is_command_approved(self, command: ShellCommand, rules: list[ToolRule]) -> bool:
        """Every part of a command has to be approved, and a rule sees only what can be seen by reading."""
        if not command.is_plain or not command.simples:
            return False
        moves = any(simple.program in CHANGES_DIRECTORY for simple in command.simples)
        return all(
            any(rule.fits_text(simple.text) for rule in rules)
            or (not moves and self._is_file_command(simple))
            for simple in command.simples
        )

    def _is_file_command(self, simple: Simple) -> bool:
        """Whether it is a program that only changes files, and these are the agent's own."""
        first, *rest = simple.words
        if not self._approves(first.text):
            return False
        operands = [word for word in rest if not word.text.startswith("-")]
        options = [word.text for word in rest if word.text.startswith("-")]
        if not operands or any("=" in option or "/" in option for option in options):
            return False
        target = operands[-1] if first.text in {"mv", "cp"} else None
        return all(
            self._may_be_changed(word, by=first.text, is_target=word is target) for word in operands
        )

    def _may_be_changed(self, word: Word, *, by: str, is_target: bool) -> bool:
        if len(word.text) > LONGEST_PATH or ZERO in word.text:
            return False
        directory, _, name = word.text.rpartition("/")
        # A pattern may match a link: where its files go, or what lies below them, is not known.
        if word.has_glob and (is_target or not name or any(char in "*?[" for char in directory)):
            return False
        path = self._absolute(word.text)
        return self._is_own(path) and not (by == "rm" and self._is_root(path))

    def _approves(self, name: str) -> bool:
        return name in AUTO_APPROVED.get(self._rules.mode, frozenset())

    def _absolute(self, path: str) -> str:
        return self._rules.real_path(posixpath.join(self._rules.directories[0], path))

    def _is_root(self, path: str) -> bool:
        return any(
            path == self._rules.real_path(directory) for directory in self._rules.directories
        )

    def _is_own(self, path: str) -> bool:
        return any(
            path == root or path.startswith(f"{root.rstrip('/')}/")
            for root in map(self._rules.real_path, self._rules.directories)
        )

    def _fits_path(self, rule: ToolRule, path: str) -> bool:
        return rule.fits_path(path, self._root)

    def _unapproved(self) -> Denied:
        mode = self._rules.mode
        what = self._tool if self._path is None else f"{self._tool} of {self._path}"
        return Denied(f"{what} needs approval in mode {mode}, and nobody can approve it")
