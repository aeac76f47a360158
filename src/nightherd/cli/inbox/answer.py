"""`nightherd inbox approve`, `reject`, `reply`, `raise`, `retry`, `dismiss`, `accept`, `comment`: what a person decides."""

from __future__ import annotations

from contextlib import closing
from typing import Any

import click

from nightherd.cli.fleet.load import load_fleet_with_notices
from nightherd.cli.inbox.artifact import edited_artifact, read_changed
from nightherd.cli.inbox.list import item_argument
from nightherd.cli.invocation import Invocation, json_option
from nightherd.cli.limits.options import read_limits
from nightherd.cli.operations import open_client
from nightherd.engine.operations.inbox import Answered
from nightherd.engine.operations.requests import Answer
from nightherd.engine.operations.tokens import TOKEN_VARIABLE, person_with
from nightherd.errors import UsageError
from nightherd.model.inbox.item import InboxItem, ItemKind, Verdict
from nightherd.model.workflows.rows import RunQuery, WorkflowRun
from nightherd.model.workflows.run import RunId
from nightherd.ports import StateReader
from nightherd.views.people.inbox import find_item_id, item_document, show_item
from nightherd.wiring.machine import user_name
from nightherd.wiring.stores import open_reader, system_clock

VIA = "cli"
LOOKED_AT = 20
"""Newest runs of a workflow among which the one that an answer started is."""

message_option = click.option("-m", "--message", metavar="TEXT", help="Reason or comment.")


@click.command("approve", epilog="Example: nightherd inbox approve @last")
@item_argument
@message_option
@click.option(
    "--input",
    "changed",
    metavar="JSON|artifact=@FILE",
    help="Arguments to run the call with instead of the agent's, as a JSON object; or the text of a gate's artifact.",
)
@click.option(
    "--edit", "is_edited", is_flag=True, help="Change a gate's artifact in $EDITOR first."
)
@json_option
@click.pass_obj
def approve(
    invocation: Invocation, item: str, message: str | None, changed: str | None, is_edited: bool
) -> None:
    """Approve a call or a gate. Exactly this call runs once and the job continues; after a gate, the run continues."""
    if changed is not None and is_edited:
        raise UsageError("--input and --edit cannot be used together")
    given = read_changed(changed, invocation.cwd) if changed is not None else None
    if is_edited:
        given = edited_artifact(invocation, item)
    answer(invocation, item, Verdict.APPROVE, text=message, changed=given)


@click.command("reject", epilog="Example: nightherd inbox reject @last -m 'Open a pull request'")
@item_argument
@message_option
@json_option
@click.pass_obj
def reject(invocation: Invocation, item: str, message: str | None) -> None:
    """Reject what an item asks for. The agent is given the reason."""
    answer(invocation, item, Verdict.REJECT, text=message)


@click.command("reply", epilog="Example: nightherd inbox reply @last -m 'Use the staging server'")
@item_argument
@click.option("-m", "--message", metavar="TEXT", required=True, help="Text of the answer.")
@json_option
@click.pass_obj
def reply(invocation: Invocation, item: str, message: str) -> None:
    """Answer a question. The agent is given the answer as it is."""
    answer(invocation, item, Verdict.REPLY, text=message)


@click.command("raise", epilog="Example: nightherd inbox raise @last spend=5")
@item_argument
@click.argument("limits", metavar="LIMIT=MAXIMUM...", nargs=-1, required=True)
@message_option
@json_option
@click.pass_obj
def raise_limit(
    invocation: Invocation, item: str, limits: tuple[str, ...], message: str | None
) -> None:
    """Raise the limit of a job. The job continues with the new maximum."""
    raised = read_limits(limits, option="LIMIT=MAXIMUM") or {}
    answer(invocation, item, Verdict.RAISE, text=message, limits=raised)


@click.command("retry", epilog="Example: nightherd inbox retry @last")
@item_argument
@message_option
@json_option
@click.pass_obj
def retry(invocation: Invocation, item: str, message: str | None) -> None:
    """Try a failed job or run again. A suspended job continues, an ended one is submitted as a new job; a new run keeps what is done."""
    answer(invocation, item, Verdict.RETRY, text=message)


