"""`nightherd jobs config`: the settings that a job ran with, and what differs now."""

from __future__ import annotations

import posixpath
from contextlib import closing

import click

from nightherd.cli.fleet.load import load_fleet_with_notices
from nightherd.cli.invocation import Invocation, job_argument, json_option
from nightherd.cli.screen.render import Screen, neutralise
from nightherd.config.acceptance import in_effect
from nightherd.config.show import spelled
from nightherd.engine.jobs.settings import settings_now
from nightherd.engine.workflows.run_context import RunLookup
from nightherd.errors import NightherdError
from nightherd.model.jobs.job import Job
from nightherd.model.jobs.options import NO_OPTIONS
from nightherd.model.jobs.settings import StoredSettings
from nightherd.ports import StateReader
from nightherd.views.fleet.config import ConfigValueRow
from nightherd.views.jobs.jobs import find_job_id, get_job
from nightherd.views.jobs.settings import JobConfigDocument, job_config
from nightherd.wiring.stores import known_secrets, open_journals, open_reader, system_clock

WIDEST = 60


@click.command("config", epilog="Example: nightherd jobs config @last")
@job_argument
@click.option(
    "--execution", "epoch", type=click.IntRange(min=1), metavar="N",
    help="Number of the execution (default: the last).",
)  # fmt: skip
@json_option
@click.pass_obj
def config(invocation: Invocation, job: str, epoch: int | None) -> None:
    """Show the settings a job ran with. Prints where each came from, and what has changed since."""
    screen, state = invocation.screen, invocation.state_directory()
    with closing(open_reader(state)) as reader:
        found = get_job(reader, find_job_id(reader, job))
        now = _settings_now(invocation, reader, found)
        shown = job_config(open_journals(state), found, now, epoch)
    if screen.is_json:
        screen.document("job_config", shown, system_clock().now())
        return
    _show(shown, screen)


def _settings_now(invocation: Invocation, reader: StateReader, job: Job) -> StoredSettings | None:
    """Return what an execution of the job would have now; None when its agent is not to be found."""
    try:
        fleet = load_fleet_with_notices(invocation, is_quiet=True)
        fleet = in_effect(fleet, invocation.state_directory())
    except NightherdError:
        return None  # commands that need the fleet file report a missing or wrong one
    agent = fleet.agents.get(job.agent)
    if agent is None:
        return None
    texts = reader.find_texts(job.id)
    options = NO_OPTIONS if texts is None else texts.overrides
    runs = RunLookup(reader=reader, agents=fleet.agents, home=posixpath.dirname(fleet.file))
    secrets = known_secrets(fleet, invocation.environ, invocation.state_directory())
    return settings_now(job, agent, options, runs, secrets.mask)


def _show(shown: JobConfigDocument, screen: Screen) -> None:
    if not shown["is_recorded"]:
        screen.say(shown["note"] or "")
        return
    lines = [(_text(one), one) for one in shown["values"]]
    width = min(WIDEST, max((len(text) for text, _ in lines), default=0))
    for text, one in lines:
        change = {
            "changed": f"  now: {spelled(one['now'])}", "removed": "  now: not set", None: ""
        }[one["change"]]  # fmt: skip
        screen.show(neutralise(f"{text.ljust(width)}  # {_origin(one)}{change}"))
    for new in shown["added"]:
        screen.show(neutralise(f"{('+ ' + _text(new)).ljust(width)}  # {_origin(new)}  not then"))
    screen.flush()
    if shown["is_cut"]:
        screen.say("there were more settings than are recorded")
    if not shown["is_compared"]:
        screen.say(f"the fleet has no agent {shown['agent']!r} now; nothing could be compared")
    hashes = {one["hash"] for one in shown["executions"]}
    if len(hashes) > 1:
        others = ", ".join(str(one["epoch"]) for one in shown["executions"])
        screen.say(
            f"execution {shown['epoch']}; not all executions ({others}) had the same: --execution N"
        )


def _text(one: ConfigValueRow) -> str:
    return f"{one['key']} = {spelled(one['value'])}"


def _origin(one: ConfigValueRow) -> str:
    layer = one["layer"].replace("_", " ")
    return one["origin"] if layer == "built in" else f"{one['origin']} ({layer})"
