"""What a detached daemon says does not fill the disk."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

PROGRAM = """
import sys
from pathlib import Path
from nightherd.daemon.output import trim_output

path = Path(sys.argv[1])
for number in range(100):
    print("line", number, flush=True)
    trim_output(path, limit=int(sys.argv[2]))
"""


def run(output: Path, named: Path, limit: int) -> None:
    command = [sys.executable, "-c", PROGRAM, str(named), str(limit)]
    with output.open("ab") as file:
        subprocess.run(command, stdout=file, check=True)


def test_what_was_said_is_put_aside_and_what_comes_begins_the_file_anew(tmp_path: Path) -> None:
    output = tmp_path / "daemon.out"

    run(output, output, limit=500)

    before = (tmp_path / "daemon.out.1").read_text().splitlines()
    now = output.read_text().splitlines()
    assert now[-1] == "line 99"
    assert [*before, *now] == [f"line {number}" for number in range(100 - len(before + now), 100)]
    assert output.stat().st_size <= 500


def test_a_file_that_is_not_its_output_is_left_alone(tmp_path: Path) -> None:
    other = tmp_path / "daemon.out"
    other.write_text("x" * 1_000)

    run(tmp_path / "elsewhere", other, limit=500)

    assert other.read_text() == "x" * 1_000
