"""Where jobs work, compared with what was accepted and cut back to it.

An agent that leaves its own workspace for the shared directory is given more; so is one with new setup commands, which run as
commands of the user, or with another repository.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from msgspec.structs import replace

from nightherd.model.permissions.fingerprint import fingerprint
from nightherd.model.permissions.grants import AgentGrants, clone_fingerprint
from nightherd.model.schedules.rule import Schedule
from nightherd.model.workspaces.policy import CloneTerms, WorkspaceMode, WorkspacePolicy

RANK = {
    WorkspaceMode.EMPTY.value: 0,
    WorkspaceMode.WORKTREE.value: 1,
    WorkspaceMode.CLONE.value: 1,
    WorkspaceMode.COPY.value: 2,
    WorkspaceMode.SHARED.value: 3,
}
"""How much of the directory a mode gives: nothing, what git tracks, a copy of everything, or the files themselves."""


def is_wider_workspace(wanted: str, known: str) -> bool:
    """Whether a mode gives more of the directory than another; one that is not known gives nothing."""
    return RANK.get(wanted, 0) > RANK.get(known, 0)


def mode_of(grants: AgentGrants, schedule: str) -> str:
    """How the jobs of a schedule get their directory."""
    return grants.schedule_workspaces.get(schedule, grants.workspace)


def workspace_widenings(known: AgentGrants, wanted: AgentGrants) -> Iterator[str]:
    """What `wanted` gives beyond `known` by where jobs work, for people."""
    if is_wider_workspace(wanted.workspace, known.workspace):
        yield f"working_directory.mode {known.workspace} -> {wanted.workspace}"
    for name in wanted.schedules:
        modes = mode_of(known, name), mode_of(wanted, name)
        if is_wider_workspace(modes[1], modes[0]) and modes != (known.workspace, wanted.workspace):
            yield f"schedule {name}: working_directory.mode {modes[0]} -> {modes[1]}"
    if added := len(set(wanted.setup) - set(known.setup)):
        yield f"working_directory.setup: {added} new or changed"
    if not _has_known_clones(known, wanted):
        yield "another repository or branch is cloned"


def _has_known_clones(known: AgentGrants, wanted: AgentGrants) -> bool:
    return known.clones is None or set(wanted.clones or ()) <= set(known.clones)


def narrowed_workspaces(known: AgentGrants, wanted: AgentGrants) -> dict[str, Any]:
    """The fields of the grants that stay accepted once `wanted` was seen."""
    mode = _narrower(known.workspace, wanted.workspace)
    schedules = {
        name: _narrower(mode_of(known, name), mode_of(wanted, name)) for name in wanted.schedules
    }
    # A workspace that stays until its end is accepted stays whole. Of new commands and repositories it is unknown
    # which of the old ones they replace.
    is_kept = any(workspace_widenings(known, wanted))
    return {
        "workspace": mode,
        "schedule_workspaces": {name: one for name, one in schedules.items() if one != mode},
        "setup": known.setup if is_kept else wanted.setup,
        "clones": known.clones if is_kept and known.clones is not None else wanted.clones,
    }


def _narrower(known: str, wanted: str) -> str:
    return known if is_wider_workspace(wanted, known) else wanted


def cut_policy(
    policy: WorkspacePolicy, mode: str, known: AgentGrants, old: WorkspacePolicy | None
) -> WorkspacePolicy:
    """The policy with the accepted mode, commands and repository; what was there before stays where it can."""
    if is_wider_workspace(policy.mode, mode):
        accepted = WorkspaceMode(mode)
        is_fitting = old is not None and old.mode is accepted
        policy = old if is_fitting and old else WorkspacePolicy(mode=accepted, clone=policy.clone)
    clones = (policy.clone, old.clone if old is not None else None)
    return replace(
        policy,
        setup=tuple(one for one in policy.setup if fingerprint(one) in known.setup),
        clone=next((one for one in clones if _is_accepted_clone(one, known)), None),
    )


def _is_accepted_clone(terms: CloneTerms | None, known: AgentGrants) -> bool:
    if terms is None or known.clones is None:
        return terms is not None
    return clone_fingerprint(terms) in known.clones


def cut_schedule(
    schedule: Schedule, agent: WorkspacePolicy, known: AgentGrants, old: Schedule | None
) -> Schedule:
    """The schedule with the accepted policy; `agent` is the policy its agent was cut back to."""
    mode = mode_of(known, schedule.name)
    own = schedule.workspace
    if own is None and not is_wider_workspace(agent.mode, mode):
        return schedule
    before = old.workspace if old is not None else None
    return replace(schedule, workspace=cut_policy(own or agent, mode, known, before))
