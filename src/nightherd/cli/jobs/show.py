"""`nightherd jobs show` and `nightherd jobs tail`: everything about one job, and its events as far as they go or as they come."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import closing
from datetime import datetime, timedelta

import click
import msgspec
from msgspec.structs import replace

from nightherd.cli.invocation import Invocation, job_argument, json_option
from nightherd.cli.jobs.event_text import StreamedText
from nightherd.cli.jobs.list import refresh_lost, why_text
from nightherd.cli.limits.options import limit_text, tokens_text
from nightherd.cli.next_steps import command_for
from nightherd.cli.screen.render import Screen, length, neutralise, one_line
from nightherd.model.ids import JobId
from nightherd.model.jobs.failure import advice_on
from nightherd.model.jobs.job import Execution, Job, JobStatus
from nightherd.model.jobs.lost import next_text
from nightherd.model.journal.event import Event
from nightherd.model.journal.live_text import TextDelta
from nightherd.model.limits.limits import Limits
from nightherd.model.limits.login import text_of
from nightherd.model.sessions.order import ahead_text
from nightherd.model.text import counted, input_text
from nightherd.model.units import MicroUsd, format_usd
from nightherd.ports import JobReader, Journals
from nightherd.views.costs.limits import limits_of_job
from nightherd.views.jobs.checkpoints import latest_known, with_checkpoint_totals
from nightherd.views.jobs.document import (
    JobView,
    children_of,
    job_document,
    show_job,
    tree_costs,
    waited,
)
from nightherd.views.jobs.events import event_document, follow_output, read_events, with_full_output
from nightherd.views.jobs.jobs import find_job_id, observe_job, phase_path
from nightherd.wiring.machine import is_at_work
from nightherd.wiring.stores import open_journals, open_reader, system_clock


@click.command("show", epilog="Example: nightherd jobs show @last")
@job_argument
@json_option
@click.pass_obj
def show(invocation: Invocation, job: str) -> None:
    """Show a job. Prints its prompt, result, cost, limits and executions."""
    from nightherd.cli.limits.limits import declared_limits

    screen, now = invocation.screen, system_clock().now()
    state = invocation.state_directory()
    with closing(open_reader(state)) as reader:
        journals = open_journals(state)
        view = show_job(reader, journals, find_job_id(reader, job), now, is_at_work)
        last = latest_known(reader, journals, view.job.id)
        below = reader.used_below(view.job.id)
    refresh_lost(invocation, [view.job])
    view = replace(view, job=with_checkpoint_totals(view.job, last))
    given = view.texts.overrides.limits if view.texts is not None else None
    declared: Limits | None = None
    if last is None and not view.job.is_terminal:  # the fleet file is read for nothing else
        declared = declared_limits(invocation, view)
    limits = limits_of_job(view.job, last, below, given=given, declared=declared)
    if screen.is_json:
        screen.document("job", job_document(view, limits, now), now)
        return
    screen.show(job_card(view, screen, now, [limit_text(one) for one in limits]))
    screen.flush()
    screen.say(f"events: nightherd jobs tail {view.job.id}")
    screen.say(f"settings: nightherd jobs config {view.job.id}")
    if view.workspace is not None:
        screen.say(f"changes: nightherd jobs diff {view.job.id}")


MOST_CHILDREN, MOST_DENIALS, MOST_HOOKS = 20, 5, 5
"""How many of each a card names."""
SHORTEST_WAIT = timedelta(seconds=1)
"""A wait that is shorter is the machine's own."""


def job_card(view: JobView, screen: Screen, now: datetime, limits: Sequence[str]) -> str:
    """Everything about one job, as lines of `label  value` and its texts below."""
    job, style = view.job, screen.out
    pairs = [
        ("job", style.bold(job.id)),
        ("agent", job.agent),
        ("status", style.status(job.status.value if job.lost is None else "lost") + why_text(job)),
        ("trigger", job.trigger_type.value + (f" ({job.trigger_id})" if job.trigger_id else "")),
        *_run(view),
        ("session", _session(view)),
        *_workspace(view),
        ("created", screen.when(job.created_at, now)),
        ("started", screen.when(job.started_at, now)),
        ("finished", screen.when(job.finished_at, now)),
        ("took", length(job.worked) + _waited(view, now)),
        ("turns", f"{counted(job.turns, 'turn')}, {counted(job.messages, 'message')}"),
        ("tokens", tokens_text(job)),
        ("cost", format_usd(job.cost_microusd)),
    ]
    pairs += _tree(view)
    if job.lost is not None:
        since = screen.when(job.lost.since, now)
        pairs.append(
            ("lost", f"since {since}: lost its worker; {next_text(job.lost, command_for)}")
        )
    if view.rate_limit is not None:
        pairs.append(("waits", f"its login is {text_of(view.rate_limit, screen.time)}"))
    if job.waits_behind is not None:
        pairs.append(("waits", ahead_text(job.waits_behind, screen.time, command_for)))
    if job.resumes_at is not None:
        pairs.append(("resumes", f"{screen.when(job.resumes_at, now)}, by itself"))
    pairs += [("error", style.bad(neutralise(_error(job))))] if job.error else []
    pairs += [("limit", limit) for limit in limits]
    pairs += _troubles(view)
    advice = advice_on(job).text(command_for) if job.error else None
    pairs += [("try", advice)] if advice is not None else []
    if len(view.executions) > 1:
        pairs += [
            (
                "execution",
                f"{execution.epoch}: {execution.status.value}, {_totals(execution)}, {execution.worker}",
            )
            for execution in view.executions
        ]
    inputs = view.texts.inputs if view.texts is not None else {}
    pairs += [
        ("input", f"{one_line(name)}={one_line(input_text(value))}")
        for name, value in inputs.items()
    ]
    lines = [f"{label:<10}{value}" for label, value in pairs]
    return "\n".join(lines + _texts(view, screen))


