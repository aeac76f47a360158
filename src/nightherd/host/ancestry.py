"""Ancestry: whether a process was started by an agent, also where it has hidden its own environment.

Every process of an execution carries a mark in its environment, and so do those above it up to its keeper, who
also adopts those whose parent has ended. An agent can leave its tree with the help of others (cron, systemd): this
is a guard rail, not a boundary.
"""

from __future__ import annotations

import os
from collections.abc import Iterator

from nightherd.host.process import PROC, stat_fields

EXECUTION_MARK = "NIGHTHERD_EXECUTION"
HOOK_MARK = "NIGHTHERD_HOOK_EVENT"
"""In the environment of hooks, which are the operator's own commands."""
PARENT = 1
"""Place in /proc/<pid>/stat, counted after the name."""
MOST_ANCESTORS = 1_000


def find_agent_above(pid: int, directory: str) -> str | None:
    """Return the mark of the agent that started `pid`, of the state directory with this identity; None for a person."""
    marks = [_environment(one) for one in _line(pid)]
    if not marks:
        marks = [dict(os.environ)] if pid == os.getpid() else []
    for variables in marks:
        mark = variables.get(EXECUTION_MARK)
        if mark is None or HOOK_MARK in variables:
            continue
        execution, separator, owner = mark.partition("@")
        if not separator or owner == directory:
            return execution
    return None


def _line(pid: int) -> Iterator[int]:
    """The process and those above it."""
    for _ in range(MOST_ANCESTORS):
        fields = stat_fields(pid)
        if fields is None:
            return
        yield pid
        pid = int(fields[PARENT])
        if pid <= 1:
            return


def _environment(pid: int) -> dict[str, str]:
    """What the process was started with; empty when it is gone or another person's."""
    try:
        entries = (PROC / str(pid) / "environ").read_bytes().split(b"\0")
    except OSError:
        return {}
    pairs = (os.fsdecode(entry).partition("=") for entry in entries)
    return {name: value for name, _, value in pairs}
