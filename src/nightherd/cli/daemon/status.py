"""`nightherd status`: what the fleet is doing, from what is on record and true right now."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import closing
from datetime import datetime
from pathlib import Path
from typing import Any

import click

from nightherd.cli.daemon.bot_table import show_bots_table
from nightherd.cli.fleet.load import problems_data, why_not_here
from nightherd.cli.invocation import Invocation, json_option
from nightherd.cli.jobs.list import refresh_lost
from nightherd.cli.next_steps import ACCEPT, command_for
from nightherd.cli.screen.render import Screen, length, neutralise, one_line, status_cell, table
from nightherd.config.acceptance import pending_of
from nightherd.daemon.control import daemon_row, problem_line
from nightherd.daemon.record import DaemonRecord, find_daemon
from nightherd.errors import ConfigInvalidError, ConfigNotFoundError, StateFileError
from nightherd.model.agents.agent import Agent
from nightherd.model.checkpoints.retention import RetentionRun, run_text
from nightherd.model.inbox.item import ItemKind
from nightherd.model.jobs.lost import lost_text
from nightherd.model.limits.login import text_of
from nightherd.model.notifications.decisions import failing_text
from nightherd.model.notifications.notification import TargetState
from nightherd.model.problem import Problem, Severity
from nightherd.model.schedules.jobs import open_text
from nightherd.model.text import counted
from nightherd.model.units import format_usd
from nightherd.model.work.item import WorkItem
from nightherd.model.work.source import SourceState
from nightherd.views.chat.bots import BotView, bot_row, show_bots
from nightherd.views.fleet.fleet import AgentView, FleetView, fleet_document, show_fleet
from nightherd.views.health.retention import retention_run_row
from nightherd.views.jobs.document import FailedHook, failed_hook_row, failed_hooks
from nightherd.views.people.notifications import failing_row, failing_targets
from nightherd.views.work.work import (
    failing_source_text,
    failing_sources,
    sources_of,
    unsettled_items,
    unsettled_text,
    work_item_row,
    work_source_row,
)
from nightherd.wiring.fleets import check_fleet
from nightherd.wiring.machine import is_at_work
from nightherd.wiring.stores import (
    last_retention,
    load_persistence,
    open_journals,
    open_reader,
    system_clock,
)

RUN_WORDS = ("queued", "running", "paused")
"""The statuses of runs that have not ended."""
MOST_HELD, NAMED = 5, 3
"""How many blocked schedules are shown, and how many jobs of each."""


@click.command("status", epilog="Example: nightherd status --json")
@json_option
@click.pass_obj
def status(invocation: Invocation) -> None:
    """Show what the fleet is doing. Lists the daemon, agents, workers, waiting jobs and what is due next.

    Works without a daemon too, and with a fleet file that has errors.
    """
    screen, now = invocation.screen, system_clock().now()
    state_dir = invocation.state_directory()
    declared, problems, pending = _declared(invocation, state_dir)
    view = look(state_dir, declared)
    failed = look_for_failed_hooks(state_dir, declared)
    unsent = look_for_failing_targets(state_dir)
    refresh_lost(invocation, [job for agent in view.agents for job in agent.lost_jobs])
    record, retained = find_daemon(state_dir), _retained(state_dir)
    bots = look_for_bots(state_dir, declared, record, now)
    sources = look_for_failing_sources(state_dir, declared)
    unsettled = look_for_unsettled_issues(state_dir)
    if screen.is_json:
        cwd = invocation.cwd
        data = {
            "state_dir": str(state_dir),
            "daemon": None if record is None else daemon_row(record, now),
            "config_problems": problems_data(problems, cwd),
            "pending": pending,
            "retention": retention_run_row(retained),
            **fleet_document(view),
            "failed_hooks": [failed_hook_row(one) for one in failed],
            "failing_notify_targets": [failing_row(one) for one in unsent],
            "bots": [bot_row(one) for one in bots],
            "failing_work_sources": [work_source_row(one) for one in sources],
            "unsettled_work": [work_item_row(one) for one in unsettled],
        }
        screen.document("status", data, now)
        return
    _show_daemon(screen, record, now)
    if record is None or not record.problems:
        # The same ones, most probably, where the running fleet has some.
        for problem in problems_data(problems, invocation.cwd):
            screen.show(neutralise(f"  {problem_line(problem)}"))
    _show_pending_changes(screen, pending)
    _show_retention(screen, retained)
    _show_counts(screen, view, now)
    _show_holds(screen, view)
    _show_failed_hooks(screen, failed)
    for target in unsent:
        screen.show(screen.out.bad(neutralise(failing_text(target, now))))
    for source in sources:
        screen.show(screen.out.bad(neutralise(failing_source_text(source, now, screen.time))))
    for item in unsettled:
        text = unsettled_text(item, is_anybody_there=bool(view.workers))
        if text is not None:
            screen.show(screen.out.bad(neutralise(text)))
    if bots:
        show_bots_table(bots, screen, now)
    if view.agents:
        screen.show(agent_table(view.agents, screen, now, is_known=not problems))
    if view.suspended:
        screen.flush()
        screen.say("see them: nightherd jobs list --status suspended")


def _show_counts(screen: Screen, view: FleetView, now: datetime) -> None:
    """Say how many jobs there are, what they cost, and what waits for a person."""
    counts = f"{view.waiting} waiting, {view.running} running, {view.suspended} suspended"
    if view.lost:
        counts += f", {view.lost} without a worker"
    screen.show(f"jobs: {counts}; {counted(len(view.workers), 'worker')}")
    _show_runs(screen, view)
    if view.spent_ever:
        today, ever = format_usd(view.spent_today), format_usd(view.spent_ever)
        screen.show(f"spent: {today} today (UTC), {ever} in all")
    _show_inbox(screen, view, now)


def _show_runs(screen: Screen, view: FleetView) -> None:
    """Say how many runs of workflows are open, and of which workflows."""
    totals = Counter[str]()
    for (_, run_status), count in view.runs.items():
        totals[run_status.value] += count
    if totals:
        said = ", ".join(f"{totals[word]} {word}" for word in RUN_WORDS if totals[word])
        names = sorted({name for name, _ in view.runs})
        shown = ", ".join(names[:NAMED]) + (", ..." if len(names) > NAMED else "")
        screen.show(neutralise(f"runs: {said} ({one_line(shown)}); see them: nightherd runs"))


def _show_holds(screen: Screen, view: FleetView) -> None:
    """Say which rate limits and suspended jobs keep others from starting."""
    for limit in view.rate_limits:
        stopped = sum(one.id == limit.id for one in view.stopped.values())
        agents = counted(stopped, "agent")
        screen.show(
            neutralise(f"{limit.id} is {text_of(limit, screen.time)}; jobs of {agents} wait for it")
        )
    for name, jobs in list(view.held.items())[:MOST_HELD]:
        blocking = "; ".join(open_text(job, screen.time, command_for) for job in jobs[:NAMED])
        screen.show(neutralise(f"{name} is blocked: {blocking}"))
    if len(view.held) > MOST_HELD:
        screen.show(f"{len(view.held) - MOST_HELD} more are blocked: nightherd schedule list")


def _show_inbox(screen: Screen, view: FleetView, now: datetime) -> None:
    """Say how much waits for a person, and for how long."""
    oldest = view.inbox.oldest
    if oldest is not None:
        counts = view.inbox.kinds
        kinds = ", ".join(counted(counts[kind], kind.value) for kind in ItemKind if kind in counts)
        age = length(now - oldest.created_at)
        screen.show(f"inbox: {kinds}; the oldest has waited {age}; answer: nightherd inbox")


def _show_failed_hooks(screen: Screen, failed: Sequence[FailedHook]) -> None:
    if failed:
        named = ", ".join(
            f"{one.hook.name} of {one.job_id} ({one.agent})" for one in failed[:NAMED]
        )
        more = ", ..." if len(failed) > NAMED else ""
        text = neutralise(f"{counted(len(failed), 'hook')} failed: {one_line(named)}{more}")
        screen.show(screen.out.bad(text))


def _show_pending_changes(screen: Screen, pending: list[str]) -> None:
    if pending:
        screen.show(screen.out.bad(f"not in effect until a person accepts it: {ACCEPT}"))
    for text in pending:
        screen.show(neutralise(f"  {text}"))


def _retained(state_dir: Path) -> RetentionRun | None:
    """The last automatic run of retention; None where there was none, or it is switched off."""
    run = last_retention(state_dir)
    try:
        return run if run is not None and load_persistence(state_dir).retention.automatic else None
    except ConfigInvalidError:
        return run


def _show_retention(screen: Screen, run: RetentionRun | None) -> None:
    """Say what a person may want to prevent, or has to look at."""
    if run is not None and ((run.is_announcement and not run.is_idle) or run.failures):
        screen.show(run_text(run, command_for))


def _declared(
    invocation: Invocation, state_dir: Path
) -> tuple[Mapping[str, Agent], list[Problem], list[str]]:
    """The agents of the fleet file, none when it cannot be used; what is wrong with it; what waits for a person."""
    try:
        file = invocation.fleet_file()
        checked = check_fleet(
            file,
            environ=invocation.environ,
            cwd=invocation.cwd,
            state_dir=invocation.named_state,
        )
    except ConfigNotFoundError:
        if invocation.state is None:
            raise
        return {}, [], []
    errors = [problem for problem in checked.problems if problem.severity is Severity.ERROR]
    if checked.loaded is None:
        return {}, errors, []
    fleet = checked.loaded.fleet
    try:
        pending = [one.text for one in pending_of(fleet, state_dir)]
    except StateFileError as error:
        pending = [error.message]
    return fleet.agents, errors, pending


def look(state_dir: Path, declared: Mapping[str, Agent]) -> FleetView:
    """The fleet on record."""
    with closing(open_reader(state_dir)) as reader:
        return show_fleet(reader, declared, is_at_work, system_clock().now())


def look_for_failed_hooks(state_dir: Path, declared: Mapping[str, Agent]) -> Sequence[FailedHook]:
    """Return the failed hooks of the agents' last jobs."""
    with closing(open_reader(state_dir)) as reader:
        return failed_hooks(reader, open_journals(state_dir), declared)


