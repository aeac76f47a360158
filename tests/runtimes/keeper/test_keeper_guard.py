"""What runs inside the keeper: what it loads, what it is told, and how it talks, without the worker's side."""

from __future__ import annotations

import math
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nightherd.runtimes.keeper.instructions import Instructions, decode, encode
from nightherd.runtimes.keeper.launch import BOOT, PACKAGES, launch
from runtimes.keeper.kept_worker import is_there, wait_until

NO_NUL = st.binary(max_size=40).filter(lambda data: b"\0" not in data)
NAMES = NO_NUL.filter(lambda data: data and b"=" not in data)
SECONDS = st.floats(min_value=0, max_value=1e6)

MEANT = {"nightherd", "nightherd.runtimes"} | {
    f"nightherd.runtimes.keeper{name}" for name in ("", ".guard", ".census", ".instructions")
}
HEAVY = {"enum", "re", "json", "signal", "subprocess", "pathlib", "typing", "dataclasses", "site"}


def fields(told: Instructions) -> dict[str, object]:
    return {name: getattr(told, name) for name in Instructions.__slots__}


@settings(max_examples=60, deadline=None)
@given(
    argv=st.lists(NO_NUL, min_size=1, max_size=5),
    environment=st.dictionaries(NAMES, NO_NUL, max_size=5),
    cwd=NO_NUL,
    seconds=SECONDS,
    deadline=SECONDS | st.just(math.inf),
    may_outlive=st.booleans(),
    after=st.binary(max_size=20),
)
def test_instructions_arrive_as_they_were_given_and_only_when_complete(
    argv: list[bytes],
    environment: dict[bytes, bytes],
    cwd: bytes,
    seconds: float,
    deadline: float,
    *,
    may_outlive: bool,
    after: bytes,
) -> None:
    told = Instructions(
        argv=argv,
        cwd=cwd,
        environment=environment,
        mark=b"A=b",
        grace_s=seconds,
        deadline=deadline,
        margin_s=seconds / 2,
        may_outlive=may_outlive,
    )

    message = encode(told)
    decoded = decode(message + after)

    assert decoded is not None
    assert fields(decoded[0]) == fields(told)
    assert decoded[1] == after
    assert all(decode(message[:length]) is None for length in range(len(message)))


@pytest.mark.parametrize(
    ("argv", "environment"),
    [
        ([], {}),
        ([b"a\0"], {}),
        ([b"a"], {b"": b""}),
        ([b"a"], {b"a=b": b""}),
        ([b"a"], {b"a": b"\0"}),
    ],
)
def test_instructions_that_no_command_can_follow_are_refused(
    argv: list[bytes], environment: dict[bytes, bytes]
) -> None:
    told = Instructions(argv=argv, cwd=b"/", environment=environment, mark=b"A=b", grace_s=0)

    with pytest.raises(ValueError, match=r"null byte|no command|variable name"):
        encode(told)


def test_the_keeper_loads_next_to_nothing() -> None:
    listing = BOOT + "print(*sys.modules)"

    done = subprocess.run(
        [sys.executable, "-I", "-S", "-c", listing, PACKAGES], capture_output=True, check=True
    )

    loaded = set(done.stdout.decode().split())
    assert {name for name in loaded if name.startswith("nightherd")} == MEANT
    assert loaded & HEAVY == set()


class BareKeeper:
    """A keeper with nothing but its two pipes."""

    def __init__(self) -> None:
        orders, self.orders = os.pipe()
        self.answers, answers = os.pipe()
        nothing = os.open(os.devnull, os.O_RDWR)
        self.pid = launch({}, [nothing, nothing, nothing, orders, answers])
        for descriptor in (nothing, orders, answers):
            os.close(descriptor)
        self.status: int | None = None

    def tell(self, data: bytes) -> None:
        os.write(self.orders, data)

    def hear(self) -> list[bytes]:
        """The words of its next answers, at least one; none when it has ended."""
        return os.read(self.answers, 4096).split()

    def end(self) -> int:
        """The exit code it ends with."""
        if self.status is None:
            self.status = os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])
        return self.status

    def hang_up(self) -> None:
        if self.orders >= 0:
            os.close(self.orders)
        self.orders = -1


@contextmanager
def bare_keeper() -> Iterator[BareKeeper]:
    keeper = BareKeeper()
    try:
        yield keeper
    finally:
        keeper.hang_up()
        os.close(keeper.answers)
        keeper.end()


def told(directory: Path, *argv: str, **more: float) -> Instructions:
    mark = f"NIGHTHERD_KEEPER={directory}".encode()
    name, _, value = mark.partition(b"=")
    return Instructions(
        argv=[os.fsencode(one) for one in argv],
        cwd=os.fsencode(directory),
        environment={b"PATH": os.fsencode(os.environ["PATH"]), name: value},
        mark=mark,
        grace_s=more.pop("grace_s", 0.1),
        **more,  # type: ignore[arg-type]
    )


@pytest.mark.parametrize(("command", "code"), [("exit 9", 9), ("kill -KILL $$", 128 + 9)])
def test_the_keeper_ends_with_the_code_of_its_command(
    tmp_path: Path, command: str, code: int
) -> None:
    with bare_keeper() as keeper:
        keeper.tell(encode(told(tmp_path, "sh", "-c", command)))

        assert keeper.end() == code


def test_instructions_may_come_in_pieces_and_orders_right_behind_them(tmp_path: Path) -> None:
    with bare_keeper() as keeper:
        message = encode(told(tmp_path, "sleep", "1000")) + b"beat inf\nstop 0.0\n"
        for start in range(0, len(message), 50):
            keeper.tell(message[start : start + 50])

        heard = keeper.hear()
        while len(heard) < 7:
            heard += keeper.hear()

        assert heard[0] == b"started"
        assert heard[2:] == [b"ended", b"-9", b"stop", b"1", b"0"]


def test_a_worker_that_hangs_up_before_it_said_anything_leaves_no_keeper() -> None:
    with bare_keeper() as keeper:
        keeper.hang_up()

        assert keeper.end() == 127
        assert keeper.hear() == []


def test_a_worker_that_hangs_up_takes_its_command_along(tmp_path: Path) -> None:
    with bare_keeper() as keeper:
        keeper.tell(encode(told(tmp_path, "sleep", "1000")))
        _, pid = keeper.hear()
        keeper.hang_up()

        assert keeper.end() == 128 + signal.SIGTERM
        assert not is_there(int(pid))
        assert keeper.hear() == [b"ended", b"-15", b"worker_gone", b"1", b"0"]


def test_a_deadline_that_has_passed_ends_a_command_at_once(tmp_path: Path) -> None:
    with bare_keeper() as keeper:
        past = time.monotonic() - 1
        keeper.tell(encode(told(tmp_path, "sleep", "1000", grace_s=1000, deadline=past)))

        keeper.end()

        assert keeper.hear()[2:] == [b"ended", b"-9", b"lease", b"1", b"0"]


def test_an_orphan_is_reaped_while_the_command_goes_on(tmp_path: Path) -> None:
    script = "(sh -c 'echo $$ > it.pid' &); sleep 1000"
    with bare_keeper() as keeper:
        keeper.tell(encode(told(tmp_path, "sh", "-c", script)))
        wait_until(
            lambda: (tmp_path / "it.pid").exists() and (tmp_path / "it.pid").read_text() != ""
        )

        wait_until(lambda: not is_there(int((tmp_path / "it.pid").read_text())))
        assert is_there(keeper.pid)
