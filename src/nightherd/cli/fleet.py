"""The fleet as commands need it: loaded, with what has to be said about it told."""

from __future__ import annotations

from nightherd.cli.invocation import Invocation
from nightherd.cli.problems import notice_text
from nightherd.config.load import load_fleet
from nightherd.model.agent import Fleet
from nightherd.model.problem import Problem


def load_fleet_told(
    invocation: Invocation, *, agent: str | None = None, is_quiet: bool = False
) -> Fleet:
    """The fleet; what `agent` or the fleet itself uses that does nothing yet is told, one line each.

    The other agents are `config check`'s matter: a large fleet would drown the one that runs. Without an
    `agent`, only what is about the fleet itself.
    """
    loaded = load_fleet(
        invocation.fleet_file(),
        environ=invocation.environ,
        cwd=invocation.cwd,
        state_dir=invocation.named_state,
    )
    for notice in () if is_quiet else loaded.notices:
        if concerns(notice, agent):
            invocation.screen.say(notice_text(notice, invocation.cwd))
    return loaded.fleet


def concerns(notice: Problem, agent: str | None) -> bool:
    """Whether the notice is about `agent` or about the fleet itself."""
    path = f"{notice.path}."
    is_own = agent is not None and path.startswith(f"agents.{agent}.")
    return is_own or not path.startswith("agents.")