def _tree(view: JobView) -> list[tuple[str, str]]:
    """What the job has cost with all jobs below it, and the jobs that it has made."""
    if not view.below:
        return []
    costs, children = tree_costs(view.below), children_of(view.job.id, view.below)
    whole = view.job.cost_microusd + sum(one.cost_microusd for one in view.below)
    texts = [
        f"{child.id} {child.agent}, {child.status.value if child.lost is None else 'lost'},"
        f" {counted(child.turns, 'turn')}, {format_usd(costs[child.id])}"
        for child in children
    ]
    tree = f"{format_usd(MicroUsd(whole))} in {counted(1 + len(view.below), 'job')}"
    return [("tree", tree), *_first_of("child", texts, MOST_CHILDREN)]


def _troubles(view: JobView) -> Iterator[tuple[str, str]]:
    """The denied calls and the failed hooks: a job with some may look like a success and have done nothing."""
    troubles = view.troubles
    denials = [f"{denial.tool_name}: {denial.reason}" for denial in troubles.denials]
    hooks = [
        f"{hook.name} failed: {hook.error}{_last_line(hook.output)}"
        for hook in troubles.failed_hooks
    ]
    yield from _first_of("denied", denials, MOST_DENIALS)
    yield from _first_of("hook", hooks, MOST_HOOKS)
    if troubles.journal_error is not None:
        yield "journal", neutralise(one_line(troubles.journal_error))


def _first_of(label: str, texts: Sequence[str], most: int) -> Iterator[tuple[str, str]]:
    """The first of them, and how many more there are."""
    yield from ((label, neutralise(one_line(text))) for text in texts[:most])
    if len(texts) > most:
        yield label, f"{len(texts) - most} more: --json has all of them"


def _last_line(output: str | None) -> str:
    """The last line that a hook printed."""
    lines = (output or "").strip().splitlines()
    return f": {lines[-1]}" if lines else ""


def _waited(view: JobView, now: datetime) -> str:
    """Return how long the job was suspended or queued, if that is worth showing."""
    span = waited(view, now)
    return f", and waited {length(span)}" if span is not None and span >= SHORTEST_WAIT else ""


def _totals(execution: Execution) -> str:
    return f"{counted(execution.turns, 'turn')}, {format_usd(execution.cost_microusd)}"


def _error(job: Job) -> str:
    return f"{job.error_code}: {job.error}" if job.error_code else job.error or ""


def _session(view: JobView) -> str:
    session = view.session
    if session is None:
        return view.job.session_id or "-"
    return f"{session.id} ({session.mode.value}, {counted(session.job_count, 'job')})"


def _run(view: JobView) -> list[tuple[str, str]]:
    """The run of a workflow that the job is a phase of."""
    phase = phase_path(view.job)
    return [] if phase is None else [("run", f"{view.job.workflow_run_id}, phase {phase}")]


def _workspace(view: JobView) -> list[tuple[str, str]]:
    """Where the job works, when that is a workspace: its id, its state, and its branch."""
    if view.workspace is None:
        return []
    row = view.workspace.workspace
    branch = f", branch {one_line(row.branch)}" if row.branch else ""
    return [("workspace", f"{row.id} ({row.mode.value}, {view.workspace.state}{branch})")]


def _texts(view: JobView, screen: Screen) -> list[str]:
    texts = view.texts
    summary = (texts.summary if texts else None) or view.job.summary
    parts = [
        ("a new session", texts.session_note if texts else None),
        ("prompt", texts.prompt if texts else None),
        ("summary", summary),
        ("answer that was cut off", view.troubles.cut_off),
    ]
    lines: list[str] = []
    for label, text in parts:
        if text:
            lines += ["", screen.out.bold(label), *_indented(text)]
    return lines


def _indented(text: str) -> list[str]:
    return [f"  {line}" for line in neutralise(text).rstrip("\n").split("\n")]


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
