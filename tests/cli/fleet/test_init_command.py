"""`init`: a fleet that works at once, nothing overwritten, editors helped, state kept out of git."""

from __future__ import annotations

import json
from pathlib import Path

import jsonschema
import pytest
import yaml

from surfaces.drivers import Cli


def test_new_fleet_is_right_and_runs_at_once(cli: Cli, nowhere: Path) -> None:
    written = cli("init")

    assert written.code == 0
    assert written.out.splitlines() == ["nightherd.yaml", ".nightherd/schema/fleet.json"]
    assert "nightherd run hello" in written.err
    assert cli("config", "check").out == "✔ ok nightherd.yaml: 1 agent\n"
    assert cli("run", "hello").code == 0
    assert (nowhere / "hello.txt").read_text() == "Hello, the night shift!\n"


def test_new_fleet_names_the_schema_it_satisfies(cli: Cli, nowhere: Path) -> None:
    assert cli("init").code == 0

    text = (nowhere / "nightherd.yaml").read_text()
    named = text.splitlines()[0].removeprefix("# yaml-language-server: $schema=")
    schema = json.loads((nowhere / named).read_text())
    jsonschema.validate(yaml.safe_load(text), schema)


def test_fleet_can_be_put_elsewhere_and_the_hint_leads_there(cli: Cli, nowhere: Path) -> None:
    result = cli("init", "deep/fleet")

    assert result.code == 0
    assert (nowhere / "deep" / "fleet" / "nightherd.yaml").exists()
    assert "cd deep/fleet && nightherd run hello" in result.err


@pytest.mark.parametrize("name", ["nightherd.yaml", "nightherd.yml"])
def test_fleet_that_is_there_is_not_overwritten(name: str, cli: Cli, nowhere: Path) -> None:
    (nowhere / name).write_text("# mine\n")

    refused = cli("init")

    assert (refused.code, refused.out) == (5, "")
    assert "nightherd init --force" in refused.err
    assert (nowhere / name).read_text() == "# mine\n"
    assert not (nowhere / ".nightherd").exists()

    assert cli("init", "--force").code == 0
    assert "hello" in (nowhere / name).read_text()
    assert len(list(nowhere.glob("nightherd.y*"))) == 1


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (None, ".nightherd/\n"),
        ("*.pyc", "*.pyc\n.nightherd/\n"),
        ("*.pyc\n", "*.pyc\n.nightherd/\n"),
        ("/.nightherd/\n", "/.nightherd/\n"),
        (".nightherd\n", ".nightherd\n"),
    ],
)
def test_git_is_told_once_to_leave_the_state_alone(
    before: str | None, after: str, cli: Cli, nowhere: Path
) -> None:
    (nowhere / ".git").mkdir()
    if before is not None:
        (nowhere / ".gitignore").write_text(before)

    assert cli("init").code == 0
    assert cli("init", "--force").code == 0

    assert (nowhere / ".gitignore").read_text() == after


def test_outside_of_git_no_ignore_file_appears(cli: Cli, nowhere: Path) -> None:
    assert cli("init").code == 0

    assert not (nowhere / ".gitignore").exists()


def test_init_for_programs_names_its_files(cli: Cli, nowhere: Path) -> None:
    result = cli("init", "--json")

    assert result.document["schema"] == "nightherd/v1/init"
    assert result.data["directory"] == str(nowhere)
    assert all(Path(name).exists() for name in result.data["files"])


def test_directory_that_cannot_be_made_is_an_error(cli: Cli, nowhere: Path) -> None:
    (nowhere / "file").write_text("")

    result = cli("init", "file/below")

    assert result.code == 1
    assert "cannot write" in result.err
    assert "NIGHTHERD_DEBUG" not in result.err


def test_state_directory_belongs_to_its_owner_alone(cli: Cli, nowhere: Path) -> None:
    assert cli("init").code == 0

    assert (nowhere / ".nightherd").stat().st_mode & 0o777 == 0o700


def test_doctor_has_nothing_to_say_about_a_new_fleet(cli: Cli, nowhere: Path) -> None:
    assert cli("init").code == 0
    assert cli("run", "hello").code == 0

    examined = json.loads(cli("doctor", "--json").out)["data"]

    assert examined["level"] == "ok"
    assert [one for one in examined["checks"] if one["findings"]] == []
