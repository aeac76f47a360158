"""What a worker, and a fleet that was started, cost that have nothing to do: their CPU time, once settled.

Being woken is what costs then, hardly what is done: by the next time everything is out of the caches.
"""

from __future__ import annotations

import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

SECONDS = 10.0
SETTLING = 3.0
"""Until it has opened everything, the API included."""

FLEET = """\
fleet:
  name: idle
agents:
  - name: empty
    runtime: scripted
    default_prompt: go
    script:
      - say: done
"""


def cpu_seconds(pid: int) -> float:
    """The CPU time of all threads of a process."""
    tasks = Path(f"/proc/{pid}/task").iterdir()
    return sum(int((task / "schedstat").read_text().split()[0]) for task in tasks) / 1e9


def idle_share(folder: Path, command: str) -> float:
    """How much of a core `nightherd COMMAND` takes."""
    (folder / "nightherd.yaml").write_text(FLEET)
    process = subprocess.Popen(
        [sys.executable, "-m", "nightherd", command],
        cwd=folder,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stderr is not None
    process.stderr.readline()
    time.sleep(SETTLING)
    before = cpu_seconds(process.pid)
    time.sleep(SECONDS)
    spent = (cpu_seconds(process.pid) - before) / SECONDS
    if process.poll() is not None:
        raise SystemExit(f"{command} ended with {process.returncode}")
    process.send_signal(signal.SIGTERM)
    process.communicate()
    return spent


def main() -> None:
    """Prints the share of each, and its CPU time in a second."""
    for command, what in (("worker", "worker"), ("start", "fleet")):
        with tempfile.TemporaryDirectory() as folder:
            spent = idle_share(Path(folder), command)
        print(f"an idle {what} takes {spent:.2%} of a core")
        print(f"CPU of an idle {what} in a second: {spent * 1e3:.2f} ms (limit 5 ms)")


if __name__ == "__main__":
    main()
