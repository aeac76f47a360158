"""Agent and Fleet: what the fleet file says, resolved. Only what something reads is here."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from datetime import timedelta
from enum import StrEnum
from typing import Any

import msgspec

from nightherd.errors import AgentNotFoundError, RefusedError
from nightherd.model.access.web import Web
from nightherd.model.agents.mcp import McpServer
from nightherd.model.agents.runtime import RuntimeCapabilities, RuntimeName
from nightherd.model.agents.script import Script
from nightherd.model.chat.settings import BotSettings
from nightherd.model.config_value import ConfigValue
from nightherd.model.containers.policy import ContainerPolicy
from nightherd.model.hooks import Hook, Identity
from nightherd.model.inbox.review import ApprovalRule
from nightherd.model.jobs.retry import PATIENT, RetryPolicy
from nightherd.model.limits.limits import NO_LIMITS, Limits
from nightherd.model.limits.spending import Prices
from nightherd.model.notifications.target import NotifyTarget
from nightherd.model.problem import Place, Problem
from nightherd.model.schedules.rule import Schedule
from nightherd.model.sessions.session import SessionMode, SessionTerms
from nightherd.model.units import MicroUsd
from nightherd.model.webhooks import Webhooks
from nightherd.model.workflows.definition import WorkflowDefinition
from nightherd.model.workspaces.policy import SHARED, WorkspacePolicy
from nightherd.next_step import Action, NextStep

WORKFLOW_PREFIX = "workflow:"
"""How the stand-ins of workflows are named; no agent has a name with a colon."""


class Durability(StrEnum):
    """What is on disk, not only with the system, once it is acknowledged. SIGKILL never loses anything."""

    PROCESS = "process"
    """Nothing is synced: a power cut may cost what the system had not written back."""
    CHECKPOINT = "checkpoint"
    """Synced at submits, checkpoints and terminal states."""
    FSYNC = "fsync"
    """Every event and every change is synced before it is acknowledged."""


PLACES = frozenset({"model_place", "declared"})
"""The fields of an agent that say where something was written."""


class Agent(msgspec.Struct, frozen=True, kw_only=True):
    """One declared agent, resolved: defaults merged, variables filled in, paths absolute."""

    name: str
    """Qualified: `fleet.agent` for an agent of a sub-fleet."""
    runtime: RuntimeCapabilities
    """What executes it, and what that can do."""
    working_directory: str
    workspace: WorkspacePolicy = SHARED
    """Whether its jobs work in that directory, or in one made from it."""
    description: str | None = None
    repo: str | None = None
    default_prompt: str | None = None
    script: Script | None = None
    session: SessionTerms = msgspec.field(default_factory=SessionTerms)
    """How its jobs share context, and for how long."""
    schedules: Mapping[str, Schedule] = msgspec.field(default_factory=dict)
    """Rules in time that make jobs of it, by name."""
    job_timeout: timedelta | None = None
    max_concurrent: int = 1
    """How many of its jobs may run at once, whatever started them."""
    model: str | None = None
    fallback_model: str | None = None
    """To be used when the first is not to be had."""
    effort: str | None = None
    """How hard the model thinks; None for the model's own choice."""
    system_prompt: str | None = None
    """Instead of the runtime's own."""
    max_turns: int | None = None
    """Turns a job may take before it fails."""
    max_budget_microusd: MicroUsd | None = None
    """Micro-dollars a job may spend before it fails."""
    permission_mode: str = "acceptEdits"
    tools: tuple[str, ...] | None = None
    """The only tools there are for it; None for all."""
    allowed_tools: tuple[str, ...] = ()
    """Approved beforehand."""
    denied_tools: tuple[str, ...] = ()
    approvals: tuple[ApprovalRule, ...] = ()
    """Calls that a person has to allow first, whatever else allows them."""
    questions: bool = False
    """Whether it may ask a person a question, and waits for the answer."""
    idempotent_tools: tuple[str, ...] = ()
    """Calls that are made again when their worker was lost while they ran (model/jobs/repeat.py)."""
    required_caps: tuple[str, ...] | None = None
    """What it is held to, whatever else allows more; None for no such bound (model/permissions/tool_rule.py)."""
    mcp_servers: tuple[McpServer, ...] = ()
    """Where more tools come from."""
    add_dirs: tuple[str, ...] = ()
    """More directories it may use."""
    setting_sources: tuple[str, ...] = ()
    """Which of Claude's own settings files it obeys."""
    project_settings: Mapping[str, str] = msgspec.field(default_factory=dict)
    """Fingerprints of those that lie in its working directory, by name."""
    subagents: Mapping[str, Subagent] = msgspec.field(default_factory=dict)
    """Helpers it may call on, by name."""
    plugins: tuple[Plugin, ...] = ()
    sandbox: Mapping[str, Any] | None = None
    """How its commands are confined, in Claude's own words."""
    container: ContainerPolicy | None = None
    """What its jobs run in; None for this machine itself."""
    hooks: tuple[Hook, ...] = ()
    """What is done when one of its jobs has ended, or waits."""
    notify: tuple[NotifyTarget, ...] = ()
    """Where people are told what happens to its jobs, besides the fleet's targets."""
    bots: tuple[BotSettings, ...] = ()
    """Its bots on chat platforms: what people reach it by."""
    chat_schedule: str | None = None
    """Its schedule of type `chat`: what turns of conversations are like; None without one."""
    limits: Limits = NO_LIMITS
    """What each of its jobs may use, and all of them in a day."""
    operation: str = "autonomous"
    """How much it does by itself; an autonomous agent asks no person."""
    identity: Identity | None = None
    metadata_file: str | None = None
    """A JSON file in the working directory that hooks may look into."""
    blocked_by: tuple[Problem, ...] = ()
    """Settings that protect and cannot be honoured, located: none of its jobs may run."""
    model_place: Place | None = None
    """Where its model is named, else its runtime, else the agent itself."""
    declared: Callable[[], Declared] | None = None
    """Reads what its files say, value by value; None for an agent that no file declares."""

    @property
    def blocked_text(self) -> str | None:
        """Why none of its jobs may run, and where that is declared; None when they may."""
        if not self.blocked_by:
            return None
        problem = self.blocked_by[0]
        return f"does not run: {problem.message} ({problem.place})"

    @property
    def session_mode(self) -> SessionMode:
        """How its jobs share context."""
        return self.session.mode

    def __eq__(self, other: object) -> bool:
        """Compare all but the places of its values: an agent that only moved in its file is the same."""
        if not isinstance(other, Agent):
            return NotImplemented
        fields = (name for name in self.__struct_fields__ if name not in PLACES)
        return all(getattr(self, name) == getattr(other, name) for name in fields)

    def __hash__(self) -> int:
        return hash(self.name)


