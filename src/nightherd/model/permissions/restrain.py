"""Restraining: a configuration cut back to what a person has accepted.

What grants nothing (prompts, scripts, times of schedules) and what narrows is taken as it is. An agent that is
new, runs on another runtime, or lacks a protection it had, cannot be cut back: it stays as it was, or away when that is not known.
"""

from __future__ import annotations

import posixpath
from collections.abc import Collection, Iterable, Iterator, Mapping
from datetime import timedelta
from typing import Any

from msgspec.structs import replace

from nightherd.model.access.web import Web
from nightherd.model.agents.agent import Agent, Fleet, Plugin
from nightherd.model.agents.mcp import McpServer
from nightherd.model.containers.policy import ContainerPolicy
from nightherd.model.hooks import Hook
from nightherd.model.limits.limits import DayLimits, LimitName, Limits
from nightherd.model.limits.spending import ModelPrice
from nightherd.model.notifications.target import NotifyTarget
from nightherd.model.permissions.approval import REVIEW
from nightherd.model.permissions.bots import accepted_bots
from nightherd.model.permissions.containers import cut_container
from nightherd.model.permissions.fingerprint import absolute, fingerprint, relative
from nightherd.model.permissions.grants import (
    PER_DAY,
    PROJECT_SOURCES,
    AgentGrants,
    FleetGrants,
    Maxima,
    agent_grants,
    all_approvals,
    hook_fingerprint,
    of_each_job,
    plugin_grant,
    schedule_maxima,
    server_fingerprint,
    target_fingerprint,
    web_fingerprint,
    work_fingerprint,
)
from nightherd.model.permissions.widening import (
    AUTO,
    is_accepted_directory,
    is_accepted_plugin,
    is_accepted_rule,
    is_wider_mode,
    is_wider_sandbox,
)
from nightherd.model.permissions.workflows import accepted_workflows, workflow_fingerprint
from nightherd.model.permissions.workspaces import cut_policy, cut_schedule
from nightherd.model.schedules.rule import Schedule
from nightherd.model.sessions.session import SessionTerms
from nightherd.model.units import ONE_MS, MicroUsd
from nightherd.model.webhooks import Webhooks


def restrained(fleet: Fleet, accepted: FleetGrants, before: Fleet | None = None) -> Fleet:
    """`fleet` without what it grants beyond `accepted`; what was there `before` stays in its place where it can."""
    home = posixpath.dirname(fleet.file)
    agents = {}
    for name, agent in fleet.agents.items():
        old = before.agents.get(name) if before is not None else None
        known = accepted.agents.get(name)
        if known is None:
            continue
        fitting = (
            one for one in (agent, old) if one is not None and _can_be_cut(one, known, old, home)
        )
        kept = next(fitting, None)
        if kept is not None:
            agents[name] = _told_where_accepted(cut_back(kept, known, old, home), old, accepted)
    workflows = accepted_workflows(
        fleet.workflows,
        {} if before is None else before.workflows,
        lambda one: workflow_fingerprint(one, home) == accepted.workflows.get(one.name),
    )
    is_auto = fleet.reload == AUTO and accepted.reload == AUTO
    return replace(
        fleet,
        agents=agents,
        withheld=frozenset(fleet.agents.keys() - agents.keys()),
        workflows=workflows,
        withheld_workflows=frozenset(fleet.workflows.keys() - workflows.keys()),
        dotenv=_accepted_values(fleet.dotenv, accepted, before),
        environment=_accepted_values(fleet.environment, accepted, before),
        limits=clamped(fleet.limits, accepted.maxima),
        max_concurrent=_lower(fleet.max_concurrent, accepted.maxima.get("max_concurrent")),
        prices=_prices(fleet, accepted, before),
        web=_web(fleet, accepted, before),
        webhooks=_webhooks(fleet.webhooks, accepted),
        notify=_targets(fleet.notify, () if before is None else before.notify, accepted),
        reload=fleet.reload if is_auto or fleet.reload != AUTO else accepted.reload,
    )


def _targets(
    targets: Iterable[NotifyTarget], before: Iterable[NotifyTarget], accepted: FleetGrants
) -> tuple[NotifyTarget, ...]:
    """The notify targets whose address was accepted; one that was changed stays as it was."""
    wanted = {one.id: one for one in targets}
    kept = {
        one.id: one
        for one in (*before, *wanted.values())
        if one.id in wanted and accepted.notify.get(one.id) == target_fingerprint(one)
    }
    return tuple(kept.values())


def _told_where_accepted(agent: Agent, old: Agent | None, accepted: FleetGrants) -> Agent:
    schedules = {}
    for name, one in agent.schedules.items():
        then = old.schedules.get(name) if old is not None else None
        known = () if then is None else then.notify
        schedules[name] = replace(one, notify=_targets(one.notify, known, accepted))
    known = () if old is None else old.notify
    return replace(agent, notify=_targets(agent.notify, known, accepted), schedules=schedules)


