"""`notify`: where people are told what happens."""

from __future__ import annotations

from datetime import timedelta
from typing import Annotated, Literal, Self

from pydantic import BeforeValidator, Field, model_validator

from nightherd.config.schema.types import (
    Filling,
    Model,
    Name,
    Span,
    TimeZone,
    reading,
    refuse,
    shaped,
)
from nightherd.model.notifications.message import check_template
from nightherd.model.notifications.target import parse_time

NotifyEvent = Literal[
    "completed",
    "failed",
    "suspended",
    "approval",
    "question",
    "limit",
    "lost",
    "message",
    "digest",
]
Template = Annotated[
    str, BeforeValidator(reading("shape", check_template), json_schema_input_type=str)
]


def check_time(text: str) -> str:
    """The text, if it is a time of the day."""
    parse_time(text)
    return text


TimeOfDay = Annotated[
    str, BeforeValidator(reading("shape", check_time), json_schema_input_type=str)
]


Host = Annotated[
    str,
    shaped(
        r"[A-Za-z0-9](?:[A-Za-z0-9._-]*[A-Za-z0-9])?|\[?[0-9A-Fa-f:.]+\]?",
        "a host; write ntfy.lan or 192.168.1.5",
    ),
]


class Digest(Model):
    """A summary of a day."""

    at: TimeOfDay = Field(description="When it is sent, as in 07:30.")
    timezone: TimeZone = Field("UTC", description="Time zone of that time.")


class NotifyTarget(Model):
    """Where notifications go, and about what. An agent's or schedule's that has no url means the fleet's of that name."""

    name: Name = Field(description="Name of the target.")
    url: Filling | None = Field(
        None, description="Apprise URL with its secrets from the environment, as in ${NTFY_URL}."
    )
    url_env: Filling | None = Field(None, description="Variable that holds the whole URL.")
    events: tuple[NotifyEvent, ...] | None = Field(
        None,
        description="What it is told; by default failed, suspended, approval, question, limit and message.",
    )
    title: Template | None = Field(None, description="Title of its messages, with ${notice.FIELD}.")
    template: Template | None = Field(
        None, description="Text of its messages, with ${notice.FIELD}."
    )
    allow_hosts: tuple[Host, ...] = Field(
        (), description="Hosts that may be reached although their address is private."
    )
    approver: Name | None = Field(
        None, description="Name under which its reader answers by links; by default the target's."
    )
    timeout: Span = Field(
        timedelta(seconds=30), description="How long sending one message may take."
    )
    give_up_after: Span = Field(
        timedelta(hours=24), description="How long a message that is not taken is tried again."
    )

    @model_validator(mode="after")
    def has_one_address(self) -> Self:
        """At most one spelling of where to."""
        if self.url is not None and self.url_env is not None:
            raise refuse("conflict", "'url' and 'url_env' both name the address", key="url_env")
        if "digest" in (self.events or ()) and not isinstance(self, FleetTarget):
            raise refuse("conflict", "only targets of the fleet have a digest", key="events")
        return self


class FleetTarget(NotifyTarget):
    """A target of the whole fleet."""

    digest: Digest | None = Field(None, description="A summary every day.")

    @model_validator(mode="after")
    def is_complete(self) -> Self:
        """There is an address, and a time for the digest."""
        if self.url is None and self.url_env is None:
            raise refuse("incomplete", "a notify target of the fleet needs 'url' or 'url_env'")
        if self.digest is None and "digest" in (self.events or ()):
            raise refuse(
                "incomplete", "the event digest needs 'digest' with its time", key="events"
            )
        return self
