"""A fleet that is run by the command: what tests of whole jobs stand on, whichever runtime they are about."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import warm_command


class Commanded:
    """A fleet in a directory, and the command to run it with."""

    def __init__(self, root: Path, fleet: str, environment: Mapping[str, str]) -> None:
        self.root = root
        self.environment = dict(environment)
        (root / "nightherd.yaml").write_text(fleet)

    def nightherd(self, *words: str) -> subprocess.CompletedProcess[str]:
        """The command, to its end."""
        return warm_command.run(words, self.root, self.environment)

    @contextmanager
    def started(self, *words: str) -> Iterator[subprocess.Popen[bytes]]:
        """The command as a process of its own; it does not outlive the block."""
        process = subprocess.Popen(
            [sys.executable, "-m", "nightherd", *words],
            cwd=self.root,
            env=self.environment,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        try:
            yield process
        finally:
            process.kill()
            process.wait()

    def job(self) -> dict[str, Any]:
        """The last job, as the command shows it."""
        found = json.loads(self.nightherd("jobs", "show", "@last", "--json").stdout)["data"]
        assert isinstance(found, dict)
        return found

    def journal(self) -> list[dict[str, Any]]:
        """Every line on record of the only job; one that is just being written is not yet."""
        (path,) = self.root.glob(".nightherd/jobs/*.jsonl")
        return [json.loads(line) for line in path.read_bytes().split(b"\n")[:-1]]
