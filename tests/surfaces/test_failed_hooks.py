"""Hooks that failed: named in `jobs show`, counted in `status` and at the end of `run`."""

from __future__ import annotations

from pathlib import Path

import pytest

from surfaces.drivers import Cli

FLEET = """\
agents:
  - name: writer
    runtime: scripted
    default_prompt: write
    hooks:
      after_run:
        - {type: shell, name: notify, command: "test -e route || { echo no route >&2; exit 3; }"}
        - {type: shell, name: note, command: "true"}
    script:
      - say: done
  - name: plain
    runtime: scripted
    default_prompt: go
    script:
      - say: done
"""


@pytest.fixture
def job(tmp_path: Path, cli: Cli, monkeypatch: pytest.MonkeyPatch) -> str:
    """A job that is done and whose notification failed."""
    (tmp_path / "nightherd.yaml").write_text(FLEET)
    monkeypatch.chdir(tmp_path)
    cli("run", "plain", "-q")
    done = cli("run", "writer", "--json")
    assert (done.code, [one["name"] for one in done.data["failed_hooks"]]) == (0, ["notify"])
    return str(done.data["job_id"])


def test_a_failed_hook_is_shown_with_its_job(job: str, cli: Cli) -> None:
    (hook,) = cli("jobs", "show", job, "--json").data["failed_hooks"]
    (line,) = [one for one in cli("jobs", "show", job).out.splitlines() if one.startswith("hook")]

    assert (hook["name"], hook["event"], hook["id"]) == ("notify", "completed", "after_run[0]")
    assert (hook["error"], hook["output"].strip()) == ("exit code 3", "no route")
    assert "notify failed: exit code 3: no route" in line


def test_status_names_the_last_jobs_whose_hooks_failed(job: str, cli: Cli) -> None:
    (failed,) = cli("status", "--json").data["failed_hooks"]
    shown = cli("status").out

    assert (failed["agent"], failed["job_id"], failed["name"]) == ("writer", job, "notify")
    assert failed["error"] == "exit code 3"
    assert f"1 hook failed: notify of {job} (writer)" in shown


def test_status_forgets_it_once_the_hooks_of_a_later_job_succeed(
    job: str, cli: Cli, tmp_path: Path
) -> None:
    (tmp_path / "route").touch()
    later = cli("run", "writer", "--json")

    assert later.data["failed_hooks"] == []
    assert cli("status", "--json").data["failed_hooks"] == []
    assert "hook failed" not in cli("status").out
    assert len(cli("jobs", "show", job, "--json").data["failed_hooks"]) == 1


def test_the_end_of_a_run_says_that_a_hook_failed(job: str, cli: Cli) -> None:
    assert "1 hook failed: nightherd jobs show job-" in cli("run", "writer").err


def test_a_journal_that_cannot_be_read_leaves_status_and_jobs_show_working(
    job: str, cli: Cli, tmp_path: Path
) -> None:
    journal = tmp_path / ".nightherd/jobs" / f"{job}.jsonl"
    journal.unlink()
    journal.mkdir()

    status, shown = cli("status"), cli("jobs", "show", job)
    document = cli("jobs", "show", job, "--json")

    assert (status.code, shown.code, document.code) == (0, 0, 0)
    assert "writer" in status.out
    (line,) = [one for one in shown.out.splitlines() if one.startswith("journal")]
    assert "cannot read the journal" in line
    assert "cannot read the journal" in document.data["journal_error"]
    assert document.data["status"] == "completed"
