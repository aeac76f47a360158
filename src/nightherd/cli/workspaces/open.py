"""`nightherd workspace open`: a shell or an editor in a workspace, or its path for scripts."""

from __future__ import annotations

import shlex
import subprocess
import sys
from pathlib import Path

import click

from nightherd.cli.invocation import Invocation, invocation_of, json_option
from nightherd.cli.workspaces.list import workspace_argument
from nightherd.cli.workspaces.show import look
from nightherd.errors import NotFoundError, RefusedError, UsageError
from nightherd.views.workspaces.workspaces import ShownWorkspace, workspace_document
from nightherd.wiring.stores import system_clock

SHELL = "/bin/sh"


@click.command("open", epilog="Example: nightherd workspace open @last --path")
@workspace_argument
@click.option("--path", "is_path", is_flag=True, help="Print the directory and open nothing.")
@click.option("--editor", "is_editor", is_flag=True, help="Open $VISUAL or $EDITOR, not a shell.")
@json_option
@click.pass_context
def open_workspace(ctx: click.Context, workspace: str, is_path: bool, is_editor: bool) -> None:
    """Open a workspace. On a terminal this starts $SHELL in it; anywhere else it prints the directory."""
    invocation = invocation_of(ctx)
    if is_path and is_editor:
        raise UsageError("--path and --editor cannot be used together")
    screen, now = invocation.screen, system_clock().now()
    shown = look(invocation.state_directory(), workspace, now)
    _check_there(shown)
    if screen.is_json:
        screen.document("workspace", workspace_document(shown), now)
    elif is_editor:
        ctx.exit(_run([*_editor(invocation), shown.directory], shown.directory))
    elif is_path or not (screen.is_terminal and sys.stdin.isatty()):
        screen.show(shown.directory)
    else:
        screen.say(f"a shell in {shown.directory}; leave it with: exit")
        _run([invocation.environ.get("SHELL") or SHELL], shown.directory)


def _check_there(shown: ShownWorkspace) -> None:
    """`RefusedError` for a workspace without a directory; it says how to get at its files."""
    row = shown.view.workspace
    if row.is_there and Path(shown.directory).is_dir():
        return
    what = "is not there" if row.is_there else f"was removed ({row.status.value})"
    hints = []
    if row.job_id is not None and row.tree is not None:
        hints.append(f"its changes: nightherd jobs diff {row.job_id} --all")
    if row.session_id is not None and row.tree is not None:
        hints.append(f"its files again: nightherd session fork {row.session_id} --run -p TEXT")
    raise RefusedError(
        f"the directory of workspace {row.id} {what}",
        hint="; ".join(hints) or "nightherd workspace list",
    )


def _editor(invocation: Invocation) -> list[str]:
    chosen = invocation.environ.get("VISUAL") or invocation.environ.get("EDITOR")
    if not chosen:
        raise UsageError("neither VISUAL nor EDITOR is set", hint="EDITOR=vi nightherd ...")
    return shlex.split(chosen)


def _run(command: list[str], directory: str) -> int:
    """Run a program of the person's in the directory, and return how it ended."""
    try:
        return subprocess.run(command, cwd=directory, check=False).returncode
    except FileNotFoundError as error:
        raise NotFoundError(f"{command[0]} cannot be started: {error.strerror}") from error
