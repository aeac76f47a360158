"""`nightherd completion`: the script that makes a shell complete our commands, ids and names."""

from __future__ import annotations

import click
from click.shell_completion import ShellComplete, get_completion_class

from nightherd.cli.invocation import Invocation
from nightherd.cli.main import COMPLETION, NAME, nightherd

SHELLS = ("bash", "zsh", "fish")


@click.command("completion", epilog='Example: eval "$(nightherd completion bash)"')
@click.argument("shell", type=click.Choice(SHELLS))
@click.pass_obj
def completion(invocation: Invocation, shell: str) -> None:
    """Print the completion script of SHELL; load it in the shell's start-up file."""
    found = get_completion_class(shell)
    assert found is not None  # noqa: S101 (click has all three)
    # The class's own `source` also starts bash to ask for its version; the script is all we want.
    invocation.screen.show(ShellComplete.source(found(nightherd, {}, NAME, COMPLETION)))