class Declared(msgspec.Struct, frozen=True, kw_only=True):
    """What the files say of an agent, before anything is held back or added for a single job."""

    values: tuple[ConfigValue, ...]
    """Its own settings, each with its place."""
    fleet: tuple[ConfigValue, ...]
    """The fleet's limits of each job."""
    own_limits: Limits
    """Its own limits, without those of the fleet."""
    agent: Agent
    """The agent that follows from all of it."""


class Fleet(msgspec.Struct, frozen=True, kw_only=True):
    """The declared set of agents, and what they share."""

    file: str
    agents: Mapping[str, Agent]
    """By qualified name, in the order of the file."""
    withheld: frozenset[str] = frozenset()
    """Agents of the file that are left out until a person accepts them."""
    name: str | None = None
    description: str | None = None
    files: tuple[str, ...] = ()
    """Every file it was loaded from."""
    workflows: Mapping[str, WorkflowDefinition] = msgspec.field(default_factory=dict)
    """By qualified name."""
    withheld_workflows: frozenset[str] = frozenset()
    """Workflows of the files that are left out until a person accepts them."""
    environment: Mapping[str, str] = msgspec.field(default_factory=dict)
    """What `.env` adds to the environment of agents; the process's own variables win."""
    dotenv: Mapping[str, str] = msgspec.field(default_factory=dict)
    """Everything that `.env` says."""
    reload: str = "ask"
    """`ask`: a change that gives agents more waits for a person, where agents may write the fleet's files; or `auto`."""
    mirror: bool = True
    """Whether the readable files are kept."""
    durability: Durability = Durability.CHECKPOINT
    max_concurrent: int | None = None
    """How many jobs may run at once, all agents together; None for as many as there are."""
    lease: timedelta = timedelta(seconds=30)
    heartbeat: timedelta = timedelta(seconds=10)
    cancel_grace: timedelta = timedelta(seconds=10)
    """How long what is cancelled may take to end before it is killed."""
    limits: Limits = NO_LIMITS
    """What all jobs together may use, ever and in a day."""
    prices: Prices = msgspec.field(default_factory=dict)
    """What models cost, as the fleet file declares it."""
    max_restarts: int = 5
    retry: RetryPolicy = PATIENT
    """What is done about failures that can pass."""
    secret_variables: frozenset[str] = frozenset()
    """Variables that hold secrets, as keys such as `token_env` and `secret_env` name them."""
    web: Web = msgspec.field(default_factory=Web)
    webhooks: Webhooks = msgspec.field(default_factory=Webhooks)
    notify: tuple[NotifyTarget, ...] = ()
    """Where people are told what happens."""

    @property
    def opens_port(self) -> bool:
        """Whether requests from outside can reach its daemon."""
        return self.web.enabled or self.webhooks.enabled

    @property
    def scheduled(self) -> Mapping[str, Agent]:
        """Everything that has schedules: the agents, and a stand-in `workflow:NAME` for each workflow with some."""
        return {**self.agents, **workflow_agents(self.workflows)}

    @property
    def standing(self) -> dict[str, str | None]:
        """Every agent's name with the reason why none of its jobs may run."""
        return {name: agent.blocked_text for name, agent in self.agents.items()}

    def __repr__(self) -> str:
        # What `.env` says may be secret.
        return f"Fleet(file={self.file!r}, agents={list(self.agents)!r})"


