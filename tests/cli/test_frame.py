"""The frame of the command: help, global options, unknown words, and how errors are told."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

import click
import pytest

from nightherd import __version__
from nightherd.cli.main import COMMANDS, ELSEWHERE, nightherd
from surfaces.drivers import Cli, Shell


def every_command() -> list[tuple[str, ...]]:
    """The words of every command and group."""
    found: list[tuple[str, ...]] = [()]

    def visit(group: click.Group, words: tuple[str, ...]) -> None:
        context = click.Context(group)
        for name in group.list_commands(context):
            found.append((*words, name))
            command = group.get_command(context, name)
            if isinstance(command, click.Group):
                visit(command, (*words, name))

    visit(nightherd, ())
    return found


@pytest.mark.parametrize("words", every_command(), ids=" ".join)
def test_every_command_has_short_help_with_an_example(
    words: tuple[str, ...], cli: Cli, nowhere: Path
) -> None:
    result = cli(*words, "--help")

    assert result.code == 0
    assert result.err == ""
    # The list of all commands has a line for each of them.
    assert len(result.out.splitlines()) <= (40 if words else 60)
    assert (
        "Example: nightherd" in result.out or "nightherd demo" in result.out or "eval" in result.out
    )


@pytest.mark.parametrize("words", every_command()[1:], ids=" ".join)
def test_every_command_is_described_in_its_group(words: tuple[str, ...], cli: Cli) -> None:
    result = cli(*words[:-1], "--help")

    assert any(line.split()[:1] == [words[-1]] for line in result.out.splitlines())


@pytest.mark.parametrize("group", ["import", "service"])
def test_group_that_lists_nothing_says_what_it_has(group: str, cli: Cli) -> None:
    told = cli(group)

    assert (told.code, told.out) == (2, "")
    assert told.err.startswith(f"Usage: nightherd {group} ")


def test_no_command_at_all_shows_help(cli: Cli) -> None:
    result = cli()

    assert "Commands:" in result.out + result.err
    assert result.code == 2


def test_version_is_the_packages(cli: Cli) -> None:
    assert cli("--version").out == f"nightherd {__version__}\n"


def test_module_runs_as_a_program(shell: Shell) -> None:
    assert shell.run("--version").out == f"nightherd {__version__}\n"


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("jbos",), "there is no command 'jbos'; did you mean 'jobs'?"),
        (("jobs", "shwo"), "there is no command 'shwo'; did you mean 'show'?"),
        (("qqqqqq",), "there is no command 'qqqqqq'"),
        (("validate",), "there is no command 'validate'; did you mean 'config check'?"),
        (("config", "validate"), "there is no command 'validate'; did you mean 'check'?"),
    ],
)
def test_unknown_command_is_answered_with_the_nearest(
    words: tuple[str, ...], message: str, cli: Cli
) -> None:
    result = cli(*words)

    assert (result.code, result.out) == (2, "")
    assert result.err.splitlines() == [
        f"nightherd: {message}",
        f"  try: nightherd {' '.join(words[:-1])} --help".replace("  --", " --"),
    ]


def test_what_other_tools_call_it_leads_to_a_command_that_exists() -> None:
    for word, here in ELSEWHERE.items():
        group, *below = here.split()
        assert word not in COMMANDS
        found = nightherd.get_command(click.Context(nightherd), group)
        assert found is not None
        for name in below:
            assert isinstance(found, click.Group)
            assert name in found.list_commands(click.Context(found))


def test_group_table_names_commands_that_exist() -> None:
    context = click.Context(nightherd)

    for name in COMMANDS:
        command = nightherd.get_command(context, name)
        assert command is not None
        assert command.name == name


def test_without_a_fleet_file_a_command_says_how_to_get_one(cli: Cli, nowhere: Path) -> None:
    result = cli("jobs")

    assert (result.code, result.out) == (78, "")
    assert "there is no fleet file" in result.err
    assert "  try: nightherd init\n" in result.err


def test_fleet_file_is_found_upward_and_state_stands_beside_it(
    cli: Cli, fleet: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (fleet / "deep" / "down").mkdir(parents=True)
    monkeypatch.chdir(fleet / "deep" / "down")

    result = cli("run", "echo", "-p", "hi", "--json")

    assert result.code == 0
    assert (fleet / ".nightherd" / "jobs" / f"{result.data['job_id']}.jsonl").exists()


@pytest.mark.parametrize("named", ["nightherd.yaml", "."])
def test_config_option_names_the_file_or_its_directory(
    named: str, cli: Cli, fleet: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (fleet / "elsewhere").mkdir()
    monkeypatch.chdir(fleet / "elsewhere")

    result = cli("--config", f"../{named}", "run", "echo", "-p", "hi", "--json")

    assert result.code == 0
    assert (fleet / ".nightherd").is_dir()


def test_state_directory_can_be_named_and_then_needs_no_fleet_file(
    cli: Cli, fleet: Path, monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory
) -> None:
    state = tmp_path_factory.mktemp("state") / "here"
    assert cli("--state-dir", str(state), "run", "echo", "-p", "hi").code == 0
    monkeypatch.chdir(state.parent)

    by_option = cli("--state-dir", "here", "jobs", "--json")
    monkeypatch.setenv("NIGHTHERD_STATE_DIR", str(state))
    by_variable = cli("jobs", "--json")

    assert len(by_option.data) == 1
    assert by_option.data[0]["id"] == by_variable.data[0]["id"]
    assert not (fleet / ".nightherd").exists()


READING = [
    "jobs",
    "jobs show @last",
    "jobs tail @last",
    "session",
    "session show @last",
    "status",
    "agent",
    "agent show hello",
    "schedule",
    "logs",
    "checkpoint list @last",
    "limits",
    "retention",
    "doctor",
    "doctor --rebuild",
]


@pytest.mark.parametrize("line", READING)
def test_state_directory_that_was_named_and_is_not_there_is_no_empty_fleet(
    line: str, cli: Cli, fleet: Path
) -> None:
    named = cli("--state-dir", "elswhere", *line.split())

    assert (named.code, named.out) == (3, "")
    assert f"the state directory {fleet / 'elswhere'} does not exist" in named.err
    assert "check --state-dir" in named.err
    assert not (fleet / "elswhere").exists()


@pytest.mark.parametrize("line", ["jobs", "session", "status", "schedule", "logs", "doctor"])
def test_usual_state_directory_that_is_not_made_yet_is_an_empty_fleet(
    line: str, cli: Cli, fleet: Path
) -> None:
    assert cli(*line.split()).code == 0
    assert not (fleet / ".nightherd").exists()


@pytest.mark.parametrize("is_named", [True, False], ids=["named", "usual"])
@pytest.mark.parametrize(
    "line", ["status --json", "config show", "config check", "limits", "agent"]
)
def test_state_persistence_of_the_state_directory_in_use_is_the_one_that_is_checked(
    line: str, is_named: bool, cli: Cli, fleet: Path
) -> None:
    for place in (".nightherd", "elsewhere"):
        (fleet / place / "config").mkdir(parents=True)
    wrong = fleet / "elsewhere/config/state_persistence.yaml"
    wrong.write_text("extends: nightherd/state_schema.yaml\nretention: 7\n")

    done = cli(*(["--state-dir", "elsewhere"] if is_named else []), *line.split())

    if "status" in line:
        assert (done.code, bool(done.data["config_problems"])) == (0, is_named)
    else:
        assert done.code == (78 if is_named else 0)


def test_state_directory_that_is_a_file_is_told(cli: Cli, fleet: Path) -> None:
    told = cli("--state-dir", "nightherd.yaml", "jobs", "--json")

    assert told.code == 3
    assert "is not a directory" in told.err + told.out


def test_config_variable_names_the_fleet_file(
    cli: Cli, fleet: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (fleet / "nightherd.yaml").rename(fleet / "other.yaml")
    monkeypatch.setenv("NIGHTHERD_CONFIG", "other.yaml")

    assert cli("run", "echo", "-p", "hi").code == 0


def test_named_fleet_file_that_is_missing_is_a_configuration_error(cli: Cli, fleet: Path) -> None:
    result = cli("--config", "missing.yaml", "jobs")

    assert result.code == 78
    assert "missing.yaml" in result.err


def test_error_with_json_is_one_document_on_standard_output(cli: Cli, fleet: Path) -> None:
    result = cli("jobs", "show", "job-2026-01-01-aaaaaa", "--json")

    assert (result.code, result.err) == (3, "")
    assert result.document["schema"] == "nightherd/v1/error"
    assert result.data == {
        "code": "job_not_found",
        "message": "there is no job job-2026-01-01-aaaaaa",
        "hint": "nightherd jobs",
        "exit_code": 3,
    }


def test_usage_error_with_json_is_a_document_too(cli: Cli, fleet: Path) -> None:
    result = cli("jobs", "list", "--json", "--nonsense")

    assert (result.code, result.err) == (2, "")
    assert result.data["code"] == "usage"
    assert "--nonsense" in result.data["message"]


def test_json_given_as_a_prompt_is_not_an_option(cli: Cli, fleet: Path) -> None:
    result = cli("run", "echo", "-p", "--json")

    assert result.code == 0
    assert result.out == "--json\n"


def test_error_message_cannot_steer_the_terminal(cli: Cli, fleet: Path) -> None:
    result = cli("run", "evil\x1b[2J")

    assert result.code == 3
    assert "\x1b" not in result.err


def test_unexpected_error_is_one_line_and_says_how_to_see_more(
    cli: Cli, fleet: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def explode(*_: object) -> None:
        raise ZeroDivisionError("a fault of ours")

    monkeypatch.setattr("nightherd.cli.jobs.list.list_page", explode)

    result = cli("jobs")

    assert result.code == 1
    assert result.err.splitlines() == [
        "nightherd: ZeroDivisionError: a fault of ours",
        "  try: NIGHTHERD_DEBUG=1 nightherd ... shows where it happened",
    ]


def test_what_is_not_allowed_says_who_may(
    cli: Cli, fleet: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> None:
        raise PermissionError(13, "Permission denied", str(fleet / "not-there" / "x"))

    monkeypatch.setattr("nightherd.cli.jobs.list.list_page", refuse)

    result = cli("jobs")

    assert result.code == 1
    assert result.err.splitlines() == [
        f"nightherd: Permission denied: {fleet / 'not-there' / 'x'}",
        f"  try: run it as {fleet.owner()}, the owner of {fleet}, or change its permissions",
    ]


@pytest.mark.parametrize("words", [("run", "hello", "--resume"), ("jobs", "list", "--limit")])
def test_an_option_without_its_value_sends_to_the_help_of_its_command(
    words: tuple[str, ...], cli: Cli
) -> None:
    result = cli(*words)

    path = " ".join(word for word in words[:-1] if word != "hello")
    assert result.code == 2
    assert result.err.splitlines()[-1] == f"  try: nightherd {path} --help"


def test_debug_variable_shows_where_it_happened(
    cli: Cli, fleet: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def explode(*_: object) -> None:
        raise ZeroDivisionError("a fault of ours")

    monkeypatch.setattr("nightherd.cli.jobs.list.list_page", explode)
    monkeypatch.setenv("NIGHTHERD_DEBUG", "1")

    result = cli("jobs")

    assert result.code == 1
    assert "Traceback" in result.err
    assert result.err.endswith("nightherd: ZeroDivisionError: a fault of ours\n")


def test_interrupt_before_anything_runs_ends_with_130(
    cli: Cli, fleet: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("nightherd.cli.jobs.list.list_page", interrupt)

    assert cli("jobs").code == 130


def test_windows_is_refused_with_a_reason(
    cli: Cli, fleet: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(sys, "platform", "win32")
        result = cli("jobs")

    assert result.code == 5
    assert "Windows" in result.err
    assert "WSL" in result.err


@pytest.mark.parametrize(
    ("option", "environ", "is_colored"),
    [
        ((), {}, False),
        ((), {"FORCE_COLOR": "1"}, True),
        ((), {"FORCE_COLOR": "1", "NO_COLOR": "1"}, False),
        (("--color", "always"), {"NO_COLOR": "1"}, True),
        (("--color", "never"), {"FORCE_COLOR": "1"}, False),
    ],
)
def test_output_is_coloured_when_asked_for(
    option: tuple[str, ...],
    environ: dict[str, str],
    is_colored: bool,
    cli: Cli,
    fleet: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert cli("run", "echo", "-p", "hi").code == 0
    for name, value in environ.items():
        monkeypatch.setenv(name, value)

    result = cli(*option, "jobs")

    assert ("\x1b[" in result.out) is is_colored
    assert "✔ completed" in result.out


def test_bare_noun_lists_and_takes_the_lists_options(cli: Cli, fleet: Path) -> None:
    assert cli("run", "echo", "-p", "hi").code == 0

    bare, full = cli("jobs"), cli("jobs", "list")
    assert bare.out == full.out
    assert "echo" in bare.out
    assert cli("jobs", "--agent", "nobody", "--json").data == []


def test_output_that_the_terminal_cannot_encode_is_spelled_out(shell: Shell, cli: Cli) -> None:
    assert cli("run", "echo", "-p", "grün").code == 0

    people = shell.run("jobs", PYTHONIOENCODING="ascii")
    programs = shell.run("jobs", "--json", PYTHONIOENCODING="ascii")

    assert "gr\\xfcn" in people.out
    assert json.loads(programs.out)["data"][0]["summary"] == "grün"


def test_directory_that_is_gone_is_an_error_and_no_traceback(
    cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    gone = tmp_path / "gone"
    gone.mkdir()
    monkeypatch.chdir(gone)
    gone.rmdir()

    result = cli("jobs")
    os.chdir(tmp_path)

    assert result.code == 1
    assert "No such file or directory" in result.err
