"""The tree of a job: the jobs that it has made, those that they have made, and what all of them have used."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from nightherd.model.ids import JobId
from nightherd.model.lost import ObservedJob
from nightherd.model.money import MicroUsd, to_usd
from nightherd.views.jobs import lost_row, usage_of


def children_of(job_id: JobId, below: Sequence[ObservedJob]) -> list[ObservedJob]:
    """The jobs that the job itself has made, first to last."""
    return [one for one in below if one.parent_job_id == job_id]


def tree_costs(below: Sequence[ObservedJob]) -> Mapping[JobId, MicroUsd]:
    """What each of the jobs below a job has cost together with all jobs below itself."""
    costs: dict[JobId, MicroUsd] = {one.id: one.cost_microusd for one in below}
    # A job is submitted after the one that makes it: from the last to the first, each is complete when it is added.
    for one in reversed(below):
        parent = one.parent_job_id
        if parent is not None and parent in costs:
            costs[parent] = MicroUsd(costs[parent] + costs[one.id])
    return costs


def tree_row(job: ObservedJob, below: Sequence[ObservedJob]) -> dict[str, Any]:
    """What the job and all jobs below it have used together."""
    members = (job, *below)
    usage = [usage_of(one) for one in members]
    return {
        "jobs": len(members),
        "cost_usd": to_usd(MicroUsd(sum(one.cost_microusd for one in members))),
        "usage": {key: sum(one[key] for one in usage) for key in usage[0]},
    }


def child_rows(job: ObservedJob, below: Sequence[ObservedJob]) -> list[dict[str, Any]]:
    """The jobs that the job has made, each with what its own tree has cost."""
    costs = tree_costs(below)
    return [
        {
            "id": one.id,
            "agent": one.agent,
            "status": one.status.value,
            "lost": lost_row(one.lost),
            "turns": one.turns,
            "cost_usd": to_usd(one.cost_microusd),
            "tree_cost_usd": to_usd(costs[one.id]),
        }
        for one in children_of(job.id, below)
    ]
