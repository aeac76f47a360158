"""Lost jobs: how commands find them, and bring the readable files up to date when no process keeps them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from nightherd.cli.lazy import load

if TYPE_CHECKING:  # only names: a list of jobs must not load what else there is
    from collections.abc import Sequence

    from nightherd.cli.invocation import Invocation
    from nightherd.model.lost import ObservedJob
    from nightherd.model.worker import Worker


def is_at_work(worker: Worker) -> bool:
    """Whether the worker's lease holds and its process is there; loaded when there is a running job to ask about."""
    return bool(load("nightherd.host.liveness:is_at_work")(worker))


def refresh_lost(invocation: Invocation, jobs: Sequence[ObservedJob]) -> None:
    """Bring the readable files up to date if one of `jobs` is lost. A process that keeps them does it by itself."""
    lost = [job.id for job in jobs if job.lost is not None]
    if lost:
        state = invocation.state_directory()
        load("nightherd.wiring.mirrors:refresh_mirror")(state, is_new=False)
        load("nightherd.wiring.mirrors:refresh_state_files")(state, lost)
