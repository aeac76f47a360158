"""Processes: what the tools of one run have started, and its end."""

from __future__ import annotations

import os
from datetime import timedelta

from nightherd.ports import RuntimeRequest
from nightherd.runtimes.keeper.ending import EXECUTION_MARK, execution_mark, stop_processes
from nightherd.runtimes.keeper.keepers import Keepers


class Processes:
    """Those of one run: by their keepers, and by the marks in their environment."""

    def __init__(self, request: RuntimeRequest, keepers: Keepers, grace: timedelta) -> None:
        self.keepers = keepers
        self.grace = grace
        self.marks = {
            EXECUTION_MARK: execution_mark(request.execution, keepers.directory),
            # With it a run finds its own processes only.
            "NIGHTHERD_WORKER_PID": str(os.getpid()),
        }
        self.may_exist = False
        """Whether a tool was called that may have left something running."""

    async def stop(self) -> None:
        """End what is still running; nothing to do when nothing was started."""
        if self.may_exist:
            await self.keepers.stop(self.grace)
            # A tool that is not ours may have started something without a keeper.
            await stop_processes(self.marks, grace_s=self.grace.total_seconds())
            self.may_exist = False
