"""What a worker costs that has nothing to do: its CPU time, after it has settled down."""

from __future__ import annotations

import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

SECONDS = 10.0

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


def idle_share(folder: Path) -> float:
    """How much of a core a worker takes."""
    (folder / "nightherd.yaml").write_text(FLEET)
    process = subprocess.Popen(
        [sys.executable, "-m", "nightherd", "worker"],
        cwd=folder,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stderr is not None
    process.stderr.readline()
    time.sleep(1.0)
    before = cpu_seconds(process.pid)
    time.sleep(SECONDS)
    spent = (cpu_seconds(process.pid) - before) / SECONDS
    if process.poll() is not None:
        raise SystemExit(f"the worker ended with {process.returncode}")
    process.send_signal(signal.SIGTERM)
    process.communicate()
    return spent


def main() -> None:
    """Prints the share, and the CPU time in a second."""
    with tempfile.TemporaryDirectory() as folder:
        spent = idle_share(Path(folder))
    print(f"an idle worker takes {spent:.2%} of a core")
    print(f"CPU of an idle worker in a second: {spent * 1e3:.2f} ms (limit 5 ms)")


if __name__ == "__main__":
    main()
