"""Widening: what a configuration grants beyond what a person has accepted."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import msgspec

from nightherd.model.permissions.approval import REVIEW
from nightherd.model.permissions.containers import container_widenings, narrowed_container
from nightherd.model.permissions.fingerprint import absolute, is_within
from nightherd.model.permissions.grants import (
    WITHOUT_SERVERS,
    AgentGrants,
    FleetGrants,
    Maxima,
    of_each_job,
)
from nightherd.model.permissions.permission import PermissionMode
from nightherd.model.permissions.tool_rule import parse_rule
from nightherd.model.permissions.workspaces import narrowed_workspaces, workspace_widenings

AUTO = "auto"
MODE_RANK = {
    PermissionMode.PLAN: 0,
    PermissionMode.DEFAULT: 1,
    PermissionMode.DONT_ASK: 1,
    PermissionMode.DELEGATE: 1,
    PermissionMode.MANUAL: 1,
    PermissionMode.ACCEPT_EDITS: 2,
    PermissionMode.BYPASS: 9,
}
"""How much a mode approves by itself; one that is not here approves nearly everything."""
UNRANKED = 8


class Widening(msgspec.Struct, frozen=True, kw_only=True):
    """One thing that is granted and was not accepted."""

    what: str
    agent: str | None = None
    """None for something of the whole fleet."""

    @property
    def text(self) -> str:
        """For people."""
        return self.what if self.agent is None else f"agent {self.agent}: {self.what}"


def widenings(accepted: FleetGrants, wanted: FleetGrants, home: str) -> tuple[Widening, ...]:
    """Everything that `wanted` grants beyond `accepted`; `home` is the directory of the fleet file."""
    return (*_of_fleet(accepted, wanted), *_of_agents(accepted, wanted, home))


def _of_fleet(accepted: FleetGrants, wanted: FleetGrants) -> Iterator[Widening]:
    texts = (
        *_new(".env variable", wanted.environment, accepted.environment),
        *_higher(wanted.maxima, accepted.maxima),
        *_new("price of", wanted.prices, accepted.prices),
        *_new("webhook", wanted.webhooks, accepted.webhooks),
        *_new("notify target", wanted.notify, accepted.notify),
        *_new("workflow", wanted.workflows, accepted.workflows),
    )
    yield from (Widening(what=text) for text in texts)
    if wanted.web is not None and wanted.web != accepted.web:
        yield Widening(
            what="web: the API is served on a port, or on another one, or answer links lead elsewhere"
        )
    if wanted.reload == AUTO and accepted.reload != AUTO:
        yield Widening(what="reload: auto")


def _of_agents(accepted: FleetGrants, wanted: FleetGrants, home: str) -> Iterator[Widening]:
    for name, grants in wanted.agents.items():
        known = accepted.agents.get(name)
        if known is None:
            yield Widening(agent=name, what="is new")
            continue
        yield from (Widening(agent=name, what=text) for text in _of_agent(known, grants, home))


def _of_agent(known: AgentGrants, wanted: AgentGrants, home: str) -> Iterator[str]:
    if wanted.runtime != known.runtime:
        yield f"runtime {known.runtime} -> {wanted.runtime}"
    yield from (f"without {one}" for one in _added(known.blocked_by, wanted.blocked_by))
    if is_wider_mode(wanted.permission_mode, known.permission_mode):
        yield f"permission_mode {known.permission_mode} -> {wanted.permission_mode}"
    for path in wanted.directories:
        if not is_accepted_directory(path, known, home):
            yield f"directory {path}"
    yield from _unbound("tools", wanted.tools, known.tools)
    yield from _unbound("required_caps", wanted.required_caps, known.required_caps)
    yield from _rules(known, wanted)
    yield from _unasked(known, wanted)
    yield from (
        f"setting_sources {one}" for one in _added(wanted.setting_sources, known.setting_sources)
    )
    yield from _new("Claude settings", wanted.project_settings, known.project_settings)
    yield from (
        f"plugin {plugin}" for plugin in wanted.plugins if not is_accepted_plugin(plugin, known)
    )
    yield from _new("MCP server", wanted.mcp_servers, known.mcp_servers)
    if added := len(_added(wanted.hooks, known.hooks)):
        yield f"hooks: {added} new or changed"
    if is_wider_sandbox(wanted.sandbox, known.sandbox):
        yield "sandbox removed" if wanted.sandbox is None else "sandbox changed"
    yield from container_widenings(known.container, wanted.container)
    yield from workspace_widenings(known, wanted)
    if added := len(_added(wanted.work, known.work)):
        yield f"work_source: {added} new or changed"
    yield from _new("bot on", wanted.bots, known.bots)
    yield from _higher(wanted.maxima, known.maxima)
    for name, maxima in wanted.schedules.items():
        before = known.schedules.get(name, of_each_job(known.maxima))
        own = _higher(wanted.maxima, known.maxima)
        yield from (
            f"schedule {name}: {text}" for text in _higher(maxima, before) if text not in own
        )


def _rules(known: AgentGrants, wanted: AgentGrants) -> Iterator[str]:
    for rule in wanted.allowed_tools:
        if not is_accepted_rule(rule, known):
            yield f"allowed_tools {rule}"
    for rule in known.denied_tools:
        if rule not in wanted.denied_tools:
            yield f"denied_tools without {rule}"


def _unasked(known: AgentGrants, wanted: AgentGrants) -> Iterator[str]:
    """What a person would not be asked about any more."""
    for approval in known.approvals:
        if approval not in wanted.approvals:
            yield f"approvals without {approval.tool}, or with other terms"
    if known.operation == REVIEW and wanted.operation != REVIEW:
        yield f"operation {known.operation} -> {wanted.operation}"


def with_settings_of(accepted: FleetGrants, wanted: FleetGrants) -> FleetGrants:
    """`wanted`, but with Claude's settings files as they were accepted."""
    agents = {
        name: msgspec.structs.replace(one, project_settings=accepted.agents[name].project_settings)
        if name in accepted.agents
        else one
        for name, one in wanted.agents.items()
    }
    return msgspec.structs.replace(wanted, agents=agents)


