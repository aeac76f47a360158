"""The demo's stage: a small repository with a real fault, git, and workers that are killed."""

from __future__ import annotations

import difflib
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path

from nightherd.errors import NightherdError

REPOSITORY = "shop"
PROGRAM = "pricing.py"
CHECKS = "checks.txt"
CHECK_COUNT = 5
BANNER = "banner.py"

FILES = {
    PROGRAM: '''\
"""What a customer pays."""


def total(prices: list[int], discount: int = 0) -> float:
    """The sum of the prices, less a discount in percent."""
    return sum(prices) * (100 + discount) / 100
''',
    "test_pricing.py": '''\
"""A discount makes things cheaper."""

import unittest

from pricing import total


class Pricing(unittest.TestCase):
    def test_without_a_discount(self) -> None:
        self.assertEqual(total([30, 70]), 100)

    def test_with_a_discount(self) -> None:
        self.assertEqual(total([30, 70], discount=20), 80)
''',
}

REMOTE = "origin.git"
PUBLISHED_WITHOUT = "published.txt"

FIRST_GIT = (2, 38)
"""The first version that `nightherd jobs merge` works with."""
GIT_SETTINGS = {"GIT_CONFIG_GLOBAL": "/dev/null", "GIT_CONFIG_NOSYSTEM": "1"}
AUTHOR = {"user.name": "nightherd demo", "user.email": "demo@nightherd.invalid"}


def find_git(environ: Mapping[str, str]) -> str | None:
    """The path of git, or None."""
    return shutil.which("git", path=environ.get("PATH"))


def stage_environment(environ: Mapping[str, str]) -> dict[str, str]:
    """`environ` without what would lead git to another repository or to a person's own settings."""
    kept = {name: value for name, value in environ.items() if not name.startswith("GIT_")}
    return {**kept, **GIT_SETTINGS}


def lay_out(directory: Path, git: str | None, environ: Mapping[str, str]) -> None:
    """Make the repository with its fault, committed when there is git."""
    repository = directory / REPOSITORY
    repository.mkdir(parents=True)
    for name, text in FILES.items():
        (repository / name).write_text(text, encoding="utf-8")
    if git is not None:
        run_git(git, repository, environ, "init", "--quiet")
        for name, value in AUTHOR.items():
            run_git(git, repository, environ, "config", name, value)
        run_git(git, repository, environ, "add", "--all")
        run_git(git, repository, environ, "commit", "--quiet", "-m", "A shop")
        run_git(git, directory, environ, "init", "--quiet", "--bare", REMOTE)


def changes(directory: Path, git: str | None, environ: Mapping[str, str]) -> str:
    """What is different from the beginning, as a unified diff."""
    repository = directory / REPOSITORY
    if git is not None:
        return run_git(git, repository, environ, "diff", "--no-color", "--no-ext-diff")
    return "".join(
        line
        for name, before in FILES.items()
        for line in difflib.unified_diff(
            before.splitlines(keepends=True),
            (repository / name).read_text(encoding="utf-8").splitlines(keepends=True),
            f"a/{name}",
            f"b/{name}",
        )
    )


def published(directory: Path, git: str | None, environ: Mapping[str, str]) -> list[str]:
    """Return what has arrived at the remote, first to last."""
    if git is None:
        file = directory / PUBLISHED_WITHOUT
        return file.read_text(encoding="utf-8").splitlines() if file.exists() else []
    remote = directory / REMOTE
    if not run_git(git, remote, environ, "for-each-ref").strip():
        return []
    return run_git(git, remote, environ, "log", "--reverse", "--format=%s", "fix").splitlines()[1:]


def has_worktrees(git: str | None, environ: Mapping[str, str]) -> bool:
    """Whether there is a git that can do what worktrees and merging need."""
    if git is None:
        return False
    numbers = run_git(git, Path("/"), environ, "version").split()[2].split(".")[:2]
    return tuple(int(number) for number in numbers if number.isdecimal()) >= FIRST_GIT


