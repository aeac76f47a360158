"""Stopper: lets somebody else stop an execution, and see what it has used."""

from __future__ import annotations

from typing import TYPE_CHECKING

import anyio

from nightherd.model.job import ExitReason

if TYPE_CHECKING:
    from nightherd.engine.progress import Progress
    from nightherd.engine.state_files import StateFile


class Stopper:
    """The runtime is cancelled, and the job ends with the reason given."""

    def __init__(self) -> None:
        self.reason: ExitReason | None = None
        self.is_abandoned = False
        self.is_handed_over = False
        self.scope = anyio.CancelScope()
        self.progress: Progress | None = None
        """What the execution has used and is to be written; None before it has begun."""
        self.state_file: StateFile | None = None
        """The file that shows the job at its last checkpoint; None when none is kept on the way."""

    def stop(self, reason: ExitReason) -> None:
        """Stop now; the first reason counts."""
        if self.reason is None:
            self.reason = reason
            self.scope.cancel()

    def hand_over(self) -> None:
        """Stop now and give the job back: it waits for another worker, which goes on with it."""
        if self.reason is None:
            self.is_handed_over = True
            self.scope.cancel()

    def reuse(self) -> None:
        """Be ready for the next execution of the job, after this one was abandoned.

        A stop or a hand-over that was asked for meanwhile still counts.
        """
        self.is_abandoned = False
        self.scope = anyio.CancelScope()
        if self.reason is not None or self.is_handed_over:
            self.scope.cancel()

    def abandon(self) -> None:
        """Stop now and settle nothing: the job is another worker's, or will be."""
        self.is_abandoned = True
        self.scope.cancel()
