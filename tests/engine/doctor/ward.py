"""A state directory under treatment: jobs made through the command, damage done by hand, the doctor called."""

from __future__ import annotations

import hashlib
import json
import os
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import apsw

from nightherd.db.connection import open_for_reading
from nightherd.state.tables import TABLES
from surfaces.drivers import Cli, Result, Shell

PASSING = ("write.lock", "mirror.lock", "mirror.json")
"""Files that say nothing about anybody's work."""


AROUND = frozenset(("agents", "git", "clock", "claude", "keys", "acceptance", "fleet"))
"""Checks of the machine and the fleet file, which are not about the state directory."""


class Ward:
    """One state directory, and the command."""

    def __init__(self, root: Path, cli: Cli) -> None:
        self.root = root
        self.cli = cli

    @property
    def database(self) -> Path:
        return self.root / "nightherd.db"

    @property
    def ledger(self) -> Path:
        """The ledger in one file, also when a month ended since it was begun."""
        *earlier, last = sorted((self.root / "ledger").glob("*.jsonl"))
        if earlier:
            last.write_bytes(b"".join(path.read_bytes() for path in (*earlier, last)))
            for path in earlier:
                path.unlink()
        return last

    def journal(self, job_id: str) -> Path:
        return self.root / "jobs" / f"{job_id}.jsonl"

    def run(self, agent: str, *arguments: str) -> str:
        """Run a job to its end; its id."""
        done = self.cli("run", agent, "--json", *arguments)
        return str(done.data["job_id"])

    def show(self, job_id: str) -> dict[str, Any]:
        shown = self.cli("jobs", "show", job_id, "--json")
        assert shown.code == 0, shown
        data = shown.data
        assert isinstance(data, dict)
        return data

    def jobs(self) -> list[dict[str, Any]]:
        listed = self.cli("jobs", "list", "--limit", "1000", "--json")
        assert listed.code == 0, listed
        return list(listed.data["jobs"] if isinstance(listed.data, dict) else listed.data)

    def doctor(self, *arguments: str) -> Examination:
        return Examination(self.cli("doctor", "--json", *arguments))

    def clean(self, *arguments: str) -> None:
        """The doctor finds nothing at all."""
        found = self.doctor(*arguments)
        assert (found.result.code, found.all) == (0, []), found.all

    def hashes(self) -> dict[str, str]:
        """Every file and what it holds; the database by its rows, for reading alone changes its side files."""
        found = {
            str(path.relative_to(self.root)): hashlib.sha256(path.read_bytes()).hexdigest()
            for path in self.root.rglob("*")
            if path.is_file() and not path.is_symlink() and path.name not in PASSING
        }
        return {name: hash for name, hash in found.items() if not name.endswith(("-shm", "-wal"))}

    def rows(self) -> dict[str, list[tuple[object, ...]]]:
        """Every row there is."""
        opened = open_for_reading(self.database)
        assert opened is not None
        try:
            return {
                table: [tuple(row) for row in opened.execute(f"SELECT * FROM {table} ORDER BY 1")]
                for table in TABLES.values()
            }
        finally:
            opened.close()

    def alter(self, statement: str, *values: str | int) -> None:
        """Change the database behind nightherd's back."""
        connection = apsw.Connection(str(self.database))
        connection.execute(statement, values)
        connection.close()

    def delete_database(self) -> None:
        for path in self.root.glob("nightherd.db*"):
            path.unlink()

    def settle_wal(self) -> None:
        """Everything into the one file, as after a quiet shutdown."""
        connection = apsw.Connection(str(self.database))
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
        connection.close()


class Examination:
    """What one call of the doctor said."""

    def __init__(self, result: Result) -> None:
        self.result = result
        self.data = result.data

    @property
    def all(self) -> list[dict[str, Any]]:
        """What is still wrong."""
        return [one for one in self.found if not one["is_fixed"]]

    @property
    def found(self) -> list[dict[str, Any]]:
        return [
            {"check": check["name"], **finding}
            for check in self.data["checks"]
            if check["name"] not in AROUND
            for finding in check["findings"]
        ]

    @property
    def checks(self) -> list[str]:
        """The checks with something still wrong."""
        checks = [check for check in self.data["checks"] if check["name"] not in AROUND]
        return [check["name"] for check in checks if check["level"] != "ok"]

    def of(self, check: str) -> list[dict[str, Any]]:
        return [one for one in self.found if one["check"] == check]

    def only(self, check: str) -> dict[str, Any]:
        """The one finding there is."""
        (one,) = self.found
        assert one["check"] == check
        return one


def wait_until(is_so: Callable[[], bool], what: str, limit_s: float = 90) -> None:
    """Look until it is so."""
    deadline = time.monotonic() + limit_s
    while not is_so():
        assert time.monotonic() < deadline, what
        time.sleep(0.01)


@contextmanager
def running(shell: Shell, agent: str, mark: Path) -> Iterator[subprocess.Popen[bytes]]:
    """A job in the middle of a tool that has made `mark`; what the tool started is ended with it."""
    process = shell.start(
        "run",
        agent,
        "--json",
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        start_new_session=True,
    )
    children: set[int] = set()
    try:
        wait_until(lambda: mark.exists() or process.poll() is not None, "the tool never began")
        assert process.poll() is None, process.communicate()
        children = descendants(process.pid)
        yield process
    finally:
        process.kill()
        process.wait()
        for pid in children:
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
        mark.unlink(missing_ok=True)


def killed(shell: Shell, agent: str, mark: Path) -> None:
    """A job whose worker was killed in the middle of a tool."""
    with running(shell, agent, mark):
        pass


def descendants(pid: int) -> set[int]:
    """Every process below `pid`."""
    found: set[int] = set()
    for task in Path(f"/proc/{pid}/task").glob("*/children"):
        with suppress(FileNotFoundError, ProcessLookupError):  # a thread may end at any moment
            for child in task.read_text().split():
                found |= {int(child), *descendants(int(child))}
    return found


def lines(path: Path) -> list[dict[str, Any]]:
    """Every line of a file, decoded."""
    return [json.loads(line) for line in path.read_bytes().splitlines()]
