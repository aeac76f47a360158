"""`nightherd demo`: scripted agents do real work in a throw-away repository, and everything is shown.

One of them loses its worker to SIGKILL, waits at its limit, and is killed once more on its way to the end. A workflow
reviews and fixes, and waits for approval: its worker is killed, and after the approval exactly one push arrives. The session
of the last agent is forked at a message: both versions are in worktrees, and one of them is merged.
"""

from __future__ import annotations

import os
import shlex
import shutil
import sys
import tempfile
from collections.abc import Mapping
from contextlib import closing
from datetime import timedelta
from pathlib import Path

import click

from nightherd.cli.demo.agents import fleet_text
from nightherd.cli.demo.context import DemoContext
from nightherd.cli.demo.fork import Forked, fork_and_merge
from nightherd.cli.demo.kills import survive_kills
from nightherd.cli.demo.stage import (
    REPOSITORY,
    Workers,
    changes,
    find_git,
    has_worktrees,
    lay_out,
    published,
    stage_environment,
)
from nightherd.cli.demo.workflow import approve_and_push
from nightherd.cli.fleet.init import write_fleet
from nightherd.cli.invocation import DURATION, invocation_of, json_option
from nightherd.cli.jobs.command import Finished
from nightherd.cli.jobs.list import job_table
from nightherd.cli.next_steps import command_for
from nightherd.cli.screen.render import Screen, neutralise
from nightherd.engine.operations.requests import Submit
from nightherd.errors import NightherdError, RefusedError, UsageError
from nightherd.model.agents.runtime import RuntimeName
from nightherd.model.jobs.job import JobQuery
from nightherd.model.text import shorten
from nightherd.model.units import MicroUsd, format_usd, to_usd
from nightherd.views.jobs.document import result_document
from nightherd.views.jobs.jobs import observe_jobs
from nightherd.wiring.fleets import load_fleet
from nightherd.wiring.machine import is_at_work
from nightherd.wiring.runtimes import can_run
from nightherd.wiring.stores import open_reader, system_clock

FIRST = "fixer"
"""Who is given the first job."""
JOURNAL_LINES = 3
JOURNAL_WIDTH = 260


@click.command("demo", epilog="Example: nightherd demo --keep")
@click.option("--keep", is_flag=True, help="Keep the directory.")
@click.option(
    "--dir",
    "directory",
    type=click.Path(path_type=Path),
    metavar="DIR",
    help="Directory to use; it is kept.",
)
@click.option("--web", is_flag=True, help="Show it in the dashboard too, until Ctrl-C.")
@click.option(
    "--for",
    "span",
    type=DURATION,
    metavar="TIME",
    help="End so long after the last act, with --web, as in 10m.",
)
@json_option
@click.pass_context
def demo(
    ctx: click.Context, keep: bool, directory: Path | None, web: bool, span: timedelta | None
) -> None:
    """Watch scripted agents fix a real bug. Takes a few seconds; needs no API key and no network."""
    invocation = invocation_of(ctx)
    if span is not None and not web:
        raise UsageError("--for needs --web")
    if web:
        if invocation.screen.is_json:
            raise UsageError("--web is for people; it does not go with --json")
        from nightherd.cli.demo.dashboard import ensure_served

        ensure_served()
    place = _make_place(invocation.cwd / directory if directory is not None else None)
    is_kept = keep or directory is not None
    try:
        if web:
            from nightherd.cli.demo.served import play_served

            play_served(invocation.screen, place, invocation.environ, is_kept=is_kept, span=span)
        else:
            play(invocation.screen, place, invocation.environ, is_kept=is_kept)
    finally:
        if not is_kept:
            shutil.rmtree(place, ignore_errors=True)


def _make_place(directory: Path | None) -> Path:
    if directory is None:
        return Path(tempfile.mkdtemp(prefix="nightherd-demo-")).resolve()
    if directory.exists() and (not directory.is_dir() or any(directory.iterdir())):
        raise RefusedError(
            f"{directory} is not an empty directory", hint="nightherd demo --dir DIR"
        )
    directory.mkdir(parents=True, exist_ok=True)
    return directory.resolve()


def play(screen: Screen, place: Path, environ: Mapping[str, str], *, is_kept: bool) -> None:
    """Make the files, run the jobs and show the result."""
    demo, can_fork = prepare(screen, place, demo_environment(environ))
    act(demo, can_fork=can_fork, is_kept=is_kept)


def act(demo: DemoContext, *, can_fork: bool, is_kept: bool) -> None:
    """Run the jobs, one act after another, and show the result."""
    demo.head(f"nightherd run {FIRST}")
    played = [demo.run(Submit(agent=FIRST))]
    _show_record(demo, played[-1])
    _show_diff(demo)
    played.append(survive_kills(demo))
    diff = changes(demo.place, demo.git, demo.environ)
    played.extend(approve_and_push(demo))
    forked = fork_and_merge(demo, demo.git) if demo.git is not None and can_fork else Forked()
    played.extend(forked.jobs)
    if demo.screen.is_json:
        _show_document(demo, played, diff, forked, is_kept=is_kept)
    else:
        _show_jobs(demo, played)
        demo.head("Try next")
        for command in next_commands(
            demo.place if is_kept else None, has_git=demo.git is not None, has_fork=can_fork
        ):
            demo.show(f"  {command}")


