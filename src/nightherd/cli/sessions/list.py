"""`nightherd session`: the conversations that jobs continue."""

from __future__ import annotations

import click

from nightherd.cli.invocation import Invocation
from nightherd.cli.jobs.list import refresh_lost
from nightherd.cli.lazy import Entry, LazyGroup
from nightherd.cli.options import agent_filter, before_option, json_option, page_option
from nightherd.cli.screen.text import PAGE, neutralise, next_page
from nightherd.cli.sessions.options import reading
from nightherd.cli.sessions.text import session_table
from nightherd.model.sessions.observed import lost_job_of
from nightherd.model.sessions.session import SessionMode, SessionQuery, SessionStatus
from nightherd.views.sessions import list_page, session_row
from nightherd.wiring.machine import is_at_work
from nightherd.wiring.stores import open_journals, system_clock


@click.group(
    "session",
    cls=LazyGroup,
    entries={
        "list": Entry("nightherd.cli.sessions.list:list_sessions", "List sessions."),
        "show": Entry("nightherd.cli.sessions.show:show", "Show a session."),
        "resume": Entry("nightherd.cli.sessions.fork:resume", "Resume a session."),
        "fork": Entry("nightherd.cli.sessions.fork:fork", "Fork a session."),
        "use": Entry(
            "nightherd.cli.sessions.actions:use", "Make a session the agent's current one."
        ),
        "tree": Entry("nightherd.cli.sessions.show:tree", "Show a session's forks as a tree."),
        "compare": Entry("nightherd.cli.sessions.show:compare", "Compare two sessions."),
        "rename": Entry("nightherd.cli.sessions.actions:rename", "Rename a session."),
        "cleanup": Entry("nightherd.cli.sessions.actions:cleanup", "Clean up expired sessions."),
        "export": Entry("nightherd.cli.sessions.files:export", "Export a session to a file."),
        "import": Entry(
            "nightherd.cli.sessions.files:import_session", "Import a session from a file."
        ),
        "takeover": Entry(
            "nightherd.cli.sessions.takeover:takeover", "Continue a session in `claude`."
        ),
    },
    default="list",
    epilog="Example: nightherd session fork @last --at-message 5",
)
def session() -> None:
    """List, show, fork and manage sessions. SESSION is an id (nightherd's or the runtime's), a unique prefix, or @last."""


@click.command("list", epilog="Example: nightherd session list --agent coder --status paused")
@agent_filter
@click.option(
    "--status",
    type=click.Choice([status.value for status in SessionStatus]),
    help="Show only sessions with this status.",
)
@click.option(
    "--mode",
    type=click.Choice([mode.value for mode in SessionMode]),
    help="Show only sessions of this mode.",
)
@page_option(PAGE)
@before_option
@json_option
@click.pass_obj
def list_sessions(
    invocation: Invocation,
    agent: str | None,
    status: str | None,
    mode: str | None,
    limit: int,
    before: int | None,
) -> None:
    """List sessions. The newest come first; cleaned-up sessions are left out."""
    screen, now = invocation.screen, system_clock().now()
    query = SessionQuery(
        agent=agent,
        status=SessionStatus(status) if status else None,
        mode=SessionMode(mode) if mode else None,
        before=before,
        limit=limit,
    )
    journals = open_journals(invocation.state_directory())
    with reading(invocation) as reader:
        page = list_page(reader, journals, query, is_at_work, now)
    lost = [lost_job_of(one) for one in page.sessions]
    refresh_lost(invocation, [job for job in lost if job is not None])
    if screen.is_json:
        rows = [session_row(one) for one in page.sessions]
        screen.document("sessions", rows, now, next_before=page.next_before)
        return
    if not page.sessions:
        is_filtered = any(given is not None for given in (agent, status, mode, before))
        screen.say("no such sessions" if is_filtered else "no sessions yet")
        more = "nightherd session list" if is_filtered else "nightherd run AGENT -p TEXT"
        screen.say(f"  try: {more}")
        return
    screen.show(session_table(page.sessions, screen, now))
    if page.next_before is not None:
        screen.flush()
        command = next_page(
            "nightherd session list",
            page.next_before,
            limit,
            agent=agent,
            status=status,
            mode=mode,
        )
        screen.say(f"more: {neutralise(command)}")
