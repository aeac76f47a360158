"""`nightherd jobs --watch`: a list that refreshes on a terminal until Ctrl-C."""

from __future__ import annotations

import os
import pty
import select
import signal
import time
from pathlib import Path

import pytest

from surfaces.drivers import Cli, Shell, submit_pending

PATIENCE_S = 30.0


def read_until(terminal: int, text: str) -> str:
    """What the terminal has shown once `text` is among it."""
    shown = ""
    deadline = time.monotonic() + PATIENCE_S
    while text not in shown:
        left = deadline - time.monotonic()
        assert left > 0, f"{text!r} did not come; the terminal shows {shown!r}"
        if select.select([terminal], [], [], left)[0]:
            shown += os.read(terminal, 65_536).decode()
    return shown


def test_watched_list_shows_new_jobs_and_ends_cleanly_on_interrupt(
    shell: Shell, fleet: Path
) -> None:
    first = submit_pending(fleet)
    ours, theirs = pty.openpty()
    environment = {**os.environ, "TERM": "xterm", "COLUMNS": "120", "LINES": "30"}
    watching = shell.start("jobs", "--watch", stdout=theirs, stderr=theirs, env=environment)
    os.close(theirs)
    try:
        read_until(ours, first)
        second = submit_pending(fleet)
        shown = read_until(ours, second)
        watching.send_signal(signal.SIGINT)
        status = watching.wait(timeout=PATIENCE_S)
    finally:
        os.close(ours)

    assert status == 0
    assert "\x1b[2A\r\x1b[J" in shown, "the two lines before are replaced, not repeated"


def test_watch_refuses_json_and_names_what_to_use(cli: Cli, fleet: Path) -> None:
    result = cli("jobs", "--watch", "--json")

    assert result.code == 2
    assert result.data["message"] == "--watch cannot be used with --json"
    assert "nightherd jobs --json" in result.data["hint"]


@pytest.mark.parametrize("words", [("jobs", "--watch"), ("jobs", "list", "--watch")])
def test_watch_needs_a_terminal(words: tuple[str, ...], cli: Cli, fleet: Path) -> None:
    result = cli(*words)

    assert (result.code, result.out) == (2, "")
    assert "--watch needs a terminal" in result.err