def narrowed(accepted: FleetGrants, wanted: FleetGrants, home: str) -> FleetGrants:
    """What stays accepted once `wanted` was seen: nothing that it does not ask for any more."""
    return FleetGrants(
        agents={
            name: _narrowed_agent(accepted.agents[name], one, home)
            for name, one in wanted.agents.items()
            if name in accepted.agents
        },
        environment=_still_named(accepted.environment, wanted.environment),
        maxima=_lower(accepted.maxima, wanted.maxima),
        prices=_still_named(accepted.prices, wanted.prices),
        web=None if wanted.web is None else accepted.web,
        webhooks=_still_named(accepted.webhooks, wanted.webhooks),
        notify=_still_named(accepted.notify, wanted.notify),
        workflows=_still_named(accepted.workflows, wanted.workflows),
        # It is unknown which of them a workflow that waits for a person has given up.
        workflow_directories=accepted.workflow_directories,
        reload=accepted.reload if wanted.reload == AUTO else wanted.reload,
    )


def _narrowed_agent(known: AgentGrants, wanted: AgentGrants, home: str) -> AgentGrants:
    if wanted.runtime != known.runtime:
        return known
    mode = wanted.permission_mode
    is_known_sandbox = not is_wider_sandbox(wanted.sandbox, known.sandbox)
    inner = [
        directory
        for directory in wanted.directories
        if is_accepted_directory(directory, known, home)
    ]
    outside = len(inner) < len(wanted.directories)
    return AgentGrants(
        runtime=known.runtime,
        permission_mode=known.permission_mode
        if is_wider_mode(mode, known.permission_mode)
        else mode,
        # The working directory that is put in the place of one that was not accepted stays.
        directories=list(dict.fromkeys((*known.directories[:1], *inner))) if outside else inner,
        tools=_bound(wanted.tools, known.tools),
        required_caps=_bound(wanted.required_caps, known.required_caps),
        allowed_tools=[tool for tool in wanted.allowed_tools if is_accepted_rule(tool, known)],
        denied_tools=sorted({*wanted.denied_tools, *known.denied_tools}),
        approvals=list(dict.fromkeys((*wanted.approvals, *known.approvals))),
        operation=known.operation if known.operation == REVIEW else wanted.operation,
        setting_sources=[
            source for source in wanted.setting_sources if source in known.setting_sources
        ],
        project_settings=_still_named(known.project_settings, wanted.project_settings),
        plugins=list(_still_plugged(known.plugins, wanted.plugins)),
        mcp_servers=_still_named(known.mcp_servers, wanted.mcp_servers),
        # It is unknown which of the old hooks a new one replaces.
        hooks=known.hooks if _added(wanted.hooks, known.hooks) else wanted.hooks,
        sandbox=wanted.sandbox if is_known_sandbox else known.sandbox,
        container=narrowed_container(known.container, wanted.container),
        blocked_by=sorted({*wanted.blocked_by, *known.blocked_by}),
        # It is unknown which of the old sources a new one replaces.
        work=known.work if _added(wanted.work, known.work) else wanted.work,
        bots=_still_named(known.bots, wanted.bots),
        maxima=_lower(known.maxima, wanted.maxima),
        schedules={
            name: _lower(known.schedules.get(name, of_each_job(known.maxima)), one)
            for name, one in wanted.schedules.items()
        },
        **narrowed_workspaces(known, wanted),
    )