def demo_environment(environ: Mapping[str, str]) -> dict[str, str]:
    """The agents' environment: its first python3 is the one that runs this."""
    isolated = stage_environment(environ)
    here = os.fspath(Path(sys.executable).parent)
    return {**isolated, "PATH": f"{here}{os.pathsep}{isolated.get('PATH', os.defpath)}"}


def prepare(
    screen: Screen, place: Path, environ: Mapping[str, str], *, port: int | None = None
) -> tuple[DemoContext, bool]:
    """Make the repository and the fleet, and say what there is; whether sessions can be forked with their files."""
    git = find_git(environ)
    can_fork = has_worktrees(git, environ)
    lay_out(place, git, environ)
    has_native = can_run(RuntimeName("native"))
    text = fleet_text(
        has_git=git is not None, has_native=has_native, has_worktrees=can_fork, port=port
    )
    fleet_file = write_fleet(place, text)[0]
    fleet = load_fleet(fleet_file, environ=environ, cwd=place).fleet
    demo = DemoContext(screen, place, environ, git, fleet, Workers(place, environ))
    count = "five" if can_fork else "four"
    demo.head(f"A shop whose discounts raise the price, and {count} scripted agents")
    demo.show(f"{place}    (no key, no network; the tools and the files are real)")
    if git is None:
        demo.show("git is not installed; the demo uses a plain directory, and forks no session")
    elif not can_fork:
        demo.show("this git is too old for worktrees; the demo forks no session")
    return demo, can_fork


def _show_record(demo: DemoContext, finished: Finished) -> None:
    """The journal: where it is, how it ends, and that it saw the tests fail and pass."""
    outcomes = demo.outcomes(finished)
    if not outcomes or outcomes[0] is not False or outcomes[-1] is not True:
        raise NightherdError("the tests did not fail first and pass after the change")
    journal = demo.state_dir / "jobs" / finished.job.output_file
    lines = journal.read_text(encoding="utf-8").splitlines()
    demo.head(f"The journal: {len(lines)} events, each on disk before it was shown")
    demo.show(str(journal))
    for line in lines[-JOURNAL_LINES:]:
        demo.show(demo.screen.out.dim(neutralise(shorten(line, JOURNAL_WIDTH))))


def _show_diff(demo: DemoContext) -> None:
    diff = changes(demo.place, demo.git, demo.environ)
    if not diff.strip():
        raise NightherdError("the fixer changed nothing")
    demo.head("git diff" if demo.git is not None else "The difference")
    demo.show_diff(diff.rstrip().split("\n"))


def _show_document(
    demo: DemoContext, played: list[Finished], diff: str, forked: Forked, *, is_kept: bool
) -> None:
    data = {
        "directory": str(demo.place) if is_kept else None,
        "jobs": [result_document(one.job, one.texts, spell=command_for) for one in played],
        "diff": diff,
        "counted": demo.workers.checks(),
        "published": published(demo.place, demo.git, demo.environ),
        "forked_diffs": list(forked.diffs),
        "cost_usd": to_usd(_cost(played)),
    }
    demo.screen.document("demo", data, system_clock().now())


def _show_jobs(demo: DemoContext, played: list[Finished]) -> None:
    now = system_clock().now()
    with closing(open_reader(demo.state_dir)) as reader:
        newest = reader.list_jobs(JobQuery(limit=len(played)))
        jobs = observe_jobs(reader, newest, is_at_work, now)
    demo.head("nightherd jobs")
    demo.show(job_table(jobs, demo.screen, now))
    demo.show(f"total {format_usd(_cost(played))} (scripted: no real charge)")


def _cost(played: list[Finished]) -> MicroUsd:
    return MicroUsd(sum(one.job.cost_microusd for one in played))


def next_commands(kept: Path | None, *, has_git: bool, has_fork: bool) -> list[str]:
    """What a person can type now, as it is."""
    if kept is None:
        return ["nightherd demo --keep", "nightherd init my-fleet", "nightherd --help"]
    first = "HEAD~2" if has_fork else "HEAD~1"
    again = f"git -C {REPOSITORY} checkout --quiet {first} . && nightherd run fixer"
    return [
        f"cd {shlex.quote(str(kept))}",
        "nightherd jobs show @last",
        *(["nightherd workspace list"] if has_fork else []),
        "nightherd jobs tail @last -n all --json",
        "nightherd config show fixer --origin",
        *([again] if has_git else []),
    ]
