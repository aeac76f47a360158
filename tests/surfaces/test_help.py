"""Help in one grammar, `nightherd help`, and other names of groups."""

from __future__ import annotations

import re
from collections.abc import Iterator

import click
import pytest

from nightherd.cli.lazy import LazyGroup
from nightherd.cli.main import ALIASES, COMMANDS, nightherd
from surfaces.drivers import Cli

NOUNS = (
    "agent arguments branch channel checkpoint cursor directory file fleet how image keys largest limit longest maximum message model name new"
    " number output priority prompt reason request session state text time value when"
)
"""First words of option help that is a noun phrase; every other one begins with an imperative."""
IMPERATIVES = (
    "accept add also answer apply approve build cancel change check clean clear compare continue copy create delete disable dismiss enable end exit explain"
    " export follow fork import install keep leave list make merge open plan print push raise rebuild refresh reject release reload remove rename repair replace"
    " report restart resume revoke run search select send show start stop submit talk try undo verify watch write"
)


def every_command(group: LazyGroup, path: str) -> Iterator[tuple[str, str, click.Command]]:
    """Each command below `group`: its words, its line in the group's table, and the command."""
    context = click.Context(group)
    for name, entry in group.entries.items():
        command = group.get_command(context, name)
        assert command is not None
        yield f"{path} {name}", entry.help, command
        if isinstance(command, LazyGroup):
            yield from every_command(command, f"{path} {name}")


assert isinstance(nightherd, LazyGroup)
EVERY = list(every_command(nightherd, "nightherd"))


@pytest.mark.parametrize(("words", "line", "command"), EVERY, ids=[words for words, _, _ in EVERY])
def test_help_of_a_command_begins_with_an_imperative_sentence(
    words: str, line: str, command: click.Command
) -> None:
    text = " ".join((command.help or "").split())

    assert text.startswith(line), "the group's table and the command say the same"
    assert line.endswith(".")
    assert line.split()[0].rstrip(",.").lower() in IMPERATIVES.split()
    assert text.endswith(".")


@pytest.mark.parametrize(("words", "line", "command"), EVERY, ids=[words for words, _, _ in EVERY])
def test_help_of_an_option_is_an_imperative_or_a_noun_phrase(
    words: str, line: str, command: click.Command
) -> None:
    texts = [option.help for option in command.params if isinstance(option, click.Option)]

    for text in texts:
        assert text is not None
        assert text.endswith(".")
        assert re.split(r"[ ,;:]", text)[0].lower() in f"{NOUNS} {IMPERATIVES}".split(), text


def test_help_command_lists_all_commands(cli: Cli) -> None:
    result = cli("help")

    assert (result.code, result.err) == (0, "")
    assert result.out == cli("--help").out


@pytest.mark.parametrize("words", ["jobs", "jobs show", "session fork", "job list", "help"])
def test_help_command_shows_what_the_option_shows(words: str, cli: Cli) -> None:
    result = cli("help", *words.split())

    assert (result.code, result.err) == (0, "")
    assert result.out == cli(*words.split(), "--help").out


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("jbos", "there is no command 'jbos'; did you mean 'jobs'?"),
        ("jobs shwo", "there is no command 'shwo'; did you mean 'show'?"),
        ("jobs show now", "'nightherd jobs show' has no subcommands, got 'now'"),
    ],
)
def test_help_of_an_unknown_command_is_a_usage_error(words: str, message: str, cli: Cli) -> None:
    result = cli("help", *words.split())

    assert (result.code, result.out) == (2, "")
    assert message in result.err


@pytest.mark.parametrize(("alias", "name"), ALIASES.items())
def test_alias_runs_its_group_and_is_not_listed(alias: str, name: str, cli: Cli) -> None:
    assert alias not in COMMANDS
    assert cli(alias, "--help").out == cli(name, "--help").out
    assert f"\n  {alias} " not in cli("--help").out


def test_hint_after_an_alias_names_the_listed_command(cli: Cli) -> None:
    result = cli("sessions", "shwo")

    assert result.code == 2
    assert "  try: nightherd session --help\n" in result.err
