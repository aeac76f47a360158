"""`pytest --quick`: only tests that start no process. What a test does decides, not a list.

An audit hook stops a test where it would start its first process, and the test counts as left out. So a test
that ran to its end under `--quick` has started none.
"""

from __future__ import annotations

import sys
from collections.abc import Generator

import pytest

from components import LEFT_OUT

STARTING = frozenset(
    {
        "os.exec",
        "os.fork",
        "os.forkpty",
        "os.posix_spawn",
        "os.spawn",
        "os.system",
        "subprocess.Popen",
    }
)
"""The audit events of starting a process."""

NOISE = (
    "ignore::pytest.PytestUnhandledThreadExceptionWarning",
    "ignore::pytest.PytestUnraisableExceptionWarning",
    "ignore::ResourceWarning",
    "ignore:coroutine .* was never awaited:RuntimeWarning",
)
"""What a test leaves behind that was stopped in the middle. `make test` shows these warnings as errors."""


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the option."""
    parser.addoption("--quick", action="store_true", help="leave out tests that start processes")


def pytest_configure(config: pytest.Config) -> None:
    """Watch the tests of this process, if asked to."""
    if config.getoption("--quick"):
        for line in NOISE:
            config.addinivalue_line("filterwarnings", line)
        guard = ProcessGuard()
        sys.addaudithook(guard.audit)
        config.pluginmanager.register(guard)


class StartsProcess(Exception):
    """Ends a test. An ordinary exception: in a group, pytest could not finish a fixture that raised another."""


class ProcessGuard:
    """Stops each test at the first process it would start, and reports it as left out."""

    def __init__(self) -> None:
        self._is_testing = False
        self._was_stopped = False

    def audit(self, event: str, _arguments: object) -> None:
        """Stop the test that runs now, if this starts a process."""
        if self._is_testing and event in STARTING:
            self._was_stopped = True
            raise StartsProcess(LEFT_OUT)

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self) -> Generator[None, object, object]:
        """Watch one test with its fixtures."""
        self._is_testing, self._was_stopped = True, False
        try:
            return (yield)
        finally:
            self._is_testing = False

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(
        self, call: pytest.CallInfo[None]
    ) -> Generator[None, pytest.TestReport, pytest.TestReport]:
        """Report a stopped test as left out, also where code of ours handled the exception."""
        report = yield
        if self._was_stopped and call.when == "teardown":
            report.outcome = "passed"
        elif self._was_stopped or (not report.passed and LEFT_OUT in str(report.longrepr)):
            report.outcome = "skipped"
            # One place for all of them: the summary shows them as one line.
            report.longrepr = (__file__, 1, LEFT_OUT)
        return report
