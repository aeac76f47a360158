"""`nightherd session`: the conversations that jobs go on in."""

from __future__ import annotations

import click

from nightherd.cli.invocation import Invocation
from nightherd.cli.jobs.list import refresh_lost
from nightherd.cli.lazy import Entry, LazyGroup
from nightherd.cli.options import complete_agents, json_option
from nightherd.cli.screen.text import PAGE, neutralise, next_page
from nightherd.cli.sessions.options import reading
from nightherd.cli.sessions.text import session_table
from nightherd.host.process import is_at_work
from nightherd.model.sessions.observed import lost_job_of
from nightherd.model.sessions.session import SessionMode, SessionQuery, SessionStatus
from nightherd.views.sessions import list_page, session_row
from nightherd.wiring.stores import open_journals, system_clock

MOST = 1_000


@click.group(
    "session",
    cls=LazyGroup,
    entries={
        "list": Entry(
            "nightherd.cli.sessions.list:list_sessions", "The newest; also just `session`."
        ),
        "show": Entry("nightherd.cli.sessions.show:show", "One session, and what was said in it."),
        "resume": Entry("nightherd.cli.sessions.fork:resume", "Go on in a session."),
        "fork": Entry("nightherd.cli.sessions.fork:fork", "A new session from a place of another."),
        "use": Entry("nightherd.cli.sessions.actions:use", "Let the next job go on in this one."),
        "tree": Entry("nightherd.cli.sessions.family:tree", "What was forked from what."),
        "compare": Entry("nightherd.cli.sessions.family:compare", "Where two sessions part."),
        "rename": Entry("nightherd.cli.sessions.actions:rename", "Give a session a name."),
        "cleanup": Entry("nightherd.cli.sessions.actions:cleanup", "Clear away what has expired."),
        "export": Entry("nightherd.cli.sessions.files:export", "A session as a file."),
        "import": Entry("nightherd.cli.sessions.files:import_session", "A session from a file."),
        "takeover": Entry("nightherd.cli.sessions.takeover:takeover", "Go on by hand in `claude`."),
    },
    default="list",
    epilog="Example: nightherd session fork @last --at-message 5",
)
def session() -> None:
    """The conversations that jobs go on in. A SESSION is an id (ours or the runtime's), a unique prefix, or @last."""


@click.command("list", epilog="Example: nightherd session list --agent coder --status paused")
@click.option("--agent", metavar="AGENT", shell_complete=complete_agents, help="Only this agent's.")
@click.option(
    "--status",
    type=click.Choice([status.value for status in SessionStatus]),
    help="Only sessions that stand so.",
)
@click.option(
    "--mode",
    type=click.Choice([mode.value for mode in SessionMode]),
    help="Only sessions of this mode.",
)
@click.option("--limit", type=click.IntRange(1, MOST), default=PAGE, help="At most so many (20).")
@click.option("--before", type=click.IntRange(1), metavar="CURSOR", help="The page after this one.")
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
    """The newest sessions, newest first. Those that were cleaned up are left out."""
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
