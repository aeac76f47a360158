"""Completion: the scripts load, and what they ask for is answered from the state and the fleet."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from components import Components
from nightherd.model.jobs.job import JobStatus
from surfaces.drivers import Cli


@pytest.fixture
def complete(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> Complete:
    return Complete(cli, monkeypatch)


class Complete:
    """What bash would offer for a line."""

    def __init__(self, cli: Cli, patch: pytest.MonkeyPatch) -> None:
        self._cli = cli
        self._patch = patch

    def __call__(self, line: str) -> list[str]:
        with self._patch.context() as patch:
            patch.setenv("_NIGHTHERD_COMPLETE", "bash_complete")
            patch.setenv("COMP_WORDS", line)
            patch.setenv("COMP_CWORD", str(len(line.split(" ")) - 1))
            result = self._cli()
        assert (result.code, result.err) == (0, "")
        return [found.partition(",")[2] for found in result.out.splitlines() if found]


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_script_is_printed_for_each_shell(shell: str, cli: Cli, nowhere: Path) -> None:
    result = cli("completion", shell)

    assert (result.code, result.err) == (0, "")
    assert f"_NIGHTHERD_COMPLETE={shell}_complete" in result.out


def test_bash_can_read_its_script(cli: Cli, components: Components, nowhere: Path) -> None:
    bash = components.program("bash")

    script = cli("completion", "bash").out

    done = subprocess.run([bash, "-n"], input=script, text=True, capture_output=True)
    assert (done.returncode, done.stderr) == (0, "")


def test_unknown_shell_is_a_usage_error(cli: Cli) -> None:
    assert cli("completion", "tcsh").code == 2


def test_commands_are_completed(complete: Complete, nowhere: Path) -> None:
    assert complete("nightherd j") == ["jobs"]
    verbs = [
        "list",
        "show",
        "cancel",
        "resume",
        "fork",
        "retry",
        "tail",
        "export",
        "outline",
        "config",
    ]
    assert complete("nightherd jobs ") == [*verbs, "apply", "merge", "push", "diff"]
    assert complete("nightherd jobs --st") == ["--status"]
    assert complete("nightherd --col") == ["--color"]


def test_statuses_are_completed_also_after_the_bare_noun(complete: Complete, nowhere: Path) -> None:
    statuses = [status.value for status in JobStatus]

    assert complete("nightherd jobs list --status ") == statuses
    assert complete("nightherd jobs --status ") == statuses


def test_job_ids_are_completed_newest_first(complete: Complete, cli: Cli, fleet: Path) -> None:
    older = cli("run", "echo", "-p", "a", "--json").data["job_id"]
    newer = cli("run", "echo", "-p", "b", "--json").data["job_id"]

    assert complete("nightherd jobs show ") == [newer, older, "@last", "@last-failed"]
    assert complete("nightherd jobs tail job-2") == [newer, older]
    assert complete("nightherd jobs show @last-") == ["@last-failed"]
    assert complete(f"nightherd --config {fleet} jobs show job-2") == [newer, older]


def test_agent_names_are_completed(complete: Complete, fleet: Path) -> None:
    assert complete("nightherd run h") == ["hello", "hostile"]
    assert complete("nightherd jobs --agent ec") == ["echo"]
    assert complete("nightherd config show mem") == ["memory"]


def test_runs_and_workflows_are_completed(complete: Complete, cli: Cli, nowhere: Path) -> None:
    fleet = "workflows:\n  build: {phases: [{name: a, bash: 'true'}]}\n  bake: {phases: [{name: a, bash: 'true'}]}\n"
    (nowhere / "nightherd.yaml").write_text(f"agents: []\n{fleet}")
    run = cli("workflow", "run", "build", "--json").data["id"]

    assert complete("nightherd workflow run bu") == ["build"]
    assert complete("nightherd workflow disable b") == ["build", "bake"]
    assert complete("nightherd runs list --workflow ba") == ["bake"]
    assert complete("nightherd runs show ") == [run, "@last", "@last-failed"]
    assert complete("nightherd runs tail @last-") == ["@last-failed"]
    assert complete("nightherd runs show run-1999") == []


def test_completion_is_silent_when_anything_is_wrong(complete: Complete, nowhere: Path) -> None:
    assert complete("nightherd run h") == []
    assert complete("nightherd jobs show job-") == []

    (nowhere / "nightherd.yaml").write_text("agents: [\n")
    (nowhere / ".nightherd").mkdir()
    (nowhere / ".nightherd" / "nightherd.db").write_text("this is no database")

    assert complete("nightherd run h") == []
    assert complete("nightherd jobs show job-") == []
