"""The files that `claude` is started with: removed after a killed worker, and never those of another fleet."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import anyio

from nightherd.runtimes.claude.launch import InFile, Launch, Option
from nightherd.runtimes.claude.process import ClaudeProcess
from nightherd.runtimes.keeper.keepers import Keepers

JOB = "job-2026-11-16-abcdef"
GRACE = timedelta(seconds=1)


def launch(tmp_path: Path, epoch: int) -> Launch:
    program = tmp_path / "claude"
    program.write_text("#!/bin/sh\nexec sleep 60\n")
    program.chmod(0o700)
    (tmp_path / "tmp").mkdir(exist_ok=True)
    return Launch(
        program=str(program),
        directory=str(tmp_path),
        execution=f"{JOB}.{epoch}",
        options=(Option("settings", InFile("settings.json", "{}")),),
        environment={"PATH": "/usr/bin:/bin", "TMPDIR": str(tmp_path / "tmp")},
    )


def scratch(tmp_path: Path) -> set[Path]:
    return set((tmp_path / "tmp").glob("nightherd-*"))


def start_both(tmp_path: Path, first: str, second: str) -> tuple[set[Path], set[Path]]:
    """The scratch directories after execution 1 and after execution 2 has started, in these state directories."""

    async def run() -> tuple[set[Path], set[Path]]:
        earlier = ClaudeProcess(launch(tmp_path, 1), Keepers(directory=first), GRACE)
        later = ClaudeProcess(launch(tmp_path, 2), Keepers(directory=second), GRACE)
        try:
            await earlier.start()
            before = scratch(tmp_path)
            await later.start()
            return before, scratch(tmp_path)
        finally:
            await later.close()
            await earlier.close()

    return anyio.run(run)


def test_a_copy_of_the_state_directory_leaves_the_files_of_the_original_alone(
    tmp_path: Path,
) -> None:
    before, after = start_both(tmp_path, "1:1", "1:2")

    assert len(before) == 1
    assert (before < after, len(after)) == (True, 2)
    assert scratch(tmp_path) == set()


def test_files_of_an_earlier_execution_are_removed(tmp_path: Path) -> None:
    before, after = start_both(tmp_path, "1:1", "1:1")

    assert (len(before), len(after), before & after) == (1, 1, set())
