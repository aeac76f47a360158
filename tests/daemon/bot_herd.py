"""A fleet with bots whose daemon is started and killed, on a platform that outlives it."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from nightherd.daemon.record import find_daemon
from nightherd.model.inbox.item import InboxQuery
from nightherd.model.jobs.job import JobQuery, JobStatus
from nightherd.wiring.stores import open_reader
from warm_command import WarmShell

PATIENCE_S = 60.0


class BotHerd:
    """A fleet with one bot; its daemon does not run yet."""

    def __init__(self, directory: Path, environment: Mapping[str, str]) -> None:
        self.directory = directory
        self.environment = environment
        """The variables that the daemon is started with: where the platform is, and what the bot logs in with."""
        self.shell = WarmShell(directory)
        self._reader = open_reader(directory / ".nightherd")

    def write(self, text: str, pace: str = "0s") -> None:
        """Write the fleet file; PACE in it is how long an answer takes."""
        (self.directory / "nightherd.yaml").write_text(text.replace("PACE", pace))

    def start(self) -> int:
        """Start the daemon; its process."""
        started = self.shell.run("start", "-d", stdin=b"", **self.environment)
        assert started.code == 0, started.err
        record = find_daemon(self.directory / ".nightherd")
        assert record is not None
        return record.pid

    def kill(self, pid: int) -> None:
        """Kill the daemon, and wait until it is gone."""
        os.kill(pid, signal.SIGKILL)
        until(self.is_down, "the end of the daemon")

    def is_down(self) -> bool:
        """Whether no daemon runs."""
        return find_daemon(self.directory / ".nightherd") is None

    def is_answered(self) -> bool:
        """Whether something that was asked in the inbox has an answer."""
        return bool(self._reader.list_items(InboxQuery(is_pending=False)))

    def bot(self) -> Mapping[str, Any]:
        """How the bot does, by `status`."""
        (row,) = self.shell.run("status", "--json").data["bots"]
        assert isinstance(row, dict)
        return row

    def wait_for_status(self, status: str) -> Mapping[str, Any]:
        """Wait until the bot stands so, by its row and then by `status`, which is a process each time."""
        until(lambda: [one.status for one in self._reader.list_chat_bots()] == [status], status)
        row: Mapping[str, Any] = until(
            lambda: row if (row := self.bot())["status"] == status else None, status
        )
        return row

    def wait_for_turn(self) -> None:
        """Wait until a job runs."""
        query = JobQuery(status=JobStatus.RUNNING, limit=1)
        until(lambda: self._reader.list_jobs(query), "the turn")

    def output(self) -> str:
        """What the daemon has written."""
        return (self.directory / ".nightherd" / "logs" / "daemon.out").read_text()

    def close(self) -> None:
        """Stop the daemon."""
        self.shell.run("stop", "--now")
        self.shell.close()
        self._reader.close()


def until(look: Callable[[], Any], what: str) -> Any:
    """Wait until there is something, and return it."""
    deadline = time.monotonic() + PATIENCE_S
    while time.monotonic() < deadline:
        found = look()
        if found:
            return found
        time.sleep(0.05)
    raise AssertionError(f"it never came: {what}")