@click.command("dismiss", epilog="Example: nightherd inbox dismiss @last")
@item_argument
@message_option
@json_option
@click.pass_obj
def dismiss(invocation: Invocation, item: str, message: str | None) -> None:
    """Dismiss a failure. The job or run stays as it is."""
    answer(invocation, item, Verdict.DISMISS, text=message)


@click.command("accept", epilog="Example: nightherd inbox accept @last")
@item_argument
@message_option
@json_option
@click.pass_obj
def accept(invocation: Invocation, item: str, message: str | None) -> None:
    """Accept a changed fleet file. What it gives agents takes effect."""
    answer(invocation, item, Verdict.ACCEPT, text=message)


@click.command("comment", epilog="Example: nightherd inbox comment @last -m 'I look at it at nine'")
@item_argument
@click.option("-m", "--message", metavar="TEXT", required=True, help="Text of the comment.")
@json_option
@click.pass_obj
def comment(invocation: Invocation, item: str, message: str) -> None:
    """Add a comment to an item. It decides nothing."""
    answer(invocation, item, Verdict.COMMENT, text=message)


def answer(
    invocation: Invocation,
    reference: str,
    verdict: Verdict,
    *,
    text: str | None = None,
    changed: dict[str, Any] | None = None,
    limits: dict[str, int] | None = None,
) -> None:
    """Record the answer, and show what became of the item."""
    state = invocation.state_directory()
    with closing(open_reader(state)) as reader:
        item = show_item(reader, find_item_id(reader, reference)).item
        by = person(invocation, reader)
    is_about_file = item.kind is ItemKind.RELOAD
    fleet = load_fleet_with_notices(
        invocation, agent=item.agent, is_run=not is_about_file, accepts=False
    )
    request = Answer(
        item_id=item.id,
        verdict=verdict,
        by=by,
        via=VIA,
        text=text,
        input=changed,
        seen_hash=item.hash,
        limits=limits or {},
    )
    answered = open_client(invocation, fleet).answer(request)
    if verdict is Verdict.ACCEPT:
        load_fleet_with_notices(invocation, is_quiet=True, is_run=True, accepts=False)
    _show_answer(answered, invocation)


def _show_answer(answered: Answered, invocation: Invocation) -> None:
    screen, now = invocation.screen, system_clock().now()
    item, job = answered.item, answered.job
    if screen.is_json:
        with closing(open_reader(invocation.state_directory())) as reader:
            screen.document("inbox_item", item_document(show_item(reader, item.id)), now)
        return
    if item.is_pending:
        screen.show(f"recorded; {item.id} still waits")
    else:
        screen.show(f"{item.id} {item.status.value}")
    run = answered.run
    if run is None and job is None and item.workflow_run_id is not None:  # the daemon answered
        with closing(open_reader(invocation.state_directory())) as reader:
            run = _run_after(item, RunId(item.workflow_run_id), reader)
    if job is not None and not job.is_terminal:
        screen.flush()
        screen.say(f"job {job.id} is {job.status.value}: nightherd jobs tail {job.id} -f")
    elif run is not None and not item.is_pending:
        screen.flush()
        screen.say(f"run {run.id} {run.status.phrase}: nightherd runs show {run.id}")


def _run_after(item: InboxItem, run_id: RunId, reader: StateReader) -> WorkflowRun | None:
    """The run that an answer concerns: the one that asked, or the one that does a failed one's work again."""
    run = reader.find_run(run_id)
    if run is None or item.verdict is not Verdict.RETRY:
        return run
    newest = reader.list_runs(RunQuery(workflow=run.workflow_name, limit=LOOKED_AT))
    return next((one for one in newest if one.retried_from == run_id), run)


def person(invocation: Invocation, reader: StateReader) -> str:
    """Who answers: the name of the token in NIGHTHERD_TOKEN, else of the user on this machine."""
    token = invocation.environ.get(TOKEN_VARIABLE, "").strip()
    return person_with(token, reader) if token else user_name()
