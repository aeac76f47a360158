"""What a running fleet takes of memory: the daemon with 1,000 agents of 10 schedules each, at rest and after reloads."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

from nightherd.daemon.record import find_daemon

AGENTS, EACH = 1_000, 10
RELOADS = 3
LIMIT_MB = 150
PATIENCE_S = 300.0
SETTLE_S = 5.0


def fleet_text() -> str:
    """Agents that have nothing to do for a long time."""
    lines = ["agents:"]
    for number in range(AGENTS):
        lines += [f"  - name: agent{number}", "    runtime: scripted", "    default_prompt: go"]
        lines += ["    script: [{say: done}]", "    schedules:"]
        lines += [f'      s{one}: {{cron: "{one} 3 1 1 *"}}' for one in range(EACH)]
    return "\n".join(lines) + "\n"


def megabytes(pid: int) -> float:
    """Memory of the process that is in use now."""
    status = Path(f"/proc/{pid}/status").read_text()
    (line,) = [one for one in status.splitlines() if one.startswith("VmRSS:")]
    return int(line.split()[1]) / 1024


def wait_for(is_so: Callable[[], bool]) -> None:
    deadline = time.monotonic() + PATIENCE_S
    while not is_so():
        if time.monotonic() > deadline:
            raise SystemExit("the daemon did not do what it was told")
        time.sleep(0.1)


def loaded_at(state: Path) -> object:
    record = find_daemon(state)
    return None if record is None else record.loaded_at


def has_reloaded(state: Path, before: object) -> bool:
    return loaded_at(state) != before


def main() -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        state = folder / ".nightherd"
        (folder / "nightherd.yaml").write_text(fleet_text())
        command = [sys.executable, "-m", "nightherd", "start"]
        with subprocess.Popen(command, cwd=folder, stderr=subprocess.DEVNULL) as daemon:
            wait_for(lambda: loaded_at(state) is not None)
            time.sleep(SETTLE_S)
            at_rest = megabytes(daemon.pid)
            for _ in range(RELOADS):
                before = loaded_at(state)
                os.kill(daemon.pid, signal.SIGHUP)
                wait_for(partial(has_reloaded, state, before))
                time.sleep(SETTLE_S / RELOADS)
            reloaded = megabytes(daemon.pid)
            daemon.terminate()
    print(f"the daemon at rest with {AGENTS} agents: {at_rest:.0f} MB (limit {LIMIT_MB} MB)")
    print(f"the same after {RELOADS} reloads: {reloaded:.0f} MB (limit {LIMIT_MB} MB)")


if __name__ == "__main__":
    main()
