"""The demo's last act: whoever runs a job is killed in the middle of a tool, and another one goes on with it."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from nightherd.cli.demo.stage import CHECKS, REPOSITORY
from nightherd.errors import NightherdError

KILLED_AT = (1, 4)
"""The checks during which somebody is killed: before the job meets its limit, and after that was raised."""
PATIENCE_S = 60.0
LOOK_S = 0.02


@dataclass(frozen=True, slots=True)
class Workers:
    """Workers of the demo's fleet, as processes of their own."""

    place: Path
    environ: Mapping[str, str]

    def kill_one(self, check: int, *command: str) -> None:
        """Start a worker, or `command`, and kill it, as the kernel would, while the agent makes that check."""
        worker = subprocess.Popen(
            self._command(*command),
            cwd=self.place,
            env=dict(self.environ),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        try:
            until = time.monotonic() + PATIENCE_S
            while len(self.checks()) < check:
                if worker.poll() is not None or time.monotonic() > until:
                    raise NightherdError("the demo's worker did not get to work")
                time.sleep(LOOK_S)
        finally:
            worker.kill()
            worker.wait()

    def go_on(self) -> list[str]:
        """Another worker does what is left; what it said."""
        done = subprocess.run(
            self._command(),
            cwd=self.place,
            env=dict(self.environ),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode != 0:
            raise NightherdError(f"the demo's next worker failed: {done.stderr.strip()}")
        return done.stdout.splitlines()

    def checks(self) -> list[str]:
        """What the agent has written down: one line for each check that was really made."""
        try:
            return (self.place / REPOSITORY / CHECKS).read_text(encoding="utf-8").splitlines()
        except FileNotFoundError:
            return []

    def _command(self, *command: str) -> list[str]:
        fleet, state = self.place / "nightherd.yaml", self.place / ".nightherd"
        options = ["--config", str(fleet), "--state-dir", str(state), "--color", "never"]
        words = command or ("worker", "--until-idle")
        return [sys.executable, "-m", "nightherd", *options, *words]
