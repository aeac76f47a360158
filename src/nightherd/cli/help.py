"""`nightherd help`: the help of any command."""

from __future__ import annotations

import click

from nightherd.cli.invocation import invocation_of


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
