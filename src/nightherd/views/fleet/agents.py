"""One agent as every surface shows it: how it is set up, its schedules, its limits, and its last failure."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import TYPE_CHECKING, TypedDict

from nightherd.model.agents.agent import Agent
from nightherd.model.jobs.job import JobQuery, JobStatus
from nightherd.model.limits.limits import Limits
from nightherd.model.limits.spending import day_of
from nightherd.model.secrets import Secrets
from nightherd.model.sessions.session import SessionMode
from nightherd.model.units import MicroUsd, to_usd
from nightherd.model.workspaces.policy import Keep, WorkspaceMode, WorkspaceScope
from nightherd.views.costs.limits import LimitRow, limit_row, limits_of_agent
from nightherd.views.fleet.fleet import AgentRow, AgentView, agent_row
from nightherd.views.jobs.jobs import timestamp
from nightherd.views.schedules.rows import ScheduleRow

if TYPE_CHECKING:
    from nightherd.ports import StateReader


class WorkspaceSettingsRow(TypedDict):
    """Where the jobs of an agent work."""

    mode: WorkspaceMode
    scope: WorkspaceScope
    keep: Keep


class ContainerSettingsRow(TypedDict):
    """The container that the jobs of an agent run in."""

    image: str
    network: str
    allowed_hosts: list[str]
    private_hosts: list[str]


class AgentSettings(TypedDict):
    """How an agent is set up, as its files are in effect."""

    model: str | None
    fallback_model: str | None
    effort: str | None
    permission_mode: str
    tools: list[str] | None
    allowed_tools: list[str]
    denied_tools: list[str]
    approvals: list[str]
    mcp_servers: list[str]
    max_concurrent: int
    max_turns: int | None
    job_timeout_seconds: float | None
    session_mode: SessionMode
    working_directory: str
    workspace: WorkspaceSettingsRow
    container: ContainerSettingsRow | None


class SpentTodayRow(TypedDict):
    """What an agent has used since midnight (UTC)."""

    today_usd: float
    today_turns: int
    today_tokens: int


class FailureRow(TypedDict):
    """A failed job, and why it failed."""

    job_id: str
    error: str | None
    ended_at: str | None


class AgentDocument(AgentRow):
    """One agent: how it is set up, its schedules, what it may use and has used today, and its last failure."""

    schedules: list[ScheduleRow]
    settings: AgentSettings | None
    limits: list[LimitRow]
    spent: SpentTodayRow
    last_failure: FailureRow | None


def agent_document(
    reader: StateReader,
    view: AgentView,
    schedules: Sequence[ScheduleRow],
    limits: Limits,
    secrets: Secrets,
    now: datetime,
) -> AgentDocument:
    """The agent as plain data; `limits` are those of one of its jobs."""
    declared, name = view.declared, view.state.name
    used = reader.spent_by_agent(day_of(now)).get(name)
    bounds = () if declared is None else limits_of_agent(declared, limits, reader, now)
    return {
        **agent_row(view),
        "schedules": [*schedules],
        "settings": None if declared is None else settings_row(declared, secrets),
        "limits": [limit_row(one) for one in bounds],
        "spent": {
            "today_usd": 0.0 if used is None else to_usd(MicroUsd(used.spend)),
            "today_turns": 0 if used is None else used.turns,
            "today_tokens": 0 if used is None else used.tokens,
        },
        "last_failure": last_failure(reader, name),
    }


def last_failure(reader: StateReader, agent: str) -> FailureRow | None:
    """The agent's newest failed job."""
    query = JobQuery(agent=agent, status=JobStatus.FAILED, limit=1)
    failed = next(iter(reader.list_jobs(query)), None)
    if failed is None:
        return None
    return {
        "job_id": failed.id,
        "error": failed.error,
        "ended_at": timestamp(failed.finished_at),
    }


def settings_row(agent: Agent, secrets: Secrets) -> AgentSettings:
    """How the agent is set up; known secrets are masked."""

    def shown(texts: Sequence[str]) -> list[str]:
        return [str(secrets.mask(text)) for text in texts]

    timeout, container = agent.job_timeout, agent.container
    return {
        "model": agent.model,
        "fallback_model": agent.fallback_model,
        "effort": agent.effort,
        "permission_mode": agent.permission_mode,
        "tools": None if agent.tools is None else shown(agent.tools),
        "allowed_tools": shown(agent.allowed_tools),
        "denied_tools": shown(agent.denied_tools),
        "approvals": shown([rule.tool for rule in agent.approvals]),
        "mcp_servers": [server.name for server in agent.mcp_servers],
        "max_concurrent": agent.max_concurrent,
        "max_turns": agent.max_turns,
        "job_timeout_seconds": None if timeout is None else timeout.total_seconds(),
        "session_mode": agent.session_mode,
        "working_directory": agent.working_directory,
        "workspace": {
            "mode": agent.workspace.mode,
            "scope": agent.workspace.scope,
            "keep": agent.workspace.keep,
        },
        "container": None
        if container is None
        else {
            "image": container.image,
            "network": container.network.value,
            "allowed_hosts": [f"{host.name}:{host.port}" for host in container.allowed_hosts],
            "private_hosts": [f"{host.name}:{host.port}" for host in container.private_hosts],
        },
    }
