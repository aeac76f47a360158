"""Grants: what a configuration lets agents do, in a form that can be recorded and compared.

A person accepts grants; a later configuration that grants more takes effect only after it was accepted too
(model/permissions/widening.py). Prompts, scripts, models and times of schedules grant nothing. What may hold secrets is
recorded as a fingerprint.
"""

from __future__ import annotations

import posixpath
from collections.abc import Iterable, Mapping
from datetime import timedelta
from typing import Any

import msgspec

from nightherd.model.access.web import APPEARANCE, Web
from nightherd.model.agents.agent import Agent, Fleet, Plugin
from nightherd.model.agents.mcp import McpServer
from nightherd.model.hooks import Hook
from nightherd.model.inbox.review import ApprovalRule
from nightherd.model.limits.limits import DayLimits, LimitName, Limits
from nightherd.model.notifications.routing import targets_of
from nightherd.model.notifications.target import NotifyTarget
from nightherd.model.permissions.bots import bot_grants
from nightherd.model.permissions.containers import ContainerGrants, container_grants
from nightherd.model.permissions.fingerprint import absolute, fingerprint, is_within, relative
from nightherd.model.permissions.permission import PermissionMode
from nightherd.model.permissions.tool_rule import BASH
from nightherd.model.permissions.workflows import workflow_directories, workflow_fingerprint
from nightherd.model.schedules.jobs import for_schedule
from nightherd.model.units import ONE_MS
from nightherd.model.work.source import WorkSource
from nightherd.model.workspaces.policy import CloneTerms, WorkspaceMode, WorkspacePolicy

PROJECT_SOURCES = frozenset({"project", "local"})
"""Settings sources of Claude that lie in the working directory."""
PER_DAY = "per_day."
WITHOUT_SERVERS = "(without its MCP servers)"
FIRST_WEB_KEYS = frozenset({"enabled", "host", "port", "token_env", "hosts"})
"""Keys of `web` that count whatever their value is."""

OF_ATTEMPTS = frozenset({"max_attempts", "cleanup_on_failure", "cleanup_in_progress"})
"""Keys of a work source that say when an issue is given back; each job is held to its limits anyway."""

Maxima = Mapping[str, int]
"""Limits by name; one that is not there is no limit."""


class AgentGrants(msgspec.Struct, frozen=True, kw_only=True):
    """What one agent is given."""

    runtime: str
    permission_mode: str
    directories: list[str]
    """The working directory first; those below the fleet file's directory are relative to it."""
    tools: list[str] | None = None
    required_caps: list[str] | None = None
    allowed_tools: list[str] = []
    denied_tools: list[str] = []
    approvals: list[ApprovalRule] = []
    """Calls that a person has to allow first."""
    operation: str = "autonomous"
    setting_sources: list[str] = []
    project_settings: dict[str, str] = {}
    """Claude's settings files in the working directory, by name."""
    plugins: list[str] = []
    mcp_servers: dict[str, str] = {}
    hooks: list[str] = []
    sandbox: dict[str, Any] | None = None
    container: ContainerGrants | None = None
    """None for an agent that runs on the machine itself."""
    blocked_by: list[str] = []
    """Protections it asks for that cannot be given: it does not run."""
    maxima: dict[str, int] = {}
    schedules: dict[str, dict[str, int]] = {}
    """Limits of the jobs of each schedule, and of all of them in a day."""
    workspace: str = WorkspaceMode.SHARED.value
    """Whether its jobs work in the directory itself, or in one of their own."""
    schedule_workspaces: dict[str, str] = {}
    """The same of schedules that differ."""
    setup: list[str] = []
    """Commands that prepare workspaces."""
    clones: list[str] | None = None
    """What its directories are cloned from; None on a record from before there were clones."""
    work: list[str] = []
    """Where its schedules take issues from, and what is written there with which token."""
    bots: dict[str, str] = {}
    """Who reaches it on a chat platform, and who answers for it there, by platform."""


class FleetGrants(msgspec.Struct, frozen=True, kw_only=True):
    """What a whole fleet is given."""

    agents: dict[str, AgentGrants]
    environment: dict[str, str] = {}
    """Variables of `.env`."""
    maxima: dict[str, int] = {}
    prices: dict[str, str] = {}
    web: str | None = None
    """Where the API is served on a port; None when it is not."""
    webhooks: dict[str, str] = {}
    notify: dict[str, str] = {}
    """Where notifications go, by target."""
    workflows: dict[str, str] = {}
    workflow_directories: list[str] = []
    """Where workflows have their agents work."""
    reload: str = "ask"


