"""`config check`, `config show`, `config schema`: every mistake, every value's origin, the schema."""

from __future__ import annotations

import json
from pathlib import Path

import jsonschema
import pytest
import yaml

from surfaces.drivers import FLEET, Cli

BROKEN = """\
agents:
  - name: hello
    runtime: scriptd
    default_promt: go
"""


def test_check_of_a_good_file_says_so(cli: Cli, fleet: Path) -> None:
    result = cli("config", "check")

    assert result.code == 0
    assert result.out == "✔ ok nightherd.yaml: 12 agents\n"
    assert "'idempotent_tools' is not used" in result.err


def test_check_locates_every_mistake(cli: Cli, fleet: Path) -> None:
    (fleet / "broken.yaml").write_text(BROKEN)

    result = cli("config", "check", "broken.yaml")

    assert result.code == 78
    assert "broken.yaml:3:14: " in result.out
    assert "broken.yaml:4:5: unknown key 'default_promt'" in result.out
    assert "    ^^^^^^^^^^^^^" in result.out
    assert result.err == "✗ 2 problems in the configuration\n"


@pytest.mark.parametrize("words", [("--format", "json"), ("--json",)], ids=" ".join)
def test_check_for_programs(words: tuple[str, ...], cli: Cli, fleet: Path) -> None:
    (fleet / "broken.yaml").write_text(BROKEN)

    good, bad = cli("config", "check", *words), cli("config", "check", "broken.yaml", *words)

    assert good.document["schema"] == bad.document["schema"] == "nightherd/v1/check"
    assert (good.code, good.data["ok"]) == (0, True)
    assert good.data["agents"][0] == "hello"
    assert (bad.code, bad.data["ok"]) == (78, False)
    assert [one["line"] for one in bad.data["problems"]] == [3, 4]


def test_check_for_github_is_one_annotation_per_problem(cli: Cli, fleet: Path) -> None:
    (fleet / "broken.yaml").write_text(BROKEN)

    result = cli("config", "check", "broken.yaml", "--format", "github")

    assert result.code == 78
    assert [line.split(" ")[0] for line in result.out.splitlines()] == ["::error", "::error"]


def test_check_of_a_file_that_is_missing(cli: Cli, fleet: Path) -> None:
    result = cli("config", "check", "missing.yaml")

    assert result.code == 78
    assert "missing.yaml" in result.out + result.err


def test_check_creates_nothing(cli: Cli, fleet: Path) -> None:
    assert cli("config", "check").code == 0

    assert sorted(path.name for path in fleet.iterdir()) == ["nightherd.yaml"]


def test_show_tells_what_the_file_says_and_where(cli: Cli, fleet: Path) -> None:
    plain, located = cli("config", "show", "echo"), cli("config", "show", "echo", "--origin")

    assert plain.code == located.code == 0
    assert 'agents.echo.runtime = "scripted"\n' in plain.out
    assert "default" not in plain.out.replace("default_prompt", "")
    line = next(line for line in located.out.splitlines() if ".runtime = " in line)
    number = FLEET.splitlines().index("  - name: echo") + 2
    assert line.endswith(f"# nightherd.yaml:{number}")


def test_show_resolved_adds_what_nobody_wrote(cli: Cli, fleet: Path) -> None:
    written = cli("config", "show", "echo", "--origin").out
    resolved = cli("config", "show", "echo", "--origin", "--resolved").out

    assert "# default" not in written
    assert "# default" in resolved


def test_show_for_programs(cli: Cli, fleet: Path) -> None:
    plain = cli("config", "show", "--json")
    located = cli("config", "show", "hello", "--json", "--origin").data

    assert plain.document["schema"] == "nightherd/v1/config"
    assert plain.data["agents"]["hello"]["runtime"] == "scripted"
    assert plain.data["fleet"]["fleet"]["name"] == "test-fleet"
    assert located["agents"]["hello"]["runtime"]["value"] == "scripted"
    assert located["agents"]["hello"]["runtime"]["origin"].startswith("nightherd.yaml:")


def test_show_of_an_agent_that_is_not_there(cli: Cli, fleet: Path) -> None:
    assert cli("config", "show", "nobody").code == 3


def test_bare_config_shows(cli: Cli, fleet: Path) -> None:
    assert cli("config").out == cli("config", "show").out != ""


@pytest.mark.parametrize("kind", ["fleet", "agent"])
def test_schema_is_a_schema(kind: str, cli: Cli, nowhere: Path) -> None:
    result = cli("config", "schema", kind)

    assert result.code == 0
    schema = json.loads(result.out)
    jsonschema.Draft202012Validator.check_schema(schema)
    assert schema["title"] == f"nightherd {kind} file"


def test_schema_accepts_the_fleet_of_these_tests(cli: Cli, nowhere: Path) -> None:
    schema = json.loads(cli("config", "schema").out)

    jsonschema.validate(yaml.safe_load(FLEET), schema)
