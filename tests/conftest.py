"""What tests share: a neutral environment, the command, processes to kill, one rule for components that are not there."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import settings
from msgspec.structs import replace

from components import ABSENT, Components
from crash.ground import prepared
from nightherd.testing.fork_server import ForkServer
from nightherd.wiring import runtimes
from surfaces.drivers import FLEET, Cli, Shell

# A slow machine is no failure: no example has a deadline, whatever else a test sets.
settings.register_profile("patient", deadline=None)
settings.load_profile("patient")

pytest_plugins = ("daemon_fixtures", "docker_fixtures", "event_loops", "quick")

OURS = ("NIGHTHERD_CONFIG", "NIGHTHERD_STATE_DIR", "NIGHTHERD_EXECUTION")
TERMINAL = ("NO_COLOR", "FORCE_COLOR", "CLICOLOR", "CLICOLOR_FORCE", "COLUMNS", "LINES")
PYTHON = ("PYTHONDONTWRITEBYTECODE", "PYTHONUNBUFFERED", "PYTHONWARNINGS", "PYTHONOPTIMIZE")
"""What would make the commands that tests start behave otherwise than for most people."""
GIT = {
    "GIT_CONFIG_GLOBAL": os.devnull,
    "GIT_CONFIG_NOSYSTEM": "1",
    "GIT_AUTHOR_NAME": "Test",
    "GIT_AUTHOR_EMAIL": "test@example.invalid",
    "GIT_COMMITTER_NAME": "Test",
    "GIT_COMMITTER_EMAIL": "test@example.invalid",
}


WORKERS_PER_CORE = 1.5
"""Tests wait for processes, locks and disks a third of their time."""


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_auto_num_workers(config: pytest.Config) -> int | None:
    """How many `-n auto` is, unless its own variable says otherwise. Tests that start no process wait for nothing."""
    if "PYTEST_XDIST_AUTO_NUM_WORKERS" in os.environ:
        return None
    can_say = hasattr(os, "sched_getaffinity")
    cores = len(os.sched_getaffinity(0)) if can_say else os.cpu_count() or 1
    return cores if config.getoption("--quick") else int(WORKERS_PER_CORE * cores)


@pytest.fixture(autouse=True, scope="session")
def neutral_environment() -> Iterator[None]:
    """Nothing of the person's own settings reaches a test: not ours, nor the terminal's, Python's or git's."""
    with pytest.MonkeyPatch.context() as patch:
        for name in (*OURS, *TERMINAL, *PYTHON):
            patch.delenv(name, raising=False)
        for name in [name for name in os.environ if name.startswith("GIT_")]:
            patch.delenv(name)
        for name, value in GIT.items():
            patch.setenv(name, value)
        yield


@pytest.fixture(scope="session")
def components(pytestconfig: pytest.Config) -> Components:
    """The machine's components, by the rule of this run."""
    return Components(
        is_ci=bool(os.environ.get("CI")), is_quick=bool(pytestconfig.getoption("--quick"))
    )


@pytest.fixture
def cli(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Cli:
    """The command in this process."""
    return Cli(monkeypatch, capsys)


@pytest.fixture
def fleet(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A directory with a fleet of scripted agents; the test stands in it. Nothing is installed but the core."""
    sdk = runtimes.RUNTIMES["sdk"]
    missing = replace(sdk.capabilities, package="a_package_that_nobody_has")
    monkeypatch.setitem(runtimes.RUNTIMES, "sdk", replace(sdk, capabilities=missing))
    (tmp_path / "nightherd.yaml").write_text(FLEET)
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def nowhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A directory without a fleet; the test stands in it."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def shell(fleet: Path) -> Iterator[Shell]:
    """The command as a process of its own, in the directory with the fleet."""
    started = Shell(fleet)
    yield started
    started.close()


@pytest.fixture(scope="module")
def fork_server() -> Iterator[ForkServer]:
    """One server for all trials of a module. Not for more: some set a probe before what uses it is imported."""
    with ForkServer(patience_s=120) as server:
        yield server


@pytest.fixture(scope="session")
def command_server() -> Iterator[ForkServer]:
    """Has everything imported that commands import on their way."""
    with ForkServer(patience_s=120) as server:
        yield prepared(server)


@pytest.fixture
def small_disk(tmp_path: Path, components: Components) -> Iterator[Path]:
    """A disk of eight megabytes."""
    place = tmp_path / "small"
    place.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=8m", "tmpfs", str(place)]
    if os.geteuid() != 0 or subprocess.run(mount, capture_output=True).returncode != 0:
        components.absent("a small disk", "run as root where mounting is allowed")
    yield place
    subprocess.run(["umount", place], check=True)


@pytest.fixture(scope="session")
def repository() -> Path:
    """The top of this checkout."""
    return Path(__file__).resolve().parent.parent


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Says once more, at the very end, what was not tested and why."""
    reasons: dict[str, int] = {}
    for report in terminalreporter.stats.get("skipped", []):
        reason = report.longrepr[2] if isinstance(report.longrepr, tuple) else str(report.longrepr)
        if ABSENT in reason:
            text = reason[reason.index(ABSENT) :]
            reasons[text] = reasons.get(text, 0) + 1
    for text, count in sorted(reasons.items()):
        terminalreporter.write_line(f"!! NOT TESTED: {count} tests, {text}", red=True, bold=True)
