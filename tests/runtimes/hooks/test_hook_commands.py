"""A hook's command: told on standard input, limited in time, and gone with everything it started."""

from __future__ import annotations

import json
import os
from datetime import timedelta
from pathlib import Path

import anyio
import pytest

from nightherd.errors import FencedError
from nightherd.model.agents.agent import Agent
from nightherd.model.hooks import ShellCommand
from nightherd.model.ids import ExecutionId, JobId
from nightherd.model.units import format_duration
from nightherd.ports import HookCall, HookResult
from nightherd.runtimes.hook_runner import LocalHookCarrier
from nightherd.runtimes.keeper.keepers import Keepers
from nightherd.runtimes.scripted.capabilities import SCRIPTED
from nightherd.testing.determinism import FakeClock
from runtimes.stage import is_running

BODY = json.dumps({"event": "completed", "padding": "x" * 200_000}).encode()
JOB = JobId("job-2026-01-02-abcdef")


def run(directory: Path, command: str, timeout: str | float = 60, body: bytes = BODY) -> HookResult:
    async def go() -> HookResult:
        carrier = LocalHookCarrier(keepers=Keepers(), clock=FakeClock())
        call = HookCall(
            id="x",
            execution=ExecutionId(str(directory)),
            event="completed",
            job_id=JOB,
            body=body,
            working_directory=str(directory),
            environment={"PATH": os.environ["PATH"], "MINE": "yes"},
        )
        wanted = ShellCommand(command=command, timeout=timedelta(seconds=float(timeout)))
        return await carrier.run_command(wanted, call)

    return anyio.run(go)


def test_the_context_comes_on_standard_input_whatever_its_size(tmp_path: Path) -> None:
    result = run(tmp_path, "cat > told.json; echo thanks; echo and more >&2")

    assert result == HookResult(success=True, output="thanks\nand more\n")
    assert (tmp_path / "told.json").read_bytes() == BODY


def test_a_command_need_not_read_what_it_is_told(tmp_path: Path) -> None:
    assert run(tmp_path, "exec <&-; echo fine") == HookResult(success=True, output="fine\n")


def test_the_environment_says_which_job_and_what_happened(tmp_path: Path) -> None:
    result = run(tmp_path, 'echo "$MINE $NIGHTHERD_JOB $NIGHTHERD_HOOK_EVENT"')

    assert result.output == f"yes {JOB} completed\n"


@pytest.mark.parametrize(
    ("command", "error"),
    [
        ("exit 3", "exit code 3"),
        ("kill -KILL $$", "ended by SIGKILL"),
        ("definitely-no-such-command-here", "exit code 127"),
    ],
)
def test_failure_says_how_it_ended(tmp_path: Path, command: str, error: str) -> None:
    result = run(tmp_path, command)

    assert (result.success, result.error) == (False, error)


def test_a_directory_that_is_gone_is_a_failure(tmp_path: Path) -> None:
    result = run(tmp_path / "gone", "true")

    assert not result.success
    assert "could not be started" in str(result.error)


def test_a_command_that_never_returns_and_hears_no_signal_is_gone_with_its_children(
    tmp_path: Path,
) -> None:
    stubborn = (
        "trap '' TERM INT HUP; "
        "(trap '' TERM INT HUP; echo $$ >> pids; while :; do sleep 0.1; done) & "
        "(setsid sh -c 'trap \"\" TERM; echo $$ >> pids; while :; do sleep 0.1; done') & "
        "while [ $(wc -l < pids 2>/dev/null || echo 0) -lt 2 ]; do sleep 0.05; done; "
        "echo ready; while :; do sleep 0.1; done"
    )

    pids: list[int] = []
    seconds = 2
    while len(pids) < 2 and seconds < 100:
        # As long as it takes for all of them to be there, however busy the machine is.
        (tmp_path / "pids").write_text("")
        result = run(tmp_path, stubborn, timeout=seconds)
        assert not result.success
        assert result.error == f"it ran longer than {format_duration(timedelta(seconds=seconds))}"
        pids = [int(pid) for pid in (tmp_path / "pids").read_text().split()]
        seconds *= 6

    assert len(pids) == 2
    assert [pid for pid in pids if is_running(pid)] == []


def test_what_a_command_leaves_in_the_background_ends_with_it(tmp_path: Path) -> None:
    result = run(tmp_path, "sleep 600 & echo $! > pid")

    assert result.success
    assert not is_running(int((tmp_path / "pid").read_text()))


def test_endless_output_is_kept_in_bounds(tmp_path: Path) -> None:
    result = run(tmp_path, "yes | head -c 5000000")

    assert result.success
    assert len(result.output) < 10_000
    assert "bytes left out" in result.output


def test_a_lease_that_runs_out_leaves_no_result(tmp_path: Path) -> None:
    async def go() -> None:
        keepers = Keepers(margin_s=0.0)
        keepers.send_heartbeat(FakeClock().monotonic() - 1e6)
        carrier = LocalHookCarrier(keepers=keepers, clock=FakeClock())
        call = HookCall(
            id="x", execution=ExecutionId(str(tmp_path)), event="completed", job_id=JOB, body=b"{}",
            working_directory=str(tmp_path), environment={"PATH": os.environ["PATH"]},
        )  # fmt: skip
        await carrier.run_command(
            ShellCommand(command="sleep 600", timeout=timedelta(seconds=100)), call
        )

    with pytest.raises(FencedError):
        anyio.run(go)


@pytest.mark.parametrize(
    ("content", "found"),
    [
        (b'{"a": {"b": 1}}', {"a": {"b": 1}}),
        (b"[1]", {}),
        (b"{", {}),
        (b"\xff", {}),
        (None, {}),
    ],
)
def test_metadata_is_an_object_or_nothing(
    tmp_path: Path, content: bytes | None, found: dict[str, object]
) -> None:
    if content is not None:
        (tmp_path / "meta.json").write_bytes(content)

    assert read_metadata(tmp_path, "meta.json") == found


def test_metadata_is_never_looked_for_outside_or_in_something_that_blocks(tmp_path: Path) -> None:
    inside = tmp_path / "inside"
    inside.mkdir()
    (tmp_path / "secret.json").write_text('{"a": 1}')
    (inside / "link.json").symlink_to(tmp_path / "secret.json")
    os.mkfifo(inside / "pipe.json")
    (inside / "circle.json").symlink_to(inside / "circle.json")

    assert read_metadata(inside, "../secret.json") == {}
    assert read_metadata(inside, "link.json") == {}
    assert read_metadata(inside, "pipe.json") == {}
    assert read_metadata(inside, "circle.json") == {}


def read_metadata(directory: Path, name: str) -> object:
    agent = Agent(
        name="a",
        runtime=SCRIPTED,
        working_directory=str(directory),
        metadata_file=name,
    )

    async def go() -> object:
        carrier = LocalHookCarrier(keepers=Keepers(), clock=FakeClock())
        return await carrier.read_metadata(agent)

    return anyio.run(go)