def look_for_bots(
    state_dir: Path, declared: Mapping[str, Agent], record: DaemonRecord | None, now: datetime
) -> Sequence[BotView]:
    """Return the bots of the agents, and how they do."""
    running = None if record is None else record.agents
    begun = None if record is None else record.started_at
    with closing(open_reader(state_dir)) as reader:
        return show_bots(reader, declared, running, begun, now)


def look_for_failing_sources(
    state_dir: Path, declared: Mapping[str, Agent]
) -> Sequence[SourceState]:
    """Return the declared sources of issues that cannot be asked."""
    with closing(open_reader(state_dir)) as reader:
        return failing_sources(reader, sources_of(declared.values()))


def look_for_unsettled_issues(state_dir: Path) -> Sequence[WorkItem]:
    """Return the issues whose jobs have ended, and whose trackers do not know it yet."""
    with closing(open_reader(state_dir)) as reader:
        return unsettled_items(reader)


def look_for_failing_targets(state_dir: Path) -> Sequence[TargetState]:
    """Return the notify targets that do not take what they are sent."""
    with closing(open_reader(state_dir)) as reader:
        return failing_targets(reader)


def _show_daemon(screen: Screen, record: DaemonRecord | None, now: datetime) -> None:
    if record is None:
        screen.show("no daemon is running, so schedules do not fire; start it: nightherd start")
        return
    since = length(now - record.started_at)
    word = "finishing what runs" if record.is_draining else "running"
    parts = [f"{word} for {since}", f"process {record.pid}", f"nightherd {record.version}"]
    if record.ports:
        parts.append("port " + ", ".join(str(port) for port in record.ports))
    if record.socket is None:
        parts.append("without its API")
    screen.show(", ".join(parts))
    if record.problems:
        screen.show(
            screen.out.bad("the changed configuration has errors; the daemon keeps the old one:")
        )
        for problem in record.problems:
            screen.show(neutralise(f"  {problem_line(problem)}"))


