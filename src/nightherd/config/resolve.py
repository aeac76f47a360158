"""From checked settings to the fleet that runs: the one reader of the schema.

Only what is read here (or by `assemble`, for the keys that name other files) is active; every other key
has a row in `not_active.py`, and a test compares the two.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import timedelta
from typing import Any, assert_never

from msgspec.structs import replace
from pydantic import BaseModel

from nightherd.config.containers import resolve_container
from nightherd.config.merge import like
from nightherd.config.resolve_agent import (
    resolve_hooks,
    resolve_plugins,
    resolve_sandbox,
    resolve_session,
)
from nightherd.config.resolve_chat import chat_schedule, resolve_bots
from nightherd.config.resolve_fleet import (
    limit_hooks,
    resolve_approvals,
    resolve_limits,
    resolve_prices,
    resolve_schedules,
    resolve_web,
    resolve_webhooks,
    within_fleet,
    within_schedule,
)
from nightherd.config.resolve_notify import resolve_targets, with_addresses
from nightherd.config.resolve_workspace import resolve_workspace
from nightherd.config.schema.agent import Agent as AgentSchema
from nightherd.config.schema.agent import McpServer as McpServerSchema
from nightherd.config.schema.fleet import FleetSettings
from nightherd.config.schema.script import (
    AnyStep,
    AskStep,
    BashStep,
    EditStep,
    EndStep,
    FailStep,
    GlobStep,
    GrepStep,
    McpStep,
    OtherStep,
    ReadStep,
    RepeatStep,
    SayStep,
    ScriptUsage,
    SleepStep,
    SpawnStep,
    ThinkStep,
    UsageStep,
    WriteStep,
)
from nightherd.model.agents.agent import Agent, Durability, Fleet, Subagent
from nightherd.model.agents.mcp import McpServer, McpTransport
from nightherd.model.agents.runtime import KnownRuntimes
from nightherd.model.agents.script import (
    End,
    Fail,
    Repeat,
    Say,
    Script,
    Sleep,
    Spend,
    Step,
    Think,
    UseTool,
    compile_script,
)
from nightherd.model.hooks import Hook, Identity
from nightherd.model.jobs.retry import RetryPolicy
from nightherd.model.limits.limits import Limits
from nightherd.model.units import shortest
from nightherd.model.usage import Usage
from nightherd.model.workspaces.repository import Repository, without_credentials

AUTONOMOUS = "autonomous"
INTERACTIVE = "interactive"
FILE_VERSION = 1
"""The version of fleet files that this nightherd reads."""


def is_readable_version(settings: FleetSettings) -> bool:
    """Whether the file is of a version that is understood here."""
    return settings.version == FILE_VERSION


def resolve_fleet(
    settings: FleetSettings,
    agents: Iterable[Agent],
    *,
    file: str,
    files: tuple[str, ...],
    environment: Mapping[str, str],
    dotenv: Mapping[str, str],
) -> Fleet:
    """The fleet of a file, its agents by name in their order."""
    shared = limit_hooks(settings.limits, owner="fleet.limits")
    limits = resolve_limits(settings.limits)
    targets = resolve_targets(settings.notify)
    known = {target.id: target for target in targets}
    return Fleet(
        file=file,
        files=files,
        agents={
            agent.name: with_addresses(of_fleet(agent, shared, limits), known) for agent in agents
        },
        name=settings.fleet.name,
        description=settings.fleet.description,
        environment=environment,
        dotenv=dotenv,
        reload=settings.reload,
        mirror=settings.mirror,
        durability=Durability(settings.durability),
        max_concurrent=settings.max_concurrent,
        lease=settings.lease,
        heartbeat=settings.heartbeat,
        cancel_grace=settings.cancel_grace,
        max_restarts=settings.max_restarts,
        retry=like(settings.retry, RetryPolicy),
        limits=limits,
        prices=resolve_prices(settings.prices),
        web=resolve_web(settings.web),
        webhooks=resolve_webhooks(settings.webhooks),
        notify=targets,
    )


def of_fleet(agent: Agent, shared: tuple[Hook, ...], limits: Limits) -> Agent:
    """The agent with the hooks that all of the fleet have, and within the fleet's limits of each job."""
    if not shared and limits.is_empty:
        return agent
    return replace(
        agent,
        hooks=(*agent.hooks, *shared),
        limits=within_fleet(agent.limits, limits),
        schedules={
            name: replace(one, limits=within_schedule(one.limits, limits))
            for name, one in agent.schedules.items()
        },
    )


