"""`nightherd jobs show`: everything about one job."""

from __future__ import annotations

from contextlib import closing
from dataclasses import replace

import click

from nightherd.cli.invocation import Invocation
from nightherd.cli.job_card import job_card
from nightherd.cli.limit_text import limit_text
from nightherd.cli.lost import refresh_lost
from nightherd.cli.options import job_argument, json_option
from nightherd.host.liveness import is_at_work
from nightherd.model.limits import Limits
from nightherd.views.checkpoints import come_to, latest_known
from nightherd.views.job_document import job_document, show_job
from nightherd.views.jobs import find_job_id
from nightherd.views.limits import limit_row, limits_of_job
from nightherd.wiring.memories import open_journals, open_reader, system_clock


@click.command("show", epilog="Example: nightherd jobs show @last")
@job_argument
@json_option
@click.pass_obj
def show(invocation: Invocation, job: str) -> None:
    """One job: prompt, result, cost, executions."""
    from nightherd.cli.declared_limits import declared_limits

    screen, now = invocation.screen, system_clock().now()
    state = invocation.state_directory()
    with closing(open_reader(state)) as reader:
        journals = open_journals(state)
        view = show_job(reader, journals, find_job_id(reader, job), now, is_at_work)
        last = latest_known(reader, journals, view.job.id)
        below = reader.used_below(view.job.id)
    refresh_lost(invocation, [view.job])
    view = replace(view, job=come_to(view.job, last))
    given = view.texts.overrides.get("limits") if view.texts is not None else None
    declared: Limits | None = None
    if last is None and not view.job.is_terminal:  # the fleet file is read for nothing else
        declared = declared_limits(invocation, view)
    limits = limits_of_job(view.job, last, below, given=given, declared=declared)
    if screen.is_json:
        rows = [limit_row(one) for one in limits]
        screen.document("job", {**job_document(view, now), "limits": rows}, now)
        return
    screen.show(job_card(view, screen, now, [limit_text(one) for one in limits]))
    screen.flush()
    screen.say(f"events: nightherd jobs tail {view.job.id}")
