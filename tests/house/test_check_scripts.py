"""`make test` and `make check` pass only when every part of them does, and say which did not."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

PROGRAMS = ("python", "mypy", "ruff", "lint-imports")
STAND_IN = '#!/bin/sh\necho "heard $*"\nexit {status}\n'


def run(script: str, repository: Path, folder: Path, *, failing: str = "") -> tuple[int, str]:
    """How the script ends, and all it says, where the programs it calls only pass or fail."""
    (folder / "scripts").mkdir()
    for name in ("check", "test"):
        shutil.copy(repository / "scripts" / name, folder / "scripts")
    programs = folder / ".venv/bin"
    programs.mkdir(parents=True)
    for name in PROGRAMS:
        (programs / name).write_text(STAND_IN.format(status=int(name == failing)))
        (programs / name).chmod(0o755)
    done = subprocess.run(
        [folder / "scripts" / script],
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
