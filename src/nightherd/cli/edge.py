"""The error edge: every way a command can end early becomes words and an exit code here."""

from __future__ import annotations

import errno
import os
import sys
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

import click

from nightherd.cli.next_steps import advice_for
from nightherd.cli.screen.render import Screen, neutralise
from nightherd.errors import (
    ConfigInvalidError,
    InterruptedRunError,
    NightherdError,
    StateError,
    code_of,
)
from nightherd.wiring.stores import system_clock

if TYPE_CHECKING:
    from collections.abc import Mapping


DEBUG = "NIGHTHERD_DEBUG"
DOCTOR = "nightherd doctor"
USAGE = 2
FAILED = 1


def run_guarded(
    command: Callable[[], object],
    screen: Screen,
    arguments: Sequence[str],
    *,
    environ: Mapping[str, str],
) -> int:
    """Run `command`; the exit code it ends with. Nothing is raised but what Python itself exits with."""
    try:
        command()
        screen.flush()
    except click.exceptions.Exit as error:
        return _leave(screen, error.exit_code)
    except click.exceptions.NoArgsIsHelpError as error:
        screen.say(error.format_message())
        return USAGE
    except click.UsageError as error:
        screen.is_json = screen.is_json or _asks_for_json(arguments)
        path = error.ctx.command_path if error.ctx is not None else "nightherd"
        return _report(screen, "usage", error.format_message(), f"{path} --help", USAGE)
    except click.ClickException as error:
        return _report(screen, "failed", error.format_message(), None, error.exit_code)
    except ConfigInvalidError as error:
        return _report_problems(screen, error)
    except NightherdError as error:
        hint = advice_for(error) or _usual_step(error, arguments)
        return _report(screen, code_of(error), error.message, hint, error.exit_code)
    except (KeyboardInterrupt, click.Abort):
        stopped = InterruptedRunError()
        return _report(screen, code_of(stopped), stopped.message, None, stopped.exit_code)
    except BrokenPipeError:
        return abandon_output()
    except OSError as error:
        return _report_unexpected(screen, error, environ, _os_message(error))
    except RecursionError as error:
        return _report_unexpected(screen, error, environ, "nested too deeply")
    except Exception as error:  # noqa: BLE001 (the command line is an edge: a person gets one line, not a traceback)
        return _report_unexpected(screen, error, environ, f"{type(error).__name__}: {error}")
    return 0


def abandon_output() -> int:
    """The reader went away, which is its right: nothing more is written, and that is no failure."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.__stdout__.fileno() if sys.__stdout__ else 1)
    return 0


def _leave(screen: Screen, code: int) -> int:
    try:
        screen.flush()
    except BrokenPipeError:
        abandon_output()
    return code


def _usual_step(error: NightherdError, arguments: Sequence[str]) -> str | None:
    """Return what helps with most errors of a kind; `doctor` itself does not suggest `doctor`."""
    return DOCTOR if isinstance(error, StateError) and "doctor" not in arguments else None


def _asks_for_json(arguments: Sequence[str]) -> bool:
    """Whether `--json` was among the arguments, when they could not be parsed."""
    before = arguments[: arguments.index("--")] if "--" in arguments else arguments
    return "--json" in before


def _report(screen: Screen, code: str, message: str, hint: str | None, exit_code: int) -> int:
    if screen.is_json:
        data = {"code": code, "message": message, "hint": hint, "exit_code": exit_code}
        return _report_json(screen, data, exit_code)
    _say_error(screen, message, hint)
    return exit_code


def _say_error(screen: Screen, message: str, hint: str | None) -> None:
    screen.say(f"{screen.err.bad('nightherd:')} {neutralise(message)}")
    if hint is not None:
        screen.say(f"  try: {screen.err.bold(neutralise(hint))}")


def _report_json(screen: Screen, data: Mapping[str, object], exit_code: int) -> int:
    """The error as the one document on standard output, so that a pipe always gets something to parse."""
    from nightherd.wiring.stores import system_clock

    try:
        clock = system_clock()
        screen.document("error", data, clock.now())
    except BrokenPipeError:
        abandon_output()
    return exit_code


def _report_problems(screen: Screen, error: ConfigInvalidError) -> int:
    from nightherd.cli.fleet.load import problems_data, problems_text

    hint = advice_for(error)
    if screen.is_json:
        data = {
            "code": code_of(error),
            "message": error.message,
            "hint": hint,
            "exit_code": error.exit_code,
            "problems": problems_data(error.problems, Path.cwd()),
        }
        return _report_json(screen, data, error.exit_code)
    screen.say(problems_text(error.problems, Path.cwd()))
    _say_error(screen, error.message, hint)
    return error.exit_code


def _report_unexpected(
    screen: Screen, error: Exception, environ: Mapping[str, str], message: str
) -> int:
    if environ.get(DEBUG):
        sys.excepthook(type(error), error, error.__traceback__)
    hint = None if environ.get(DEBUG) else f"{DEBUG}=1 nightherd ... shows where it happened"
    if isinstance(error, PermissionError) and error.filename is not None:
        hint = _owner_of(Path(os.fsdecode(error.filename))) or hint
    return _report(screen, "unexpected", message, hint, FAILED)


def _os_message(error: OSError) -> str:
    if error.filename is None or error.strerror is None:
        return f"{type(error).__name__}: {error}"
    return f"{error.strerror}: {os.fsdecode(error.filename)}"


def _owner_of(path: Path) -> str | None:
    """Who may do what was not allowed: the owner of the file, or of the directory that keeps us from it."""
    from pwd import getpwuid

    for one in (path, *path.parents):
        with suppress(OSError, KeyError):
            owner = getpwuid(one.stat().st_uid).pw_name
            return f"run it as {owner}, the owner of {one}, or change its permissions"
    return None


PASSING = (errno.ENOSPC, errno.EDQUOT, errno.EAGAIN)
"""A file on a full disk takes more when there is room again; a reader that is gone never does."""


def say(screen: Screen, text: str) -> None:
    """One line of talk."""
    _write_safely(lambda: screen.say(neutralise(text)), is_data=False)


def show(screen: Screen, text: str) -> None:
    """One line of data, for people."""

    def write() -> None:
        screen.show(text)
        screen.flush()

    _write_safely(write, is_data=True)


def document(screen: Screen, noun: str, data: object) -> None:
    """One document, for programs."""
    _write_safely(lambda: screen.document(noun, data, system_clock().now()), is_data=True)


def _write_safely(write: Callable[[], None], *, is_data: bool) -> None:
    try:
        write()
    except OSError as error:
        if is_data and error.errno not in PASSING:
            abandon_output()  # the reader has closed the pipe, or the terminal is gone
