"""End what executions left running on this machine: processes, and containers."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping
    from pathlib import Path

    from nightherd.engine.contexts import EndExecutions
    from nightherd.model.ids import ExecutionId


def ending_of_executions(state_dir: Path) -> EndExecutions:
    """Return what ends executions of `state_dir` and sees them gone; it answers with what it could not end, and why."""

    async def end(executions: Collection[ExecutionId]) -> Mapping[ExecutionId, str]:
        from nightherd.files.paths import directory_identity
        from nightherd.runtimes.protection import kill_all_marked

        left = await kill_all_marked(executions, directory=directory_identity(state_dir))
        root = state_dir / "containers"
        if not any(
            root.glob("*/container.json")
        ):  # most fleets have none, and loading that takes a while
            return left
        from nightherd.runtimes.container.rescue import end_containers

        return {**left, **await end_containers(root, executions)}

    return end
