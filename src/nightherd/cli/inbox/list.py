"""`nightherd inbox`: what waits for a person, as a list and one by one."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import closing
from datetime import datetime
from functools import partial

import click

from nightherd.cli.invocation import (
    Invocation,
    agent_filter,
    before_option,
    invocation_for_completion,
    json_option,
    page_option,
    watch,
    watch_option,
)
from nightherd.cli.lazy import Entry, LazyGroup
from nightherd.cli.screen.render import (
    PAGE,
    Screen,
    neutralise,
    next_page,
    one_line,
    relative,
    table,
)
from nightherd.model.inbox.item import VERDICTS, InboxItem, InboxQuery, ItemKind, Verdict
from nightherd.model.units import format_usd
from nightherd.views.people.inbox import (
    ShownItem,
    asked_blocks,
    find_item_id,
    gate_path,
    item_document,
    item_row,
    list_inbox,
    show_item,
    what_happens,
)
from nightherd.wiring.stores import open_reader, system_clock
from nightherd.wiring.workspaces import open_artifacts

NOTHING = {False: "nothing waits for a person", True: "nothing was decided yet"}
"""What an empty list says, by whether it lists what was decided."""
HEADING = ("ID", "KIND", "AGENT", "AGE", "ASKS")
DECIDED = ("ID", "KIND", "AGENT", "STATUS", "BY", "ASKS")
TITLE = 100


def complete_items(ctx: click.Context, _parameter: click.Parameter, incomplete: str) -> list[str]:
    """The newest items that wait and begin so."""
    try:
        with closing(open_reader(invocation_for_completion(ctx).state_directory())) as reader:
            waiting = reader.list_items(InboxQuery(limit=20))
            return [one.id for one in waiting if one.id.startswith(incomplete)]
    except Exception:  # noqa: BLE001 (an edge: a prompt that is being typed is no place for an error)
        return []


item_argument = click.argument("item", metavar="ITEM", shell_complete=complete_items)
"""An item: its id or the beginning of it, @last, or the id of its job or run."""


@click.group(
    "inbox",
    cls=LazyGroup,
    entries={
        "list": Entry("nightherd.cli.inbox.list:list_items", "List what waits for a person."),
        "show": Entry("nightherd.cli.inbox.list:show", "Show what an item asks."),
        "approve": Entry("nightherd.cli.inbox.answer:approve", "Approve a call or a gate."),
        "reject": Entry("nightherd.cli.inbox.answer:reject", "Reject what an item asks for."),
        "reply": Entry("nightherd.cli.inbox.answer:reply", "Answer a question."),
        "raise": Entry("nightherd.cli.inbox.answer:raise_limit", "Raise the limit of a job."),
        "retry": Entry("nightherd.cli.inbox.answer:retry", "Try a failed job or run again."),
        "dismiss": Entry("nightherd.cli.inbox.answer:dismiss", "Dismiss a failure."),
        "accept": Entry("nightherd.cli.inbox.answer:accept", "Accept a changed fleet file."),
        "comment": Entry("nightherd.cli.inbox.answer:comment", "Add a comment to an item."),
    },
    default="list",
    epilog="Example: nightherd inbox approve ask-1f",
)
def inbox() -> None:
    """Show and answer approvals, questions and failures. Everything that waits for a person is here.

    ITEM is an id, a unique beginning of one, @last, or the id of its job or run.
    """


@click.command("list", epilog="Example: nightherd inbox --watch")
@agent_filter
@click.option(
    "--kind", type=click.Choice([kind.value for kind in ItemKind]), help="Show only this kind."
)
@click.option("--decided", is_flag=True, help="Show what was decided, not what waits.")
@page_option(PAGE)
@before_option
@watch_option
@json_option
@click.pass_obj
def list_items(
    invocation: Invocation,
    agent: str | None,
    kind: str | None,
    decided: bool,
    limit: int,
    before: int | None,
    is_watched: bool,
) -> None:
    """List what waits for a person. The newest come first."""
    screen = invocation.screen
    query = InboxQuery(
        is_pending=not decided,
        kind=ItemKind(kind) if kind else None,
        agent=agent,
        before=before,
        limit=limit,
    )
    if is_watched:
        draw = partial(_draw, invocation, query)
        watch(screen, draw, command="nightherd inbox", json_hint="nightherd inbox --json")
        return
    now = system_clock().now()
    with closing(open_reader(invocation.state_directory())) as reader:
        page = list_inbox(reader, query)
    if screen.is_json:
        rows = [item_row(item) for item in page.items]
        screen.document("inbox", rows, now, next_before=page.next_before)
        return
    if not page.items:
        screen.say(NOTHING[decided])
        return
    screen.show(item_table(page.items, screen, now, is_decided=decided))
    if page.next_before is not None:
        screen.flush()
        command = next_page("nightherd inbox list", page.next_before, limit, agent=agent, kind=kind)
        screen.say(f"more: {neutralise(command)}{' --decided' if decided else ''}")


def _draw(invocation: Invocation, query: InboxQuery) -> str:
    now, is_decided = system_clock().now(), not query.is_pending
    with closing(open_reader(invocation.state_directory())) as reader:
        items = list_inbox(reader, query).items
    return (
        item_table(items, invocation.screen, now, is_decided=is_decided)
        if items
        else NOTHING[is_decided]
    )


def item_table(
    items: Sequence[InboxItem], screen: Screen, now: datetime, *, is_decided: bool
) -> str:
    """One line per item."""
    if is_decided:
        rows = [
            (
                item.id,
                item.kind.value,
                _who(item),
                item.status.value,
                f"{item.decided_by or '-'}"
                + (f" ({item.decided_via})" if item.decided_via else ""),
                one_line(item.title, TITLE),
            )
            for item in items
        ]
        return table(DECIDED, rows, width=screen.width, style=screen.out)
    waiting = [
        (
            item.id,
            item.kind.value,
            _who(item),
            relative(item.created_at, now),
            one_line(item.title, TITLE),
        )
        for item in items
    ]
    return table(HEADING, waiting, width=screen.width, style=screen.out)


def _who(item: InboxItem) -> str:
    """The agent that asks, or the run."""
    return item.agent or item.workflow_run_id or "-"


@click.command("show", epilog="Example: nightherd inbox show @last")
@item_argument
@json_option
@click.pass_obj
def show(invocation: Invocation, item: str) -> None:
    """Show what an item asks. Also says what each answer does."""
    screen, now = invocation.screen, system_clock().now()
    with closing(open_reader(invocation.state_directory())) as reader:
        shown = show_item(
            reader, find_item_id(reader, item), open_artifacts(invocation.state_directory())
        )
    if screen.is_json:
        screen.document("inbox_item", item_document(shown), now)
        return
    screen.show("\n".join(_card(shown, screen, now)))


def _card(shown: ShownItem, screen: Screen, now: datetime) -> Iterator[str]:
    item, job = shown.item, shown.job
    pairs = [
        ("item", item.id),
        ("kind", item.kind.value),
        ("status", item.status.value + (f" by {item.decided_by}" if item.decided_by else "")),
        ("asked", screen.when(item.created_at, now)),
    ]
    if shown.run is not None and job is None:
        pairs += [
            ("workflow", shown.run.workflow_name),
            ("run", f"{shown.run.id} ({shown.run.status.value})"),
            ("phase", gate_path(item) or "-"),
            ("cost", f"{format_usd(shown.run.cost_microusd)} so far"),
        ]
    else:
        pairs += [
            ("agent", item.agent or "-"),
            ("job", item.job_id or "-"),
            ("cost", "-" if job is None else f"{format_usd(job.cost_microusd)} so far"),
        ]
    if item.quorum > 1:
        approved = sum(one.verdict is Verdict.APPROVE for one in shown.answers)
        pairs.append(("quorum", f"{approved} of {item.quorum} approved"))
    if shown.texts.approvers:
        pairs.append(("approvers", ", ".join(shown.texts.approvers)))
    yield from (f"{label:<10}{one_line(value)}" for label, value in pairs)
    yield ""
    yield from _asks(shown)
    for one in shown.answers:
        said = f": {one_line(one.text)}" if one.text else ""
        yield f"{screen.when(one.at, now)}  {one_line(one.by)} ({one.via}) {one.verdict.value}{said}"
    if item.is_pending:
        yield ""
        for word, effect in what_happens(item).items():
            yield f"{word:<10}{effect}"
        first = min(VERDICTS[item.kind], key=list(Verdict).index)
        yield ""
        yield f"answer: nightherd inbox {first.value} {item.id}"


def _asks(shown: ShownItem) -> Iterator[str]:
    """What is asked, in full."""
    for label, text in asked_blocks(shown.texts, shown.artifact):
        yield from _block(label, text)


def _block(label: str, text: str) -> Iterator[str]:
    yield label
    yield from (f"  {neutralise(line)}" for line in text.splitlines() or [""])
