"""A fleet of an ordinary user: commands are run by a process that is not root."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from components import Components
from runtimes.container.container_herd import USER, ContainerHerd

GROUP = 64_242
"""A group of the user, which may own an engine's socket; it needs no name."""


class UsersHerd(ContainerHerd):
    """A fleet whose commands are run by a user without any rights but those of the group."""

    def __init__(self, interpreter: str, *words: Any, **more: Any) -> None:
        self.interpreter = interpreter
        super().__init__(*words, **more)
        self.environment["PYTHONPATH"] = os.pathsep.join(path for path in sys.path if path)
        os.chown(self.root / "nightherd.yaml", USER, USER)

    def nightherd(self, *words: str) -> subprocess.CompletedProcess[str]:
        command = [self.interpreter, "-m", "nightherd", *words]
        return subprocess.run(command, capture_output=True, text=True, **self._as_user())

    @contextmanager
    def started(self, *words: str) -> Iterator[subprocess.Popen[bytes]]:
        command = [self.interpreter, "-m", "nightherd", *words]
        nothing = subprocess.DEVNULL
        process = subprocess.Popen(command, stdout=nothing, stderr=nothing, **self._as_user())
        try:
            yield process
        finally:
            process.kill()
            process.wait()

    def _as_user(self) -> dict[str, Any]:
        return {
            "cwd": self.root,
            "env": self.environment,
            "user": USER,
            "group": USER,
            "extra_groups": [GROUP],
        }


def find_interpreter(components: Components) -> str:
    """Return a Python of this version that every user can run."""
    usual = f"/usr/bin/python{sys.version_info[0]}.{sys.version_info[1]}"
    for program in (sys.executable, usual):
        try:
            subprocess.run([program, "-c", ""], user=USER, group=USER, check=True)
        except OSError:
            continue
        return program
    return components.absent(
        "a Python that every user can run", f"install {usual}, or one outside of root's home"
    )


def owners(path: Path) -> set[int]:
    """Return who owns what is below `path`."""
    return {one.lstat().st_uid for one in path.rglob("*")}
