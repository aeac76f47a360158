"""`nightherd completion` and `nightherd help`: the completion script of a shell, and the help of any command."""

from __future__ import annotations

import click
from click.shell_completion import ShellComplete, get_completion_class

from nightherd.cli.invocation import Invocation, invocation_of, json_option
from nightherd.cli.main import COMPLETION, NAME, nightherd
from nightherd.wiring.stores import system_clock

SHELLS = ("bash", "zsh", "fish")


@click.command("completion", epilog='Example: eval "$(nightherd completion bash)"')
@click.argument("shell", type=click.Choice(SHELLS))
@json_option
@click.pass_obj
def completion(invocation: Invocation, shell: str) -> None:
    """Print a shell's completion script. Load it in the shell's start-up file."""
    completion_class = get_completion_class(shell)
    assert completion_class is not None  # noqa: S101 (click has all three)
    screen = invocation.screen
    # The class's own `source` also starts bash to ask for its version; the script is all we want.
    script = ShellComplete.source(completion_class(nightherd, {}, NAME, COMPLETION))
    if screen.is_json:
        screen.document("completion", {"shell": shell, "script": script}, system_clock().now())
        return
    screen.show(script)


@click.command("help", epilog="Example: nightherd help jobs show")
@click.argument("words", metavar="[COMMAND]...", nargs=-1)
@click.pass_context
def show_help(ctx: click.Context, words: tuple[str, ...]) -> None:
    """Show help for a command. Without COMMAND, lists all commands."""
    context = ctx.find_root()
    for number, word in enumerate(words):
        group = context.command
        if not isinstance(group, click.Group):
            ctx.fail(f"{context.command_path!r} has no subcommands, got {word!r}")
        name, command, _ = group.resolve_command(context, list(words[number:]))
        assert command is not None  # noqa: S101 (an unknown name has raised a usage error)
        context = click.Context(command, info_name=name, parent=context)
    screen = invocation_of(ctx).screen
    screen.show(context.get_help())
