"""Templates: fleets that work as they are; nothing is overwritten."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
import yaml

from cli.fleet.herd import MakeHerd
from components import Components
from document_reader import REPOSITORY
from nightherd.cli.fleet.template import SHARED, TEMPLATES, template_texts
from surfaces.drivers import Cli

NAMES = sorted(TEMPLATES)
REPOSITORY_WITH_A_COMMIT = ("git init -q -b main", "git commit -q --allow-empty -m Begin")


def test_nightly_works_from_its_readme_to_the_end(make_herd: MakeHerd) -> None:
    herd = make_herd("nightly", *REPOSITORY_WITH_A_COMMIT)

    herd.follow_readme()

    assert "Report of the night" in (herd.root / "reports" / "report.md").read_text()
    assert not (herd.root / "reports" / "draft.md").exists()
    assert herd.shell("git log --format= --name-only").split() == ["reports/report.md"]
    (slot,) = herd.data("schedule list")
    assert (slot["id"], slot["status"]) == ("caretaker/nightly", "idle")
    assert herd.data("status")["inbox"]["waiting"] == 0


@pytest.mark.parametrize("before", [(), ("git init -q",)])
def test_nightly_works_in_the_directory_itself_where_no_worktree_can_be_made(
    before: tuple[str, ...], make_herd: MakeHerd
) -> None:
    herd = make_herd("nightly", *before)

    herd.shell("nightherd config check")
    herd.shell("nightherd schedule run caretaker/nightly && nightherd worker --until-idle")
    herd.shell("nightherd inbox approve @last && nightherd worker --until-idle")

    assert [path.name for path in (herd.root / "reports").iterdir()] == ["report.md"]
    assert herd.data("workspace list --all") == []


def test_line_that_is_a_comment_where_no_worktree_can_be_made_works_later(
    make_herd: MakeHerd,
) -> None:
    herd = make_herd("nightly")
    herd.shell(" && ".join(REPOSITORY_WITH_A_COMMIT))
    herd.shell("sed -i 's/#working_directory/working_directory/' nightherd.yaml")

    herd.shell("nightherd config check && nightherd run caretaker", codes=(8,))

    (workspace,) = herd.data("workspace list")
    assert workspace["mode"] == "worktree"
    assert not (herd.root / "reports").exists()


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("change", ["runtime: cli", "runtime: scripted"])
def test_template_is_valid_as_it_is_and_with_claude_and_with_notifications(
    name: str, change: str, cli: Cli, nowhere: Path
) -> None:
    assert cli("init", "--template", name).code == 0
    file = nowhere / "nightherd.yaml"
    text = file.read_text().replace("runtime: scripted", change)
    assert "\n#notify:\n" in text
    file.write_text(text.replace("\n#notify:", "\nnotify:").replace("\n#  ", "\n  "))

    checked = cli("config", "check", "--json")

    assert checked.code == 0
    assert "NOTIFY_URL" in file.read_text()
    assert yaml.safe_load(file.read_text())["notify"][0]["name"] == "me"


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("commands", range(len(REPOSITORY_WITH_A_COMMIT) + 1))
def test_template_is_valid_with_and_without_a_repository_and_a_commit(
    name: str, commands: int, cli: Cli, nowhere: Path, components: Components
) -> None:
    components.program("git")
    for command in REPOSITORY_WITH_A_COMMIT[:commands]:
        subprocess.run(command.split(), cwd=nowhere, check=True)

    made = cli("init", "--template", name)

    assert made.code == 0
    is_complete = commands == len(REPOSITORY_WITH_A_COMMIT) or name != "nightly"
    assert ("no git repository with a commit" in made.err) is not is_complete
    assert cli("config", "check").code == 0
    fleet = yaml.safe_load((nowhere / "nightherd.yaml").read_text())
    settings = {**fleet.get("defaults", {}), **fleet["agents"][0]}
    assert ("working_directory" in settings) is is_complete


@pytest.mark.parametrize("name", NAMES)
def test_no_file_of_a_person_is_overwritten(name: str, cli: Cli, nowhere: Path) -> None:
    for file in template_texts(name):
        (nowhere / file).write_text("mine")

        refused = cli("init", "--template", name)

        assert (refused.code, refused.out) == (5, "")
        assert file in refused.err
        assert [path.name for path in nowhere.iterdir()] == [file]
        assert (nowhere / file).read_text() == "mine"
        (nowhere / file).unlink()


def test_another_fleet_file_is_in_the_way_too_and_force_does_not_help(
    cli: Cli, nowhere: Path
) -> None:
    (nowhere / "nightherd.yml").write_text("# mine\n")

    assert cli("init", "--template", "nightly").code == 5
    assert cli("init", "--template", "nightly", "--force").code == 2
    assert [path.name for path in nowhere.iterdir()] == ["nightherd.yml"]


def test_unknown_template_is_named_with_those_there_are(cli: Cli, nowhere: Path) -> None:
    refused = cli("init", "--template", "weekly")

    assert refused.code == 2
    assert "'weekly' is not one of 'issue-to-pr', 'nightly', 'pr-review'" in refused.err
    assert list(nowhere.iterdir()) == []


def test_templates_are_listed_for_people_and_programs(cli: Cli, nowhere: Path) -> None:
    listed = cli("init", "--list-templates")
    described = cli("init", "--list-templates", "--json")

    assert [line.split()[0] for line in listed.out.splitlines()] == NAMES
    assert described.document["schema"] == "nightherd/v1/templates"
    assert [one["name"] for one in described.data] == NAMES
    assert list(nowhere.iterdir()) == []


def test_init_for_programs_names_the_template_and_its_files(cli: Cli, nowhere: Path) -> None:
    made = cli("init", "fleet", "--template", "pr-review", "--json")

    assert made.data["template"] == "pr-review"
    names = {Path(file).name for file in made.data["files"]}
    assert names >= {*template_texts("pr-review")}


def test_templates_are_part_of_the_package() -> None:
    source = REPOSITORY / "src/nightherd/cli/fleet/templates"
    assert sorted(path.name for path in source.iterdir()) == sorted([*NAMES, SHARED])
    assert all("README.md" in template_texts(name) for name in NAMES)
