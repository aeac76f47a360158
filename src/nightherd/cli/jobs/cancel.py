"""`nightherd jobs cancel` and `jobs retry`: of one job, or of every job that a filter fits."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import dataclass

import anyio
import click

from nightherd.cli.fleet.load import load_fleet_with_notices
from nightherd.cli.invocation import (
    Command,
    Invocation,
    complete_jobs,
    invocation_of,
    json_option,
)
from nightherd.cli.jobs.command import show_launch
from nightherd.cli.jobs.list import is_at_work, observed
from nightherd.cli.next_steps import command_for
from nightherd.cli.operations import open_client
from nightherd.cli.screen.render import neutralise, one_line
from nightherd.engine.operations.bulk import Bulk, select_jobs
from nightherd.engine.operations.requests import Cancel, Retry
from nightherd.errors import RefusedError, UsageError
from nightherd.model.jobs.bulk import BulkOutcome, BulkVerb
from nightherd.model.jobs.filter import parse_job_filter
from nightherd.model.jobs.job import Job
from nightherd.model.text import counted
from nightherd.views.jobs.bulk import BulkDocument, BulkRow, bulk_document
from nightherd.views.jobs.jobs import find_job_id, get_job, job_row
from nightherd.wiring.stores import open_reader, system_clock

DONE = {BulkVerb.CANCEL: "cancelled", BulkVerb.RETRY: "retried"}


@dataclass(frozen=True, slots=True)
class _BulkOptions:
    """What a command was given instead of one job."""

    query: str | None
    is_dry: bool
    is_confirmed: bool

    def check(self, job: str | None) -> None:
        """`UsageError` unless exactly one of a job and a filter was given."""
        if (job is None) == (self.query is None):
            raise UsageError("give a JOB, or a filter with --query")
        if self.query is None and (self.is_dry or self.is_confirmed):
            raise UsageError("--dry-run and --yes are for --query")
        if self.is_dry and self.is_confirmed:
            raise UsageError("--dry-run and --yes cannot be used together")


def _bulk_options(verb: BulkVerb) -> Callable[[Command], Command]:
    """A job, or a filter with what is to be done about the jobs that it fits."""
    which = "open jobs" if verb is BulkVerb.CANCEL else "failed jobs"

    def add(command: Command) -> Command:
        for option in (
            click.option("--yes", is_flag=True, help="Change them; needed with --query."),
            click.option(
                "--dry-run", is_flag=True, help="Show what --query means, and change nothing."
            ),
            click.option(
                "--query",
                metavar="QUERY",
                help=f"Select {which} by a filter, instead of JOB, such as 'agent:coder since:2d'.",
            ),
            click.argument("job", metavar="[JOB]", required=False, shell_complete=complete_jobs),
        ):
            command = option(command)
        return command

    return add


@click.command("cancel", epilog="Example: nightherd jobs cancel @last")
@_bulk_options(BulkVerb.CANCEL)
@json_option
@click.pass_context
def cancel(
    ctx: click.Context, job: str | None, query: str | None, dry_run: bool, yes: bool
) -> None:
    """Cancel a job, or every open job that a filter fits. A queued job ends at once; a running job is stopped by its worker."""
    invocation, options = invocation_of(ctx), _BulkOptions(query, dry_run, yes)
    options.check(job)
    if job is None:
        _perform_on_query(ctx, invocation, BulkVerb.CANCEL, options)
        return
    state = invocation.state_directory()
    cancelled = open_client(invocation).perform(Cancel(job_id=_find(invocation, job).id))
    screen, now = invocation.screen, system_clock().now()
    if screen.is_json:
        screen.document("job", job_row(observed(cancelled, state, now)), now)
        return
    if cancelled.is_terminal:
        screen.show(f"cancelled {cancelled.id}")
    else:
        screen.show(f"{cancelled.id} is being stopped by its worker")
        screen.flush()
        screen.say(f"watch: nightherd jobs tail {cancelled.id} -f")


@click.command("retry", epilog="Example: nightherd jobs retry @last-failed")
@_bulk_options(BulkVerb.RETRY)
@json_option
@click.pass_context
def retry(ctx: click.Context, job: str | None, query: str | None, dry_run: bool, yes: bool) -> None:
    """Submit a job's work again, or that of every failed job that a filter fits. New jobs wait for a worker."""
    invocation, options = invocation_of(ctx), _BulkOptions(query, dry_run, yes)
    options.check(job)
    if job is None:
        _perform_on_query(ctx, invocation, BulkVerb.RETRY, options)
        return
    ended = _find(invocation, job)
    fleet = load_fleet_with_notices(invocation, agent=ended.agent, is_run=True)
    request = Retry(job_id=ended.id, refuses_held=True)
    show_launch(open_client(invocation, fleet).perform(request), invocation)


def _find(invocation: Invocation, reference: str) -> Job:
    with closing(open_reader(invocation.state_directory())) as reader:
        return get_job(reader, find_job_id(reader, reference))


def _perform_on_query(
    ctx: click.Context, invocation: Invocation, verb: BulkVerb, options: _BulkOptions
) -> None:
    """Carry out the verb for the jobs of the filter, and show what became of each; some refused is exit code 5."""
    state, now = invocation.state_directory(), system_clock().now()
    filter = parse_job_filter(options.query or "", now)
    with closing(open_reader(state)) as reader:
        job_ids = select_jobs(reader, verb, filter)
    if not options.is_dry and not options.is_confirmed:
        raise UsageError(
            f"this would {verb} {counted(len(job_ids), 'job')}",
            hint="add --yes to do it, or --dry-run to list them",
        )
    fleet = load_fleet_with_notices(invocation, is_run=True) if verb is BulkVerb.RETRY else None
    client = open_client(invocation, fleet)
    request = Bulk(verb=verb, job_ids=job_ids, refuses_held=True)
    outcomes: Sequence[BulkOutcome]
    if not job_ids:
        outcomes = ()
    else:
        outcomes = anyio.run(client.plan if options.is_dry else client.perform_bulk, request)
    with closing(open_reader(state)) as reader:
        document = bulk_document(
            reader,
            verb,
            outcomes,
            is_at_work,
            now,
            is_dry_run=options.is_dry,
            spell=command_for,
        )
    _show(document, invocation)
    if document["refused"]:
        ctx.exit(RefusedError.exit_code)


def _show(document: BulkDocument, invocation: Invocation) -> None:
    screen = invocation.screen
    if screen.is_json:
        screen.document("bulk", document, system_clock().now())
        return
    for row in document["jobs"]:
        if row["problem"] is None:
            screen.show(_line(row))
    screen.flush()
    for row in document["jobs"]:
        if row["problem"] is not None:
            screen.say(f"refused {row['job_id']}: {neutralise(row['problem']['message'])}")
            if row["problem"]["hint"] is not None:
                screen.say(f"  try: {neutralise(row['problem']['hint'])}")
    done = DONE[document["verb"]]
    if document["is_dry_run"]:
        screen.say(f"{counted(document['planned'], 'job')} would be {done}")
    else:
        screen.say(f"{counted(document['done'], 'job')} {done}")


def _line(row: BulkRow) -> str:
    job, new = row["job"], row["new_job_id"]
    if new is not None:
        return f"{row['job_id']} {new}"
    if job is None:
        return row["job_id"]
    error = job["error"]
    about = job["summary"] or "" if error is None else error["message"]
    return f"{job['id']} {job['agent']} {job['status']} {one_line(about, 80)}".rstrip()
