"""Cancel: ends what a program waits for, from elsewhere in the same event loop."""

from __future__ import annotations

from nightherd.engine.jobs.oversight import Stopper
from nightherd.model.jobs.job import ExitReason


class Cancel:
    """Ends an `execute` or a `run_workflow` from elsewhere in the same event loop, as cancelled."""

    def __init__(self) -> None:
        self._stopper = Stopper()

    def __call__(self) -> None:
        """Now."""
        self._stopper.stop(ExitReason.CANCELLED)

    @property
    def stopper(self) -> Stopper:
        """What the engine is given."""
        return self._stopper
