"""An agent: every key of an agent file, of an inline agent, and (but for the name) of `defaults`; its MCP servers and plugins."""

from typing import Annotated, Literal, Self

from pydantic import BeforeValidator, Field, model_validator

from nightherd.config.schema.chat import Chat
from nightherd.config.schema.hooks import Hooks
from nightherd.config.schema.inbox import Approval
from nightherd.config.schema.isolation import AgentDocker, FleetDocker, Sandbox
from nightherd.config.schema.limits import Limits
from nightherd.config.schema.notify import NotifyTarget
from nightherd.config.schema.schedule import NamedSchedule, Schedule, Session
from nightherd.config.schema.script import Steps
from nightherd.config.schema.types import (
    AllowRule,
    Count,
    DenyRule,
    Environment,
    Filling,
    Flag,
    Model,
    Money,
    Name,
    ServerName,
    Span,
    Text,
    Texts,
    Timeout,
    ToolName,
    refuse,
    shaped,
)
from nightherd.config.schema.work import WorkSource
from nightherd.config.schema.workspace import Directory


class McpServer(Model):
    """One MCP server: a process to start, or an address to connect to."""

    type: Literal["stdio", "sse", "http"] | None = Field(
        None, description="Transport of the server; http if there is a url, else stdio."
    )
    command: Filling | None = Field(None, description="Program to start.")
    args: Texts = Field((), description="Its arguments.")
    env: Environment = Field({}, description="Variables for its environment.")
    url: Filling | None = Field(None, description="Address to connect to.")
    headers: Environment = Field({}, description="HTTP headers to send.")
    timeout: Timeout | None = Field(
        None, description="How long a call may take: a duration, or milliseconds."
    )
    always_load: Flag | None = Field(
        None,
        alias="alwaysLoad",
        description="Whether its tools are offered from the first turn on.",
    )

    @model_validator(mode="after")
    def command_or_url(self) -> Self:
        """Either a process or an address, and the type that goes with it."""
        if (self.command is None) == (self.url is None):
            has = "both" if self.command is not None else "neither"
            raise refuse(
                "incomplete", f"an MCP server has either 'command' or 'url'; this has {has}"
            )
        if self.type is not None and (self.type == "stdio") != (self.command is not None):
            wanted = "command" if self.type == "stdio" else "url"
            raise refuse(
                "incomplete", f"an MCP server of type {self.type} needs {wanted!r}", key="type"
            )
        return self


class Plugin(Model):
    """One plugin directory."""

    type: Literal["local"] = Field("local", description="Where it comes from.")
    path: Filling = Field(description="Its directory.")
    skip_mcp_discovery: Flag = Field(
        False, alias="skipMcpDiscovery", description="Whether its own MCP servers are left alone."
    )


def from_path(value: object) -> object:
    """A bare text is the plugin's directory."""
    return {"path": value} if isinstance(value, str) else value


AnyPlugin = Annotated[Plugin, BeforeValidator(from_path, json_schema_input_type=Text | Plugin)]


PermissionMode = Literal[
    "default", "acceptEdits", "bypassPermissions", "plan", "delegate", "dontAsk", "auto", "manual"
]

DEFAULT_RUNTIME = "sdk"
"""What executes an agent that names no runtime."""

Capability = Annotated[
    str,
    shaped(
        r"nightherd\.(tool|mcp|spawn)\.[A-Za-z0-9_.*-]+",
        "a capability; write nightherd.tool.NAME, nightherd.mcp.SERVER.TOOL or nightherd.spawn.AGENT",
    ),
]


class Identity(Model):
    """Who the agent is to people."""

    name: Text | None = Field(None, description="Name shown in messages.")
    role: Text | None = Field(None, description="Purpose of the agent.")
    personality: Text | None = Field(None, description="How it speaks.")


class Instances(Model):
    """How many of an agent's jobs run at a time."""

    max_concurrent: Count = Field(
        1, description="Jobs of this agent that may run at the same time."
    )


class Subagent(Model):
    """A helper the agent may call on by itself."""

    description: Filling = Field(description="When to call on it.")
    prompt: Filling = Field(description="Role the agent takes.")
    tools: Texts | None = Field(None, description="Tools it may use; else all of the agent's.")
    model: Text | None = Field(None, description="Model it uses.")


def as_it_is(value: object) -> object:
    """Nothing to do: the other spelling was turned into this one before."""
    return value


Script = Annotated[Steps, BeforeValidator(as_it_is, json_schema_input_type=Steps | Text)]
Schedules = Annotated[
    dict[Name, Schedule],
    BeforeValidator(
        as_it_is, json_schema_input_type=dict[str, Schedule] | tuple[NamedSchedule, ...]
    ),
]


