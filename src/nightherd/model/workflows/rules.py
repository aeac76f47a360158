"""Trigger rules: whether a phase runs, given how its dependencies ended, and how a block of phases ends.

| rule | runs when | waits for all |
|---|---|---|
| all_success | every dependency succeeded | yes |
| one_success | one succeeded | no: begins with the first |
| none_failed_min_one_success | none failed and one succeeded | yes |
| all_done | every dependency has ended, however | yes |
| one_failed | one failed | no: begins with the first |

A failure with `on_failure: continue` counts as success, except for `one_failed`. A phase that did not run because of a
failure above it counts as failed, as in Airflow; a phase skipped for another reason counts as neither.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from enum import StrEnum

import msgspec

from nightherd.model.workflows.definition import Phase, TriggerRule
from nightherd.model.workflows.node import Node, NodeStatus, SkipCause


class Standing(StrEnum):
    """How a phase stands towards those that depend on it."""

    OPEN = "open"
    SUCCEEDED = "succeeded"
    TOLERATED = "tolerated"
    """Failed, with `on_failure: continue`."""
    FAILED = "failed"
    CANCELLED = "cancelled"
    SKIPPED = "skipped"
    UPSTREAM_FAILED = "upstream_failed"
    """Did not run because a phase above it failed."""


GOOD = frozenset({Standing.SUCCEEDED, Standing.TOLERATED})
BAD = frozenset({Standing.FAILED, Standing.CANCELLED, Standing.UPSTREAM_FAILED})

WORDS = {
    Standing.FAILED: "failed",
    Standing.TOLERATED: "failed",
    Standing.CANCELLED: "was cancelled",
    Standing.SKIPPED: "was skipped",
    Standing.UPSTREAM_FAILED: "did not run",
    Standing.SUCCEEDED: "succeeded",
}


def standing_of(phase: Phase, node: Node) -> Standing:
    """Return how the phase stands whose outcome is `node`."""
    match node.status:
        case NodeStatus.SUCCEEDED:
            return Standing.SUCCEEDED
        case NodeStatus.FAILED:
            return Standing.TOLERATED if phase.tolerates_failure else Standing.FAILED
        case NodeStatus.CANCELLED:
            return Standing.CANCELLED
        case NodeStatus.SKIPPED:
            is_failure = node.cause is SkipCause.FAILED
            return Standing.UPSTREAM_FAILED if is_failure else Standing.SKIPPED
        case NodeStatus.WAITING | NodeStatus.RUNNING | NodeStatus.PAUSED:
            return Standing.OPEN


class Skipped(msgspec.Struct, frozen=True, kw_only=True):
    """A phase does not run."""

    cause: SkipCause
    reason: str


class Ready(msgspec.Struct, frozen=True):
    """A phase runs if its condition holds."""


class Pending(msgspec.Struct, frozen=True):
    """Its dependencies decide later."""


Verdict = Ready | Pending | Skipped
READY, PENDING = Ready(), Pending()


def decide(rule: TriggerRule, dependencies: Mapping[str, Standing]) -> Verdict:
    """Return whether the rule holds, cannot hold any more, or is not decided yet."""
    standings = dependencies.values()
    is_open = Standing.OPEN in standings
    has_good = any(standing in GOOD for standing in standings)
    match rule:
        case TriggerRule.ONE_SUCCESS if has_good:
            return READY
        case TriggerRule.ONE_FAILED if _has_failed(standings):
            return READY
        case _ if is_open:
            return PENDING
        case TriggerRule.ALL_DONE:
            return READY
        case TriggerRule.ALL_SUCCESS if all(standing in GOOD for standing in standings):
            return READY
        case TriggerRule.NONE_FAILED_MIN_ONE_SUCCESS if has_good and not BAD & set(standings):
            return READY
        case _:
            return _skipped(rule, dependencies)


def _has_failed(standings: Collection[Standing]) -> bool:
    return any(standing in BAD or standing is Standing.TOLERATED for standing in standings)


def _skipped(rule: TriggerRule, dependencies: Mapping[str, Standing]) -> Skipped:
    if rule is TriggerRule.ONE_FAILED:
        return Skipped(cause=SkipCause.SKIPPED, reason="nothing it depends on has failed")
    for standings, cause in ((BAD, SkipCause.FAILED), ({Standing.SKIPPED}, SkipCause.SKIPPED)):
        for name, standing in dependencies.items():
            if standing in standings:
                return Skipped(cause=cause, reason=f"{name!r} {WORDS[standing]}")
    return Skipped(cause=SkipCause.SKIPPED, reason="it depends on nothing")


class BlockEnd(msgspec.Struct, frozen=True, kw_only=True):
    """How a block ends: its status, and the phases that decided it."""

    status: NodeStatus
    because_of: tuple[str, ...] = ()


def block_end(phases: Collection[Phase], standings: Mapping[str, Standing]) -> BlockEnd:
    """Return how a block ends whose phases have all ended.

    A failure is forgiven when a phase with `one_failed` ran because of it and succeeded.
    """
    by_name = {phase.name: phase for phase in phases}
    forgiven: set[str] = set()
    for phase in phases:
        is_recovery = phase.trigger_rule is TriggerRule.ONE_FAILED
        if is_recovery and standings[phase.name] is Standing.SUCCEEDED:
            for name in phase.depends_on:
                forgiven |= _blame(name, by_name, standings)
    for standing, status in (
        (Standing.FAILED, NodeStatus.FAILED),
        (Standing.CANCELLED, NodeStatus.CANCELLED),
    ):
        names = [name for name in by_name if standings[name] is standing and name not in forgiven]
        if names:
            return BlockEnd(status=status, because_of=tuple(names))
    return BlockEnd(status=NodeStatus.SUCCEEDED)


def _blame(
    name: str, by_name: Mapping[str, Phase], standings: Mapping[str, Standing]
) -> frozenset[str]:
    """Return the phases whose failure is why `name` failed or did not run."""
    blamed: set[str] = set()
    seen = {name}
    waiting = [name]
    while waiting:
        current = waiting.pop()
        match standings[current]:
            case Standing.FAILED | Standing.CANCELLED:
                blamed.add(current)
            case Standing.UPSTREAM_FAILED:
                above = [other for other in by_name[current].depends_on if other not in seen]
                seen.update(above)
                waiting += above
            case _:
                pass
    return frozenset(blamed)
