"""`write.lock`: one holder at a time, released by death, taken from the frozen, never from the wrong one."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from msgspec.structs import replace

from nightherd.db.holder import Holder, has_lock, is_stopped, kill, read_holder, this_process
from nightherd.db.lock import WriteLock
from nightherd.errors import StateFileError

HOLD = """
import sys
from pathlib import Path
from nightherd.db.lock import WriteLock
with WriteLock(Path(sys.argv[1]), notice=print):
    print("held", flush=True)
    sys.stdin.read()
"""
PATIENCE_S = 0.2


@pytest.fixture
def holding(tmp_path: Path) -> Iterator[subprocess.Popen[str]]:
    """Another process that holds the lock until its standard input ends."""
    process = subprocess.Popen(
        [sys.executable, "-c", HOLD, tmp_path / "write.lock"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    assert process.stdin is not None
    assert process.stdout.readline() == "held\n"
    yield process
    process.kill()
    process.stdin.close()
    process.stdout.close()
    process.wait()


def wait_until_stopped(process: subprocess.Popen[str]) -> None:
    os.kill(process.pid, signal.SIGSTOP)
    os.waitid(os.P_PID, process.pid, os.WSTOPPED | os.WNOWAIT)


def test_stopped_holder_is_killed_after_the_patience_and_named(
    holding: subprocess.Popen[str], tmp_path: Path
) -> None:
    notices: list[str] = []
    lock = WriteLock(tmp_path / "write.lock", notice=notices.append, patience_s=PATIENCE_S)
    wait_until_stopped(holding)

    with lock:
        pass

    assert holding.wait() == -signal.SIGKILL
    (notice,) = notices
    assert f"process {holding.pid} was stopped for 0.2 s" in notice
    lock.close()


def test_holder_that_is_not_stopped_is_waited_for(
    holding: subprocess.Popen[str], tmp_path: Path
) -> None:
    notices: list[str] = []
    lock = WriteLock(tmp_path / "write.lock", notice=notices.append, patience_s=0.02)
    entered = threading.Event()

    def enter() -> None:
        with lock:
            entered.set()

    waiting = threading.Thread(target=enter)
    waiting.start()
    # Far longer than the patience: a busy holder is not a frozen one.
    assert not entered.wait(0.5)
    assert holding.poll() is None
    assert holding.stdin is not None
    holding.stdin.close()
    waiting.join()

    assert entered.is_set()
    assert holding.wait() == 0
    assert notices == []
    lock.close()


def test_dead_holder_needs_no_patience(holding: subprocess.Popen[str], tmp_path: Path) -> None:
    lock = WriteLock(tmp_path / "write.lock", notice=pytest.fail, patience_s=3600)
    holding.kill()

    with lock:
        descriptor = os.open(tmp_path / "write.lock", os.O_RDONLY)
        holder = read_holder(descriptor)
        os.close(descriptor)

    assert holder == this_process(1)
    lock.close()


def test_nobody_is_killed_whose_start_time_does_not_match(holding: subprocess.Popen[str]) -> None:
    wait_until_stopped(holding)
    stat = Path(f"/proc/{holding.pid}/stat").read_text()
    started = int(stat[stat.rindex(")") + 1 :].split()[19])
    true = replace(this_process(1), pid=holding.pid, start=started)

    assert is_stopped(true)
    assert not is_stopped(replace(true, start=started + 1))
    assert not kill(replace(true, start=started + 1))
    assert not kill(replace(true, boot="another boot"))
    assert not kill(replace(true, namespace="pid:[1]"))
    assert not kill(this_process(1))
    assert holding.poll() is None
    assert kill(true)
    assert holding.wait() == -signal.SIGKILL


def test_record_of_one_who_no_longer_holds_is_not_believed(
    holding: subprocess.Popen[str], tmp_path: Path
) -> None:
    descriptor = os.open(tmp_path / "write.lock", os.O_RDWR)
    holder = read_holder(descriptor)
    assert holder is not None
    assert holder.pid == holding.pid

    assert has_lock(holder, descriptor)
    assert not has_lock(replace(holder, pid=os.getpid()), descriptor)
    assert holding.stdin is not None
    holding.stdin.close()
    holding.wait()
    assert not has_lock(holder, descriptor)
    os.close(descriptor)


@pytest.mark.parametrize("content", [b"", b"garbage", b"{}", b"[1]", b'{"pid": 1}'])
def test_record_that_makes_no_sense_names_nobody(content: bytes, tmp_path: Path) -> None:
    (tmp_path / "write.lock").write_bytes(content)
    descriptor = os.open(tmp_path / "write.lock", os.O_RDONLY)

    assert read_holder(descriptor) is None
    os.close(descriptor)


def test_every_hold_has_its_own_number_and_the_same_size(tmp_path: Path) -> None:
    lock = WriteLock(tmp_path / "write.lock", notice=pytest.fail)
    holds = []
    for _ in range(3):
        with lock:
            record = (tmp_path / "write.lock").read_bytes()
            holds.append(Holder(**json.loads(record)).hold)
            assert len(record) == 256

    assert holds == [1, 2, 3]
    assert (tmp_path / "write.lock").stat().st_mode & 0o777 == 0o600
    lock.close()


def test_deleted_lock_file_is_made_again_for_everybody(tmp_path: Path) -> None:
    one = WriteLock(tmp_path / "write.lock", notice=pytest.fail)
    with one:
        pass
    (tmp_path / "write.lock").unlink()

    with one:
        # The lock excludes through the file that others would open now.
        other = os.open(tmp_path / "write.lock", os.O_RDWR)
        holder = read_holder(other)
        assert holder is not None
        assert has_lock(holder, other)
        os.close(other)
    one.close()


def test_lock_that_cannot_be_made_is_an_error_with_its_path(tmp_path: Path) -> None:
    lock = WriteLock(tmp_path / "nowhere/write.lock", notice=pytest.fail)

    with pytest.raises(StateFileError, match="Not found") as caught, lock:
        pass

    assert caught.value.path == str(tmp_path / "nowhere/write.lock")
