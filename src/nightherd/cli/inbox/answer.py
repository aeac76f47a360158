"""`nightherd inbox approve`, `reject`, `reply`, `raise`, `retry`, `dismiss`, `accept`, `comment`: what a person decides."""

from __future__ import annotations

import json
from contextlib import closing
from typing import Any

import click

from nightherd.cli.fleet.load import load_fleet_with_notices
from nightherd.cli.inbox.list import item_argument
from nightherd.cli.invocation import Invocation, json_option
from nightherd.cli.limits.options import read_limits
from nightherd.cli.operations import open_client
from nightherd.engine.operations.inbox import Answered
from nightherd.engine.operations.requests import Answer
from nightherd.engine.operations.tokens import TOKEN_VARIABLE, person_with
from nightherd.errors import UsageError
from nightherd.model.inbox.item import ItemKind, Verdict
from nightherd.ports import StateReader
from nightherd.views.inbox import find_item_id, item_document, show_item
from nightherd.wiring.machine import user_name
from nightherd.wiring.stores import open_reader, system_clock

VIA = "cli"

message_option = click.option("-m", "--message", metavar="TEXT", help="Reason or comment.")


@click.command("approve", epilog="Example: nightherd inbox approve @last")
@item_argument
@message_option
@click.option(
    "--input",
    "changed",
    metavar="JSON",
    help="Arguments to run the call with instead of the agent's, as a JSON object.",
)
@json_option
@click.pass_obj
def approve(invocation: Invocation, item: str, message: str | None, changed: str | None) -> None:
    """Approve a call. Exactly this call runs once, and the job continues."""
    answer(invocation, item, Verdict.APPROVE, text=message, changed=_input(changed))


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
    """Try a failed job again. A suspended job continues; an ended one is submitted as a new job."""
    answer(invocation, item, Verdict.RETRY, text=message)


@click.command("dismiss", epilog="Example: nightherd inbox dismiss @last")
@item_argument
@message_option
@json_option
@click.pass_obj
def dismiss(invocation: Invocation, item: str, message: str | None) -> None:
    """Dismiss a failure. The job stays as it is."""
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
    if job is not None and not job.is_terminal:
        screen.flush()
        screen.say(f"job {job.id} is {job.status.value}: nightherd jobs tail {job.id} -f")


def person(invocation: Invocation, reader: StateReader) -> str:
    """Who answers: the name of the token in NIGHTHERD_TOKEN, else of the user on this machine."""
    token = invocation.environ.get(TOKEN_VARIABLE, "").strip()
    return person_with(token, reader) if token else user_name()


def _input(text: str | None) -> dict[str, Any] | None:
    if text is None:
        return None
    try:
        value = json.loads(text)
    except ValueError as error:
        raise UsageError(f"--input is not JSON: {error}") from error
    if not isinstance(value, dict):
        raise UsageError("--input is not a JSON object", hint='--input \'{"command": "git push"}\'')
    return value
