"""From a person's approval to the call that Claude had deferred, beside a bare `claude --resume` that is told to allow it.

Ours: a running daemon; the time from sending the answer until the command has written its file. Bare: the same deferral by
a hook in the settings; the time from starting `claude -p --resume` with a hook that allows it until the file is written.
The API is on this machine and answers at once. Both are measured in turn; the median of the rounds counts.
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import tempfile
import time
from contextlib import closing
from pathlib import Path

from benchmarks.claude_gate import BUNDLED
from benchmarks.inbox import daemon, wait_for
from benchmarks.sdk_events import environment

from nightherd.cli.operations import FleetClient
from nightherd.engine.operations.requests import Answer, Submit
from nightherd.model.inbox.item import Verdict
from nightherd.model.jobs.job import JobStatus
from nightherd.ports import StateReader
from nightherd.testing.messages_api import MessagesApi
from nightherd.testing.messages_script import Call, Say
from nightherd.wiring.fleets import load_fleet
from nightherd.wiring.stores import open_reader

ROUNDS = 7
LIMIT = 1.5
"""1.2x is the aim. What is beyond Claude's own start: the answer's transaction, waking the worker, and the guarding hook."""
PATIENCE_S = 60.0
MARK = "ran"
FLEET = """\
defaults: {permission_mode: bypassPermissions, approvals: [{tool: "Bash(echo pushed:*)"}]}
agents:
  - {name: cli, runtime: cli, working_directory: work}
  - {name: sdk, runtime: sdk, working_directory: work}
"""
PUSH = Call("Bash", {"command": f"echo pushed > {MARK}"})


def until_written(file: Path) -> None:
    """Until the call has run; its file is gone afterwards."""
    end = time.monotonic() + PATIENCE_S
    while not file.exists():
        if time.monotonic() > end:
            raise SystemExit("the approved call did not run")
        time.sleep(0.001)
    file.unlink()


def hooked(decision: str) -> str:
    """Settings with a hook that decides so about every call."""
    output = {"hookEventName": "PreToolUse", "permissionDecision": decision}
    command = f"echo '{json.dumps({'hookSpecificOutput': output})}'"
    return json.dumps(
        {"hooks": {"PreToolUse": [{"hooks": [{"type": "command", "command": command}]}]}}
    )


def bare_seconds(root: Path, variables: dict[str, str]) -> float:
    """How long Claude alone takes to run a call that it had deferred."""
    command = [str(BUNDLED), "-p", "--output-format", "json"]
    work = root / "work"
    with_settings = [*command, "--settings", hooked("defer"), "push it"]
    done = subprocess.run(
        with_settings,
        cwd=work,
        env=variables,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        check=True,
    )
    session = json.loads(done.stdout)["session_id"]
    begun = time.perf_counter()
    process = subprocess.Popen(
        [*command, "--settings", hooked("allow"), "--resume", session],
        cwd=work,
        env=variables,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    until_written(work / MARK)
    took = time.perf_counter() - begun
    process.wait()
    return took


def answered_seconds(agent: str, client: FleetClient, reader: StateReader, work: Path) -> float:
    """How long it takes from the answer until the call has run."""
    job = client.perform(Submit(agent=agent, prompt="push it")).id
    wait_for(reader, job, epoch=1, status=JobStatus.SUSPENDED)
    (item,) = [one for one in reader.items_of_job(job) if one.is_pending]
    begun = time.perf_counter()
    client.answer(Answer(item_id=item.id, verdict=Verdict.APPROVE, by="bench", via="cli"))
    until_written(work / MARK)
    took = time.perf_counter() - begun
    wait_for(reader, job, epoch=2, status=JobStatus.COMPLETED)
    return took


def main() -> None:
    """Prints both runtimes beside Claude alone."""
    times: dict[str, list[float]] = {"bare": [], "cli": [], "sdk": []}
    with tempfile.TemporaryDirectory(prefix="nightherd-bench-") as folder:
        root = Path(folder)
        (root / "nightherd.yaml").write_text(FLEET)
        (root / "work").mkdir()
        (root / "bin").mkdir()
        (root / "bin" / "claude").symlink_to(BUNDLED)
        answers = [Say(text="I push", calls=(PUSH,)), Say(text="done")] * (3 * (ROUNDS + 1))
        with MessagesApi(*answers) as api:
            variables = environment(root, api)
            variables["PATH"] = f"{root / 'bin'}{os.pathsep}{variables['PATH']}"
            os.environ.update(variables)
            fleet = load_fleet(root / "nightherd.yaml", environ=os.environ, cwd=root).fleet
            state = root / ".nightherd"
            with daemon(root), closing(open_reader(state)) as reader:
                client = FleetClient(
                    state_dir=state, environ=os.environ, fleet=fleet, asks_daemon=True
                )
                for _ in range(ROUNDS + 1):  # the first warms up
                    times["bare"].append(bare_seconds(root, variables))
                    for agent in ("cli", "sdk"):
                        took = answered_seconds(agent, client, reader, root / "work")
                        times[agent].append(took)
    medians = {name: statistics.median(found[1:]) for name, found in times.items()}
    for name, median in medians.items():
        print(f"median of {name}: {median * 1e3:.0f} ms")
    for agent in ("cli", "sdk"):
        ratio = medians[agent] / medians["bare"]
        print(
            f"approval to the call over claude --resume, {agent}: {ratio:.2f}x (limit {LIMIT:g}x)"
        )


if __name__ == "__main__":
    main()
