"""`nightherd session list`, and sessions as tables, cards, conversations and trees for people."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from contextlib import closing
from datetime import datetime

import click

from nightherd.cli.invocation import (
    Invocation,
    agent_filter,
    before_option,
    json_option,
    page_option,
    query_argument,
    status_option,
)
from nightherd.cli.jobs.event_text import event_text
from nightherd.cli.jobs.list import refresh_lost
from nightherd.cli.lazy import Entry, LazyGroup
from nightherd.cli.next_steps import command_for
from nightherd.cli.screen.render import (
    PAGE,
    Screen,
    Style,
    neutralise,
    next_page,
    one_line,
    status_cell,
    table,
)
from nightherd.model.jobs.lost import ObservedJob, lost_text
from nightherd.model.journal.message import Speaker
from nightherd.model.sessions.filter import parse_session_filter
from nightherd.model.sessions.observed import lost_job_of, status_text
from nightherd.model.sessions.session import (
    Session,
    SessionMode,
    SessionQuery,
    SessionStatus,
    expires_at,
)
from nightherd.model.text import counted
from nightherd.model.units import format_usd
from nightherd.views.sessions.conversation import Spoken
from nightherd.views.sessions.family import Branch, Comparison, Side
from nightherd.views.sessions.sessions import WAITING, SessionView, list_page, session_row
from nightherd.wiring.machine import is_at_work
from nightherd.wiring.stores import open_journals, open_reader, system_clock


@click.group(
    "session",
    cls=LazyGroup,
    entries={
        "list": Entry("nightherd.cli.sessions.list:list_sessions", "List sessions."),
        "show": Entry("nightherd.cli.sessions.show:show", "Show a session."),
        "resume": Entry("nightherd.cli.sessions.actions:resume", "Resume a session."),
        "fork": Entry("nightherd.cli.sessions.actions:fork", "Fork a session."),
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
            "nightherd.cli.sessions.files:takeover", "Continue a session in `claude`."
        ),
    },
    default="list",
    epilog="Example: nightherd session fork @last --at-message 5",
)
def session() -> None:
    """List, show, fork and manage sessions. SESSION is an id (nightherd's or the runtime's), a unique prefix, or @last."""


@click.command("list", epilog="Example: nightherd session list status:paused since:2d parser")
@query_argument
@agent_filter
@status_option(SessionStatus, "sessions")
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
    words: tuple[str, ...],
    agent: str | None,
    status: str | None,
    mode: str | None,
    limit: int,
    before: int | None,
) -> None:
    """List sessions. The newest come first; cleaned-up sessions are left out.

    QUERY narrows the list: agent, status, mode, schedule, channel, cost, since and until, each as KEY:VALUE, and
    words of the id, name, agent, channel or schedule. Separate several values of a key by commas.
    """
    screen, now = invocation.screen, system_clock().now()
    query = SessionQuery(
        agent=agent,
        status=SessionStatus(status) if status else None,
        mode=SessionMode(mode) if mode else None,
        filter=parse_session_filter(" ".join(words), now) if words else None,
        before=before,
        limit=limit,
    )
    journals = open_journals(invocation.state_directory())
    with closing(open_reader(invocation.state_directory())) as reader:
        page = list_page(reader, journals, query, is_at_work, now)
    lost = [lost_job_of(one) for one in page.sessions]
    refresh_lost(invocation, [job for job in lost if job is not None])
    if screen.is_json:
        rows = [session_row(one) for one in page.sessions]
        screen.document("sessions", rows, now, next_before=page.next_before)
        return
    if not page.sessions:
        is_filtered = bool(agent or status or mode or before or words)
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
            words,
            agent=agent,
            status=status,
            mode=mode,
        )
        screen.say(f"more: {neutralise(command)}")


HEADING = (
    "ID",
    "AGENT",
    "MODE",
    "STATUS",
    "LAST ACTIVE",
    "JOBS",
    "MESSAGES",
    "TOKENS",
    "COST",
    "NAME",
)
SPARE = ("TOKENS", "JOBS", "MODE", "COST")
NAME_LIMIT = 80


def session_table(sessions: Sequence[Session], screen: Screen, now: datetime) -> str:
    """One line per session."""
    rows = [
        (
            one.id,
            one.agent,
            one.mode.value,
            status_cell(status_text(one)),
            screen.when(one.last_active_at, now),
            str(one.job_count),
            str(one.message_count),
            str(one.token_estimate),
            format_usd(one.cost_microusd),
            one_line(_called(one), NAME_LIMIT),
        )
        for one in sessions
    ]
    return table(HEADING, rows, width=screen.width, style=screen.out, spare=SPARE)


def _called(session: Session) -> str:
    named = [session.name or ""]
    if session.channel_id is not None:
        named.append(f"channel {session.channel_id}")
    if session.parent_session_id is not None:
        named.append(f"fork of {session.parent_session_id}")
    return ", ".join(filter(None, named))


def session_card(view: SessionView, screen: Screen, now: datetime) -> str:
    """Everything about one session but what was said in it."""
    session, style = view.session, screen.out
    ends = expires_at(session) if session.status in WAITING else None
    pairs: list[tuple[str, str | None]] = [
        ("session", style.bold(session.id)),
        ("name", session.name and one_line(session.name, NAME_LIMIT)),
        ("agent", session.agent),
        ("mode", session.mode.value),
        ("channel", session.channel_id and one_line(session.channel_id)),
        ("schedule", session.schedule),
        ("status", style.status(status_text(session))),
        (
            "lost",
            lost_text(lost, command_for) if (lost := lost_job_of(session)) is not None else None,
        ),
        ("created", screen.when(session.created_at, now)),
        ("active", screen.when(session.last_active_at, now)),
        ("expires", screen.when(ends, now) if ends is not None else None),
        ("cleaned up", screen.when(session.removed_at, now) if session.removed_at else None),
        ("messages", f"{session.message_count}, about {session.token_estimate} tokens"),
        ("cost", format_usd(session.cost_microusd)),
        ("runtime", _runtime(session)),
        ("directory", one_line(session.working_directory)),
        ("fork of", _origin(session)),
        ("imported", session.imported_from and one_line(session.imported_from)),
        *(("job", f"{job.id} {job_status(job)}") for job in view.jobs),
        *(("fork", f"{one.id} after message {one.base_messages}") for one in view.forks),
    ]
    return "\n".join(f"{label:<11}{value}" for label, value in pairs if value)


def job_status(job: ObservedJob) -> str:
    """The job's status as people read it."""
    return job.status.value if job.lost is None else "lost"


