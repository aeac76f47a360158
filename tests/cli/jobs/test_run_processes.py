"""`run` as a process: terminals, pipes that break, signals, and SIGKILL."""

from __future__ import annotations

import os
import pty
import shlex
import signal
import subprocess
from pathlib import Path

import pytest

from surfaces.drivers import Cli, Shell


def read_terminal(master: int) -> str:
    """Everything written to the other side until that closes."""
    chunks: list[bytes] = []
    while True:
        try:
            chunk = os.read(master, 65_536)
        except OSError:  # Linux reports the end of a terminal as an input error
            break
        if not chunk:
            break
        chunks.append(chunk)
    os.close(master)
    return b"".join(chunks).decode()


def read_until(process: subprocess.Popen[bytes], text: str) -> list[str]:
    """The lines of standard output up to and including one with `text`."""
    assert process.stdout is not None
    lines: list[str] = []
    for line in process.stdout:
        lines.append(line.decode().rstrip("\n"))
        if text in lines[-1]:
            return lines
    raise AssertionError(f"{text!r} never came: {lines}")


def test_job_is_done_although_every_standard_stream_is_closed(shell: Shell, cli: Cli) -> None:
    line = shlex.join(shell.line("run", "hello", "-p", "nobody"))

    done = subprocess.run(["sh", "-c", f"exec {line} <&- >&- 2>&-"], cwd=shell.directory)

    assert done.returncode == 0
    (job,) = cli("jobs", "--json").data
    assert (job["status"], job["summary"]) == ("completed", "Done.")
    assert (shell.directory / "hello.txt").read_text() == "Hello, nobody!\n"


def test_spinner_is_on_a_terminals_stderr_and_never_in_the_data(shell: Shell) -> None:
    master, slave = pty.openpty()
    process = shell.start(
        "run", "hello", stdout=subprocess.PIPE, stderr=slave, env={**os.environ, "TERM": "xterm"}
    )
    os.close(slave)

    talk = read_terminal(master)
    out, _ = process.communicate()

    assert process.returncode == 0
    assert "hello: turn" in talk
    assert "\x1b[" in talk
    assert b"\x1b" not in out
    assert out.decode().splitlines()[-1] == "Done."


def test_person_at_a_terminal_sees_data_and_progress_together(shell: Shell) -> None:
    master, slave = pty.openpty()
    process = shell.start(
        "run", "hello", stdout=slave, stderr=slave, env={**os.environ, "TERM": "xterm"}
    )
    os.close(slave)

    seen = read_terminal(master)

    assert process.wait() == 0
    assert "I will greet everybody." in seen
    assert "hello: turn" in seen
    assert "✔ completed" in seen


@pytest.mark.parametrize("words", [("--json",), ("--quiet",)], ids=" ".join)
def test_terminal_shows_no_progress_when_none_is_wanted(
    words: tuple[str, ...], shell: Shell
) -> None:
    master, slave = pty.openpty()
    process = shell.start("run", "hello", *words, stdout=subprocess.PIPE, stderr=slave)
    os.close(slave)

    assert read_terminal(master) == ""
    assert process.communicate()[0]
    assert process.returncode == 0


def test_dumb_terminal_gets_no_escape_sequences(shell: Shell) -> None:
    master, slave = pty.openpty()
    process = shell.start(
        "run", "hello", stdout=slave, stderr=slave, env={**os.environ, "TERM": "dumb"}
    )
    os.close(slave)

    seen = read_terminal(master)

    assert process.wait() == 0
    assert "\x1b" not in seen
    assert "Done." in seen


def test_times_are_relative_on_a_terminal(shell: Shell, cli: Cli) -> None:
    assert cli("run", "echo", "-p", "hi").code == 0
    master, slave = pty.openpty()
    process = shell.start("jobs", stdout=slave, env={**os.environ, "COLUMNS": "80"})
    os.close(slave)

    seen = read_terminal(master)

    assert process.wait() == 0
    assert " ago " in seen or " now " in seen


