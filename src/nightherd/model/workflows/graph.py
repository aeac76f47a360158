"""The graph of a block: the order of its phases, its cycles, and which phases have surely ended before another begins."""

from __future__ import annotations

import heapq
from collections.abc import Mapping, Sequence

from nightherd.model.workflows.definition import EAGER, Phase, TriggerRule

Certain = Mapping[str, frozenset[str]]


def in_order(phases: Sequence[Phase]) -> tuple[Phase, ...]:
    """Return the phases with dependencies first, else in the order of the file. Phases of a cycle are left out."""
    if _is_ordered(phases):
        return tuple(phases)
    places = {phase.name: place for place, phase in enumerate(phases)}
    open_counts = [len(places.keys() & phase.depends_on) for phase in phases]
    dependants: list[list[int]] = [[] for _ in phases]
    for place, phase in enumerate(phases):
        for name in places.keys() & phase.depends_on:
            dependants[places[name]].append(place)
    ready = [place for place, count in enumerate(open_counts) if not count]
    ordered: list[Phase] = []
    while ready:
        place = heapq.heappop(ready)
        ordered.append(phases[place])
        for following in dependants[place]:
            open_counts[following] -= 1
            if not open_counts[following]:
                heapq.heappush(ready, following)
    return tuple(ordered)


def _is_ordered(phases: Sequence[Phase]) -> bool:
    """Return whether the file has dependencies first already, as most have."""
    before: set[str] = set()
    for phase in phases:
        if not before.issuperset(phase.depends_on):
            return False
        before.add(phase.name)
    return True


def cycle_in(phases: Sequence[Phase]) -> tuple[str, ...] | None:
    """Return the names of a cycle, the first repeated at the end; None when there is none."""
    ordered = {phase.name for phase in in_order(phases)}
    left = {phase.name: phase for phase in phases if phase.name not in ordered}
    if not left:
        return None
    # Every phase that is left waits for another that is left: following them must come back.
    trail: list[str] = [next(iter(left))]
    while True:
        following = next(name for name in left[trail[-1]].depends_on if name in left)
        if following in trail:
            return (*trail[trail.index(following) :], following)
        trail.append(following)


def certain_before(phases: Sequence[Phase]) -> Certain:
    """Return for each phase the phases of its block that have ended whenever it begins.

    A phase with an eager rule begins when the first dependency lets it: only what all dependencies share is certain.
    """
    certain: dict[str, frozenset[str]] = {}
    for phase in in_order(phases):
        sets = [certain[name] | {name} for name in phase.depends_on if name in certain]
        if not sets:
            certain[phase.name] = frozenset()
        elif phase.trigger_rule in EAGER:
            certain[phase.name] = frozenset.intersection(*sets)
        else:
            certain[phase.name] = frozenset.union(*sets)
    return certain


def never_runs(phases: Sequence[Phase]) -> dict[str, str]:
    """Return the phases whose rule can never hold, each with the reason."""
    by_name = {phase.name: phase for phase in phases}
    reasons: dict[str, str] = {}
    for phase in in_order(phases):
        reason = _why_never(phase, by_name, reasons)
        if reason is not None:
            reasons[phase.name] = reason
    return reasons


def _why_never(phase: Phase, by_name: Mapping[str, Phase], never: Mapping[str, str]) -> str | None:
    rule, needed = phase.trigger_rule, phase.depends_on
    if not needed:
        if rule in (TriggerRule.ALL_SUCCESS, TriggerRule.ALL_DONE):
            return None
        return f"{rule.value} needs a phase to depend on"
    if rule is TriggerRule.ALL_SUCCESS:
        lost = next((name for name in needed if name in never), None)
        if lost is not None:
            return f"it depends on {lost!r}, which never runs"
        clash = _contradiction(phase, by_name)
        if clash is not None:
            return f"it needs {clash!r} both to succeed and to fail"
    elif rule is not TriggerRule.ALL_DONE and all(name in never for name in needed):
        return f"it depends on {', '.join(map(repr, needed))}, which never run"
    return None


def _contradiction(phase: Phase, by_name: Mapping[str, Phase]) -> str | None:
    """Return a phase that would have to succeed and to fail for `phase` to run."""
    if all(other.trigger_rule is not TriggerRule.ONE_FAILED for other in by_name.values()):
        return None
    succeeds: set[str] = set()
    fails: set[str] = set()
    waiting = [phase.name]
    while waiting:
        needed = by_name.get(waiting.pop())
        if needed is None:
            continue
        if needed.trigger_rule is TriggerRule.ALL_SUCCESS:
            strict = [name for name in needed.depends_on if not _tolerates(name, by_name)]
            waiting += [name for name in strict if name not in succeeds]
            succeeds.update(strict)
        elif needed.trigger_rule is TriggerRule.ONE_FAILED and len(needed.depends_on) == 1:
            fails.update(needed.depends_on)
    return min(succeeds & fails, default=None)


def _tolerates(name: str, by_name: Mapping[str, Phase]) -> bool:
    phase = by_name.get(name)
    return phase is not None and phase.tolerates_failure
