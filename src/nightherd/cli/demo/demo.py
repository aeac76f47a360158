"""`nightherd demo`: scripted agents do real work in a throw-away repository, and everything is shown.

One of them loses its worker to SIGKILL, waits at its limit, and is killed once more on its way to the end. The last one
wants to push: it waits for approval, its worker is killed, and after the approval exactly one push arrives.
"""

from __future__ import annotations

import os
import shlex
import shutil
import sys
import tempfile
from collections.abc import Mapping
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

import click

from nightherd.cli.demo.stage import (
    CHECK_COUNT,
    CHECKS,
    KILLED_AT,
    REPOSITORY,
    Workers,
    changes,
    find_git,
    fleet_text,
    lay_out,
    published,
    stage_environment,
)
from nightherd.cli.fleet.init import write_fleet
from nightherd.cli.invocation import invocation_of, json_option
from nightherd.cli.jobs.command import Finished, exit_code_of, result_line, run_and_watch
from nightherd.cli.jobs.list import job_table
from nightherd.cli.next_steps import command_for
from nightherd.cli.operations import FleetClient
from nightherd.cli.screen.render import Screen, Style, neutralise
from nightherd.config.discovery import STATE_DIRECTORY
from nightherd.engine.operations.requests import Submit
from nightherd.errors import NightherdError, RefusedError
from nightherd.model.agents.agent import Fleet
from nightherd.model.agents.runtime import RuntimeName
from nightherd.model.ids import JobId
from nightherd.model.jobs.job import JobQuery, JobStatus, SuspendReason
from nightherd.model.journal.event import ToolResultEvent
from nightherd.model.limits.limits import LimitName
from nightherd.model.text import shorten
from nightherd.model.units import format_usd, to_usd
from nightherd.views.job_document import result_document
from nightherd.views.jobs import observe_job, observe_jobs
from nightherd.wiring.fleets import load_fleet
from nightherd.wiring.machine import is_at_work
from nightherd.wiring.runtimes import can_run
from nightherd.wiring.stores import open_journals, open_reader, system_clock

PLOT = ("fixer", "reviewer")
"""Who is given a job, one after the other."""
INSPECTOR = "inspector"
"""Whose worker is killed."""
PUBLISHER = "publisher"
"""Who waits for a person's approval."""
RAISED = "2.00"
"""The new maximum of what it may spend."""
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
@json_option
@click.pass_context
def demo(ctx: click.Context, keep: bool, directory: Path | None) -> None:
    """Watch scripted agents fix a real bug. Takes a few seconds; needs no API key and no network."""
    invocation = invocation_of(ctx)
    place = _make_place(invocation.cwd / directory if directory is not None else None)
    is_kept = keep or directory is not None
    try:
        code = Demo(invocation.screen, place, invocation.environ).play(is_kept=is_kept)
    finally:
        if not is_kept:
            shutil.rmtree(place, ignore_errors=True)
    ctx.exit(code)


def _make_place(directory: Path | None) -> Path:
    if directory is None:
        return Path(tempfile.mkdtemp(prefix="nightherd-demo-")).resolve()
    if directory.exists() and (not directory.is_dir() or any(directory.iterdir())):
        raise RefusedError(
            f"{directory} is not an empty directory", hint="nightherd demo --dir DIR"
        )
    directory.mkdir(parents=True, exist_ok=True)
    return directory.resolve()


