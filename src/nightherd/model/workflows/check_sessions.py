"""Checking shared sessions: a phase continues the session of an agent phase before it, never beside another."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from nightherd.model.workflows.definition import AgentAction, Phase
from nightherd.model.workflows.finding import DefinitionPath, Finding
from nightherd.model.workflows.graph import Certain, certain_before


class Placed(msgspec.Struct, frozen=True, kw_only=True):
    """A phase with the blocks around it, outermost first, and where each stands in the definition."""

    chain: tuple[Phase, ...]
    blocks: tuple[tuple[Phase, ...], ...]
    """The phases among which each of the chain stands."""
    certain: tuple[Certain, ...]
    """What has ended before each phase of those blocks."""
    path: DefinitionPath

    @property
    def phase(self) -> Phase:
        """The phase itself."""
        return self.chain[-1]


def placed(
    phases: tuple[Phase, ...],
    outer: Placed | None = None,
    path: DefinitionPath = ("phases",),
) -> Iterator[Placed]:
    """Yield every phase with its place."""
    chain = () if outer is None else outer.chain
    blocks = (*(() if outer is None else outer.blocks), phases)
    certain = (*(() if outer is None else outer.certain), certain_before(phases))
    for place, phase in enumerate(phases):
        here = Placed(chain=(*chain, phase), blocks=blocks, certain=certain, path=(*path, place))
        yield here
        yield from placed(phase.block, here, (*here.path, "action", "phases"))


def check_sessions(phases: tuple[Phase, ...]) -> Iterator[Finding]:
    """Yield what is wrong with shared sessions."""
    every = list(placed(phases))
    users: dict[DefinitionPath, list[Placed]] = {}
    for user in every:
        name = _session(user.phase)
        if name is None:
            continue
        path = (*user.path, "action", "session")
        owner = _find(name, user, every)
        problem = _problem(name, user, owner)
        if problem is not None or owner is None:
            known = tuple(_agents_before(user))
            yield Finding(path=path, message=problem or "", word=name, known=known)
            continue
        users.setdefault(_root(owner, every).path, []).append(user)
    for sharing in users.values():
        yield from _parallel(sharing)


def _session(phase: Phase) -> str | None:
    return phase.action.session if isinstance(phase.action, AgentAction) else None


def _find(name: str, user: Placed, every: list[Placed]) -> Placed | None:
    """Return the phase of that name that is nearest: among the user's own block, then in those around it."""
    for depth in range(len(user.blocks) - 1, -1, -1):
        for other in every:
            if other.phase.name == name and other.blocks[-1] is user.blocks[depth]:
                return other
    return None


def _agents_before(user: Placed) -> Iterator[str]:
    for block, certain, step in zip(user.blocks, user.certain, user.chain, strict=True):
        before = certain.get(step.name, frozenset())
        agents = (phase.name for phase in block if isinstance(phase.action, AgentAction))
        yield from (name for name in agents if name in before)


def _problem(name: str, user: Placed, owner: Placed | None) -> str | None:
    if owner is None:
        return f"there is no phase {name!r} to share a session with"
    action, own = owner.phase.action, user.phase.action
    if not isinstance(action, AgentAction) or not isinstance(own, AgentAction):
        return f"phase {name!r} runs no agent and has no session"
    if owner.phase.for_each is not None:
        return f"phase {name!r} has a session for each item; none of them can be shared"
    if action.agent != own.agent:
        return f"the session of {name!r} belongs to agent {action.agent!r}, not to {own.agent!r}"
    if not _is_before(owner, user):
        return f"phase {name!r} may not have ended when this begins; add it to depends_on"
    shared = len(owner.chain) - 1
    for step in user.chain[shared:]:
        if step.for_each is not None and step.for_each.max_parallel > 1:
            return f"the items of {step.name!r} run in parallel and cannot share a session; set max_parallel to 1"
    return None


def _is_before(first: Placed, second: Placed) -> bool:
    """Return whether `first` has ended for certain when `second` begins."""
    for certain, step, other in zip(first.certain, first.chain, second.chain, strict=False):
        if step is not other:
            return step.name in certain.get(other.name, frozenset())
    return False


def _root(owner: Placed, every: list[Placed]) -> Placed:
    """Return the phase whose session it really is."""
    seen = {owner.path}
    while (name := _session(owner.phase)) is not None:
        above = _find(name, owner, every)
        if above is None or above.path in seen:
            break
        owner = above
        seen.add(owner.path)
    return owner


def _parallel(sharing: list[Placed]) -> Iterator[Finding]:
    for place, user in enumerate(sharing):
        for other in sharing[:place]:
            if not _is_before(other, user) and not _is_before(user, other):
                message = (
                    f"phase {other.phase.name!r} continues the same session and may run at the same time;"
                    " add it to depends_on"
                )
                yield Finding(path=(*user.path, "action", "session"), message=message)
                break