def _can_be_cut(agent: Agent, known: AgentGrants, old: Agent | None, home: str) -> bool:
    """Whether the agent can be cut back to what was accepted: the same runtime, with the protections it asked for."""
    blocked_by = agent_grants(agent, home).blocked_by
    _, has_container = _container(agent, known, old, home)
    return (
        agent.runtime.name == known.runtime
        and set(known.blocked_by) <= set(blocked_by)
        and has_container
    )


def _container(
    agent: Agent, known: AgentGrants, old: Agent | None, home: str
) -> tuple[ContainerPolicy | None, bool]:
    before = None if old is None else old.container
    return cut_container(agent.container, known.container, before, home)


def _accepted_values(
    values: Mapping[str, str], accepted: FleetGrants, before: Fleet | None
) -> dict[str, str]:
    """The variables whose values were accepted; of the others, those of before that were."""
    old = {} if before is None else before.environment
    return {
        name: one
        for values_then in (old, values)
        for name, one in values_then.items()
        if name in values and accepted.environment.get(name) == fingerprint(one)
    }


def _prices(fleet: Fleet, accepted: FleetGrants, before: Fleet | None) -> dict[str, ModelPrice]:
    """The accepted prices: with another one a limit of dollars would be another limit."""
    return {
        name: one
        for prices in ({} if before is None else before.prices, fleet.prices)
        for name, one in prices.items()
        if name in fleet.prices and accepted.prices.get(name) == fingerprint(one)
    }


def _web(fleet: Fleet, accepted: FleetGrants, before: Fleet | None) -> Web:
    offered = (fleet.web, *(() if before is None else (before.web,)))
    if not fleet.web.enabled:
        return fleet.web
    fitting = (one for one in offered if one.enabled and web_fingerprint(one) == accepted.web)
    return next(fitting, replace(fleet.web, enabled=False))


def _webhooks(webhooks: Webhooks, accepted: FleetGrants) -> Webhooks:
    known, most = accepted.webhooks, _time(accepted.maxima.get("replay_window"))
    return replace(
        webhooks,
        endpoints={
            name: one
            for name, one in webhooks.endpoints.items()
            if known.get(name) == fingerprint(one)
        },
        replay_window=webhooks.replay_window if most is None else min(webhooks.replay_window, most),
        enabled=webhooks.enabled and known.get("") == fingerprint([webhooks.host, webhooks.port]),
    )


def cut_back(agent: Agent, known: AgentGrants, old: Agent | None, home: str) -> Agent:
    """The agent with no more than what is `known` to be granted; what was there before stays where it can."""
    mode, maxima = agent.permission_mode, known.maxima
    settings = {
        name: one
        for name, one in agent.project_settings.items()
        if known.project_settings.get(name) == one
    }
    is_changed = settings != dict(agent.project_settings)
    cut = replace(
        agent,
        permission_mode=known.permission_mode
        if is_wider_mode(mode, known.permission_mode)
        else mode,
        working_directory=agent.working_directory
        if is_accepted_directory(relative(agent.working_directory, home), known, home)
        else absolute(known.directories[0], home),
        add_dirs=tuple(
            one for one in agent.add_dirs if is_accepted_directory(relative(one, home), known, home)
        ),
        tools=_bound(agent.tools, known.tools),
        required_caps=_bound(agent.required_caps, known.required_caps),
        allowed_tools=tuple(tool for tool in agent.allowed_tools if is_accepted_rule(tool, known)),
        denied_tools=tuple(dict.fromkeys((*agent.denied_tools, *known.denied_tools))),
        # One that was of a schedule holds for all jobs of the agent until its end is accepted.
        approvals=(
            *agent.approvals,
            *(one for one in known.approvals if one not in all_approvals(agent)),
        ),
        operation=known.operation if known.operation == REVIEW else agent.operation,
        setting_sources=tuple(
            source
            for source in agent.setting_sources
            if source in known.setting_sources and not (is_changed and source in PROJECT_SOURCES)
        ),
        project_settings={} if is_changed else settings,
        plugins=tuple(_plugins(agent, known, home)),
        mcp_servers=_servers(agent, known, old),
        hooks=_accepted_hooks(agent.hooks, known.hooks),
        bots=accepted_bots(agent.bots, () if old is None else old.bots, known.bots),
        sandbox=known.sandbox if is_wider_sandbox(agent.sandbox, known.sandbox) else agent.sandbox,
        container=_container(agent, known, old, home)[0],
        workspace=cut_policy(
            agent.workspace, known.workspace, known, None if old is None else old.workspace
        ),
        **_clamped_agent(agent, maxima),
    )
    return replace(cut, schedules=_schedules(cut, known, old, home))