@dataclass(frozen=True, slots=True)
class Demo:
    """One run of the demo, in one directory."""

    screen: Screen
    place: Path
    environ: Mapping[str, str]

    def play(self, *, is_kept: bool) -> int:
        """Make the files, run the jobs and show the result; return the exit code."""
        environ = self._environment()
        git = find_git(environ)
        lay_out(self.place, git, environ)
        text = fleet_text(has_git=git is not None, has_native=can_run(RuntimeName("native")))
        fleet_file = write_fleet(self.place, text)[0]
        fleet = load_fleet(fleet_file, environ=environ, cwd=self.place).fleet
        self._head("A shop whose discounts raise the price, and four scripted agents")
        self._show(f"{self.place}    (no key, no network; the tools and the files are real)")
        if git is None:
            self._show("git is not installed; the demo uses a plain directory")
        played: list[Finished] = []
        for agent in PLOT:
            self._head(f"nightherd run {agent}")
            finished = self._run(fleet, agent, environ)
            played.append(finished)
            self._show(result_line(finished.job, self.screen.out))
            if finished.job.status is not JobStatus.COMPLETED:
                raise_or_leave(finished)
                return exit_code_of(finished.job)
            if agent == "fixer":
                self._show_record(finished)
                self._show_diff(changes(self.place, git, environ), has_git=git is not None)
        played.append(self._survive_kills(fleet, environ))
        diff = changes(self.place, git, environ)
        played.append(self._wait_for_approval(fleet, git, environ))
        self._show_jobs(played, diff, git, is_kept=is_kept)
        return 0

    def _environment(self) -> dict[str, str]:
        """The agents' environment: its first python3 is the one that runs this."""
        found = stage_environment(self.environ)
        here = os.fspath(Path(sys.executable).parent)
        return {**found, "PATH": f"{here}{os.pathsep}{found.get('PATH', os.defpath)}"}

    def _run(self, fleet: Fleet, agent: str, environ: Mapping[str, str]) -> Finished:
        client, is_shown = self._client(fleet, environ), not self.screen.is_json
        return run_and_watch(client, Submit(agent=agent), self.screen, is_shown=is_shown)

    def _client(self, fleet: Fleet, environ: Mapping[str, str]) -> FleetClient:
        return FleetClient(state_dir=self.place / STATE_DIRECTORY, environ=environ, fleet=fleet)

    def _survive_kills(self, fleet: Fleet, environ: Mapping[str, str]) -> Finished:
        """Run a detached job: kill its worker, suspend it at its limit, raise that, kill again; no check runs twice."""
        self._head(f"nightherd run {INSPECTOR} --detach")
        job_id = self._client(fleet, environ).perform(Submit(agent=INSPECTOR)).id
        self._show(job_id)
        workers = Workers(self.place, environ)
        self._kill(workers, KILLED_AT[0], "nightherd worker")
        self._go_on(workers)
        waiting = self._find(job_id)
        if (waiting.job.status, waiting.job.error_code) != (
            JobStatus.SUSPENDED,
            LimitName.SPEND.code,
        ):
            raise NightherdError(f"the demo's job {job_id} does not wait at its limit")
        self._show(result_line(waiting.job, self.screen.out))
        self._show(f"  {waiting.job.error}")
        command = ("jobs", "resume", job_id, "--raise", f"spend={RAISED}")
        self._kill(workers, KILLED_AT[1], " ".join(("nightherd", *command)), *command)
        self._go_on(workers)
        self._head(f"cat {REPOSITORY}/{CHECKS}: every check ran, and none of them twice")
        counted = workers.checks()
        self._show("\n".join(counted))
        if counted != [f"check {number}" for number in range(1, CHECK_COUNT + 1)]:
            raise NightherdError(f"the checks are wrong: {counted}")
        finished = self._find(job_id)
        if finished.job.status is not JobStatus.COMPLETED:
            raise NightherdError(f"the demo's job {job_id} did not resume")
        self._show(result_line(finished.job, self.screen.out))
        return finished

    def _wait_for_approval(
        self, fleet: Fleet, git: str | None, environ: Mapping[str, str]
    ) -> Finished:
        """Run a job that wants to push: kill the worker while it waits, approve, and see one push arrive."""
        self._head(f"nightherd run {PUBLISHER} --detach")
        job_id = self._client(fleet, environ).perform(Submit(agent=PUBLISHER)).id
        self._show(job_id)
        workers = Workers(self.place, environ)
        self._head("nightherd worker & kill -9 $!")
        workers.kill_when(lambda: self._find(job_id).job.status is JobStatus.SUSPENDED, "worker")
        waiting = self._find(job_id)
        if waiting.job.suspend_reason is not SuspendReason.APPROVAL:
            raise NightherdError(f"the demo's job {job_id} does not wait for approval")
        self._show(result_line(waiting.job, self.screen.out))
        self._show(f"  {waiting.job.error}")
        self._show("the worker is killed; nothing runs, and nothing has arrived at the remote")
        arrived = published(self.place, git, environ)
        if arrived:
            raise NightherdError(f"something was pushed without approval: {arrived}")
        self._head(f"nightherd inbox approve {job_id}")
        self._show("\n".join(workers.go_on("inbox", "approve", job_id)))
        self._go_on(workers)
        arrived = published(self.place, git, environ)
        self._head("git -C origin.git log: exactly one push arrived" if git else "It ran once")
        self._show("\n".join(arrived))
        finished = self._find(job_id)
        if len(arrived) != 1 or finished.job.status is not JobStatus.COMPLETED:
            raise NightherdError(f"not exactly one push arrived: {arrived}")
        self._show(result_line(finished.job, self.screen.out))
        return finished

    def _kill(self, workers: Workers, check: int, shown: str, *command: str) -> None:
        self._head(f"{shown} & kill -9 $!")
        workers.kill_one(check, *command)
        self._show(f"killed in the middle of check {check} of {CHECK_COUNT}; the job got no signal")

    def _go_on(self, workers: Workers) -> None:
        self._head("nightherd worker --until-idle")
        self._show("\n".join(workers.go_on()))

    def _find(self, job_id: JobId) -> Finished:
        with closing(open_reader(self.place / STATE_DIRECTORY)) as reader:
            job, texts = reader.find_job(job_id), reader.find_texts(job_id)
            if job is None:
                raise NightherdError(f"the demo's job {job_id} is gone")
            seen = observe_job(reader, job, is_at_work, system_clock().now())
        return Finished(job=seen, texts=texts)

    def _show_record(self, finished: Finished) -> None:
        """The journal: where it is, how it ends, and that it saw the tests fail and pass."""
        journals = open_journals(self.place / STATE_DIRECTORY)
        outcomes = [
            event.success
            for event in journals.read(finished.job.id)
            if isinstance(event, ToolResultEvent)
        ]
        if not outcomes or outcomes[0] is not False or outcomes[-1] is not True:
            raise NightherdError("the tests did not fail first and pass after the change")
        journal = self.place / STATE_DIRECTORY / "jobs" / finished.job.output_file
        lines = journal.read_text(encoding="utf-8").splitlines()
        self._head(f"The journal: {len(lines)} events, each on disk before it was shown")
        self._show(str(journal))
        for line in lines[-JOURNAL_LINES:]:
            self._show(self.screen.out.dim(neutralise(shorten(line, JOURNAL_WIDTH))))

    def _show_diff(self, diff: str, *, has_git: bool) -> None:
        if not diff.strip():
            raise NightherdError("the fixer changed nothing")
        self._head("git diff" if has_git else "The difference")
        self._show("\n".join(colored(line, self.screen.out) for line in diff.rstrip().split("\n")))

    def _show_jobs(
        self, played: list[Finished], diff: str, git: str | None, *, is_kept: bool
    ) -> None:
        now = system_clock().now()
        with closing(open_reader(self.place / STATE_DIRECTORY)) as reader:
            newest = reader.list_jobs(JobQuery(limit=len(played)))
            jobs = observe_jobs(reader, newest, is_at_work, now)
        cost = sum(job.cost_microusd for job in jobs)
        if self.screen.is_json:
            results = [result_document(one.job, one.texts, spell=command_for) for one in played]
            data = {
                "directory": str(self.place) if is_kept else None,
                "jobs": results,
                "diff": diff,
                "counted": Workers(self.place, self.environ).checks(),
                "published": published(self.place, git, self._environment()),
                "cost_usd": to_usd(type(jobs[0].cost_microusd)(cost)),
            }
            self.screen.document("demo", data, now)
            return
        self._head("nightherd jobs")
        self._show(job_table(jobs, self.screen, now))
        self._show(
            f"total {format_usd(type(jobs[0].cost_microusd)(cost))} (scripted: no real charge)"
        )
        self._head("Try next")
        for command in next_commands(self.place if is_kept else None, has_git=git is not None):
            self._show(f"  {command}")

    def _head(self, text: str) -> None:
        self._show("")
        self._show(self.screen.out.bold(f"== {text}"))

    def _show(self, text: str) -> None:
        if not self.screen.is_json:
            self.screen.show(text)
            self.screen.flush()


def raise_or_leave(finished: Finished) -> None:
    """A job of the demo that failed is a fault of ours; one that was cancelled is the person's wish."""
    job = finished.job
    if job.status is not JobStatus.CANCELLED:
        raise NightherdError(f"the demo's job {job.id} {job.status.value}: {job.error}")


def colored(line: str, style: Style) -> str:
    """A line of a diff in its colour."""
    safe = neutralise(line)
    if line.startswith("+") and not line.startswith("+++"):
        return style.good(safe)
    if line.startswith("-") and not line.startswith("---"):
        return style.bad(safe)
    return safe


def next_commands(kept: Path | None, *, has_git: bool) -> list[str]:
    """What a person can type now, as it is."""
    if kept is None:
        return ["nightherd demo --keep", "nightherd init my-fleet", "nightherd --help"]
    again = (
        [f"git -C {REPOSITORY} checkout --quiet HEAD~1 . && nightherd run fixer"] if has_git else []
    )
    return [
        f"cd {shlex.quote(str(kept))}",
        "nightherd jobs show @last",
        "nightherd jobs tail @last -n all --json",
        "nightherd config show fixer --origin",
        *again,
    ]
