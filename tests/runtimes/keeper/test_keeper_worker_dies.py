"""The keeper when its worker dies or falls silent (INV-KEEPER): not one thing of the command runs on."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import anyio
import pytest

from nightherd.runtimes.keeper.attendant import kill_marked
from runtimes.keeper.kept_worker import KeptWorker, Orders, is_there, kept_worker, wait_until
from runtimes.stage import is_running

TICKING = "while :; do echo tick >> ticks; sleep 0.02; done"
DEAF = f'trap "" TERM; echo $$ > it.pid; {TICKING}'
"""Goes on working when told to end, so that it ends only if it is found and killed."""


def orders(directory: Path, command: str, **more: float) -> Orders:
    # Marked for this test alone: tests run side by side, and one of them kills by the mark.
    return Orders(command=command, directory=str(directory), execution=str(directory), **more)  # type: ignore[arg-type]


def is_gone(worker: KeptWorker) -> bool:
    return not any(is_running(pid) for pid in worker.pids())


def test_a_killed_worker_takes_the_command_and_the_keeper_with_it(tmp_path: Path) -> None:
    with kept_worker(orders(tmp_path, f"echo $$ > it.pid; {TICKING}")) as worker:
        command = worker.pid_in("it.pid")
        assert worker.pids()[0] == command

        worker.process.kill()
        wait_until(lambda: is_gone(worker))

        assert not is_running(command)


def test_input_that_the_keeper_holds_does_not_end_with_the_worker(tmp_path: Path) -> None:
    command = 'trap "" TERM; echo $$ > it.pid; cat; echo ended > input'
    with kept_worker(orders(tmp_path, command, grace_s=1.0, holds_input=True)) as worker:
        worker.pid_in("it.pid")

        worker.process.kill()
        wait_until(lambda: is_gone(worker))

        assert not (tmp_path / "input").exists()


@pytest.mark.parametrize(
    "start",
    [
        pytest.param("sh -c '{it}' & wait", id="a child"),
        pytest.param("setsid sh -c '{it}' & wait", id="a daemon in a session of its own"),
        pytest.param("(setsid sh -c '{it}' &) & wait; sleep 1000", id="a daemon twice forked"),
        pytest.param("env -i setsid sh -c '{it}' & wait", id="a daemon without our marks"),
        pytest.param("(env -i setsid sh -c '{it}' &) & wait; sleep 1000", id="an orphan unmarked"),
    ],
)
def test_what_the_command_started_dies_with_the_worker(tmp_path: Path, start: str) -> None:
    with kept_worker(orders(tmp_path, start.format(it=DEAF))) as worker:
        daemon = worker.pid_in("it.pid")
        wait_until((tmp_path / "ticks").exists)

        worker.process.kill()
        wait_until(lambda: is_gone(worker))

        assert not is_running(daemon)


def test_a_command_has_its_grace_to_tidy_up_when_the_worker_is_killed(tmp_path: Path) -> None:
    tidy = "trap 'echo tidy > tidied; exit' TERM; echo $$ > it.pid; while :; do sleep 0.01; done"

    with kept_worker(orders(tmp_path, tidy, grace_s=30)) as worker:
        worker.pid_in("it.pid")
        worker.process.kill()
        wait_until(lambda: is_gone(worker))

    assert (tmp_path / "tidied").read_text() == "tidy\n"


def test_a_frozen_worker_loses_its_command_when_its_lease_runs_out(tmp_path: Path) -> None:
    daemon = f"setsid sh -c '{DEAF}' & sleep 1000"

    # It beats for as long as it is not frozen, however long everything takes to begin.
    with kept_worker(orders(tmp_path, daemon, lease_s=4.0, beats=10_000)) as worker:
        pids = (*worker.pids(), worker.pid_in("it.pid"))
        worker.process.send_signal(signal.SIGSTOP)
        wait_until(lambda: not any(is_running(pid) for pid in pids))
        assert is_there(worker.process.pid)

        worker.process.send_signal(signal.SIGCONT)
        assert worker.ending()["killed_by"] == "lease"


def test_heartbeats_keep_a_command_beyond_its_first_deadline(tmp_path: Path) -> None:
    def ending_of(first_s: float) -> tuple[object, object]:
        command = f"sleep {first_s + 0.5}"
        beating = orders(tmp_path, command, first_s=first_s, lease_s=100.0, beats=1_000)
        with kept_worker(beating) as worker:
            ending = worker.ending()
        (tmp_path / "ending.json").unlink()
        return ending["returncode"], ending["killed_by"]

    # On a slow machine the first of them may come too late, but not however late it may come.
    assert any(ending_of(first_s) == (0, "none") for first_s in (2.0, 8.0, 32.0))


def test_a_worker_that_stops_beating_loses_its_command(tmp_path: Path) -> None:
    # Half a second after the last; then there is all the time it needs to hear of it.
    silent = orders(tmp_path, "sleep 1000", lease_s=60.5, margin_s=60, grace_s=60, beats=3)
    with kept_worker(silent) as worker:
        ending = worker.ending()

    assert (ending["returncode"], ending["killed_by"]) == (-signal.SIGTERM, "lease")


def test_a_killed_keeper_is_stood_in_for_by_the_worker(tmp_path: Path) -> None:
    with kept_worker(orders(tmp_path, f"setsid sh -c '{DEAF}' & sleep 1000")) as worker:
        daemon = worker.pid_in("it.pid")
        command, keeper = worker.pids()

        os.kill(keeper, signal.SIGKILL)
        ending = worker.ending()

        assert not any(is_running(pid) for pid in (command, daemon))
        assert (ending["returncode"], ending["killed_by"]) == (None, "keeper_gone")


def test_what_survives_worker_and_keeper_killed_at_once_is_killed_by_its_mark(
    tmp_path: Path,
) -> None:
    other = "echo $$ > other.pid; exec sleep 1000"
    command = f"setsid sh -c '{DEAF}' & (setsid sh -c '{other}' &) & sleep 1000"

    with kept_worker(orders(tmp_path, command)) as worker:
        daemon, other_daemon = worker.pid_in("it.pid"), worker.pid_in("other.pid")
        shell, keeper = worker.pids()
        # Frozen first, so that neither sees the other die.
        for pid in (worker.process.pid, keeper):
            os.kill(pid, signal.SIGSTOP)
        for pid in (worker.process.pid, keeper, shell):
            os.kill(pid, signal.SIGKILL)
        worker.process.wait()
        assert is_running(daemon)

        killed = anyio.run(kill_marked, str(tmp_path))

        assert killed >= 2
        assert not is_running(daemon)
        assert not is_running(other_daemon)
        assert anyio.run(kill_marked, str(tmp_path)) == 0


def test_killing_by_the_mark_ends_a_keeper_and_its_tree_also_while_the_worker_lives(
    tmp_path: Path,
) -> None:
    with kept_worker(orders(tmp_path, f"env -i setsid sh -c '{DEAF}' & sleep 1000")) as worker:
        daemon = worker.pid_in("it.pid")
        worker.process.send_signal(signal.SIGSTOP)

        anyio.run(kill_marked, str(tmp_path))

        assert not any(is_running(pid) for pid in (daemon, *worker.pids()))


def test_killing_by_the_mark_leaves_other_executions_alone(tmp_path: Path) -> None:
    with kept_worker(orders(tmp_path, DEAF)) as worker:
        command = worker.pid_in("it.pid")

        assert anyio.run(kill_marked, f"{tmp_path}x") == 0
        assert anyio.run(kill_marked, str(tmp_path)[:-1]) == 0
        assert is_running(command)
