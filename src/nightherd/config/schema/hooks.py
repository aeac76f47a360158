"""`hooks`: what happens after a job."""

from datetime import timedelta
from typing import Annotated, Any, Literal

from pydantic import ConfigDict, Discriminator, Field, Tag

from nightherd.config.schema.types import (
    Anything,
    Count,
    Environment,
    Filling,
    Flag,
    Inputs,
    Model,
    Text,
    Timeout,
)

HookEvent = Literal["completed", "failed", "timeout", "cancelled", "suspended"]
KINDS = ("shell", "webhook", "discord", "slack", "agent")


class Hook(Model):
    """What every hook has."""

    name: Text | None = Field(None, description="Name for logs.")
    continue_on_error: Flag = Field(
        True, description="Whether a failure of the hook is only recorded."
    )
    on_events: tuple[HookEvent, ...] | None = Field(
        None, description="Outcomes it runs for; else all of its list."
    )
    when: Filling | None = Field(
        None, description="Dotted path into the job's context that must be true."
    )
    retry: Flag = Field(
        False, description="Whether the hook runs again if its worker was lost while it ran."
    )


class ShellHook(Hook):
    """A command, given the job's context on standard input."""

    type: Literal["shell"] = Field(description="A command.")
    command: Filling = Field(description="Command to run.")
    timeout: Timeout = Field(
        timedelta(seconds=30), description="How long it may take: a duration, or milliseconds."
    )


class WebhookHook(Hook):
    """An HTTP request with the job's context."""

    type: Literal["webhook"] = Field(description="An HTTP request.")
    url: Filling = Field(description="Address to send to.")
    method: Literal["POST", "PUT"] = Field("POST", description="HTTP method.")
    headers: Environment = Field({}, description="HTTP headers to send.")
    timeout: Timeout = Field(
        timedelta(seconds=10), description="How long it may take: a duration, or milliseconds."
    )
    secret_env: Filling | None = Field(
        None, description="Variable that holds the secret to sign with."
    )
    attempts: Count = Field(3, description="Maximum number of attempts.")
    body: Anything | None = Field(
        None,
        description="What is sent instead of the whole context, with ${job.id} and the like: a text, or values for JSON.",
    )


class DiscordHook(Hook):
    """A message to a Discord channel."""

    type: Literal["discord"] = Field(description="A Discord message.")
    channel_id: Filling = Field(description="Channel to write to.")
    bot_token_env: Filling = Field(description="Variable that holds the bot's token.")


class SlackHook(Hook):
    """A message to a Slack channel."""

    type: Literal["slack"] = Field(description="A Slack message.")
    channel_id: Filling = Field(description="Channel to write to.")
    bot_token_env: Filling = Field(
        "SLACK_BOT_TOKEN", description="Variable that holds the bot's token."
    )


class AgentHook(Hook):
    """Another agent to submit."""

    type: Literal["agent"] = Field(description="Another agent.")
    directive: Filling = Field(description="Agent that is submitted.")
    inputs: Inputs = Field({}, description="Values for its ${inputs.NAME}.")


class UnknownHook(Hook):
    """A hook whose type is missing or not one of ours: only says which types there are."""

    model_config = ConfigDict(
        extra="ignore"
    )  # its other keys may be right for the type that was meant

    type: Literal["shell", "webhook", "discord", "slack", "agent"] = Field(
        description="Kind of hook."
    )


def kind_of(value: Any) -> str:
    """Which model describes this hook, so that one mistake is one problem."""
    kind = value.get("type") if isinstance(value, dict) else getattr(value, "type", None)
    return f"({kind})" if kind in KINDS else "(unknown)"


AnyHook = Annotated[
    Annotated[ShellHook, Tag("(shell)")]
    | Annotated[WebhookHook, Tag("(webhook)")]
    | Annotated[DiscordHook, Tag("(discord)")]
    | Annotated[SlackHook, Tag("(slack)")]
    | Annotated[AgentHook, Tag("(agent)")]
    | Annotated[UnknownHook, Tag("(unknown)")],
    Discriminator(kind_of),
]


class Hooks(Model):
    """What happens after a job, in order."""

    after_run: tuple[AnyHook, ...] = Field((), description="After every job.")
    on_error: tuple[AnyHook, ...] = Field((), description="After a job that failed.")
    on_suspend: tuple[AnyHook, ...] = Field((), description="When a job begins to wait.")
    on_cancel: tuple[AnyHook, ...] = Field((), description="After a job that was cancelled.")
