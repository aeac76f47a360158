"""`nightherd runs tail`: what happens in a run, in order, with the phase before each line."""

from __future__ import annotations

from contextlib import closing

import click

from nightherd.cli.invocation import invocation_of, json_option
from nightherd.cli.jobs.event_text import event_text
from nightherd.cli.jobs.show import ALL, DEFAULT_COUNT, Count, Patience
from nightherd.cli.next_steps import command_for
from nightherd.cli.runs.list import run_argument
from nightherd.cli.runs.show import wait_text
from nightherd.cli.screen.render import GLYPHS, Screen, one_line
from nightherd.errors import InterruptedRunError
from nightherd.model.journal.event import SystemEvent
from nightherd.model.journal.system import SystemSubtype
from nightherd.model.workflows.run import RunStatus
from nightherd.views.runs.runs import find_run_id
from nightherd.views.runs.tail import BEGAN, RunFollower, RunLine, line_document
from nightherd.wiring.stores import open_journals, open_reader, system_clock

EXIT_OF_RUN = {
    RunStatus.SUCCEEDED: 0,
    RunStatus.FAILED: 1,
    RunStatus.CANCELLED: InterruptedRunError.exit_code,
    RunStatus.PAUSED: 8,
    RunStatus.RUNNING: 8,
    RunStatus.QUEUED: 8,
}
"""What a command that waited for a run ends with when the run stands so."""


@click.command("tail", epilog="Example: nightherd runs tail @last -f")
@run_argument
@click.option("-f", "--follow", is_flag=True, help="Follow until the run ends.")
@click.option(
    "-n", "count", type=Count(), default=DEFAULT_COUNT, metavar="N|all",
    help=f"Number of past lines to show (default: {DEFAULT_COUNT}).",
)  # fmt: skip
@json_option
@click.pass_context
def tail(ctx: click.Context, run: str, follow: bool, count: str) -> None:
    """Show a run's events. Those of all its jobs come in order, each after its phase, with what begins, waits and ends.

    With -f, the exit code says how the run ended. --json prints one document per line.
    """
    invocation = invocation_of(ctx)
    screen, state = invocation.screen, invocation.state_directory()
    patience = Patience()
    with closing(open_reader(state)) as reader:
        last = None if count == ALL else int(count)
        follower = RunFollower(
            reader, open_journals(state), find_run_id(reader, run), system_clock().now, last=last
        )
        with closing(follower):
            while True:
                seen, lines = follower.poll()
                for line in lines:
                    patience.renew()
                    show_line(line, screen)
                if seen.is_terminal or not follow:
                    break
                patience()
    if follow:
        ctx.exit(EXIT_OF_RUN[seen.status])


def show_line(line: RunLine, screen: Screen) -> None:
    """Show one line to a person, or as a document; what matters to programs only is left out for people."""
    if screen.is_json:
        screen.document("workflow_event", line_document(line, command_for), system_clock().now())
        return
    text = line_text(line, screen)
    if text is None:
        return
    prefix = screen.out.dim(f"{line.phase} | ")
    screen.show("\n".join(prefix + part for part in text.split("\n")))
    screen.flush()


def line_text(line: RunLine, screen: Screen) -> str | None:
    """Return a line without its phase; None when there is nothing to see."""
    if line.event is not None:
        is_end = isinstance(line.event, SystemEvent) and line.event.subtype is SystemSubtype.END
        return None if is_end else event_text(line.event, screen.out)
    told = f": {one_line(line.message)}" if line.message else ""
    if line.status == BEGAN:
        return screen.out.dim(f"- began{f' {line.job_id}' if line.job_id else ''}") + told
    if line.wait is not None:
        answer = line.wait.advice.text(command_for)
        glyph = GLYPHS["paused"][0]
        return f"{glyph} {wait_text(line.wait, screen)}" + (
            f"\n  {answer}" if answer is not None else ""
        )
    if line.kept_from is not None:
        return screen.out.dim(f"- kept from {line.kept_from}: {line.status}")
    error = f": {one_line(line.error)}" if line.error else told
    message = f"\n  {one_line(line.message)}" if line.error and line.message else ""
    return f"{screen.out.status(line.status or '')}{error}{message}"
