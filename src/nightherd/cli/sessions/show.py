"""`nightherd session show`, `tree` and `compare`: one session, what was said in it, and its forks."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

import click

from nightherd.cli.invocation import Invocation, complete_sessions, json_option, page_option
from nightherd.cli.jobs.list import refresh_lost
from nightherd.cli.screen.render import Screen, neutralise
from nightherd.cli.sessions.list import comparison_text, message_text, session_card, tree_text
from nightherd.cli.sessions.options import (
    imported_session,
    named_session,
    reading,
    session_argument,
)
from nightherd.model.journal.message import open_calls
from nightherd.model.sessions.session import SessionStatus
from nightherd.model.text import counted
from nightherd.views.sessions.conversation import (
    HistoryPage,
    Unreadable,
    count_messages,
    history_page,
    unreadable,
)
from nightherd.views.sessions.family import (
    Comparison,
    SessionComparison,
    branch_document,
    comparison_document,
    family_of,
)
from nightherd.views.sessions.family import compare as compare_sessions
from nightherd.views.sessions.messages import history_document
from nightherd.views.sessions.sessions import (
    SessionView,
    get_session,
    session_document,
    show_session,
)
from nightherd.wiring.machine import is_at_work
from nightherd.wiring.stores import open_journals, system_clock

MOST_PLACES = 5


@click.command("show", epilog="Example: nightherd session show @last --history --limit 5")
@session_argument
@click.option("--history", is_flag=True, help="Also show the last messages.")
@page_option(20, most=10_000)
@click.option(
    "--before", type=click.IntRange(1), metavar="N", help="Show messages before number N."
)
@json_option
@click.pass_obj
def show(
    invocation: Invocation, session: str, history: bool, limit: int, before: int | None
) -> None:
    """Show a session. Prints its status, jobs and forks; --history adds its messages, numbered from 1."""
    screen, now = invocation.screen, system_clock().now()
    journals = open_journals(invocation.state_directory())
    named = imported_session(invocation, session) if history else named_session(invocation, session)
    with reading(invocation) as reader:
        view = show_session(reader, journals, get_session(reader, named.id), is_at_work, now)
    refresh_lost(invocation, view.jobs)
    if history:
        page = history_page(
            journals, view.parts, limit=limit, before=before, load_blobs=screen.is_json
        )
        damage = unreadable(journals, view.parts, page)
        _show_history(view, page, damage, screen, now)
    elif screen.is_json:
        screen.document("session", session_document(view), now)
    else:
        screen.show(session_card(view, screen, now))
        screen.flush()
        screen.say(f"messages: nightherd session show {view.session.id} --history")


def _show_history(
    view: SessionView,
    page: HistoryPage,
    damage: Sequence[Unreadable],
    screen: Screen,
    now: datetime,
) -> None:
    if screen.is_json:
        document = history_document(view, page, damage)
        screen.document("session", document, now, next_before=page.next_before)
        return
    screen.show(session_card(view, screen, now))
    shown, session = page.messages, view.session
    is_end = bool(shown) and shown[-1].number == count_messages(view.parts)
    is_still = is_end and session.status is not SessionStatus.ACTIVE
    unknown = open_calls(one.message for one in shown) if is_still else {}
    if not view.parts and session.message_count and session.imported_from is not None:
        screen.flush()
        screen.say("its messages were in its own transcript, and no copy of it is left")
    for one in shown:
        screen.show()
        screen.show(message_text(one, screen.out, unknown=unknown))
    if page.cut_off is not None:
        screen.show(f"\n{screen.out.dim('an answer that was cut off, not in the conversation:')}")
        screen.show(neutralise(page.cut_off))
    screen.flush()
    for lost in damage:
        screen.say(_unreadable_text(lost))
    if page.next_before is not None:
        again = f"nightherd session show {session.id} --history --before {page.next_before}"
        screen.say(f"earlier: {again}")


def _unreadable_text(lost: Unreadable) -> str:
    """What of a job's record is not shown, and where it stands."""
    if lost.is_gone:
        return f"not shown: the journal of {lost.job_id} is missing; details: nightherd doctor"
    where = ", ".join(str(offset) for offset in lost.offsets[:MOST_PLACES])
    more = ", ..." if len(lost.offsets) > MOST_PLACES else ""
    lines = f"{counted(len(lost.offsets), 'line')} cannot be read (at byte {where}{more})"
    events = f"{counted(lost.missing, 'event')} missing"
    gaps = [lines] if lost.offsets else []
    gaps += [events] if lost.missing else []
    what = " and ".join(gaps)
    return f"not shown: in the journal of {lost.job_id} {what}; details: nightherd doctor --verify"


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
@click.option("--diff", "has_patch", is_flag=True, help="Also show the patch between their files.")
@json_option
@click.pass_obj
def compare(invocation: Invocation, one: str, other: str, has_patch: bool) -> None:
    """Compare two sessions. Shows where they diverge, the messages, cost and outcome of each since then.

    Where both have workspaces, it also shows which files differ, from the first to the second.
    """
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
        document = _comparison_document(comparison, invocation, has_patch=has_patch)
        screen.document("session_comparison", document, now)
        return
    screen.show(comparison_text(comparison, screen))
    _show_files(comparison, invocation, has_patch=has_patch)


def _comparison_document(
    comparison: Comparison, invocation: Invocation, *, has_patch: bool
) -> SessionComparison:
    from nightherd.wiring.workspaces import open_snapshot_reader

    files = comparison.files
    if files is None:
        return comparison_document(comparison)
    snapshots = open_snapshot_reader(invocation.state_directory())
    trees = (files.store, files.before, files.after)
    paths = snapshots.changed_paths(*trees, other=files.other)
    patch = snapshots.patch(*trees, other=files.other) if has_patch else None
    return comparison_document(comparison, paths, patch)


def _show_files(comparison: Comparison, invocation: Invocation, *, has_patch: bool) -> None:
    """Show which files differ between the sessions, or why that cannot be shown."""
    from nightherd.cli.screen.patch import show_patch
    from nightherd.wiring.workspaces import open_snapshot_reader

    screen, files = invocation.screen, comparison.files
    if files is None:
        screen.flush()
        screen.say("their files cannot be compared: both sessions need a workspace")
        return
    if files.is_empty:
        screen.show("\nthe same files")
        return
    snapshots = open_snapshot_reader(invocation.state_directory())
    trees = (files.store, files.before, files.after)
    stat = snapshots.stat_text(*trees, other=files.other)
    screen.show("\nfiles, from the first to the second")
    screen.write(neutralise(stat))
    if has_patch:
        screen.show()
        show_patch(snapshots.patch(*trees, other=files.other), screen)
