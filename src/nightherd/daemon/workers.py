"""Whether a worker on record is really at work, on this machine and now."""

from __future__ import annotations

from collections.abc import Callable

from nightherd.engine.record import process_of
from nightherd.host.process import boot_id, is_alive
from nightherd.model.worker import Worker, is_lease_over


def is_at_work(monotonic: float) -> Callable[[Worker], bool]:
    """Tells of a worker whether its lease holds and its process is there."""
    boot = boot_id()

    def check(worker: Worker) -> bool:
        return not is_lease_over(
            worker,
            boot_id=boot,
            monotonic=monotonic,
            is_process_alive=is_alive(process_of(worker)),
        )

    return check
