"""Which targets are told about what."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from nightherd.model.hooks import ChatMessage
from nightherd.model.notifications.target import Bot, BotService, NotifyTarget
from nightherd.model.push.subscription import PUSH_TIMEOUT, PushSubscription

if TYPE_CHECKING:  # only a name: what agents are is not needed to look at their targets
    from nightherd.model.agents.agent import Fleet


def targets_of(fleet: Fleet) -> dict[str, NotifyTarget]:
    """Return every target of the fleet, its agents and their schedules, by id; the outermost of each id."""
    found: dict[str, NotifyTarget] = {}
    for target in _all(fleet):
        found.setdefault(target.id, target)
    return found


def with_bots(fleet: Fleet) -> dict[str, NotifyTarget]:
    """Return the same with the channels that hooks write to."""
    found = targets_of(fleet)
    for agent in fleet.agents.values():
        for hook in agent.hooks:
            if isinstance(hook.action, ChatMessage):
                target = hook_target(agent.name, hook.id, hook.action)
                found[target.id] = target
    return found


def hook_target(agent: str, hook: str, message: ChatMessage) -> NotifyTarget:
    """Return the target of a hook that writes to a channel; it is told nothing but what the hook says."""
    return NotifyTarget(
        id=f"{agent}/hooks.{hook}",
        url_env=message.token_env,
        events=frozenset(),
        bot=Bot(service=BotService(message.service), channel=message.channel),
    )


def _all(fleet: Fleet) -> Iterator[NotifyTarget]:
    yield from fleet.notify
    for agent in fleet.agents.values():
        yield from agent.notify
        for schedule in agent.schedules.values():
            yield from schedule.notify


def targets_for(fleet: Fleet, agent: str | None, schedule: str | None) -> dict[str, NotifyTarget]:
    """Return the targets that are told about a job of that agent and schedule, by id.

    What the schedule says of a target counts before what the agent says, and that before the fleet.
    """
    found = {target.id: target for target in fleet.notify}
    declared = fleet.agents.get(agent) if agent is not None else None
    if declared is not None:
        found |= {target.id: target for target in declared.notify}
        fired_by = declared.schedules.get(schedule) if schedule is not None else None
        if fired_by is not None:
            found |= {target.id: target for target in fired_by.notify}
    return found


def devices_of(fleet: Fleet, subscriptions: Iterable[PushSubscription]) -> dict[str, NotifyTarget]:
    """Return the devices as targets, by id; none of a fleet without a dashboard, where pushes would lead nowhere."""
    if not fleet.web.enabled:
        return {}
    return {
        one.target: NotifyTarget(
            id=one.target,
            events=frozenset(),
            timeout=PUSH_TIMEOUT,
            device=one,
        )
        for one in subscriptions
    }