def _schedules(
    agent: Agent, known: AgentGrants, old: Agent | None, home: str
) -> dict[str, Schedule]:
    """The schedules within their limits; one that cannot be cut back stays as it was, or away."""
    kept: dict[str, Schedule] = {}
    for name, schedule in agent.schedules.items():
        maxima = known.schedules.get(name, of_each_job(known.maxima))
        before = old.schedules.get(name) if old is not None else None
        for one in (schedule, before):
            if one is None or not _is_accepted_work(one, known):
                continue
            placed = cut_schedule(one, agent.workspace, known, before)
            cut = _schedule(_in_accepted_directory(placed, known, home), maxima, known.hooks)
            own = schedule_maxima(replace(agent, schedules={name: cut}), name)
            if all(limit in own and own[limit] <= most for limit, most in maxima.items()):
                kept[name] = cut
                break
    return kept


def _is_accepted_work(schedule: Schedule, known: AgentGrants) -> bool:
    return schedule.work is None or work_fingerprint(schedule.work) in known.work


def _in_accepted_directory(schedule: Schedule, known: AgentGrants, home: str) -> Schedule:
    """The schedule in its own directory if that was accepted, else in its agent's."""
    own = schedule.working_directory
    if own is None or is_accepted_directory(relative(own, home), known, home):
        return schedule
    return replace(schedule, working_directory=None)


def _plugins(agent: Agent, known: AgentGrants, home: str) -> Iterator[Plugin]:
    """The accepted plugins; one that was accepted without its servers stays without them."""
    for plugin in agent.plugins:
        fitting = (plugin, replace(plugin, has_mcp_servers=False))
        accepted = (less for less in fitting if is_accepted_plugin(plugin_grant(less, home), known))
        kept = next(accepted, None)
        if kept is not None:
            yield kept


def _servers(agent: Agent, known: AgentGrants, old: Agent | None) -> tuple[McpServer, ...]:
    """The servers that were accepted; one that was changed stays as it was."""
    named = {server.name for server in agent.mcp_servers}
    candidates = (*(() if old is None else old.mcp_servers), *agent.mcp_servers)
    kept = {
        candidate.name: candidate
        for candidate in candidates
        if candidate.name in named
        and known.mcp_servers.get(candidate.name) == server_fingerprint(candidate)
    }
    return tuple(kept.values())


def _accepted_hooks(hooks: Iterable[Hook], known: Collection[str]) -> tuple[Hook, ...]:
    return tuple(hook for hook in hooks if hook_fingerprint(hook) in known)


def _schedule(schedule: Schedule, maxima: Maxima, hooks: Collection[str]) -> Schedule:
    session = schedule.session
    return replace(
        schedule,
        limits=clamped(schedule.limits, maxima),
        job_timeout=_time(_lower(_milliseconds(schedule.job_timeout), maxima.get("job_timeout"))),
        session=None if session is None else replace(session, max_turns=_turns(session, maxima)),
        hooks=_accepted_hooks(schedule.hooks, hooks),
    )


def _turns(session: SessionTerms, maxima: Maxima) -> int | None:
    """What a schedule says of the turns of its jobs, where it says something, and no more than is accepted."""
    own = session.max_turns
    return None if own is None else _lower(own, maxima.get("max_turns"))


def _clamped_agent(agent: Agent, maxima: Maxima) -> dict[str, Any]:
    budget = _lower(agent.max_budget_microusd, maxima.get("max_budget_usd"))
    return {
        "limits": clamped(agent.limits, maxima),
        "max_turns": _lower(agent.max_turns, maxima.get("max_turns")),
        "max_budget_microusd": None if budget is None else MicroUsd(budget),
        "job_timeout": _time(_lower(_milliseconds(agent.job_timeout), maxima.get("job_timeout"))),
        "max_concurrent": _lower(agent.max_concurrent, maxima.get("max_concurrent")),
    }


def clamped(limits: Limits, maxima: Maxima) -> Limits:
    """`limits` where none is above its maximum."""
    values = {name: _lower(limits.maximum(name), maxima.get(name.value)) for name in LimitName}
    days: dict[str, Any] = {
        name: _lower(limits.per_day.maximum(LimitName(name)), maxima.get(f"{PER_DAY}{name}"))
        for name in DayLimits.__struct_fields__
    }
    changed: dict[str, Any] = {name.value: value for name, value in values.items()}
    changed["duration"] = _time(values[LimitName.DURATION])
    return replace(limits, **changed, per_day=replace(limits.per_day, **days))


def _bound(wanted: tuple[str, ...] | None, known: list[str] | None) -> tuple[str, ...] | None:
    """What both lists leave; None leaves everything."""
    if wanted is None or known is None:
        return tuple(known) if wanted is None and known is not None else wanted
    return tuple(one for one in wanted if one in known)


def _lower(own: int | None, maximum: int | None) -> int | None:
    if own is None or maximum is None:
        return maximum if own is None else own
    return min(own, maximum)


def _milliseconds(duration: timedelta | None) -> int | None:
    return None if duration is None else duration // ONE_MS


def _time(milliseconds: int | None) -> timedelta | None:
    return None if milliseconds is None else milliseconds * ONE_MS
