"""A copy of a state directory, made while jobs run in the original: its workers leave the original alone."""

from __future__ import annotations

import json
import os
import shutil
import signal
from pathlib import Path

import pytest

from engine.doctor.ward import running, wait_until
from nightherd.runtimes.keeper.census import environment, processes
from surfaces.drivers import Cli, Shell

FLEET = """\
lease: 1s
heartbeat: 300ms
agents:
  - name: slow
    runtime: scripted
    allowed_tools: [Bash]
    default_prompt: go
    script:
      - tool: Bash
        input: {command: "touch started; while [ ! -e go ]; do sleep 0.05; done; echo over"}
      - say: done
"""


@pytest.fixture
def original(fleet: Path) -> Path:
    (fleet / "fleet").mkdir()
    (fleet / "fleet" / "nightherd.yaml").write_text(FLEET)
    return fleet / "fleet"


def copy_of(original: Path) -> Path:
    copy = original.parent / "copy"
    shutil.copytree(original, copy, ignore=shutil.ignore_patterns("started", "*.lock"))
    (copy / "go").touch()
    return copy


def test_worker_in_a_copy_leaves_the_processes_of_the_original_alone(
    original: Path, cli: Cli
) -> None:
    shell = Shell(original)
    try:
        with running(shell, "slow", original / "started") as run:
            copy = copy_of(original)

            def is_taken_over() -> bool:
                done = cli("--config", str(copy / "nightherd.yaml"), "worker", "--until-idle")
                assert done.code == 0, done
                listed = cli("--config", str(copy / "nightherd.yaml"), "jobs", "list", "--json")
                return [job["status"] for job in listed.data] != ["running"]

            wait_until(is_taken_over, "nobody took over the copied job")
            (original / "go").touch()
            out, _ = run.communicate()
        assert (run.returncode, json.loads(out)["data"]["status"]) == (0, "completed")
        (job,) = (original / ".nightherd" / "jobs").glob("*.jsonl")
        results = [json.loads(line) for line in job.read_bytes().splitlines()]
        assert [
            (one["success"], one["result"]) for one in results if one["type"] == "tool_result"
        ] == [(True, "over\n")]
    finally:
        shell.close()


def test_job_whose_tool_was_killed_from_outside_is_not_a_success(original: Path, cli: Cli) -> None:
    shell = Shell(original)
    try:
        with running(shell, "slow", original / "started") as run:
            (job,) = (original / ".nightherd" / "jobs").glob("*.jsonl")
            mark = os.fsencode(f"NIGHTHERD_EXECUTION={job.stem}.1")
            marked = [
                process.pid
                for process in processes()
                if any(one.startswith(mark) for one in environment(process.pid))
            ]
            for pid in marked:
                os.kill(pid, signal.SIGKILL)
            out, _ = run.communicate()
        document = json.loads(out)["data"]
        assert (run.returncode, document["status"], document["exit_reason"]) == (
            1,
            "failed",
            "error",
        )
        assert document["error"]["code"] == "tool_killed"
    finally:
        shell.close()
