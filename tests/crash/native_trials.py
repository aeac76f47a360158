"""Native agents in processes killed on their way, with everything they need imported before."""

from __future__ import annotations

from typing import Any

from crash import whole_trials
from nightherd.engine import watch
from nightherd.model.agent import Agent
from nightherd.runtimes.native import runtime
from nightherd.testing.fork_process import Say

LOADED = (runtime, watch, Agent)
"""What commands import on first use, so that no trial has to."""

# What is built on first use takes longer than a trial.
runtime.NativeRuntime()

COMMAND = f"{__name__}:command"
GO_ON = f"{__name__}:go_on"


def command(order: dict[str, Any], say: Say) -> None:
    """As for every agent."""
    whole_trials.command(order, say)


def go_on(order: dict[str, Any], say: Say) -> None:
    """As for every agent."""
    whole_trials.go_on(order, say)
