"""Approvals: which calls a person has to allow first, decided on the safe side.

A rule names calls as those of `allowed_tools` do. A command that may be one of them needs approval too: what a rule
cannot see by reading (a substitution, a program whose name is made at run time, text piped into a shell) is asked about.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from nightherd.model.agents.agent import Agent
from nightherd.model.inbox.review import ApprovalTerms
from nightherd.model.permissions.command_match import may_be
from nightherd.model.permissions.shell_command import ShellCommand
from nightherd.model.permissions.tool_rule import ToolRule, parse_rule

REVIEW = "review"
"""The `operation` of an agent whose every call that is not read-only needs approval."""
READ_ONLY = frozenset(
    {
        "Read", "Glob", "Grep", "LS", "NotebookRead", "TodoRead", "TodoWrite",
        # Claude's own: looking for tools, its list of tasks, and output of what it has started.
        "ToolSearch", "TaskCreate", "TaskUpdate", "TaskGet", "TaskList", "TaskOutput", "BashOutput",
        "ListMcpResourcesTool",
    }
)  # fmt: skip
"""Tools that change nothing outside the conversation."""


class NeededApproval(msgspec.Struct, frozen=True):
    """Why a call needs approval, and on which terms."""

    reason: str
    terms: ApprovalTerms


class Approvals(msgspec.Struct, frozen=True, kw_only=True):
    """What a person has to allow first, of one agent."""

    rules: tuple[tuple[ToolRule, ApprovalTerms], ...] = ()
    reviews_all: bool = False
    """Whether every call that is not read-only needs approval."""

    def needed(
        self,
        tool: str,
        input: Mapping[str, Any],
        command: ShellCommand | None,
        path: tuple[str, str] | None,
    ) -> NeededApproval | None:
        """Return why the call needs approval; None when it does not.

        `command` is what Bash is to run; `path` the absolute file of a call about one, and the working directory.
        """
        for rule, terms in self.rules:
            reason = _why(rule, tool, command, path)
            if reason is not None:
                return NeededApproval(reason, terms)
        if self.reviews_all and tool not in READ_ONLY:
            return NeededApproval("the agent's 'operation' is review", ApprovalTerms())
        return None


NO_APPROVALS = Approvals()


def approvals_of(agent: Agent) -> Approvals:
    """Return what a person has to allow of the agent's calls."""
    rules = tuple((parse_rule(rule.tool, denies=True), rule.terms) for rule in agent.approvals)
    return Approvals(rules=rules, reviews_all=agent.operation == REVIEW)


def _why(
    rule: ToolRule, tool: str, command: ShellCommand | None, path: tuple[str, str] | None
) -> str | None:
    if not rule.concerns(tool):
        return None
    if rule.specifier is None:
        return f"the rule {rule.text!r} of 'approvals'"
    if command is not None:
        if not may_be(rule, command):
            return None
        if command.is_opaque:
            return f"it cannot be told whether the command is one that {rule.text!r} names"
        return f"the rule {rule.text!r} of 'approvals'"
    if path is None or rule.fits_path(*path):
        return f"the rule {rule.text!r} of 'approvals'"
    return None
