"""Workers killed among the hooks of a job, as real processes: the job goes on ending, and no hook is begun twice."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Callable
from pathlib import Path
from time import monotonic, sleep

import pytest

from runtimes.stage import is_running
from surfaces.drivers import Shell, submit_pending

PATIENCE_S = 60
FLEET = """\
lease: 60s
heartbeat: 1s
agents:
  - name: hello
    runtime: scripted
    default_prompt: go
    allowed_tools: [Bash]
    hooks:
      after_run:
        - {{type: shell, name: first, command: "echo first >> hooks.txt"}}
        - type: shell
          name: stuck
          retry: {retry}
          timeout: 120s
          command: "echo stuck >> hooks.txt; test -e release || {{ echo $$ > pid.tmp; mv pid.tmp pid; exec sleep 600; }}"
        - {{type: shell, name: last, command: "echo last >> hooks.txt"}}
    script:
      - tool: Bash
        input: {{command: "echo ran >> hooks.txt"}}
      - say: done
"""


def until(check: Callable[[], bool]) -> None:
    begun = monotonic()
    while not check():
        assert monotonic() - begun < PATIENCE_S
        sleep(0.05)


@pytest.mark.parametrize("retry", [False, True])
def test_a_worker_killed_in_a_hook_costs_that_hook_and_nothing_else(
    tmp_path: Path, retry: bool
) -> None:
    (tmp_path / "nightherd.yaml").write_text(FLEET.format(retry=str(retry).lower()))
    shell = Shell(tmp_path)
    try:
        job_id = submit_pending(tmp_path)
        worker = shell.start("worker", stderr=None)
        until((tmp_path / "pid").exists)
        hook = int((tmp_path / "pid").read_text())
        os.kill(worker.pid, signal.SIGKILL)
        worker.wait()
        until(lambda: not is_running(hook))
        (tmp_path / "release").touch()

        done = shell.run("worker", "--until-idle")

        assert done.code == 0, done.err
        shown = shell.run("jobs", "show", job_id, "--json").data
        events = shell.run("jobs", "tail", job_id, "-n", "all", "--json").documents
    finally:
        shell.close()
    assert (shown["status"], shown["summary"]) == ("completed", "done")
    noted = (tmp_path / "hooks.txt").read_text().split()
    assert noted == ["ran", "first", "stuck", *(["stuck"] if retry else []), "last"]
    hooks = [
        event["data"]["extra"]
        for event in events
        if event["data"].get("subtype") == "hook" and "success" in event["data"]["extra"]
    ]
    results = [(one["name"], one["success"], one.get("is_interrupted", False)) for one in hooks]
    middle = ("stuck", True, False) if retry else ("stuck", False, True)
    assert results == [("first", True, False), middle, ("last", True, False)]
    assert json.loads(json.dumps(shown))["restart_count"] == 1
