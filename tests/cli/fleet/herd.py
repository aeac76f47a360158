"""A fleet from a template, and a person at its shell."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

from document_reader import Reader


class Herd:
    """A fleet from a template, and a person at its shell."""

    def __init__(self, folder: Path, name: str, *before: str) -> None:
        self.reader = Reader(folder)
        self.root = self.reader.directory
        self.shell(" && ".join([*before, f"nightherd init --template {name}"]))

    def shell(self, line: str, *, codes: tuple[int, ...] = (0,)) -> str:
        done = subprocess.run(
            ["sh", "-c", line],
            cwd=self.root,
            env=self.reader.environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
        )
        assert done.returncode in codes, done.stdout + done.stderr
        return done.stdout

    def data(self, words: str) -> Any:
        return json.loads(self.shell(f"nightherd {words} --json"))["data"]

    def follow_readme(self) -> None:
        self.reader.follow(self.root / "README.md")

    def answer(self, words: str) -> None:
        """Answer the newest item of the inbox, and let a worker do what follows."""
        self.shell(f"nightherd inbox {words} && nightherd worker --until-idle")

    def wait_for_run(self, status: str) -> None:
        """Wait until a run has the status: the daemon runs whatever can run."""
        self.shell(
            f'until nightherd runs --json | grep -q \'"status":"{status}"\'; do sleep 0.1; done'
        )

    def pushed(self, branch: str) -> list[str]:
        """The subjects of what is on that branch of the remote, newest first."""
        seen = self.shell(f"git -C origin.git log --format=%s {branch} --", codes=(0, 128))
        return seen.splitlines()


MakeHerd = Callable[..., Herd]
