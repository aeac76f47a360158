"""`nightherd session tree` and `nightherd session compare`: a session among its like."""

from __future__ import annotations

import click

from nightherd.cli.invocation import Invocation
from nightherd.cli.options import complete_sessions, json_option
from nightherd.cli.sessions.options import imported_session, reading, session_argument
from nightherd.cli.sessions.text import comparison_text, tree_text
from nightherd.views.session_family import (
    branch_document,
    comparison_document,
    family_of,
)
from nightherd.views.session_family import compare as compare_sessions
from nightherd.views.sessions import get_session
from nightherd.wiring.machine import is_at_work
from nightherd.wiring.stores import open_journals, system_clock


@click.command("tree", epilog="Example: nightherd session tree @last")
@session_argument
@json_option
@click.pass_obj
def tree(invocation: Invocation, session: str) -> None:
    """Show a session's forks as a tree. Starts at the session that all were forked from."""
    screen, now = invocation.screen, system_clock().now()
    journals = open_journals(invocation.state_directory())
    named = imported_session(invocation, session)
    with reading(invocation) as reader:
        found = get_session(reader, named.id)
        family = family_of(reader, journals, found, is_at_work, now)
    if screen.is_json:
        screen.document("session_tree", branch_document(family), now)
    else:
        screen.show(tree_text(family, found.id, screen.out))


@click.command("compare", epilog="Example: nightherd session compare sess-a1b2c3d4 @last")
@click.argument("one", metavar="SESSION", shell_complete=complete_sessions)
@click.argument("other", metavar="SESSION", shell_complete=complete_sessions)
@json_option
@click.pass_obj
def compare(invocation: Invocation, one: str, other: str) -> None:
    """Compare two sessions. Shows where they diverge, and the messages, cost and outcome of each since then."""
    screen, now = invocation.screen, system_clock().now()
    journals = open_journals(invocation.state_directory())
    first, second = (imported_session(invocation, named) for named in (one, other))
    with reading(invocation) as reader:
        comparison = compare_sessions(
            reader,
            journals,
            get_session(reader, first.id),
            get_session(reader, second.id),
            is_at_work,
            now,
        )
    if screen.is_json:
        screen.document("session_comparison", comparison_document(comparison), now)
    else:
        screen.show(comparison_text(comparison, screen))
