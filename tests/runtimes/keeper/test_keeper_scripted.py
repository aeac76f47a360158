"""Commands of scripted agents under their keepers: a killed worker, a silent one, and a keeper that is killed."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from contextlib import aclosing
from pathlib import Path

import anyio
import pytest

from nightherd.errors import FencedError
from nightherd.model.agents.script import UseTool, compile_script
from nightherd.model.journal.event import ToolResultEvent
from nightherd.runtimes.keeper.keepers import Keepers
from nightherd.runtimes.scripted.runtime import ScriptedRuntime
from runtimes.keeper.kept_worker import wait_until
from runtimes.stage import QUICK, Stage, is_running, is_written, until

WORKER = """
import sys
from pathlib import Path
from nightherd.model.agents.script import UseTool
from runtimes.stage import Stage
tools = [UseTool("Bash", {"command": command}) for command in sys.argv[2:]]
Stage(Path(sys.argv[1])).play(*tools)
"""
BACKGROUND = "setsid sh -c 'echo $$ > daemon.pid; trap \"\" TERM; while :; do sleep 1; done' > /dev/null 2>&1 &"


def keeper_of(pid: int) -> int:
    return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])


def test_a_killed_worker_leaves_neither_a_command_nor_what_earlier_ones_left(stage: Stage) -> None:
    worker = subprocess.Popen(
        [
            *(sys.executable, "-c", WORKER, str(stage.directory)),
            f"{BACKGROUND} until test -s daemon.pid; do sleep 0.01; done",
            "echo $$ > shell.pid; sleep 1000; echo > another-tool-ran",
            "echo > another-tool-ran",
        ],
        stdin=subprocess.DEVNULL,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)},
    )
    try:
        wait_until(lambda: is_written(stage.directory / "shell.pid"))
        pids = [stage.pid_in("shell.pid"), stage.pid_in("daemon.pid")]
        assert all(is_running(pid) for pid in pids)
    finally:
        worker.kill()
        worker.wait()

    wait_until(lambda: not any(is_running(pid) for pid in pids))
    assert not (stage.directory / "another-tool-ran").exists()


def bash_result(stage: Stage, command: str, harm: str) -> ToolResultEvent:
    """What the call comes to when `harm` is done to it while its command waits."""
    keepers = Keepers()
    script = compile_script([UseTool("Bash", {"command": f"echo $$ > it.pid; {command}"})])

    async def run() -> ToolResultEvent:
        runtime = ScriptedRuntime(grace=QUICK, keepers=keepers)
        async with (
            anyio.create_task_group() as tasks,
            aclosing(runtime.execute(stage.request(script))) as events,
        ):
            tasks.start_soon(do_harm)
            found = [event async for event in events if isinstance(event, ToolResultEvent)]
        return found[0]

    async def do_harm() -> None:
        await until(lambda: is_written(stage.directory / "it.pid"))
        if harm == "silence":
            keepers.send_heartbeat(0.0)
        else:
            os.kill(keeper_of(stage.pid_in("it.pid")), signal.SIGKILL)

    result = anyio.run(run)
    assert len(keepers) == 0
    return result


def test_a_command_is_stopped_and_has_no_result_when_the_lease_of_its_worker_runs_out(
    stage: Stage,
) -> None:
    with pytest.raises(ExceptionGroup) as raised:
        bash_result(stage, "echo begun; sleep 1000", "silence")

    assert raised.group_contains(FencedError, match="lease had run out")
    assert not is_running(stage.pid_in("it.pid"))


def test_a_command_whose_keeper_is_killed_is_stopped_and_the_result_says_so(stage: Stage) -> None:
    result = bash_result(stage, "sleep 1000 & wait", "kill")

    assert result.error == "stopped: the process that guards the command died"
    assert not is_running(stage.pid_in("it.pid"))