class AgentSettings(Model):
    """All settings of an agent except its name; `defaults` takes the same."""

    description: Text | None = Field(None, description="What the agent is for.")
    working_directory: Directory | None = Field(
        None, description="Where it works; else the directory of the file that declares it."
    )
    repo: Text | None = Field(
        None,
        description="Repository it works on: owner/name on GitHub, an address, or a path; ${repo} in prompts.",
    )
    runtime: Filling = Field(
        DEFAULT_RUNTIME,
        description="What executes it: one of these, or a runtime that an installed package adds.",
    )
    script: Script | None = Field(
        None, description="Steps of a scripted agent: a list, or a file with the list."
    )
    default_prompt: Text | None = Field(None, description="Prompt of a job that is given none.")
    system_prompt: Text | None = Field(None, description="System prompt of every job.")
    session: Session = Field(Session.model_construct(), description="How jobs share context.")
    schedules: Schedules | None = Field(
        None, description="Rules in time: a mapping by name, or a list with names."
    )
    job_timeout: Span | None = Field(None, description="How long any of its jobs may run.")
    limits: Limits | None = Field(None, description="Limits of each job.")
    max_turns: Count | None = Field(None, description="Turns a job may take before it fails.")
    max_budget_usd: Money | None = Field(
        None, description="Dollars a job may spend before it fails."
    )
    model: Text | None = Field(None, description="Model it uses.")
    fallback_model: Text | None = Field(
        None, description="Model to use when the first is unavailable."
    )
    effort: Literal["low", "medium", "high", "max"] | None = Field(
        None, description="How hard the model thinks."
    )
    permission_mode: PermissionMode | None = Field(
        None, description="Which tool calls are allowed without approval; acceptEdits by default."
    )
    tools: tuple[ToolName, ...] | None = Field(
        None, description="The only tools there are for it, beside those of its MCP servers."
    )
    allowed_tools: tuple[AllowRule, ...] | None = Field(
        None, description="Rules for calls approved beforehand: `Read`, `Bash(git *)`, `mcp__x__*`."
    )
    denied_tools: tuple[DenyRule, ...] | None = Field(
        None, description="Rules for calls that are never made, whatever allows them."
    )
    idempotent_tools: tuple[AllowRule, ...] | None = Field(
        None,
        description="Rules for tool calls that are repeated if their worker was lost while they ran.",
    )
    required_caps: tuple[Capability, ...] | None = Field(
        None, description="Capabilities the agent is limited to; an empty list allows nothing."
    )
    mcp_servers: dict[ServerName, McpServer] | None = Field(
        None, description="MCP servers by name."
    )
    plugins: tuple[AnyPlugin, ...] | None = Field(None, description="Plugin directories.")
    agents: dict[str, Subagent] | None = Field(None, description="Helpers it may call on, by name.")
    add_dirs: Texts | None = Field(None, description="More directories it may use.")
    sandbox: Sandbox | None = Field(None, description="How its commands are confined.")
    setting_sources: tuple[Literal["user", "project", "local"], ...] | None = Field(
        None, description="Which of Claude's own settings files it obeys."
    )
    docker: FleetDocker | None = Field(None, description="Running it in a container.")
    instances: Instances | None = Field(None, description="How many of its jobs run at a time.")
    operation: Literal["autonomous", "review", "interactive"] | None = Field(
        None,
        description="autonomous; review: a person allows every call that is not read-only; interactive: it may ask people.",
    )
    approvals: tuple[Approval, ...] | None = Field(
        None, description="Calls that a person has to allow first."
    )
    questions: bool | None = Field(
        None, description="Whether it may ask a person (tool ask_person) and wait for the answer."
    )
    identity: Identity | None = Field(None, description="How the agent presents itself to people.")
    work_source: WorkSource | None = Field(
        None, description="Where the work of its schedules comes from."
    )
    metadata_file: Filling | None = Field(
        None, description="JSON file in the working directory that hooks may look into."
    )
    hooks: Hooks | None = Field(None, description="What happens after its jobs.")
    notify: tuple[NotifyTarget, ...] | None = Field(
        None,
        description="Where people are told what happens to its jobs, besides the fleet's targets.",
    )
    chat: Chat | None = Field(None, description="Chat platforms where people reach the agent.")

    @model_validator(mode="after")
    def schedules_have_one_name(self) -> Self:
        """A `name` inside the mapping form may only repeat the key."""
        for key, schedule in (self.schedules or {}).items():
            if schedule.name not in (None, key):
                message = (
                    f"schedule {key!r} has the different name {schedule.name!r}; give one of them"
                )
                raise refuse("conflict", message, key="schedules")
        return self

    @model_validator(mode="after")
    def one_spelling_of_each_limit(self) -> Self:
        """`max_turns` and `limits.turns` are two spellings of one limit, as are the two of spending."""
        limits = self.limits
        if limits is None:
            return self
        in_session = self.session.max_turns is not None
        if limits.turns is not None and (self.max_turns is not None or in_session):
            other = "max_turns" if self.max_turns is not None else "session.max_turns"
            raise refuse(
                "conflict",
                f"{other!r} and 'limits.turns' set the same limit; use only one",
                key=other,
            )
        if limits.spend is not None and self.max_budget_usd is not None:
            message = "'max_budget_usd' and 'limits.spend' set the same limit; use only one"
            raise refuse("conflict", message, key="max_budget_usd")
        return self


class Agent(AgentSettings):
    """One agent."""

    name: Name = Field(description="Its name: letters, digits, _ and -.")


class AgentFile(Agent):
    """An agent in a file of its own, which may not open its container."""

    docker: AgentDocker | None = Field(None, description="Running it in a container.")  # type: ignore[assignment] # a smaller set of keys than the fleet file's, on purpose
