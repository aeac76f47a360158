"""`web` and `webhooks`: being reached from outside."""

from datetime import timedelta
from typing import Literal

from pydantic import Field

from nightherd.config.schema.types import (
    Filling,
    Flag,
    Hours,
    Inputs,
    Model,
    Name,
    Port,
    Size,
    Span,
    Text,
)
from nightherd.model.webhooks import BODY_LIMIT


class WebhookEndpoint(Model):
    """One address that messages come in by: /v1/hooks/NAME."""

    agent: Filling = Field(description="Agent that gets the job.")
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


class Web(Model):
    """The API on a port, and the dashboard."""

    enabled: Flag = Field(False, description="Whether it is served on a port.")
    port: Port = Field(3232, description="Port to listen on.")
    host: Filling = Field("localhost", description="Address to listen on.")
    token_env: Filling = Field("NIGHTHERD_WEB_TOKEN", description="Variable with the API token.")
    hosts: tuple[Filling, ...] = Field(
        (), description="Names by which it may be addressed, besides its own."
    )
    session_expiry_hours: Hours = Field(24, description="Hours after which a chat in it ends.")
    open_browser: Flag = Field(False, description="Whether a browser is opened at the start.")
    tool_results: Flag = Field(True, description="Whether results of tools are shown.")
    message_grouping: Literal["separate", "grouped"] = Field(
        "separate", description="Whether messages in a row are shown as one."
    )
