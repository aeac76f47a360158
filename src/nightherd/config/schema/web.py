"""The section `web` of a fleet file: the API on a port, and the dashboard."""

from typing import Annotated, Literal, Self

from pydantic import BeforeValidator, Field, model_validator

from nightherd.config.schema.notify import Host
from nightherd.config.schema.types import Filling, Flag, Hours, Model, Port, reading, refuse
from nightherd.model.access.web import (
    check_base_path,
    check_contact,
    check_header_name,
    check_network,
)
from nightherd.model.webhooks import check_public_url, is_loopback

PublicUrl = Annotated[
    str, BeforeValidator(reading("shape", check_public_url), json_schema_input_type=str)
]
Network = Annotated[
    str, BeforeValidator(reading("shape", check_network), json_schema_input_type=str)
]
HeaderName = Annotated[
    str, BeforeValidator(reading("shape", check_header_name), json_schema_input_type=str)
]
BasePath = Annotated[
    str, BeforeValidator(reading("shape", check_base_path), json_schema_input_type=str)
]
Contact = Annotated[
    str, BeforeValidator(reading("shape", check_contact), json_schema_input_type=str)
]
RoleName = Literal["viewer", "operator", "admin"]


class Tls(Model):
    """The certificate of the port."""

    cert: Filling = Field(description="Certificate chain (PEM), relative to this file.")
    key: Filling = Field(description="Private key (PEM), relative to this file.")


class WebPush(Model):
    """Pushes to devices that a person has subscribed in the dashboard."""

    contact: Contact | None = Field(
        default=None,
        description="Whom push services may write to, as mailto:NAME@HOST or https://HOST; by default the host of public_url.",
    )
    allow_hosts: tuple[Host, ...] = Field(
        default=(),
        description="Push services that may be reached although their address is private.",
    )


class Web(Model):
    """The API on a port, and the dashboard."""

    enabled: Flag = Field(False, description="Whether it is served on a port.")
    port: Port = Field(3232, description="Port to listen on.")
    host: Filling = Field(
        "localhost",
        description="Address to listen on; beyond this machine it needs tls or trusted_proxy.",
    )
    token_env: Filling = Field("NIGHTHERD_WEB_TOKEN", description="Variable with the API token.")
    hosts: tuple[Filling, ...] = Field(
        (), description="Names by which it may be addressed, besides its own."
    )
    public_url: PublicUrl | None = Field(
        None, description="Where people reach it, for answer links in notifications."
    )
    tls: Tls | None = Field(None, description="Certificate to serve HTTPS with.")
    trusted_proxy: tuple[Network, ...] = Field(
        (), description="Networks of reverse proxies whose forwarded headers are believed."
    )
    identity_header: HeaderName | None = Field(
        None, description="Header by which a trusted proxy names the person it logged in."
    )
    people: dict[Filling, RoleName] = Field(
        {},
        description="Role of each person whom the proxy names, '*' for everyone else; by default all are viewers.",
    )
    base_path: BasePath = Field("", description="Path below which everything is served.")
    session_expiry_hours: Hours = Field(
        24, description="Hours after which a browser has to log in again."
    )
    push: WebPush = Field(WebPush(), description="Pushes to phones and browsers.")
    open_browser: Flag = Field(
        False, description="Whether 'start' on a terminal opens the dashboard in a browser."
    )
    tool_results: Flag = Field(
        True, description="Whether the dashboard shows results of tools unfolded."
    )
    message_grouping: Literal["separate", "grouped"] = Field(
        "separate", description="Whether the dashboard shows messages in a row as one."
    )

    @model_validator(mode="after")
    def is_served(self) -> Self:
        """What people are to reach is served."""
        if self.public_url is not None and not self.enabled:
            raise refuse("incomplete", "'public_url' needs 'enabled: true'", key="public_url")
        return self

    @model_validator(mode="after")
    def is_protected(self) -> Self:
        """What other machines reach is encrypted, and nobody but a proxy names people."""
        if self.identity_header is not None and not self.trusted_proxy:
            message = "'identity_header' needs 'trusted_proxy': anyone could send the header"
            raise refuse("incomplete", message, key="identity_header")
        if self.people and self.identity_header is None:
            raise refuse("incomplete", "'people' needs 'identity_header'", key="people")
        is_protected = self.tls is not None or self.trusted_proxy
        if self.enabled and not is_loopback(self.host) and not is_protected:
            message = (
                f"other machines can reach {self.host}: add 'tls' with 'cert' and 'key', or 'trusted_proxy'"
                " with the network of a proxy that encrypts; or listen on localhost"
            )
            raise refuse("incomplete", message, key="host")
        return self
