"""`nightherd completion`: the script that makes a shell complete our commands, ids and names."""

from __future__ import annotations

import click
from click.shell_completion import ShellComplete, get_completion_class

from nightherd.cli.invocation import Invocation
from nightherd.cli.main import COMPLETION, NAME, nightherd
from nightherd.cli.options import json_option
from nightherd.wiring.stores import system_clock

SHELLS = ("bash", "zsh", "fish")


@click.command("completion", epilog='Example: eval "$(nightherd completion bash)"')
@click.argument("shell", type=click.Choice(SHELLS))
@json_option
@click.pass_obj
def completion(invocation: Invocation, shell: str) -> None:
    """Print a shell's completion script. Load it in the shell's start-up file."""
    found = get_completion_class(shell)
    assert found is not None  # noqa: S101 (click has all three)
    screen = invocation.screen
    # The class's own `source` also starts bash to ask for its version; the script is all we want.
    script = ShellComplete.source(found(nightherd, {}, NAME, COMPLETION))
    if screen.is_json:
        screen.document("completion", {"shell": shell, "script": script}, system_clock().now())
        return
    screen.show(script)