def agent_table(views: Any, screen: Screen, now: datetime, *, is_known: bool = True) -> str:
    """The agents, one line each; `is_known` says that it is known which of them are declared."""
    heading = ("AGENT", "STATUS", "JOB", "WAITING", "NEXT", "WHEN", "ABOUT")
    rows = [_agent_cells(view, screen, now, is_known=is_known) for view in views]
    return table(heading, rows, width=screen.width, style=screen.out)


def _suspended_text(view: AgentView, screen: Screen) -> str:
    """How many jobs are suspended, and when the first of them resumes by itself."""
    times = [job.resumes_at for job in view.suspended_jobs if job.resumes_at is not None]
    said = f"{counted(view.suspended, 'job')} suspended"
    return f"{said}, resumes at {screen.time(min(times))}" if times else said


def _agent_cells(
    view: AgentView, screen: Screen, now: datetime, *, is_known: bool
) -> tuple[str, ...]:
    state = view.state
    about = state.error_message or ""
    if view.lost_job is not None:
        about = lost_text(view.lost_job, command_for)
    elif view.suspended and not about:
        about = _suspended_text(view, screen)
    elif view.running_jobs and not about:
        turns = counted(sum(job.turns for job in view.running_jobs), "turn")
        about = f"{turns}, {format_usd(view.running_cost)} so far"
    elif view.declared is None and is_known:
        about = "not in the fleet file"
    elif view.declared is not None and not about:
        error = why_not_here(view.declared.runtime.name)
        about = "" if error is None else error.message
    return (
        state.name,
        status_cell(state.status.value),
        state.current_job or "-",
        str(view.waiting),
        state.next_schedule or "-",
        screen.when(state.next_trigger_at, now),
        one_line(about) or "-",
    )
