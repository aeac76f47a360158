"""Lost jobs: how commands find them, and bring the readable files up to date when no process keeps them."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:  # only names: a list of jobs must not load what else there is
    from collections.abc import Sequence

    from nightherd.cli.invocation import Invocation
    from nightherd.model.lost import ObservedJob
    from nightherd.model.worker import Worker


def is_at_work(worker: Worker) -> bool:
    """Whether the worker's lease holds and its process is there; loaded when there is a running job to ask about."""
    from nightherd.host.liveness import is_at_work as is_at_work_

    return bool(is_at_work_(worker))


def refresh_lost(invocation: Invocation, jobs: Sequence[ObservedJob]) -> None:
    """Bring the readable files up to date if one of `jobs` is lost. A process that keeps them does it by itself."""
    from nightherd.wiring.mirrors import refresh_mirror, refresh_state_files

    lost = [job.id for job in jobs if job.lost is not None]
    if lost:
        state = invocation.state_directory()
        refresh_mirror(state, is_new=False)
        refresh_state_files(state, lost)
