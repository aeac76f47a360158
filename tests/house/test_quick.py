"""`pytest --quick` leaves out each test that starts a process, however it does, and runs every other."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

TESTS = """
import os, subprocess, threading
import pytest

@pytest.fixture(scope="module")
def server():
    return subprocess.Popen(["touch", "started-by-fixture"])

def test_nothing_is_started():
    assert subprocess.PIPE

def test_command():
    subprocess.run(["touch", "started"])

def test_fork():
    if os.fork() == 0:
        open("forked", "w").close()
        os._exit(0)

def test_handled():
    try:
        subprocess.run(["touch", "started"])
    except BaseException:
        pass

def test_shell():
    os.system("touch started-by-shell")

def test_first_with_server(server):
    pass

def test_second_with_server(server):
    pass

def test_wrong():
    assert False
"""


def test_only_tests_that_start_no_process_run(repository: Path, tmp_path: Path) -> None:
    (tmp_path / "test_some.py").write_text(TESTS)

    done = subprocess.run(
        [
            sys.executable,
            "-m",
            "pytest",
            "-p",
            "quick",
            "-p",
            "no:cacheprovider",
            "--quick",
            "-rsf",
        ],
        cwd=tmp_path,
        env={
            **os.environ,
            "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1",
            "PYTHONDONTWRITEBYTECODE": "1",
            "PYTHONPATH": str(repository / "tests"),
        },
        capture_output=True,
        text=True,
    )

    assert "1 failed, 1 passed, 6 skipped" in done.stdout, done.stdout + done.stderr
    assert "FAILED test_some.py::test_wrong" in done.stdout
    assert done.stdout.count("SKIPPED") == 1
    assert [path.name for path in tmp_path.iterdir()] == ["test_some.py"]
