"""How much CPU the command line takes to start, against a bare interpreter: minima over interleaved runs.

CPU is user and system time of the process itself, so that a busy machine changes it little.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path

import anyio

from nightherd.engine.operations.new_job import JobDraft, record_job
from nightherd.model.agents.agent import Agent, Fleet
from nightherd.runtimes.scripted.capabilities import SCRIPTED
from nightherd.wiring.running import open_worker

ROUNDS = 20
JOBS = 100
LIMIT = 8


def cpu_seconds(command: list[str], environment: dict[str, str]) -> float:
    """User and system time that `command` takes; it has to end with 0."""
    process = subprocess.Popen(
        command, env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL
    )
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode != 0:
        raise SystemExit(f"{command} ended with {process.returncode}")
    return usage.ru_utime + usage.ru_stime


async def record_jobs(state_dir: Path) -> None:
    """A state directory as it is after a while: so many jobs, submitted and not yet run."""
    agent = Agent(name="sleeper", runtime=SCRIPTED, working_directory=str(state_dir.parent))
    fleet = Fleet(file=str(state_dir.parent / "nightherd.yaml"), agents={agent.name: agent})
    async with open_worker(state_dir, fleet, {}) as context:
        for number in range(JOBS):
            await record_job(JobDraft(agent=agent, prompt=f"piece of work {number}"), context)


def measure(commands: dict[str, list[str]], environment: dict[str, str]) -> dict[str, float]:
    """The least CPU each command took, all of them once per round."""
    for command in commands.values():
        cpu_seconds(command, environment)  # the first start compiles the byte code
    least = dict.fromkeys(commands, float("inf"))
    for _ in range(ROUNDS):
        for name, command in commands.items():
            least[name] = min(least[name], cpu_seconds(command, environment))
    return least


def main() -> None:
    """Prints the CPU of each command and its ratio to the bare interpreter's."""
    nightherd = str(Path(sys.executable).parent / "nightherd")
    with tempfile.TemporaryDirectory() as directory:
        state_dir = Path(directory) / ".nightherd"
        anyio.run(record_jobs, state_dir)
        environment = {**os.environ, "NIGHTHERD_STATE_DIR": str(state_dir)}
        environment.pop("PYTHONDONTWRITEBYTECODE", None)
        least = measure(
            {
                "python -c pass": [sys.executable, "-c", "pass"],
                "nightherd --help": [nightherd, "--help"],
                "nightherd jobs list --json": [nightherd, "jobs", "list", "--json"],
            },
            environment,
        )
    bare = least.pop("python -c pass")
    print(f"a bare interpreter takes {bare * 1000:.1f} ms of CPU")
    for name, seconds in least.items():
        print(f"{name} takes {seconds * 1000:.1f} ms of CPU")
    for name, seconds in least.items():
        print(f"{name}: {seconds / bare:.1f}x (limit {LIMIT}x)")


if __name__ == "__main__":
    main()
