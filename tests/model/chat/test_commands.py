"""Commands that people give a bot."""

import pytest

from nightherd.model.chat.commands import (
    COMMANDS,
    ParsedCommand,
    parse_message,
    parse_slash_text,
    resolve_command,
    split_skill,
)
from nightherd.model.chat.platform import Platform


def test_every_command_is_there() -> None:
    assert {one.name for one in COMMANDS} == {
        "help", "new", "ping", "reset", "retry", "session", "skill", "skills", "status", "stop",
        "cancel", "run", "tools", "usage", "config",
    }  # fmt: skip
    assert all(len(one.description) <= 100 for one in COMMANDS)


@pytest.mark.parametrize("platform", [Platform.SLACK, Platform.DISCORD])
def test_a_known_command_stands_alone(platform: Platform) -> None:
    assert parse_message(" !Status ", platform) == ParsedCommand(name="status")
    assert parse_message("!cancel", platform) == ParsedCommand(name="stop")
    assert parse_message("!skill pdf read this", platform) == ParsedCommand(
        name="skill", argument="pdf read this"
    )
    for said in ("!important", "!help me with this", "! status", "status", "!!", "", "/status"):
        assert parse_message(said, platform) is None


def test_in_a_terminal_every_word_after_a_slash_is_a_command() -> None:
    assert parse_message("/new", Platform.TERMINAL) == ParsedCommand(name="reset")
    unknown = parse_message("/foo bar", Platform.TERMINAL)
    assert unknown == ParsedCommand(name="foo", argument="bar")
    assert unknown is not None
    assert not unknown.is_known
    for said in ("/etc/hosts is what?", "//status", "hello", "/", "!status"):
        assert parse_message(said, Platform.TERMINAL) is None


def test_the_slash_command_of_slack_names_the_command_in_its_text() -> None:
    assert parse_slash_text(" status ") == ParsedCommand(name="status")
    assert parse_slash_text("") == ParsedCommand(name="help")
    assert parse_slash_text("skill pdf go") == ParsedCommand(name="skill", argument="pdf go")
    assert resolve_command("/Cancel") == ParsedCommand(name="stop")


def test_a_skill_is_its_first_word() -> None:
    assert split_skill("pdf read\nthis") == ("pdf", "read\nthis")
    assert split_skill("pdf") == ("pdf", "")
    assert split_skill("") == ("", "")