def test_reader_that_went_away_is_no_failure(shell: Shell, cli: Cli) -> None:
    assert cli("run", "echo", "-p", "hi").code == 0
    for words in (("jobs",), ("jobs", "--json"), ("jobs", "show", "@last", "--json"), ("--help",)):
        reading, writing = os.pipe()
        os.close(reading)
        process = shell.start(*words, stdout=writing, stderr=subprocess.PIPE)
        os.close(writing)

        _, err = process.communicate()

        assert (process.returncode, err) == (0, b""), words


def test_reader_that_went_away_does_not_stop_the_job(shell: Shell, cli: Cli) -> None:
    reading, writing = os.pipe()
    os.close(reading)
    process = shell.start("run", "hello", stdout=writing, stderr=subprocess.PIPE)
    os.close(writing)

    _, err = process.communicate()

    assert process.returncode == 0
    assert "✔ completed" in err.decode()
    assert cli("jobs", "show", "@last", "--json").data["status"] == "completed"


@pytest.mark.parametrize("words", [(), ("--json",), ("--quiet",)], ids=" ".join)
def test_exit_code_is_the_jobs_also_when_nobody_reads_or_listens(
    words: tuple[str, ...], shell: Shell
) -> None:
    reading, writing = os.pipe()
    os.close(reading)
    process = shell.start("run", "failing", *words, stdout=writing, stderr=writing)
    os.close(writing)

    assert process.wait() == 1


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_signal_cancels_the_job_and_lets_it_settle(
    number: signal.Signals, shell: Shell, cli: Cli
) -> None:
    process = shell.start("run", "patient", stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    read_until(process, "working")

    process.send_signal(number)
    _, err = process.communicate()

    assert process.returncode == 130
    assert "⊘ cancelled (cancelled)" in err.decode()
    job = cli("jobs", "show", "@last", "--json").data
    assert (job["status"], job["exit_reason"]) == ("cancelled", "cancelled")
    assert "⊘ cancelled (cancelled)" in cli("jobs", "tail", "@last", "-n", "1").out


def test_cancelled_run_for_programs_is_a_result(shell: Shell, fleet: Path) -> None:
    process = shell.start("run", "slow", "--json", stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    wait_for(fleet / "started", process)

    process.send_signal(signal.SIGINT)
    out, _ = process.communicate()

    assert process.returncode == 130
    assert b'"status":"cancelled"' in out


def test_second_signal_leaves_at_once_and_takes_the_agents_processes_along(
    shell: Shell, cli: Cli, fleet: Path
) -> None:
    process = shell.start("run", "stubborn", stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    wait_for(fleet / "started", process)
    assert process.stderr is not None
    assert process.stderr.readline().startswith(b"job ")

    process.send_signal(signal.SIGINT)
    assert process.stderr.readline() == b"stopping; press again to exit at once\n"
    process.send_signal(signal.SIGINT)
    process.communicate()

    assert process.returncode == 130
    assert not is_alive(int((fleet / "started").read_text()))
    # Killing its command may let the job settle before the process is gone; it is never more than that.
    assert cli("jobs", "show", "@last", "--json").data["status"] in ("running", "cancelled")


def is_alive(pid: int) -> bool:
    """Whether a process runs; one that only waits to be taken note of does not."""
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except (FileNotFoundError, ProcessLookupError):  # gone, or going while it was read
        return False
    return state != "Z"


def wait_for(path: Path, process: subprocess.Popen[bytes]) -> None:
    """Until the agent has made `path`, or its process has ended."""
    while not path.exists():
        try:
            process.wait(timeout=0.02)
        except subprocess.TimeoutExpired:
            continue
        raise AssertionError("the process ended before the file was there")


def test_what_was_shown_before_a_kill_is_in_the_journal(shell: Shell, cli: Cli) -> None:
    process = shell.start("run", "patient", stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    shown = read_until(process, "working")

    process.kill()
    process.wait()

    recorded = cli("jobs", "tail", "@last", "-n", "all").out.splitlines()
    assert recorded == ["» go", *shown]
    assert cli("jobs", "show", "@last", "--json").data["status"] == "running"


def test_job_is_on_record_before_its_id_is_told(shell: Shell, cli: Cli) -> None:
    process = shell.start("run", "patient", stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert process.stderr is not None
    job_id = process.stderr.readline().decode().strip().removeprefix("job ")

    process.kill()
    process.wait()

    assert cli("jobs", "show", job_id, "--json").data["prompt"] == "go"
