"""The command `nightherd`: its global options, its table of commands, and how it begins and ends."""

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
"""Set by the shell's completion script; says which shell asks, and for what."""

COMMANDS = {
    "demo": Entry(
        "nightherd.cli.demo.demo:demo", "Watch scripted agents do real work. No key needed."
    ),
    "init": Entry("nightherd.cli.fleet.init:init", "Write a first fleet file."),
    "run": Entry("nightherd.cli.jobs.run:run", "Give an agent a piece of work and watch it."),
    "start": Entry("nightherd.cli.daemon.start:start", "Run the fleet: schedules, jobs, the API."),
    "stop": Entry("nightherd.cli.daemon.stop:stop", "Let the running fleet finish, and end it."),
    "restart": Entry(
        "nightherd.cli.daemon.stop:restart", "Stop the running fleet and start it again."
    ),
    "reload": Entry(
        "nightherd.cli.daemon.stop:reload", "Let the running fleet read its files anew."
    ),
    "status": Entry("nightherd.cli.daemon.status:status", "What the fleet is doing."),
    "agent": Entry("nightherd.cli.fleet.agent:agent", "The agents and where they stand."),
    "schedule": Entry(
        "nightherd.cli.schedules.list:schedule", "Rules in time, and what came of them."
    ),
    "api": Entry("nightherd.cli.gateway.api:api", "Ask the running fleet's API."),
    "worker": Entry("nightherd.cli.daemon.worker:worker", "Run waiting jobs; take over lost ones."),
    "jobs": Entry("nightherd.cli.jobs.list:jobs", "List, show and follow jobs."),
    "logs": Entry("nightherd.cli.daemon.logs:logs", "What happened to whom, for operators."),
    "session": Entry(
        "nightherd.cli.sessions.list:session", "The conversations that jobs go on in."
    ),
    "checkpoint": Entry(
        "nightherd.cli.checkpoints.checkpoint:checkpoint",
        "A job's bookmarks, and its state at one.",
    ),
    "limits": Entry("nightherd.cli.limits.limits:limits", "What may be used, and what is left."),
    "retention": Entry(
        "nightherd.cli.checkpoints.retention:retention", "Which checkpoints are kept."
    ),
    "doctor": Entry("nightherd.cli.doctor:doctor", "Examine the state directory and mend it."),
    "import": Entry("nightherd.cli.imports:import_group", "Take over what other tools recorded."),
    "config": Entry("nightherd.cli.fleet.config:config", "Check and explain the fleet file."),
    "service": Entry(
        "nightherd.cli.daemon.systemd:service", "Keep the fleet running with systemd."
    ),
    "completion": Entry(
        "nightherd.cli.completion:completion", "Print a shell's completion script."
    ),
}

LEAVES_FILES = frozenset(("demo", "init", "doctor", "config", "service", "completion", "api"))
"""Commands that have nothing to do with the state directory, or only examine it."""

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
}


@click.group(
    NAME,
    cls=LazyGroup,
    entries=COMMANDS,
    elsewhere=ELSEWHERE,
    no_args_is_help=True,
    context_settings={"help_option_names": ["-h", "--help"]},
    epilog="Try: nightherd demo",
)
@click.option(
    "--config",
    type=click.Path(path_type=Path),
    envvar="NIGHTHERD_CONFIG",
    help="Fleet file; else nightherd.yaml here or above.",
)
@click.option(
    "--state-dir",
    type=click.Path(path_type=Path),
    envvar="NIGHTHERD_STATE_DIR",
    help="State directory; else .nightherd beside the fleet file.",
)
@click.option(
    "--color",
    type=click.Choice([choice.value for choice in ColorChoice]),
    default=ColorChoice.AUTO.value,
    help="When to colour (auto).",
)
@click.version_option(__version__, prog_name=NAME, message="%(prog)s %(version)s")
@click.pass_context
def nightherd(ctx: click.Context, config: Path | None, state_dir: Path | None, color: str) -> None:
    """Runs fleets of AI agents unattended and never loses their work."""
    screen: Screen = ctx.obj
    screen.choose_color(ColorChoice(color))
    ctx.obj = Invocation(
        screen=screen, environ=os.environ, cwd=Path.cwd(), config=config, state=state_dir
    )


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command line; its exit code. Errors are told, never raised."""
    given = list(sys.argv[1:] if arguments is None else arguments)
    open_closed_streams()
    if COMPLETION in os.environ:
        return _complete(os.environ[COMPLETION])
    for stream in (sys.stdout, sys.stderr):
        # What a terminal cannot show is spelled out; it must not stop a job that is running.
        if isinstance(stream, TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")
    screen = Screen(sys.stdout, sys.stderr, os.environ)

    def command() -> None:
        if sys.platform == "win32":
            raise RefusedError(
                "Windows cannot keep nightherd's promises about files and processes",
                hint="run it under WSL",
            )
        width = min(screen.width or HELP_WIDTH, HELP_WIDTH)
        with nightherd.make_context(NAME, given, obj=screen, terminal_width=width) as ctx:
            try:
                nightherd.invoke(ctx)
            finally:
                _refresh_files(ctx)

    return run_guarded(command, screen, given, environ=os.environ)


def _refresh_files(ctx: click.Context) -> None:
    """Bring the readable files up to date, also those that an earlier, killed command left behind."""
    from nightherd.wiring.files import refresh_stale_mirror

    invocation = ctx.find_object(Invocation)
    if invocation is None or ctx.invoked_subcommand in LEAVES_FILES:
        return
    # What a command has done is done: files that cannot be written are the doctor's matter.
    with suppress(NightherdError, OSError):
        refresh_stale_mirror(invocation.new_state_directory())


def _complete(instruction: str) -> int:
    """Answer the shell; click knows its protocols."""
    from click.shell_completion import shell_complete

    code: int = shell_complete(nightherd, {}, NAME, COMPLETION, instruction)
    return code
