"""Whether a worker on record is really at work, on this machine and now."""

from __future__ import annotations

from typing import TYPE_CHECKING

from nightherd.host.clock import SystemClock
from nightherd.host.process import boot_id, is_alive
from nightherd.model.worker import is_lease_over
from nightherd.ports import process_of

if TYPE_CHECKING:
    from nightherd.model.worker import Worker


def is_at_work(worker: Worker) -> bool:
    """Whether the worker's lease holds and its process is there."""
    return not is_lease_over(
        worker,
        boot_id=boot_id(),
        monotonic=SystemClock().monotonic(),
        is_process_alive=is_alive(process_of(worker)),
    )
