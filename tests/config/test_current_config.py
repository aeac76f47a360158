"""The fleet's files as they are now: read when they changed, and only then."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from nightherd.config.current import CurrentConfig
from nightherd.config.load import CheckedFleet
from nightherd.config.origins import MOST_VALUES, agent_values, schedule_place
from nightherd.model.config_value import Layer
from nightherd.wiring.fleets import check_fleet

FLEET = """\
agents:
  - name: hello
    description: {text}
    runtime: scripted
    script: [{{say: hi}}]
"""


class Reads:
    """Checks the fleet of a directory, and counts how often."""

    def __init__(self, directory: Path, meanwhile: Callable[[], object] = lambda: None) -> None:
        self.count = 0
        self._directory = directory
        self._meanwhile = meanwhile

    def __call__(self) -> CheckedFleet:
        self.count += 1
        file = self._directory / "nightherd.yaml"
        checked = check_fleet(file, environ={}, cwd=self._directory)
        self._meanwhile()
        return checked


def write(directory: Path, text: str) -> Path:
    file = directory / "nightherd.yaml"
    file.write_text(FLEET.format(text=text))
    return file


def description(config: CurrentConfig) -> str | None:
    loaded = config.read().loaded
    assert loaded is not None
    return loaded.fleet.agents["hello"].description


def test_files_are_read_once_until_one_of_them_changes(tmp_path: Path) -> None:
    file, reads = write(tmp_path, "one"), Reads(tmp_path)
    config = CurrentConfig(reads, file, [str(file)], tmp_path / ".nightherd")

    assert [description(config) for _ in range(3)] == ["one"] * 3
    assert reads.count == 1
    write(tmp_path, "another")
    assert [description(config) for _ in range(3)] == ["another"] * 3
    assert reads.count == 2
    (tmp_path / ".env").write_text("A=1\n")
    assert description(config) == "another"
    assert reads.count == 3


def test_file_written_while_it_is_read_is_read_again(tmp_path: Path) -> None:
    left = ["second text", "third"]
    file = write(tmp_path, "first")

    def write_next() -> None:
        if left:
            write(tmp_path, left.pop(0))

    reads = Reads(tmp_path, write_next)
    config = CurrentConfig(reads, file, [str(file)], tmp_path / ".nightherd")

    assert description(config) == "third"
    assert description(config) == "third"
    assert reads.count == 3


def test_file_that_was_not_known_is_not_missed_when_it_changes_meanwhile(tmp_path: Path) -> None:
    apart = "name: hello\nruntime: scripted\nscript: [{say: hi}]\ndescription: "
    (tmp_path / "apart.yaml").write_text(f"{apart}old\n")
    file = tmp_path / "nightherd.yaml"
    file.write_text("agents: [{path: apart.yaml}]\n")
    reads = Reads(tmp_path, lambda: (tmp_path / "apart.yaml").write_text(f"{apart}newer\n"))
    config = CurrentConfig(reads, file, [str(file)], tmp_path / ".nightherd")

    assert description(config) == "newer"


def test_errors_are_values_and_the_last_fleet_stays(tmp_path: Path) -> None:
    file, reads = write(tmp_path, "one"), Reads(tmp_path)
    config = CurrentConfig(reads, file, [str(file)], tmp_path / ".nightherd")
    assert config.read().is_valid

    file.write_text("agents: [")
    broken = config.read()
    file.unlink()
    gone = config.read()

    assert (broken.is_valid, description(config)) == (False, "one")
    assert broken.problems[0].place.file == str(file)
    assert (gone.is_valid, len(gone.problems)) == (False, 1)


def test_fleet_that_never_could_be_read_has_no_values(tmp_path: Path) -> None:
    file, reads = tmp_path / "nightherd.yaml", Reads(tmp_path)
    config = CurrentConfig(reads, file, [str(file)], tmp_path / ".nightherd")

    assert config.read().loaded is None
    write(tmp_path, "there")
    assert description(config) == "there"


def test_values_are_bounded(tmp_path: Path) -> None:
    steps = "".join("      - say: hi\n" for _ in range(MOST_VALUES + 5))
    (tmp_path / "nightherd.yaml").write_text(
        f"agents:\n  - name: hello\n    runtime: scripted\n    script:\n{steps}"
    )
    loaded = Reads(tmp_path)().loaded
    assert loaded is not None

    assert len(agent_values(loaded, "hello")) == MOST_VALUES + 1


def test_empty_list_is_a_value(tmp_path: Path) -> None:
    file = write(tmp_path, "one")
    file.write_text(f"defaults: {{allowed_tools: []}}\n{file.read_text()}")
    loaded = Reads(tmp_path)().loaded
    assert loaded is not None

    (tools,) = (one for one in agent_values(loaded, "hello") if one.key == "allowed_tools")

    assert (tools.value, tools.layer) == ([], Layer.DEFAULTS)
    assert tools.place is not None
    assert (tools.place.line, tools.place.column) == (1, 27)


@pytest.mark.parametrize(
    ("owner", "name", "line"),
    [
        ("hello", "listed", 5),
        ("named", "mapped", 8),
        ("workflow:flow", "weekly", 11),
        ("hello", "none", None),
        ("workflow:none", "weekly", None),
        ("nobody", "listed", None),
    ],
)
def test_schedules_have_places(owner: str, name: str, line: int | None, tmp_path: Path) -> None:
    (tmp_path / "nightherd.yaml").write_text(
        "agents:\n"
        "  - name: hello\n"
        "    runtime: scripted\n"
        "    script: [{say: hi}]\n"
        "    schedules: [{name: listed, interval: 1h, prompt: go}]\n"
        "  - {name: named, runtime: scripted, script: [{say: hi}],\n"
        "    schedules: {\n"
        "      mapped: {interval: 1h, prompt: go}}}\n"
        "workflows:\n"
        "  flow:\n"
        "    on: {schedules: {weekly: {cron: '0 6 * * 1'}}}\n"
        "    phases: [{name: one, bash: ls}]\n"
    )
    loaded = Reads(tmp_path)().loaded
    assert loaded is not None

    place = schedule_place(loaded, owner, name)

    assert (None if place is None else place.line) == line
