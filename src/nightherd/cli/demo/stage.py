"""The demo's stage: a small repository with a real fault, a fleet of scripted agents, and workers that are killed."""

from __future__ import annotations

import difflib
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from nightherd.errors import NightherdError

REPOSITORY = "shop"
PROGRAM = "pricing.py"
CHECKS = "checks.txt"
CHECK_COUNT = 5

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

FIXER = """\
  - name: fixer
    description: Runs the tests, finds the bug, fixes it, runs the tests again.
    runtime: scripted
    allowed_tools: [Bash]
    working_directory: shop
    default_prompt: The tests fail. Fix the program, not the tests.
    script:
      - sleep: 200ms
      - think: First I want to see it fail.
      - say: I will run the tests.
      - tool: Bash
        input: {command: python3 -B -m unittest -q}
      - usage: {input_tokens: 1210, output_tokens: 64, cost_usd: 0.0046}
      - sleep: 200ms
      - say: A discount of 20 % raises the price. I will look at the program.
      - tool: Read
        input: {file_path: pricing.py}
      - usage: {input_tokens: 1480, output_tokens: 71, cost_usd: 0.0055}
      - sleep: 200ms
      - say: The discount is added where it should be subtracted.
      - tool: Edit
        input: {file_path: pricing.py, old_string: (100 + discount), new_string: (100 - discount)}
      - usage: {input_tokens: 1630, output_tokens: 98, cost_usd: 0.0064}
      - sleep: 200ms
      - tool: Bash
        input: {command: python3 -B -m unittest -q}
      - usage: {input_tokens: 1770, output_tokens: 40, cost_usd: 0.0059}
      - say: Fixed. total() now subtracts the discount, and all tests pass.
      - usage: {input_tokens: 1850, output_tokens: 33, cost_usd: 0.0060}
"""

REVIEWER = """\
  - name: reviewer
    description: Reviews the change; its next job would continue its session.
    runtime: scripted
    allowed_tools: [Bash]
    working_directory: shop
    default_prompt: Review what changed.
    session: {mode: persistent}
    script:
      - sleep: 200ms
      - say: I will read the change.
      - tool: Bash
        input: {command: LOOK}
      - say: One line, and it is the right one.
      - usage: {input_tokens: 940, output_tokens: 52, cost_usd: 0.0037}
      - sleep: 200ms
      - say: I will run the tests again, to be sure.
      - tool: Bash
        input: {command: python3 -B -m unittest -q}
      - say: Approved.
      - usage: {input_tokens: 1120, output_tokens: 20, cost_usd: 0.0037}
"""

INSPECTOR = f"""\
  - name: inspector
    description: Runs the tests five times and records each run, within its budget.
    runtime: RUNTIME
    limits: {{spend: 0.50}}
    allowed_tools: [Bash]
    working_directory: shop
    default_prompt: Make sure that it stays fixed.
    script:
      - repeat: {CHECK_COUNT}
        steps:
          - tool: Bash
            input: {{command: "echo check ${{turn}} >> {CHECKS}; sleep 0.2; python3 -B -m unittest -q"}}
          - usage: {{input_tokens: 310, output_tokens: 12, cost_usd: 0.20}}
      - say: Five checks are recorded.
"""

PUBLISHER = """\
  - name: publisher
    description: Publishes the fix, but only after a person's approval.
    runtime: scripted
    allowed_tools: [Bash]
    working_directory: shop
    default_prompt: Publish the fix.
    approvals:
      - tool: "Bash(RULE:*)"
    script:
      - say: The fix is ready. I would like to push it.
      - tool: Bash
        input: {command: PUBLISH}
      - say: Published.
"""

REMOTE = "origin.git"
PUBLISH_WITH_GIT = (
    f"git commit -q -a --allow-empty -m 'Subtract the discount' && git push -q ../{REMOTE} HEAD:fix"
)
"""Every run of it would add a commit to what arrives."""
PUBLISHED_WITHOUT = "published.txt"
PUBLISH_WITHOUT = f"echo Subtract the discount >> ../{PUBLISHED_WITHOUT}"

LOOK_WITH_GIT = "git diff --stat"
LOOK_WITHOUT = f"cat {PROGRAM}"

GIT_SETTINGS = {"GIT_CONFIG_GLOBAL": "/dev/null", "GIT_CONFIG_NOSYSTEM": "1"}
AUTHOR = {"user.name": "nightherd demo", "user.email": "demo@nightherd.invalid"}


def find_git(environ: Mapping[str, str]) -> str | None:
    """The path of git, or None."""
    return shutil.which("git", path=environ.get("PATH"))


def stage_environment(environ: Mapping[str, str]) -> dict[str, str]:
    """`environ` without what would lead git to another repository or to a person's own settings."""
    kept = {name: value for name, value in environ.items() if not name.startswith("GIT_")}
    return {**kept, **GIT_SETTINGS}


def fleet_text(*, has_git: bool, has_native: bool) -> str:
    """The fleet file. The agent with a limit is native where that is installed; its script is the same."""
    reviewer = REVIEWER.replace("LOOK", LOOK_WITH_GIT if has_git else LOOK_WITHOUT)
    inspector = INSPECTOR.replace("RUNTIME", "native" if has_native else "scripted")
    rule, publish = ("git push", PUBLISH_WITH_GIT) if has_git else ("echo", PUBLISH_WITHOUT)
    publisher = PUBLISHER.replace("RULE", rule).replace("PUBLISH", publish)
    return f"fleet:\n  name: demo\n\nagents:\n{FIXER}\n{reviewer}\n{inspector}\n{publisher}"


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
LOOK_S = 0.02


@dataclass(frozen=True, slots=True)
class Workers:
    """Workers of the demo's fleet, as processes of their own."""

    place: Path
    environ: Mapping[str, str]

    def kill_one(self, check: int, *command: str) -> None:
        """Start a worker, or `command`, and kill it, as the kernel would, while the agent makes that check."""
        self.kill_when(lambda: len(self.checks()) >= check, *command)

    def kill_when(self, is_time: Callable[[], bool], *command: str) -> None:
        """Start a worker, or `command`, and kill it, as the kernel would, when it is time."""
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
            while not is_time():
                if worker.poll() is not None or time.monotonic() > until:
                    raise NightherdError("the demo's worker did not get to work")
                time.sleep(LOOK_S)
        finally:
            worker.kill()
            worker.wait()

    def go_on(self, *command: str) -> list[str]:
        """Let another worker finish the job, or run `command`; return what it printed."""
        done = subprocess.run(
            self._command(*command),
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

    def checks(self) -> list[str]:
        """Return what the agent has written: one line for each check that really ran."""
        try:
            return (self.place / REPOSITORY / CHECKS).read_text(encoding="utf-8").splitlines()
        except FileNotFoundError:
            return []

    def _command(self, *command: str) -> list[str]:
        fleet, state = self.place / "nightherd.yaml", self.place / ".nightherd"
        options = ["--config", str(fleet), "--state-dir", str(state), "--color", "never"]
        words = command or ("worker", "--until-idle")
        return [sys.executable, "-m", "nightherd", *options, *words]
