"""Groups of commands that import a command's module only when that command is used."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from typing import TYPE_CHECKING, Any, NamedTuple, cast

import click

from nightherd.errors import InvalidValueError, UsageError

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem


class Entry(NamedTuple):
    """Where a command lives (`module:name`) and the line that help shows for it."""

    path: str
    help: str


def load(path: str) -> Any:
    """Import and return the object at `module:name`."""
    module, _, name = path.partition(":")
    return getattr(import_module(module), name)


SHOWING = ("show", "why")
"""Commands that show a single thing; the first one that a group has is suggested for an id."""
IDS = ("job-", "sess-", "run-", "@")
"""Prefixes of job, session and run ids."""


class LazyGroup(click.Group):
    """A group known by its table: listing it imports no command.

    With a `default`, the bare noun means that command, also when only its options follow.
    """

    def __init__(
        self,
        name: str | None = None,
        *,
        entries: Mapping[str, Entry],
        default: str | None = None,
        aliases: Mapping[str, str] | None = None,
        elsewhere: Mapping[str, str] | None = None,
        **attributes: Any,
    ) -> None:
        super().__init__(name, **attributes)
        self.entries = entries
        self.default = default
        self.aliases = aliases or {}
        """Other names that are accepted and not listed, with the listed name of each."""
        self.elsewhere = elsewhere or {}
        """Names that other tools use, with the command to suggest for each."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the commands' names, in the table's order."""
        return list(self.entries)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import and return the command of this name or alias; None if there is none."""
        entry = self.entries.get(self.aliases.get(cmd_name, cmd_name))
        return cast("click.Command", load(entry.path)) if entry is not None else None

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Insert the default command's name where it was left out."""
        bare = not args and not ctx.resilient_parsing
        options_only = bool(args) and args[0].startswith("-") and args[0] not in ("--help", "-h")
        if self.default is not None and (bare or options_only):
            args = [self.default, *args]
        return super().parse_args(ctx, args)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Resolve aliases; for an unknown name, suggest the nearest command."""
        if args:
            args = [self.aliases.get(args[0], args[0]), *args[1:]]
        if args and args[0] not in self.entries and not ctx.resilient_parsing:
            name, verb = args[0], next((verb for verb in SHOWING if verb in self.entries), None)
            if verb is not None and (name.startswith(IDS) or "/" in name):
                raise UsageError(self._unknown(name), hint=f"{ctx.command_path} {verb} {name}")
            ctx.fail(self._unknown(name))
        return super().resolve_command(ctx, args)

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command; a usage error without a hint gets the command's help as its hint."""
        try:
            return super().invoke(ctx)
        except click.UsageError as error:
            # Click does not say whose option lacks its value.
            command = self.get_command(ctx, ctx.invoked_subcommand or "")
            if error.ctx is None and command is not None:
                error.ctx = click.Context(command, info_name=ctx.invoked_subcommand, parent=ctx)
            raise
        except (UsageError, InvalidValueError) as error:
            if error.hint is None and error.next_step is None:
                error.hint = f"{ctx.command_path} {ctx.invoked_subcommand} --help"
            raise

    def _unknown(self, name: str) -> str:
        # difflib costs as much as a small command; only a mistake pays for it.
        from difflib import get_close_matches

        near = get_close_matches(name, self.entries, n=3)
        near = [self.elsewhere[name]] if name in self.elsewhere else near
        means = f"; did you mean {' or '.join(map(repr, near))}?" if near else ""
        return f"there is no command {name!r}{means}"

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the table; no command is imported. The default command is marked."""
        rows = [
            (name, f"{entry.help} (default)" if name == self.default else entry.help)
            for name, entry in self.entries.items()
        ]
        with formatter.section("Commands"):
            formatter.write_dl(rows)

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        """Complete names from the table, options of the group, and options of its default command."""
        from click.shell_completion import CompletionItem

        items = [
            CompletionItem(name, help=entry.help)
            for name, entry in self.entries.items()
            if name.startswith(incomplete)
        ]
        items += click.Command.shell_complete(self, ctx, incomplete)
        default = self.get_command(ctx, self.default) if self.default is not None else None
        if default is not None and incomplete.startswith("-"):
            within = click.Context(default, parent=ctx, info_name=self.default)
            options = default.shell_complete(within, incomplete)
            items += [item for item in options if item not in items]
        return items