def grants_of(fleet: Fleet) -> FleetGrants:
    """What the configuration of `fleet` gives its agents."""
    home = posixpath.dirname(fleet.file)
    webhooks = {name: fingerprint(one) for name, one in fleet.webhooks.endpoints.items()}
    if fleet.webhooks.enabled:
        webhooks[""] = fingerprint([fleet.webhooks.host, fleet.webhooks.port])
    return FleetGrants(
        agents={name: agent_grants(agent, home) for name, agent in fleet.agents.items()},
        environment={name: fingerprint(value) for name, value in fleet.dotenv.items()},
        maxima={
            **_maxima(fleet.limits),
            **_said(
                max_concurrent=fleet.max_concurrent,
                replay_window=_milliseconds(fleet.webhooks.replay_window),
            ),
        },
        prices={name: fingerprint(one) for name, one in fleet.prices.items()},
        web=web_fingerprint(fleet.web) if fleet.web.enabled else None,
        webhooks=webhooks,
        notify={name: target_fingerprint(one) for name, one in targets_of(fleet).items()},
        workflows={name: workflow_fingerprint(one, home) for name, one in fleet.workflows.items()},
        workflow_directories=workflow_directories(fleet.workflows, home),
        reload=fleet.reload,
    )


def agent_grants(agent: Agent, home: str) -> AgentGrants:
    """What the agent, of a fleet file in the directory `home`, is given."""
    return AgentGrants(
        runtime=agent.runtime.name,
        permission_mode=agent.permission_mode,
        directories=[relative(one, home) for one in _directories(agent)],
        tools=_listed(agent.tools),
        required_caps=_listed(agent.required_caps),
        allowed_tools=sorted(agent.allowed_tools),
        denied_tools=sorted(agent.denied_tools),
        approvals=all_approvals(agent),
        operation=agent.operation,
        setting_sources=sorted(agent.setting_sources),
        project_settings=dict(agent.project_settings),
        plugins=sorted(plugin_grant(plugin, home) for plugin in agent.plugins),
        mcp_servers={server.name: server_fingerprint(server) for server in agent.mcp_servers},
        hooks=sorted({hook_fingerprint(hook) for hook in _hooks(agent)}),
        sandbox=None if agent.sandbox is None else dict(agent.sandbox),
        container=container_grants(agent.container, home),
        blocked_by=sorted(
            {one.path.removeprefix(f"agents.{agent.name}.") for one in agent.blocked_by}
        ),
        maxima=agent_maxima(agent),
        schedules={name: schedule_maxima(agent, name) for name in agent.schedules},
        workspace=agent.workspace.mode.value,
        schedule_workspaces={
            name: one.workspace.mode.value
            for name, one in agent.schedules.items()
            if one.workspace is not None and one.workspace.mode is not agent.workspace.mode
        },
        setup=sorted({fingerprint(one) for policy in _policies(agent) for one in policy.setup}),
        clones=sorted(
            {clone_fingerprint(one.clone) for one in _policies(agent) if one.clone is not None}
        ),
        work=sorted(
            {work_fingerprint(one.work) for one in agent.schedules.values() if one.work is not None}
        ),
        bots=bot_grants(agent.bots),
    )


def _directories(agent: Agent) -> Iterable[str]:
    """The working directory first."""
    yield from (agent.working_directory, *agent.add_dirs)
    for schedule in agent.schedules.values():
        if schedule.working_directory not in (None, agent.working_directory):
            yield schedule.working_directory


def _policies(agent: Agent) -> Iterable[WorkspacePolicy]:
    yield agent.workspace
    for schedule in agent.schedules.values():
        if schedule.workspace is not None:
            yield schedule.workspace


def clone_fingerprint(terms: CloneTerms) -> str:
    """Which repository and branch it is; a new token opens the same one."""
    return fingerprint([terms.url, terms.branch])


def work_fingerprint(source: WorkSource) -> str:
    """Which issues are taken, and what becomes of them; how often one is tried is not compared."""
    terms = {key: one for key, one in source.terms().items() if key not in OF_ATTEMPTS}
    return fingerprint(["work", terms])


