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


def test_a_copy_of_the_state_directory_leaves_the_files_of_the_original_alone(
    tmp_path: Path,
) -> None:
    async def run() -> tuple[set[Path], set[Path]]:
        original = ClaudeProcess(launch(tmp_path, 1), Keepers(directory="1:1"), GRACE)
        copy = ClaudeProcess(launch(tmp_path, 2), Keepers(directory="1:2"), GRACE)
        try:
            await original.start()
            before = scratch(tmp_path)
            await copy.start()
            return before, scratch(tmp_path)
        finally:
            await copy.close()
            await original.close()

    before, after = anyio.run(run)

    assert len(before) == 1
    assert (before < after, len(after)) == (True, 2)
    assert scratch(tmp_path) == set()


def test_files_of_an_earlier_execution_are_removed(tmp_path: Path) -> None:
    async def run() -> tuple[set[Path], set[Path]]:
        process = ClaudeProcess(launch(tmp_path, 2), Keepers(directory="1:1"), GRACE)
        lost = ClaudeProcess(launch(tmp_path, 1), Keepers(directory="1:1"), GRACE)
        try:
            await lost.start()
            before = scratch(tmp_path)
            await process.start()
            return before, scratch(tmp_path)
        finally:
            await process.close()
            await lost.close()

    before, after = anyio.run(run)

    assert (len(before), len(after), before & after) == (1, 1, set())
