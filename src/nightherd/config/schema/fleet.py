"""The fleet file: who is in the fleet, what they share, how the fleet itself runs, and how it is reached from outside."""

from datetime import timedelta
from typing import Any, Literal

from pydantic import Field

from nightherd.config.schema.agent import Agent, AgentSettings
from nightherd.config.schema.isolation import FleetDocker
from nightherd.config.schema.limits import Limits, Prices, Retry
from nightherd.config.schema.notify import FleetTarget
from nightherd.config.schema.types import (
    Count,
    Filling,
    Flag,
    Inputs,
    Model,
    Name,
    Port,
    Size,
    Span,
    Text,
    Whole,
)
from nightherd.config.schema.web import Web
from nightherd.config.schema.workflow import WorkflowFile
from nightherd.config.schema.workspace import Directory
from nightherd.model.webhooks import BODY_LIMIT


class WebhookEndpoint(Model):
    """One address that messages come in by: /v1/hooks/NAME."""

    agent: Filling | None = Field(
        None, description="Agent that gets the job; not needed where a workflow is started by it."
    )
    schedule: Name | None = Field(
        None, description="Schedule of the agent that is fired; its settings are the job's."
    )
    prompt: Text | None = Field(
        None, description="Prompt, with ${payload.a.b}; by default the agent's default_prompt."
    )
    inputs: Inputs = Field({}, description="Values for ${inputs.NAME}, with ${payload.a.b}.")
    channel: Filling | None = Field(
        None, description="Channel of the session, with ${payload.a.b}, for per_channel agents."
    )
    signature: Literal["github", "standard"] = Field(
        "github", description="How the sender signs: as GitHub, or as Standard Webhooks."
    )
    secret_env: Filling | None = Field(
        None, description="Variable with its secret; by default the shared one."
    )
    events: tuple[Filling, ...] | None = Field(
        None, description="Events it acts on, as in issues.opened; else all."
    )


class Webhooks(Model):
    """Requests from outside that make jobs."""

    enabled: Flag = Field(False, description="Whether a port of their own is listened on.")
    host: Filling = Field("localhost", description="Address to listen on.")
    port: Port = Field(8081, description="Port to listen on.")
    secret_env: Filling | None = Field(None, description="Variable that holds the shared secret.")
    body_limit: Size = Field(BODY_LIMIT, description="Largest accepted body.")
    replay_window: Span = Field(
        timedelta(minutes=5), description="How far a signed time may be from now."
    )
    endpoints: dict[Name, WebhookEndpoint] = Field({}, description="Webhooks, by name.")


class FleetIdentity(Model):
    """What the fleet is called."""

    name: Name | None = Field(None, description="The fleet's name.")
    description: Text | None = Field(None, description="What the fleet is for.")


class AgentReference(Model):
    """An agent that stands in a file of its own."""

    path: Filling = Field(description="The agent's file, relative to this one.")
    overrides: dict[str, Any] | None = Field(
        None, description="Settings that win over those of the agent's file."
    )


class FleetReference(Model):
    """Another fleet, taken in whole; its agents are called fleet.agent."""

    path: Filling = Field(description="The other fleet's file or directory, relative to this file.")
    name: Name | None = Field(
        None,
        description="Name of the sub-fleet here; by default its own name, else its directory's.",
    )
    overrides: dict[str, Any] | None = Field(
        None, description="Fleet settings that win over those of its file."
    )


class FleetSettings(Model):
    """What a fleet file says about the fleet itself."""

    version: Count = Field(1, description="Version of the file format.")
    fleet: FleetIdentity = Field(
        FleetIdentity.model_construct(), description="What the fleet is called."
    )
    limits: Limits | None = Field(None, description="What all its jobs together may use.")
    prices: Prices | None = Field(
        None,
        description="What models cost, by model as agents name it; for native agents, before published prices.",
    )
    max_concurrent: Count | None = Field(
        None, description="Jobs that may run at the same time, all agents together."
    )
    lease: Span = Field(
        timedelta(seconds=30), description="How long a silent worker keeps its jobs."
    )
    heartbeat: Span = Field(
        timedelta(seconds=10),
        description="How often a worker renews its lease; at least three times per lease.",
    )
    cancel_grace: Span = Field(
        timedelta(seconds=10),
        description="How long a cancelled job may take to end before its processes are killed.",
    )
    reload: Literal["ask", "auto"] = Field(
        "ask",
        description="Whether a change that gives agents more permissions waits until a person accepts it, where agents can write the fleet's files; auto applies it at once.",
    )
    max_restarts: Whole = Field(5, description="Number of lost workers after which a job fails.")
    retry: Retry = Field(
        Retry.model_construct(),
        description="How jobs wait for rate limits, overload and outages to pass.",
    )
    durability: Literal["process", "checkpoint", "fsync"] = Field(
        "checkpoint",
        description="What is synced to disk: nothing, submits and ends of jobs, or every event.",
    )
    mirror: Flag = Field(
        True, description="Whether state.yaml and the other readable files are kept."
    )
    webhooks: Webhooks | None = Field(None, description="Requests from outside that make jobs.")
    web: Web | None = Field(None, description="The API on a port, and the dashboard.")
    notify: tuple[FleetTarget, ...] = Field((), description="Where people are told what happens.")


class FleetFile(FleetSettings):
    """A whole fleet file, as editors check it."""

    working_directory: Directory | None = Field(
        None, description="Where agents work that set none; the same as under `defaults`."
    )
    docker: FleetDocker | None = Field(
        None, description="Containers of all agents; `defaults` and the agents win over it."
    )
    defaults: AgentSettings | None = Field(
        None, description="Settings for every agent that does not override them."
    )
    agents: (
        tuple[AgentReference | Agent, ...] | dict[str, AgentReference | AgentSettings] | None
    ) = Field(None, description="The agents: written out here, or in files named by path.")
    fleets: tuple[FleetReference, ...] | None = Field(None, description="Other fleets to take in.")
    workflows: dict[Name, WorkflowFile] | None = Field(
        None, description="Workflows, by name; the others are in workflows/NAME.yaml."
    )