def _runtime(session: Session) -> str:
    known = session.runtime_session_id
    return session.runtime_type + (f" ({one_line(known)})" if known else "")


def _origin(session: Session) -> str | None:
    if session.parent_session_id is None:
        return None
    return f"{session.parent_session_id} after message {session.base_messages}"


def message_text(spoken: Spoken, style: Style, *, unknown: Collection[str] = ()) -> str:
    """A message with its number and its speaker; calls in `unknown` were cut off from their results."""
    message = spoken.message
    lines = [style.dim(f"#{spoken.number} {message.speaker.value} {spoken.job_id}")]
    if message.speaker is Speaker.USER:
        lines.append(neutralise(message.text))
    else:
        lines += [text for line in message.lines if (text := event_text(line, style))]
    lost = [call for call in message.calls if (call.tool_use_id or "") in unknown]
    lines += [style.bad(f"  ? {one_line(call.tool_name)}: outcome unknown") for call in lost]
    return "\n".join(lines)


def tree_text(branch: Branch, marked: str, style: Style) -> str:
    """The family, one line each, forks below what they were forked from."""
    return "\n".join(_branches(branch, marked, style, lead="", tail=""))


def _branches(branch: Branch, marked: str, style: Style, *, lead: str, tail: str) -> Iterator[str]:
    session = branch.session
    name = style.bold(session.id) if session.id == marked else session.id
    at = f" after message {session.base_messages}" if session.parent_session_id else ""
    gone = ", cleaned up" if session.removed_at is not None else ""
    said = f"{counted(session.message_count, 'message')}, {format_usd(session.cost_microusd)}{gone}"
    named = f' "{one_line(session.name, NAME_LIMIT)}"' if session.name else ""
    here = " <" if session.id == marked else ""
    yield f"{lead}{name}{at}: {style.status(status_text(session))}, {said}{named}{here}"
    for place, fork in enumerate(branch.forks):
        is_last = place == len(branch.forks) - 1
        below = tail + ("└─ " if is_last else "├─ ")
        further = tail + ("   " if is_last else "│  ")
        yield from _branches(fork, marked, style, lead=below, tail=further)


def comparison_text(comparison: Comparison, screen: Screen) -> str:
    """Where two sessions part, and each from there."""
    common, style = comparison.common, screen.out
    if common == 0:
        first = "they have no messages in common"
    else:
        first = f"both begin with the same {counted(common, 'message')}"
        place = comparison.place
        first += f" (to event {place.seq} of {place.job_id})" if place is not None else ""
    return "\n".join([first, *(line for side in comparison.sides for line in _side(side, style))])


def _side(side: Side, style: Style) -> Iterator[str]:
    session, job = side.session, side.outcome
    yield ""
    yield f"{style.bold(session.id)}: {style.status(status_text(session))}"
    yield f"  {'since':<9}{counted(side.messages, 'message')} in {counted(len(side.jobs), 'job')}"
    yield f"  {'cost':<9}{format_usd(side.cost_microusd)}"
    if job is not None:
        reason = f" ({job.exit_reason.value})" if job.exit_reason else ""
        yield f"  {'outcome':<9}{style.status(job.status.value)}{reason}, {job.id}"
        if said := job.error or job.summary:
            yield f"  {'answer':<9}{one_line(said, 200)}"
