"""The command `nightherd`: its global options, its table of commands, and its entry point."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from contextlib import suppress
from io import TextIOWrapper
from pathlib import Path

import click

from nightherd import __version__
from nightherd.cli.edge import run_guarded
from nightherd.cli.invocation import Invocation
from nightherd.cli.lazy import Entry, LazyGroup
from nightherd.cli.screen.render import ColorChoice, Screen, open_closed_streams
from nightherd.errors import NightherdError, RefusedError

NAME = "nightherd"
HELP_WIDTH = 96
COMPLETION = "_NIGHTHERD_COMPLETE"
"""Set by the shell's completion script: which shell asks, and for what."""

COMMANDS = {
    "demo": Entry("nightherd.cli.demo.demo:demo", "Watch scripted agents fix a real bug."),
    "init": Entry("nightherd.cli.fleet.init:init", "Create a fleet file."),
    "run": Entry("nightherd.cli.jobs.actions:run", "Run an agent and show its progress."),
    "chat": Entry("nightherd.cli.chat.chat:chat", "Talk with an agent in the terminal."),
    "start": Entry("nightherd.cli.daemon.start:start", "Start the daemon."),
    "stop": Entry(
        "nightherd.cli.daemon.stop:stop", "Stop the daemon after its jobs have finished."
    ),
    "restart": Entry("nightherd.cli.daemon.stop:restart", "Restart the daemon in the background."),
    "reload": Entry("nightherd.cli.daemon.stop:reload", "Reload the fleet's files."),
    "status": Entry("nightherd.cli.daemon.status:status", "Show what the fleet is doing."),
    "open": Entry("nightherd.cli.daemon.open:open_dashboard", "Open the dashboard in a browser."),
    "agent": Entry("nightherd.cli.fleet.agent:agent", "List, show, reset and resume agents."),
    "schedule": Entry("nightherd.cli.schedules.list:schedule", "List, show and change schedules."),
    "api": Entry("nightherd.cli.daemon.api:api", "Send a request to the daemon's API."),
    "worker": Entry("nightherd.cli.daemon.start:worker", "Run queued jobs without a daemon."),
    "jobs": Entry("nightherd.cli.jobs.list:jobs", "List, show, follow and control jobs."),
    "search": Entry(
        "nightherd.cli.search:search",
        "Search prompts, answers, tool calls, errors, summaries and session names.",
    ),
    "workflow": Entry(
        "nightherd.cli.workflows.group:workflow", "List, show, check and run workflows."
    ),
    "runs": Entry(
        "nightherd.cli.runs.list:runs", "List, show, follow and control runs of workflows."
    ),
    "inbox": Entry(
        "nightherd.cli.inbox.list:inbox", "Show and answer approvals, questions and failures."
    ),
    "token": Entry("nightherd.cli.inbox.token:token", "Add, list and revoke API access tokens."),
    "logs": Entry("nightherd.cli.daemon.logs:logs", "Show nightherd's own log."),
    "session": Entry(
        "nightherd.cli.sessions.list:session", "List, show, fork and manage sessions."
    ),
    "work": Entry("nightherd.cli.work.work:work", "List and release issues that schedules took."),
    "workspace": Entry(
        "nightherd.cli.workspaces.list:workspace", "List, show, open and remove workspaces."
    ),
    "container": Entry(
        "nightherd.cli.containers.list:container", "List containers and build their image."
    ),
    "checkpoint": Entry(
        "nightherd.cli.checkpoints.checkpoint:checkpoint",
        "List and show checkpoints of jobs.",
    ),
    "limits": Entry(
        "nightherd.cli.limits.limits:limits", "Show limits, what is used and what is left."
    ),
    "costs": Entry(
        "nightherd.cli.costs:costs", "Show what jobs have used, and when limits will be reached."
    ),
    "retention": Entry(
        "nightherd.cli.checkpoints.retention:retention",
        "Plan and apply the deletion of old checkpoints, unneeded workspaces and old texts of chat.",
    ),
    "notify": Entry(
        "nightherd.cli.notifications.list:notify", "List notifications and test their targets."
    ),
    "doctor": Entry("nightherd.cli.doctor:doctor", "Check and repair the state directory."),
    "import": Entry(
        "nightherd.cli.imports:import_group",
        "Import jobs, sessions and schedules from other tools.",
    ),
    "config": Entry("nightherd.cli.fleet.config:config", "Check and show the fleet file."),
    "service": Entry("nightherd.cli.daemon.systemd:service", "Run the fleet under systemd."),
    "completion": Entry(
        "nightherd.cli.completion:completion", "Print a shell's completion script."
    ),
    "help": Entry("nightherd.cli.completion:show_help", "Show help for a command."),
}