def all_approvals(agent: Agent) -> list[ApprovalRule]:
    """The approval rules of the agent and of its schedules, each once."""
    of_schedules = (one for schedule in agent.schedules.values() for one in schedule.approvals)
    return list(dict.fromkeys((*agent.approvals, *of_schedules)))


def agent_maxima(agent: Agent) -> dict[str, int]:
    """The limits of each job of the agent."""
    return {
        **_maxima(agent.limits),
        **_said(
            max_turns=agent.max_turns,
            max_budget_usd=agent.max_budget_microusd,
            job_timeout=_milliseconds(agent.job_timeout),
            max_concurrent=agent.max_concurrent,
        ),
    }


def schedule_maxima(agent: Agent, name: str) -> dict[str, int]:
    """The limits of each job of a schedule, and those of a day that the schedule has of its own."""
    days = _maxima(Limits(per_day=agent.schedules[name].limits.per_day))
    return {**of_each_job(agent_maxima(for_schedule(agent, name))), **days}


def of_each_job(maxima: Maxima) -> dict[str, int]:
    """The limits without those of a day, which all jobs of the agent share."""
    return {name: one for name, one in maxima.items() if not name.startswith(PER_DAY)}


def _hooks(agent: Agent) -> Iterable[Hook]:
    yield from agent.hooks
    for schedule in agent.schedules.values():
        yield from schedule.hooks


def hook_fingerprint(hook: Hook) -> str:
    """What the hook does, wherever it stands."""
    return fingerprint(hook.action)


def target_fingerprint(target: NotifyTarget) -> str:
    """Where the target's messages go, which private hosts may be reached for it, and for whom it answers."""
    where = [target.url, target.url_env, sorted(target.allow_hosts)]
    return fingerprint(where if target.approver is None else [*where, target.approver])


def web_fingerprint(web: Web) -> str:
    """Where the API is served, where answer links lead and who is let in.

    A key that is not set changes nothing: what was accepted before there was such a key still is.
    """
    usual = Web()
    fields = {
        name: getattr(web, name)
        for name in web.__struct_fields__
        if name not in APPEARANCE
        and (name in FIRST_WEB_KEYS or getattr(web, name) != getattr(usual, name))
    }
    return fingerprint(["Web", fields])


def plugin_grant(plugin: Plugin, home: str) -> str:
    """Where the plugin is, and whether the servers it brings are left out."""
    path = relative(plugin.path, home)
    return path if plugin.has_mcp_servers else f"{path} {WITHOUT_SERVERS}"


def server_fingerprint(server: McpServer) -> str:
    """What the server is: a process with its environment, or an address."""
    return fingerprint([server.command, server.args, server.env, server.url, server.headers])


def may_run_commands(grants: AgentGrants) -> bool:
    """Whether the agent has a shell, as far as its configuration shows."""
    if grants.permission_mode == PermissionMode.PLAN:
        return False
    if grants.permission_mode in (PermissionMode.BYPASS, PermissionMode.AUTO):
        return grants.tools is None or BASH in grants.tools
    return any(rule == BASH or rule.startswith(f"{BASH}(") for rule in grants.allowed_tools)


def may_write(grants: FleetGrants, home: str, file: str) -> bool:
    """Whether an agent may be able to write `file`: it lies where agents work, or one has a shell."""
    agents = grants.agents.values()
    containers = (agent.container for agent in agents if agent.container is not None)
    directories = [
        *(one for agent in agents for one in agent.directories),
        *(one.source for container in containers for one in container.volumes),
    ]
    return any(may_run_commands(agent) for agent in agents) or any(
        is_within(file, absolute(directory, home))
        for directory in (*directories, *grants.workflow_directories)
    )


def _maxima(limits: Limits) -> dict[str, int]:
    own = {name.value: limits.maximum(name) for name in LimitName}
    days = {f"{PER_DAY}{name}": limits.per_day.maximum(LimitName(name)) for name in _day_names()}
    return _said(**own, **days)


def _day_names() -> tuple[str, ...]:
    return DayLimits.__struct_fields__


def _milliseconds(duration: timedelta | None) -> int | None:
    return None if duration is None else duration // ONE_MS


def _listed(values: tuple[str, ...] | None) -> list[str] | None:
    return None if values is None else sorted(values)


def _said(**values: int | None) -> dict[str, int]:
    return {name: value for name, value in values.items() if value is not None}