def _still_named(known: Mapping[str, str], wanted: Mapping[str, str]) -> dict[str, str]:
    return {name: one for name, one in known.items() if name in wanted}


def _still_plugged(known: list[str], wanted: list[str]) -> Iterator[str]:
    """The plugins that stay accepted; of one that is wanted with its servers now, perhaps only without them."""
    for one in wanted:
        lesser = f"{one} {WITHOUT_SERVERS}"
        if one in known or one.removesuffix(f" {WITHOUT_SERVERS}") in known:
            yield one
        elif lesser in known:
            yield lesser


def _bound(wanted: list[str] | None, known: list[str] | None) -> list[str] | None:
    if wanted is None or known is None:
        return known if wanted is None else wanted
    return [one for one in wanted if one in known]


def _lower(known: Maxima, wanted: Maxima) -> dict[str, int]:
    both = {**wanted, **known}
    return {name: min(one, wanted.get(name, one)) for name, one in both.items()}


def is_wider_mode(wanted: str, known: str) -> bool:
    """Whether a permission mode approves more than another."""
    return wanted != known and _rank(wanted) > _rank(known)


def _rank(mode: str) -> int:
    return (
        MODE_RANK.get(PermissionMode(mode), UNRANKED) if mode in set(PermissionMode) else UNRANKED
    )


def is_accepted_directory(path: str, known: AgentGrants, home: str) -> bool:
    """Whether a directory lies in one that the agent was given."""
    return any(
        is_within(absolute(path, home), absolute(directory, home))
        for directory in known.directories
    )


def is_accepted_plugin(plugin: str, known: AgentGrants) -> bool:
    """Whether the plugin was accepted; one that was is accepted without its servers too."""
    return plugin in known.plugins or plugin.removesuffix(f" {WITHOUT_SERVERS}") in known.plugins


def is_accepted_rule(rule: str, known: AgentGrants) -> bool:
    """Whether a rule of `allowed_tools`, or the whole tool it is about, was accepted."""
    return rule in known.allowed_tools or parse_rule(rule).tool in known.allowed_tools


def is_wider_sandbox(wanted: Mapping[str, Any] | None, known: Mapping[str, Any] | None) -> bool:
    """Whether a sandbox that was accepted is gone or different; which of two is wider is unknown."""
    return known is not None and wanted != known


def _unbound(name: str, wanted: list[str] | None, known: list[str] | None) -> Iterator[str]:
    """What a list that restricts leaves out no longer."""
    if known is None:
        return
    if wanted is None:
        yield f"{name} removed"
        return
    yield from (f"{name} {one}" for one in _added(wanted, known))


def _higher(wanted: Maxima, known: Maxima) -> list[str]:
    return [
        f"limit {name} {maximum} -> {wanted.get(name, 'none')}"
        for name, maximum in known.items()
        if name not in wanted or wanted[name] > maximum
    ]


def _new(what: str, wanted: Mapping[str, str], known: Mapping[str, str]) -> Iterator[str]:
    for name, print_ in wanted.items():
        if known.get(name) != print_:
            yield f"{what} {name} {'changed' if name in known else 'is new'}".replace("  ", " ")


def _added(wanted: Iterable[str], known: Iterable[str]) -> list[str]:
    before = set(known)
    return [one for one in wanted if one not in before]