def resolve_agent(
    agent: AgentSchema,
    *,
    fleet: tuple[str, ...],
    home: str,
    runtimes: KnownRuntimes,
    repository: Repository | None = None,
) -> Agent:
    """One agent; without a working directory of its own it works at `home`. `repository` is what `repo` names."""
    directory = agent.working_directory
    root = None if directory is None else directory.root
    session = resolve_session(agent.session)
    name = ".".join((*fleet, agent.name))
    return Agent(
        name=name,
        runtime=runtimes.get(agent.runtime),
        working_directory=root or home,
        workspace=resolve_workspace(directory, repository),
        description=agent.description,
        repo=None if agent.repo is None else without_credentials(agent.repo),
        default_prompt=agent.default_prompt,
        script=resolve_script(agent.script),
        session=session,
        schedules=resolve_schedules(
            agent.schedules, agent=name, repository=repository, work=agent.work_source
        ),
        job_timeout=shortest(agent.job_timeout, session.job_timeout),
        max_concurrent=1 if agent.instances is None else agent.instances.max_concurrent,
        model=agent.model or session.model,
        fallback_model=agent.fallback_model,
        effort=agent.effort,
        system_prompt=agent.system_prompt,
        max_turns=agent.max_turns or session.max_turns,
        max_budget_microusd=agent.max_budget_usd,
        permission_mode=agent.permission_mode or "acceptEdits",
        tools=agent.tools,
        allowed_tools=agent.allowed_tools or (),
        denied_tools=agent.denied_tools or (),
        approvals=resolve_approvals(agent.approvals),
        questions=bool(agent.questions) or agent.operation == INTERACTIVE,
        idempotent_tools=agent.idempotent_tools or (),
        required_caps=agent.required_caps,
        mcp_servers=resolve_servers(agent.mcp_servers or {}),
        add_dirs=agent.add_dirs or (),
        setting_sources=setting_sources(agent),
        subagents={name: like(one, Subagent) for name, one in (agent.agents or {}).items()},
        plugins=resolve_plugins(agent.plugins),
        sandbox=resolve_sandbox(agent.sandbox),
        container=resolve_container(agent.docker),
        hooks=(*resolve_hooks(agent.hooks), *limit_hooks(agent.limits)),
        notify=resolve_targets(agent.notify, f"{name}/"),
        limits=resolve_limits(agent.limits),
        operation=agent.operation or AUTONOMOUS,
        identity=None if agent.identity is None else like(agent.identity, Identity),
        metadata_file=agent.metadata_file,
        bots=resolve_bots(agent.chat, agent=name, session=agent.session, schedules=agent.schedules),
        chat_schedule=chat_schedule(agent.schedules or {})[0],
    )


def setting_sources(agent: AgentSchema) -> tuple[str, ...]:
    """An agent that was given a place to work obeys what stands there; another obeys no settings at all."""
    if agent.setting_sources is not None:
        return agent.setting_sources
    directory = agent.working_directory
    return () if directory is None or directory.root is None else ("project",)


def resolve_servers(servers: Mapping[str, McpServerSchema]) -> tuple[McpServer, ...]:
    """The MCP servers of an agent, in their order; how to talk to one follows from what it is."""
    return tuple(
        McpServer(
            name=name,
            transport=McpTransport(server.type or ("stdio" if server.url is None else "http")),
            command=server.command,
            args=server.args,
            env=server.env,
            url=server.url,
            headers=server.headers,
            timeout=server.timeout,
            always_load=server.always_load,
        )
        for name, server in servers.items()
    )


def resolve_script(steps: tuple[AnyStep, ...] | None) -> Script | None:
    """The script, cut into turns."""
    return None if steps is None else compile_script([resolve_step(step) for step in steps])


def resolve_step(step: AnyStep) -> Step:
    """One step as the runtime plays it."""
    match step:
        case SayStep():
            return Say(step.say, step.over or timedelta())
        case ThinkStep():
            return Think(step.think)
        case (
            BashStep()
            | ReadStep()
            | WriteStep()
            | EditStep()
            | GlobStep()
            | GrepStep()
            | SpawnStep()
            | AskStep()
        ):
            return UseTool(step.tool, tool_input(step.input))
        case McpStep():
            return UseTool(step.tool, step.input)
        case SleepStep():
            return Sleep(step.sleep)
        case UsageStep():
            return Spend(resolve_usage(step.usage))
        case FailStep():
            failure = step.fail
            return Fail(failure.code, failure.message, failure.recoverable, failure.retry_after)
        case EndStep(end=True):
            return End()
        case RepeatStep():
            return Repeat(step.repeat, tuple(resolve_step(inner) for inner in step.steps))
        case OtherStep() | EndStep():
            raise AssertionError("a step without a verb passed the schema")
        case _:
            assert_never(step)


def tool_input(given: BaseModel) -> dict[str, Any]:
    """What the tool is called with: what was given, a timeout in milliseconds."""
    values = {name: getattr(given, name) for name in given.__class__.model_fields}
    if isinstance(timeout := values.get("timeout"), timedelta):
        values["timeout"] = round(timeout.total_seconds() * 1_000)
    return {name: value for name, value in values.items() if value is not None}


def resolve_usage(usage: ScriptUsage) -> Usage:
    """Tokens and money of a turn."""
    return Usage(
        input_tokens=usage.input_tokens,
        output_tokens=usage.output_tokens,
        cache_creation_input_tokens=usage.cache_creation_input_tokens,
        cache_read_input_tokens=usage.cache_read_input_tokens,
        cost_microusd=usage.cost_usd,
    )
