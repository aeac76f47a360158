"""The fork server tells how trials end, loses nothing they said, and hangs on none of them."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from crash import small_trials
from nightherd.testing.fork_server import ForkServer

HERE = small_trials.__name__


@pytest.fixture(scope="module")
def server() -> Iterator[ForkServer]:
    with ForkServer() as server:
        yield server


def is_there(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


def test_trial_that_ends_well_has_said_everything(server: ForkServer) -> None:
    words = ["one", "two\u2028three", "x" * 300_000]

    ended = server.run(f"{HERE}:speak", words)

    assert (ended.status, ended.said, ended.error) == (0, words, "")


def test_trial_is_killed_where_it_was_told_and_what_it_said_stays(server: ForkServer) -> None:
    order = {"points": ["a", "b", "a", "b", "a"], "point": "b", "nth": 2}

    named = server.run(f"{HERE}:die", order)
    any_point = server.run(f"{HERE}:die", {**order, "point": None, "nth": 3})
    beyond = server.run(f"{HERE}:die", {**order, "nth": 3})

    assert (named.status, named.said) == (-signal.SIGKILL, ["a", "b", "a", "b"])
    assert (any_point.status, any_point.said) == (-signal.SIGKILL, ["a", "b", "a"])
    assert beyond.status == 0


def test_trials_begun_together_end_each_in_its_own_way(server: ForkServer) -> None:
    ended = server.run_all(f"{HERE}:speak", [["one"], ["two"], None])

    assert [one.status for one in ended] == [0, 0, 1]
    assert [one.said for one in ended] == [["one"], ["two"], []]


def test_trial_that_raises_brings_its_traceback(server: ForkServer) -> None:
    ended = server.run(f"{HERE}:fail", "it broke")

    assert (ended.status, ended.said) == (1, ["going to fail"])
    assert "ValueError: it broke" in ended.error


def test_trial_that_stops_can_be_waited_for_and_woken(server: ForkServer) -> None:
    (trial,) = server.begin(f"{HERE}:stop", None)
    trial.wait_until_stopped()

    assert trial.said() == ["before"]
    trial.send(signal.SIGCONT)
    ended = trial.wait()

    assert (ended.status, ended.said) == (0, ["before", "after"])
    with pytest.raises(RuntimeError, match="ended with 0 instead"):
        trial.wait_until_stopped()


@pytest.mark.parametrize("left", ["stop", "wait_for_ever"])
def test_trial_left_behind_is_killed_when_the_next_begins(server: ForkServer, left: str) -> None:
    (trial,) = server.begin(f"{HERE}:{left}", None)

    ended = server.run(f"{HERE}:speak", ["next"])

    assert ended.said == ["next"]
    assert not is_there(trial.pid)
    with pytest.raises(RuntimeError, match="another one began"):
        trial.wait()


def test_trial_that_stays_ends_when_it_is_told_to(server: ForkServer) -> None:
    (trial,) = server.begin(f"{HERE}:wait_for_ever", None, stays=True)
    (other,) = server.begin(f"{HERE}:wait_for_ever", None)

    server.run(f"{HERE}:speak", ["next"])

    assert (is_there(trial.pid), is_there(other.pid)) == (True, False)
    server.end(trial)
    assert not is_there(trial.pid)


@pytest.mark.parametrize("left", ["stop", "wait_for_ever"])
def test_closing_leaves_no_trial_behind(left: str) -> None:
    with ForkServer() as server:
        (staying,) = server.begin(f"{HERE}:{left}", None, stays=True)
        stopped, waiting = server.begin(f"{HERE}:{left}", None, None)
        assert is_there(stopped.pid)

    for trial in (staying, stopped, waiting):
        assert not is_there(trial.pid)


def test_trial_that_takes_too_long_is_killed_and_the_server_goes_on(server: ForkServer) -> None:
    (trial,) = server.begin(f"{HERE}:wait_for_ever", None)

    with pytest.raises(TimeoutError, match=r"within 0\.1 s"):
        trial.wait(patience_s=0.1)

    assert not is_there(trial.pid)
    assert server.run(f"{HERE}:speak", ["still here"]).said == ["still here"]


def test_what_a_server_has_loaded_no_trial_has_to_import(server: ForkServer) -> None:
    module = "colorsys"
    before = server.run(f"{HERE}:look_for", module).said
    server.load(module)

    assert before == ["False"]
    assert server.run(f"{HERE}:look_for", module).said == ["True"]
    with pytest.raises(RuntimeError, match="ModuleNotFoundError"):
        server.load("no_such_module")


def test_trial_that_does_not_exist_is_an_error_for_its_test_alone(server: ForkServer) -> None:
    with pytest.raises(RuntimeError, match="AttributeError"):
        server.run(f"{HERE}:nothing")

    assert server.run(f"{HERE}:speak", ["fine"]).said == ["fine"]


def test_killed_test_run_leaves_no_trial_behind(tmp_path: Path) -> None:
    program = (
        "import os, signal, sys; from nightherd.testing.fork_server import ForkServer\n"
        f"(trial,) = ForkServer().begin('{HERE}:stop', None); trial.wait_until_stopped()\n"
        "print(trial.pid, flush=True); os.kill(os.getpid(), signal.SIGKILL)"
    )
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}

    done = subprocess.run(
        [sys.executable, "-c", program],
        capture_output=True,
        env={**environment, "TMPDIR": str(tmp_path)},
        check=False,
    )

    # Standard error, which all of them share, is at its end once the server and the trial are gone.
    assert done.returncode == -signal.SIGKILL
    assert not is_there(int(done.stdout))


def test_a_server_that_cannot_be_started_leaves_no_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    monkeypatch.setattr(sys, "executable", str(tmp_path / "no-python"))

    with pytest.raises(FileNotFoundError):
        ForkServer()

    assert list(tmp_path.iterdir()) == []
