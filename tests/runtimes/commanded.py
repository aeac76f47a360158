"""A fleet that is run by the command: what tests of whole jobs stand on, whichever runtime they are about."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import anyio

import warm_command
from nightherd.model.jobs.job import JobQuery
from nightherd.wiring.stores import open_reader
from runtimes.stage import until

PAUSE_S = 0.1
"""Between two looks at the rows."""


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

    def statuses(self) -> dict[str, str]:
        """The status of every job by its id, from the rows."""
        reader = open_reader(self.root / ".nightherd")
        try:
            return {job.id: job.status.value for job in reader.list_jobs(JobQuery(limit=1_000))}
        finally:
            reader.close()

    def wait_for_statuses(self, is_so: Callable[[dict[str, str]], bool]) -> None:
        """Wait until the statuses are as they should be; to ask costs more than to look for a file."""
        anyio.run(until, lambda: is_so(self.statuses()), PAUSE_S)

    def wait_until_completed(self) -> None:
        """Wait until its only job is."""
        self.wait_for_statuses(lambda statuses: [*statuses.values()] == ["completed"])

    def journal(self) -> list[dict[str, Any]]:
        """Every line on record of the only job; one that is just being written is not yet."""
        (path,) = self.root.glob(".nightherd/jobs/*.jsonl")
        return [json.loads(line) for line in path.read_bytes().split(b"\n")[:-1]]