def workflow_agents(workflows: Mapping[str, WorkflowDefinition]) -> dict[str, Agent]:
    """Return a stand-in for each workflow that has schedules, under which they are planned and shown."""
    found: dict[str, Agent] = {}
    for name, workflow in workflows.items():
        if workflow.triggers.schedules:
            schedules = {
                key: Schedule(
                    name=key,
                    rule=one.rule,
                    timezone=one.timezone,
                    prompt=f"Run workflow {name}.",
                    inputs=one.inputs,
                )
                for key, one in workflow.triggers.schedules.items()
            }
            found[f"{WORKFLOW_PREFIX}{name}"] = Agent(
                name=f"{WORKFLOW_PREFIX}{name}",
                runtime=RuntimeCapabilities(name=RuntimeName("workflow")),
                working_directory=workflow.working_directory or "",
                schedules=schedules,
            )
    return found


def get_agent(
    agents: Mapping[str, Agent], name: str, withheld: Collection[str] = frozenset()
) -> Agent:
    """The agent of that name, which the fleet has to have. `RefusedError` for one that no person has accepted."""
    agent = agents.get(name)
    if agent is not None:
        return agent
    if name in withheld:
        raise RefusedError(
            f"agent {name!r} is new or has another runtime, and the change has not been accepted",
            next_step=NextStep(Action.ACCEPT_CONFIG),
        )
    raise AgentNotFoundError(f"the fleet has no agent {name!r}")


class Subagent(msgspec.Struct, frozen=True, kw_only=True):
    """A helper that the agent may call on by itself."""

    description: str
    prompt: str
    tools: tuple[str, ...] | None = None
    """The only tools there are for it; None for all of the agent's."""
    model: str | None = None

    def in_claudes_words(self) -> dict[str, Any]:
        """The definition as Claude takes it."""
        said: dict[str, Any] = {"description": self.description, "prompt": self.prompt}
        if self.tools is not None:
            said["tools"] = list(self.tools)
        if self.model is not None:
            said["model"] = self.model
        return said


class Plugin(msgspec.Struct, frozen=True, kw_only=True):
    """A directory with skills, commands, hooks and servers in Claude's own form."""

    path: str
    has_mcp_servers: bool = True
    """Whether the servers it brings are started too."""
