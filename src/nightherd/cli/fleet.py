"""The fleet as commands need it: loaded, with its notices told."""

from __future__ import annotations

from nightherd.cli.invocation import Invocation
from nightherd.cli.problems import notice_text
from nightherd.config.load import load_fleet
from nightherd.model.agent import Fleet


def load_fleet_told(invocation: Invocation, *, is_quiet: bool = False) -> Fleet:
    """The fleet; what its file uses that does nothing yet is said, one line each."""
    loaded = load_fleet(invocation.fleet_file(), environ=invocation.environ, cwd=invocation.cwd)
    if not is_quiet:
        for notice in loaded.notices:
            invocation.screen.say(notice_text(notice, invocation.cwd))
    return loaded.fleet
