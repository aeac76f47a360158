"""`nightherd jobs tail`: a job's events, from its journal, as far as they go or as they come."""

from __future__ import annotations

import time
from collections.abc import Iterator

import click
import msgspec

from nightherd.cli.invocation import Invocation, job_argument, json_option
from nightherd.cli.jobs.event_text import StreamedText
from nightherd.cli.jobs.list import refresh_lost
from nightherd.cli.next_steps import command_for
from nightherd.cli.screen.render import Screen
from nightherd.model.ids import JobId
from nightherd.model.jobs.job import Job, JobStatus
from nightherd.model.jobs.lost import next_text
from nightherd.model.journal.event import Event
from nightherd.model.journal.live_text import TextDelta
from nightherd.ports import JobReader, Journals
from nightherd.views.events import event_document, follow_output, read_events, with_full_output
from nightherd.views.jobs import find_job_id, observe_job
from nightherd.wiring.machine import is_at_work
from nightherd.wiring.stores import open_journals, open_reader, system_clock

DEFAULT_COUNT = "20"
ALL = "all"
SHORTEST_WAIT_S = 0.02
LONGEST_WAIT_S = 0.25


class Patience:
    """How long to wait for the next event: hardly after one came, longer the longer none does."""

    def __init__(self) -> None:
        self._next_s = SHORTEST_WAIT_S

    def renew(self) -> None:
        """Something came: look again soon."""
        self._next_s = SHORTEST_WAIT_S

    def __call__(self) -> None:
        time.sleep(self._next_s)
        self._next_s = min(self._next_s * 1.5, LONGEST_WAIT_S)


class LostNotice:
    """Says once per execution that its worker is gone, while the job is followed."""

    def __init__(self, invocation: Invocation, reader: JobReader) -> None:
        self._invocation = invocation
        self._reader = reader
        self._reported_epoch = 0

    def __call__(self, job: Job) -> None:
        if job.status is not JobStatus.RUNNING or job.epoch == self._reported_epoch:
            return
        seen = observe_job(self._reader, job, is_at_work, system_clock().now())
        if seen.lost is None:
            return
        self._reported_epoch = job.epoch
        refresh_lost(self._invocation, [seen])
        screen = self._invocation.screen
        screen.flush()
        since = screen.time(seen.lost.since)
        screen.say(f"{job.id}: since {since}: lost its worker; {next_text(seen.lost, command_for)}")


class Count(click.ParamType[str]):
    """A number of events from 1, or `all`."""

    name = "count"

    def convert(
        self, value: str | int, param: click.Parameter | None, ctx: click.Context | None
    ) -> str:
        """`value` if it can be one."""
        text = str(value)
        if text != ALL and not (text.isdecimal() and int(text) > 0):
            self.fail(f"{text!r} is neither a number from 1 nor {ALL!r}", param, ctx)
        return text


@click.command("tail", epilog="Example: nightherd jobs tail @last -f")
@job_argument
@click.option("-f", "--follow", is_flag=True, help="Follow until the job ends.")
@click.option(
    "-n", "count", type=Count(), default=DEFAULT_COUNT, metavar="N|all",
    help=f"Number of past events to show (default: {DEFAULT_COUNT}).",
)  # fmt: skip
@click.option("--full", is_flag=True, help="Show the whole output of tools.")
@json_option
@click.pass_obj
def tail(invocation: Invocation, job: str, follow: bool, count: str, full: bool) -> None:
    """Show a job's events. --json prints one document per event, as in the journal.

    With -f, a terminal shows answers while they arrive, and --json prints them as text_delta documents.
    """
    screen, state = invocation.screen, invocation.state_directory()
    journals = open_journals(state)
    reader = open_reader(state)
    patience, clock, streamed = Patience(), system_clock(), StreamedText(screen)
    try:
        job_id = find_job_id(reader, job)
        last = None if count == ALL else int(count)
        if not journals.last(job_id, 1):
            _explain_no_events(screen, reader, job_id, follow=follow)
        due = 1 if last is None else 0
        notice = LostNotice(invocation, reader)
        for event in _events(journals, reader, job_id, follow, last, patience, notice):
            patience.renew()
            if isinstance(event, TextDelta):
                _show_piece(event, screen, streamed)
                continue
            if 0 < due < event.seq:
                _warn_missing_events(screen, due, event.seq - 1)
            due = event.seq + 1
            shown = with_full_output(journals, event) if full else event
            if screen.is_json:
                screen.document("event", event_document(shown), clock.now())
                continue
            streamed.event(shown, is_full=full)
    finally:
        streamed.end_line()
        reader.close()


def _show_piece(delta: TextDelta, screen: Screen, streamed: StreamedText) -> None:
    """Show a piece of an answer to those who can use it: a person at a terminal, or a program."""
    if screen.is_json:
        screen.document("text_delta", msgspec.to_builtins(delta), system_clock().now())
    elif screen.is_terminal:
        streamed.piece(delta)


def _explain_no_events(screen: Screen, reader: JobReader, job_id: JobId, *, follow: bool) -> None:
    """Why nothing is shown, so far."""
    job = reader.find_job(job_id)
    if follow or job is None:
        screen.say(f"{job_id} has not started; waiting for its first event")
        return
    if job.last_seq > 0:
        screen.say(f"{job_id} is {job.status.value}, and its journal cannot be read")
        screen.say("  try: nightherd doctor")
        return
    screen.say(f"{job_id} is {job.status.value} and has no events")
    if not job.is_terminal:
        screen.say(f"  try: nightherd jobs tail {job_id} -f")


def _warn_missing_events(screen: Screen, first: int, last: int) -> None:
    """What the record has lost: numbers never have a gap, so lines that are no events leave one."""
    screen.flush()
    which = f"event {first}" if first == last else f"events {first} to {last}"
    screen.say(f"{which} cannot be read; details: nightherd doctor --verify")


def _events(
    journals: Journals,
    reader: JobReader,
    job_id: JobId,
    follow: bool,
    last: int | None,
    patience: Patience,
    notice: LostNotice,
) -> Iterator[Event | TextDelta]:
    if follow:
        return follow_output(journals, reader, job_id, last=last, wait=patience, on_wait=notice)
    return read_events(journals, job_id, last=last)