def checkout_state(directory: Path, git: str, environ: Mapping[str, str]) -> list[str]:
    """Return what is to stay as it is in a person's checkout: files, index, branch, commit and stash."""
    commands = (
        ("status", "--porcelain", "--branch"),
        ("ls-files", "--stage"),
        ("rev-parse", "HEAD"),
        ("stash", "list"),
    )
    return [run_git(git, directory / REPOSITORY, environ, *command) for command in commands]


def files_in(directory: Path) -> list[str]:
    """Return the names of the files in the shop."""
    names = (path.name for path in (directory / REPOSITORY).iterdir())
    return sorted(name for name in names if not name.startswith("."))


def run_git(git: str, repository: Path, environ: Mapping[str, str], *arguments: str) -> str:
    """What git printed; `NightherdError` with its complaint when it failed."""
    done = subprocess.run(
        [git, *arguments],
        cwd=repository,
        env=dict(environ),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode != 0:
        raise NightherdError(f"git {arguments[0]} failed: {done.stderr.strip()}")
    return done.stdout


KILLED_AT = (1, 4)
"""The checks during which the worker is killed: before the job reaches its limit, and after that was raised."""
PATIENCE_S = 60.0
UNTIL_IDLE = ("worker", "--until-idle")
LOOK_S = 0.02


class Workers:
    """Workers of the demo's fleet, as processes of their own."""

    def __init__(self, place: Path, environ: Mapping[str, str]) -> None:
        self.place = place
        self.environ = environ

    def kill_one(self, check: int, *command: str) -> None:
        """Start a worker, or `command`, and kill it, as the kernel would, while the agent makes that check."""
        self.kill_when(lambda: len(self.checks()) >= check, *command)

    def kill_when(self, is_time: Callable[[], bool], *command: str) -> None:
        """Start a worker, or `command`, and kill it, as the kernel would, when it is time."""
        worker = self._begin(*(command or ("worker",)))
        try:
            until = time.monotonic() + PATIENCE_S
            while not is_time():
                if worker.poll() is not None or time.monotonic() > until:
                    raise NightherdError("the demo's worker did not get to work")
                time.sleep(LOOK_S)
        finally:
            worker.kill()
            worker.wait()

    def kill_title(self, command: str = "nightherd worker") -> str:
        """What a person would type to do what `kill_when` does."""
        return f"{command} & kill -9 $!"

    def go_on(self, *command: str) -> list[str]:
        """Let another worker finish the job, or run `command`; return what it printed."""
        done = subprocess.run(
            self._words(*(command or UNTIL_IDLE)),
            cwd=self.place,
            env=dict(self.environ),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode != 0:
            raise NightherdError(f"the demo's next command failed: {done.stderr.strip()}")
        return done.stdout.splitlines()

    def go_on_title(self) -> str:
        """What a person would type to do what `go_on` does."""
        return f"nightherd {' '.join(UNTIL_IDLE)}"

    def wait_for_person(self, is_answered: Callable[[], bool], say: Callable[[str], None]) -> bool:
        """Let a person answer; False when none can."""
        return False

    def take_signals(self) -> None:
        """Take back the signals that running a job has used; nothing has to be stopped before this process ends."""

    def checks(self) -> list[str]:
        """Return what the agent has written: one line for each check that really ran."""
        try:
            return (self.place / REPOSITORY / CHECKS).read_text(encoding="utf-8").splitlines()
        except FileNotFoundError:
            return []

    def _begin(self, *command: str) -> subprocess.Popen[bytes]:
        """Start a command whose output nobody reads."""
        return subprocess.Popen(
            self._words(*command),
            cwd=self.place,
            env=dict(self.environ),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )

    def _words(self, *command: str) -> list[str]:
        fleet, state = self.place / "nightherd.yaml", self.place / ".nightherd"
        options = ["--config", str(fleet), "--state-dir", str(state), "--color", "never"]
        return [sys.executable, "-m", "nightherd", *options, *command]
