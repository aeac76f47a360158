"""`nightherd agent`: what can be done with one agent of the fleet."""

from __future__ import annotations

import click

from nightherd.cli.lazy import Entry, LazyGroup


@click.group(
    "agent",
    cls=LazyGroup,
    entries={
        "resume": Entry(
            "nightherd.cli.session_resume:agent_resume", "Go on in the session it used last."
        ),
    },
    no_args_is_help=True,
    epilog="Example: nightherd agent resume coder",
)
def agent() -> None:
    """What can be done with one agent of the fleet."""
