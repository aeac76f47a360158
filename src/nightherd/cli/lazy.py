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
    """The object at `module:name`."""
    module, _, name = path.partition(":")
    return getattr(import_module(module), name)


SHOWING = ("show", "why")
"""The command of a group that shows the one thing that is named."""
IDS = ("job-", "sess-", "@")
"""How the names of jobs and sessions begin."""


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
        elsewhere: Mapping[str, str] | None = None,
        **attributes: Any,
    ) -> None:
        super().__init__(name, **attributes)
        self.entries = entries
        self.default = default
        self.elsewhere = elsewhere or {}
        """What other tools call it, and what it is called here."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """The commands' names, in the table's order."""
        return list(self.entries)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """The command, imported now; None when there is none by that name."""
        entry = self.entries.get(cmd_name)
        return cast("click.Command", load(entry.path)) if entry is not None else None

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Puts the default command's name where a person left it out."""
        bare = not args and not ctx.resilient_parsing
        options_only = bool(args) and args[0].startswith("-") and args[0] not in ("--help", "-h")
        if self.default is not None and (bare or options_only):
            args = [self.default, *args]
        return super().parse_args(ctx, args)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """As click does it, but a name that is not there is answered with the nearest that is."""
        if args and args[0] not in self.entries and not ctx.resilient_parsing:
            name, verb = args[0], next((one for one in SHOWING if one in self.entries), None)
            if verb is not None and (name.startswith(IDS) or "/" in name):
                raise UsageError(self._unknown(name), hint=f"{ctx.command_path} {verb} {name}")
            ctx.fail(self._unknown(name))
        return super().resolve_command(ctx, args)

    def invoke(self, ctx: click.Context) -> Any:
        """As click does it; a command that was used wrongly, and knows no better, sends to its help."""
        try:
            return super().invoke(ctx)
        except click.UsageError as error:
            # Click does not say whose option lacks its value.
            command = self.get_command(ctx, ctx.invoked_subcommand or "")
            if error.ctx is None and command is not None:
                error.ctx = click.Context(command, info_name=ctx.invoked_subcommand, parent=ctx)
            raise
        except (UsageError, InvalidValueError) as error:
            if error.hint is None:
                error.hint = f"{ctx.command_path} {ctx.invoked_subcommand} --help"
            raise

    def _unknown(self, name: str) -> str:
        # difflib costs as much as a small command; only a mistake pays for it.
        from difflib import get_close_matches

        near = get_close_matches(name, self.entries, n=3)
        near = [self.elsewhere[name]] if name in self.elsewhere else near
        means = f"; did you mean {' or '.join(repr(one) for one in near)}?" if near else ""
        return f"there is no command {name!r}{means}"

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """The table itself, so that help imports nothing."""
        with formatter.section("Commands"):
            formatter.write_dl([(name, entry.help) for name, entry in self.entries.items()])

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        """Names from the table; options of the group, and of the default command where it has one."""
        from click.shell_completion import CompletionItem

        found = [
            CompletionItem(name, help=entry.help)
            for name, entry in self.entries.items()
            if name.startswith(incomplete)
        ]
        found += click.Command.shell_complete(self, ctx, incomplete)
        default = self.get_command(ctx, self.default) if self.default is not None else None
        if default is not None and incomplete.startswith("-"):
            within = click.Context(default, parent=ctx, info_name=self.default)
            found += [one for one in default.shell_complete(within, incomplete) if one not in found]
        return found
