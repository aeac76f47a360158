"""Agents that hooks submit: each has to be in the fleet, which is known only once it is whole."""

from __future__ import annotations

from collections.abc import Collection

from nightherd.config.findings import Findings
from nightherd.config.node import MappingNode, problem_at, text_of
from nightherd.config.not_active import entries_at
from nightherd.config.wording import did_you_mean, quote

LIMIT_HOOKS = ("limits.hooks[].directive",)
AGENT_HOOKS = (
    *LIMIT_HOOKS,
    "schedules.*.limits.hooks[].directive",
    "hooks.after_run[].directive",
    "hooks.on_error[].directive",
    "hooks.on_suspend[].directive",
    "hooks.on_cancel[].directive",
)


def check_submitted(
    node: MappingNode,
    keys: Collection[str],
    names: Collection[str],
    findings: Findings,
    *,
    path: str = "",
) -> None:
    """Every agent that `node` names at one of `keys` is among `names`, which are whole names."""
    for key in keys:
        for entry, dotted in entries_at(node, key):
            name = text_of(entry.value)
            if name is None or name in names:
                continue
            where = f"{path}.{dotted}" if path else dotted
            message = f"the fleet has no agent {quote(name)}"
            hint = did_you_mean(whole_name(name, names), sorted(names))
            findings.add(problem_at(entry.value, message, path=where, hint=hint))


def whole_name(name: str, names: Collection[str]) -> str:
    """The agent of a sub-fleet that has this for its own name, else the name itself."""
    return next((one for one in sorted(names) if one.endswith(f".{name}")), name)
