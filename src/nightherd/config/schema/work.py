"""`work_source`: issues of a tracker that schedules take their work from."""

from __future__ import annotations

from typing import Annotated, Literal
from urllib.parse import urlsplit

from pydantic import BeforeValidator, Field

from nightherd.config.schema.types import Count, Filling, Flag, Model, reading, shaped
from nightherd.errors import InvalidValueError
from nightherd.model.webhooks import is_loopback


def check_server(url: str) -> str:
    """The address of an API: https, or http on this machine, and nothing that could hold a secret."""
    try:
        address = urlsplit(url)
        host, port = address.hostname or "", address.port
    except ValueError:
        host, port, address = "", None, urlsplit("")
    is_local = address.scheme == "http" and is_loopback(host)
    has_more = "@" in address.netloc or address.query or address.fragment or port == 0
    if not host or has_more or not (address.scheme == "https" or is_local):
        # The text itself is not repeated: it may hold a password.
        raise InvalidValueError(
            "not the address of an API; write https://HOST/api/v3 (http only on this machine)"
        )
    return url


Repository = Annotated[
    str,
    shaped(
        r"(?!\.\.?/)[A-Za-z0-9_.-]+/(?!\.\.?$)[A-Za-z0-9_.-]+",
        "a repository; write owner/repository",
    ),
]
Server = Annotated[str, BeforeValidator(reading("shape", check_server), json_schema_input_type=str)]


class WorkLabels(Model):
    """Labels that say where an item of work stands."""

    ready: Filling = Field("ready", description="Label of work that is ready.")
    in_progress: Filling = Field("agent-working", description="Label of work in progress.")
    done: Filling | None = Field(None, description="Label that work gets when its job succeeded.")
    failed: Filling | None = Field(
        None, description="Label that work gets when it failed too often."
    )


class WorkAuth(Model):
    """How to sign in."""

    token_env: Filling = Field("GITHUB_TOKEN", description="Variable that holds the token.")


class WorkSource(Model):
    """Where work is taken from."""

    type: Literal["github", "none"] = Field(
        description="github; none for a schedule that takes no work although its agent does."
    )
    repo: Repository | None = Field(None, description="For github: owner/repository.")
    base_url: Server = Field(
        "https://api.github.com",
        description="Address of the API; another one needs a token of its own.",
    )
    labels: WorkLabels | None = Field(None, description="Labels for the status of work.")
    exclude_labels: tuple[Filling, ...] = Field((), description="Labels of work to leave alone.")
    on_success: Literal["close", "keep"] = Field(
        "close", description="Whether the issue of a successful job is closed."
    )
    cleanup_on_failure: Flag = Field(
        True, description="Whether failed work is ready again; else it keeps its label."
    )
    cleanup_in_progress: Flag | None = Field(
        None, description="Whether work that is in progress without anybody's claim is released."
    )
    max_attempts: Count = Field(3, description="Jobs that one issue gets before it is given up.")
    lock: Flag = Field(
        True, description="Whether a git ref of the repository keeps other fleets from an issue."
    )
    auth: WorkAuth | None = Field(None, description="How to sign in.")
