"""What a person has to accept before it takes effect, and who counts as one."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from pathlib import Path

from nightherd.cli.invocation import Invocation
from nightherd.cli.next_steps import ACCEPT
from nightherd.cli.screen.text import neutralise
from nightherd.config.acceptance import Admission, admit
from nightherd.errors import RefusedError
from nightherd.files.paths import directory_identity
from nightherd.model.agents.agent import Fleet, get_agent
from nightherd.model.permissions.widening import Widening
from nightherd.wiring.machine import find_agent_above
from nightherd.wiring.stores import system_clock

SHOWN = 5
"""How many changes are named in a line."""


def admitted(invocation: Invocation, fleet: Fleet, *, agent: str | None = None) -> Fleet:
    """The fleet without what waits for a person; on a terminal the person there accepts all of it.

    `RefusedError` when `agent` is one that waits as a whole.
    """
    state_dir = invocation.new_state_directory()
    if not state_dir.is_dir():
        return fleet  # recorded with the first job
    admission = admit(
        fleet, state_dir, at=system_clock().now(), is_accepted=is_at_terminal(invocation)
    )
    tell_admission(invocation, admission)
    if agent in admission.fleet.withheld:
        get_agent(admission.fleet.agents, agent, admission.fleet.withheld)
    return admission.fleet


def tell_admission(invocation: Invocation, admission: Admission) -> None:
    """One line for what was accepted, one for what waits."""
    if admission.accepted:
        invocation.screen.say(f"accepted: {short(admission.accepted)}")
    if admission.pending:
        invocation.screen.say(
            f"not in effect until a person accepts it: {short(admission.pending)}\n  try: {ACCEPT}"
        )


def short(changes: Sequence[Widening]) -> str:
    """The first of the changes, in one line."""
    named = "; ".join(neutralise(one.text) for one in changes[:SHOWN])
    return f"{named} and {len(changes) - SHOWN} more" if len(changes) > SHOWN else named


def is_at_terminal(invocation: Invocation) -> bool:
    """Whether a person is there: a terminal, and no agent above this process."""
    has_terminal = sys.stdin is not None and not sys.stdin.closed and sys.stdin.isatty()
    return has_terminal and _agent_above(invocation.new_state_directory()) is None


def refuse_agents(state_dir: Path, what: str) -> None:
    """`RefusedError` when an agent of this fleet runs the command: only a person may give agents more."""
    execution = _agent_above(state_dir)
    if execution is not None:
        raise RefusedError(
            f"{what} gives agents more permissions, and an agent started this process (execution {execution})",
            hint="run it from a shell of your own",
        )


def _agent_above(state_dir: Path) -> str | None:
    directory = directory_identity(state_dir) if state_dir.is_dir() else ""
    return find_agent_above(os.getpid(), directory)
