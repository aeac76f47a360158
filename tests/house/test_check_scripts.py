"""`make test` and `make check` pass only when every part of them does, and say which did not."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

PROGRAMS = ("python", "mypy", "ruff", "lint-imports", "deptry", "web-ui")
SMALL = {
    "PYTEST_XDIST_AUTO_NUM_WORKERS": "1",
    "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1",
    "PYTEST_PLUGINS": "xdist.plugin",
}
"""A pytest that starts quickly: one worker, and no plugin that the script does not need."""
STAND_IN = '#!/bin/sh\necho "heard $*"\nexit {status}\n'


def run(
    script: str,
    repository: Path,
    folder: Path,
    *,
    failing: str = "",
    python: str | None = None,
    dashboard: str | None = None,
) -> tuple[int, str]:
    """How the script ends, and all it says, where the programs it calls only pass or fail."""
    (folder / "scripts").mkdir()
    for name in ("check", "test"):
        shutil.copy(repository / "scripts" / name, folder / "scripts")
    programs = folder / ".venv/bin"
    programs.mkdir(parents=True)
    for name in PROGRAMS:
        program = (folder / "scripts" if name == "web-ui" else programs) / name
        program.write_text(STAND_IN.format(status=int(name == failing)))
        if name == "python" and python is not None:
            program.write_text(python)
        if name == "web-ui" and dashboard is not None:
            program.write_text(dashboard)
        program.chmod(0o755)
    done = subprocess.run(
        [folder / "scripts" / script],
        env={**os.environ, **SMALL},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=120,
    )
    return done.returncode, done.stdout


def test_all_tests_and_checks_are_run_once(repository: Path, tmp_path: Path) -> None:
    status, said = run("test", repository, tmp_path)

    assert status == 0
    assert said.count("pytest") == 1
    assert [line for line in said.splitlines() if line.startswith("ok ")] == [
        "ok      format",
        "ok      lint",
        "ok      rings",
        "ok      dependencies",
        "ok      dashboard",
        "ok      types",
    ]


def test_checks_alone_include_the_tests_of_documents(repository: Path, tmp_path: Path) -> None:
    status, said = run("check", repository, tmp_path)

    assert (status, "ok      documents\n" in said) == (0, True)


@pytest.mark.parametrize("program", PROGRAMS)
@pytest.mark.parametrize("script", ["check", "test"])
def test_one_that_fails_fails_the_whole_and_is_heard(
    script: str, program: str, repository: Path, tmp_path: Path
) -> None:
    status, said = run(script, repository, tmp_path, failing=program)

    assert status == 1
    assert "heard" in said
    assert ("failed:" in said) == (script == "check" or program != "python")


def test_a_check_that_could_not_be_made_is_said(repository: Path, tmp_path: Path) -> None:
    assert run("check", repository, tmp_path)[1].count("!!") == 0

    again = tmp_path / "again"
    again.mkdir()
    status, said = run("check", repository, again, dashboard="#!/bin/sh\necho '!! not checked'\n")

    assert (status, "ok      dashboard\n!! not checked\n" in said) == (0, True)


FLAKY = """\
from pathlib import Path


def test_second_time() -> None:
    seen = Path(__file__).with_name("seen")
    is_first = not seen.exists()
    seen.touch()
    assert not is_first
"""
BROKEN = "def test_never() -> None:\n    assert []\n"


@pytest.mark.parametrize(("more", "status"), [("", 0), (BROKEN, 1)])
def test_what_failed_runs_once_more_alone_and_is_listed_as_flaky_when_it_passes(
    more: str, status: int, repository: Path, tmp_path: Path
) -> None:
    (tmp_path / "test_flaky.py").write_text(FLAKY)
    (tmp_path / "test_broken.py").write_text(more)
    real = f'#!/bin/sh\nexec "{sys.executable}" "$@"\n'

    found, said = run("test", repository, tmp_path, python=real)

    assert found == status, said
    listed = [line for line in said.splitlines() if line.startswith("FLAKY")]
    assert listed == ["FLAKY test_flaky.py::test_second_time"]
