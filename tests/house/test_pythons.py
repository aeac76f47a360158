"""`make pythons`: every Python that is there is tried, in a clone of its own, and one that fails is heard of."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from components import Components

PROGRAMS = ("sh", "dirname", "mktemp", "rm", "mkdir", "ln", "cat", "git", "make")
IDENTITY = ("-c", "user.name=a", "-c", "user.email=a@example.com")


def run(
    repository: Path, folder: Path, components: Components, recipe: str
) -> subprocess.CompletedProcess[str]:
    """The script on a small repository whose demo is `recipe`, where 3.12 works and 3.13 is a stand-in."""
    checkout, programs = folder / "checkout", folder / "bin"
    (checkout / "scripts").mkdir(parents=True)
    programs.mkdir()
    shutil.copy(repository / "scripts/pythons", checkout / "scripts")
    (checkout / "Makefile").write_text(f"demo:\n\t@{recipe}\n")
    for name in PROGRAMS:
        (programs / name).symlink_to(components.program(name))
    (programs / "python3.12").symlink_to(sys.executable)
    (programs / "python3.13").write_text("#!/bin/sh\nexit 127\n")
    (programs / "python3.13").chmod(0o755)
    for words in (("init", "-q"), ("add", "."), (*IDENTITY, "commit", "-q", "-m", "all")):
        subprocess.run(["git", *words], cwd=checkout, check=True)
    return subprocess.run(
        [checkout / "scripts/pythons"],
        env={"PATH": str(programs), "HOME": str(folder), "TMPDIR": str(folder)},
        capture_output=True,
        text=True,
    )


@pytest.mark.parametrize(
    ("recipe", "status", "said"),
    [
        ("python3 -c pass", 0, "ok      Python 3.12\n"),
        ("python3 -c 'exit(\"no luck\")'", 1, "FAILED  Python 3.12: make demo\nno luck\n"),
    ],
)
def test_a_python_that_is_there_is_tried_and_others_are_absent(
    repository: Path, tmp_path: Path, components: Components, recipe: str, status: int, said: str
) -> None:
    done = run(repository, tmp_path, components, recipe)

    assert done.returncode == status, done.stderr
    assert done.stdout.startswith(f"absent  Python 3.11\n{said}")
    assert done.stdout.endswith("absent  Python 3.13\n")
    assert ("failed: 3.12" in done.stderr) == bool(status)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["bin", "checkout"]