ALIASES = {
    "agents": "agent",
    "checkpoints": "checkpoint",
    "containers": "container",
    "job": "jobs",
    "schedules": "schedule",
    "sessions": "session",
    "tokens": "token",
    "workspaces": "workspace",
}
"""Accepted like the group they name, and not listed."""

LEAVES_FILES = frozenset(
    (
        "demo",
        "init",
        "doctor",
        "config",
        "container",
        "service",
        "completion",
        "api",
        "open",
        "help",
    )
)
"""Commands that do not write to the state directory, or only check it."""

ELSEWHERE = {
    "trigger": "run",
    "validate": "config check",
    "up": "start",
    "down": "stop",
    "ps": "status",
    "ls": "jobs",
    "list": "jobs",
    "show": "jobs show",
    "tail": "jobs tail",
    "cancel": "jobs cancel",
    "retry": "jobs retry",
    "resume": "session resume",
    "fork": "session fork",
    "approve": "inbox approve",
    "reject": "inbox reject",
}


@click.group(
    NAME,
    cls=LazyGroup,
    entries=COMMANDS,
    aliases=ALIASES,
    elsewhere=ELSEWHERE,
    no_args_is_help=True,
    context_settings={"help_option_names": ["-h", "--help"]},
    epilog="Start with: nightherd demo, then: nightherd init",
)
@click.option(
    "--config",
    type=click.Path(path_type=Path),
    envvar="NIGHTHERD_CONFIG",
    help="Fleet file; by default nightherd.yaml here or in a parent directory.",
)
@click.option(
    "--state-dir",
    type=click.Path(path_type=Path),
    envvar="NIGHTHERD_STATE_DIR",
    help="State directory; by default .nightherd beside the fleet file.",
)
@click.option(
    "--color",
    type=click.Choice([choice.value for choice in ColorChoice]),
    default=ColorChoice.AUTO.value,
    help="When to use colours (default: auto).",
)
@click.version_option(__version__, prog_name=NAME, message="%(prog)s %(version)s")
@click.pass_context
def nightherd(ctx: click.Context, config: Path | None, state_dir: Path | None, color: str) -> None:
    """Run fleets of AI agents unattended, and never lose their work."""
    screen: Screen = ctx.obj
    screen.choose_color(ColorChoice(color))
    ctx.obj = Invocation(
        screen=screen, environ=os.environ, cwd=Path.cwd(), config=config, state=state_dir
    )


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command line and return its exit code. Errors are printed, never raised."""
    given = list(sys.argv[1:] if arguments is None else arguments)
    open_closed_streams()
    if COMPLETION in os.environ:
        return _complete(os.environ[COMPLETION])
    for stream in (sys.stdout, sys.stderr):
        # A character that the terminal cannot show is escaped; it must not stop a running job.
        if isinstance(stream, TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")
    screen = Screen(sys.stdout, sys.stderr, os.environ)

    def command() -> None:
        if sys.platform == "win32":
            raise RefusedError(
                "nightherd does not support Windows: its files and processes work differently there",
                hint="run nightherd under WSL",
            )
        width = min(screen.width or HELP_WIDTH, HELP_WIDTH)
        with nightherd.make_context(NAME, given, obj=screen, terminal_width=width) as ctx:
            try:
                nightherd.invoke(ctx)
            finally:
                _refresh_files(ctx)

    return run_guarded(command, screen, given, environ=os.environ)


def _refresh_files(ctx: click.Context) -> None:
    """Bring the mirror files up to date, also after an earlier command that was killed."""
    from nightherd.wiring.files import refresh_stale_mirror

    invocation = ctx.find_object(Invocation)
    if invocation is None or ctx.invoked_subcommand in LEAVES_FILES:
        return
    # The command itself has succeeded: the doctor reports mirror files that cannot be written.
    with suppress(NightherdError, OSError):
        refresh_stale_mirror(invocation.new_state_directory())


def _complete(instruction: str) -> int:
    """Answer the shell's completion request; click implements the protocols."""
    from click.shell_completion import shell_complete

    code: int = shell_complete(nightherd, {}, NAME, COMPLETION, instruction)
    return code
